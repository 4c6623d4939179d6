"""Lookup, ``recommend`` and every export give the same answer for runs of several kernels."""

import pytest
from agreeing import Agreement, asked_about
from products import fitted

STUDY = "tridiagonal_recursion"
SIZES = [100_000, 150_000, 280_000, 500_000, 1_000_000, 5_000_000, 20_000_000, 100_000_000]
"""Sizes that it learns from: of either list of candidates, and a recursion is best at the last."""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("final") / STUDY
    return asked_about(folder, fitted(STUDY, folder, n=SIZES)[0].domain)


@pytest.mark.slow
class TestProductOfRecursions(Agreement):
    """See :class:`Agreement`."""
