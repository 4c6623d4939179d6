"""The tests' own workload with made-up times, for models to learn from."""

import pytest
from stencil import stencil_domain, training_rows


@pytest.fixture(scope="session")
def domain(stencil_spec):
    return stencil_domain(stencil_spec)


@pytest.fixture(scope="session")
def rows(stencil_spec):
    """Measured times of the training problems."""
    return training_rows(stencil_spec)
