"""The tests' own workload with made-up times, for models to learn from."""

import pytest
from samples import measurements, profile
from stencil import stencil_domain, training_rows

from launchwise.learning.features import Domain


@pytest.fixture(scope="session")
def domain(stencil_spec):
    return stencil_domain(stencil_spec)


@pytest.fixture(scope="session")
def one_gpu(stencil_spec):
    """The workload on a GPU "test"."""
    return Domain(stencil_spec, {"test": profile()})


@pytest.fixture(scope="session")
def sweep(stencil_spec):
    """Measurements of three sizes there."""
    return measurements(stencil_spec, [{"n": [64, 100, 130], "dtype": ["float32"], "order": [2]}])


@pytest.fixture(scope="session")
def rows(stencil_spec):
    """Measured times of the training problems."""
    return training_rows(stencil_spec)
