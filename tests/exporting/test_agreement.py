"""Lookup, ``recommend`` and every export give the same answer to any question."""

from __future__ import annotations

from pathlib import Path

import pytest
from agreeing import Agreement, Made, Planted, asked_about

from launchwise.learning.features import Domain


@pytest.fixture(scope="module")
def made(folder: Path, domain: Domain) -> Made:
    return asked_about(folder, domain)


class TestProductOfTheStencil(Agreement, Planted):
    """See :class:`Agreement`."""
