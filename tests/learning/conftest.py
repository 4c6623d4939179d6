"""The acoustic workload with recorded times, for models to learn from."""

from __future__ import annotations

import pandas as pd
import pytest
from acoustic_cases import recorded_domain, recorded_rows

from launchwise.learning.features import Domain
from launchwise.workloads.spec import Spec


@pytest.fixture(scope="session")
def domain(acoustic_spec: Spec) -> Domain:
    return recorded_domain(acoustic_spec)


@pytest.fixture(scope="session")
def rows(domain: Domain) -> pd.DataFrame:
    """Measured times of the training problems."""
    return recorded_rows(domain)
