"""The spec of the solver."""

from __future__ import annotations

from pathlib import Path

import pytest

from launchwise.workloads.spec import Spec, load_spec


@pytest.fixture(scope="session")
def tridiagonal_spec() -> Spec:
    """Spec of the tridiagonal workload, which has stages."""
    return load_spec(Path(__file__).resolve().parents[1])
