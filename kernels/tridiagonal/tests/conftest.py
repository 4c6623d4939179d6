"""The spec of the solver, and a device for its sources."""

from __future__ import annotations

from pathlib import Path

import pytest

from launchwise.workloads.spec import Spec, load_spec
from tests.support.host_device import HostDevice

FOLDER = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def tridiagonal_spec() -> Spec:
    return load_spec(FOLDER)


@pytest.fixture(scope="session")
def spec(tridiagonal_spec: Spec) -> Spec:
    return tridiagonal_spec


@pytest.fixture
def device(spec: Spec, kernel_cache: Path) -> HostDevice:
    return HostDevice(FOLDER, spec.headers, cache=kernel_cache)
