"""The tests' own workload with made-up times, for models to learn from."""

from __future__ import annotations

import pandas as pd
import pytest
from stencil import stencil_domain, training_rows

from launchwise.learning.features import Domain
from launchwise.workloads.spec import Spec


@pytest.fixture(scope="session")
def domain(stencil_spec: Spec) -> Domain:
    return stencil_domain(stencil_spec)


@pytest.fixture(scope="session")
def rows(stencil_spec: Spec) -> pd.DataFrame:
    """Measured times of the training problems."""
    return training_rows(stencil_spec)
