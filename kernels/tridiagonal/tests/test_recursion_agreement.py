"""Lookup, ``recommend`` and every export give the same answer for runs of several kernels."""

from __future__ import annotations

import pytest
from agreeing import Agreement, Made, asked_about
from products import fitted

STUDY = "tridiagonal_recursion"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("final") / STUDY
    return asked_about(folder, fitted(STUDY, folder)[0].domain)


class TestProductOfRecursions(Agreement):
    """See :class:`Agreement`."""
