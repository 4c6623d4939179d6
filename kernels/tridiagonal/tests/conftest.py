"""The spec of the solver, and a device for its sources."""

from __future__ import annotations

from pathlib import Path

import pytest

from launchwise.experiment.published import Records, read_tables
from launchwise.report.blocks import Section
from launchwise.report.study import StudyData
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


@pytest.fixture(scope="module")
def published(request: pytest.FixtureRequest) -> dict[str, Records]:
    """The paper's tables of the study that a module names."""
    return read_tables(FOLDER / "studies" / request.module.STUDY)


@pytest.fixture(scope="module")
def page(
    request: pytest.FixtureRequest, made: StudyData, published: dict[str, Records]
) -> list[Section]:
    """The sections of the study that a module makes."""
    found: list[Section] = request.module.own(made, published)
    return found
