"""Lookup, ``recommend`` and every export give the same answer to any question."""

import pytest
from agreeing import Agreement, Planted, asked_about


@pytest.fixture(scope="module")
def made(folder, domain):
    return asked_about(folder, domain)


class TestProductOfTheStencil(Agreement, Planted):
    """See :class:`Agreement`."""
