"""The spec of the solver, and a device for its sources."""

from pathlib import Path

import pytest

from launchwise.experiment.published import read_tables
from launchwise.workloads.spec import load_spec
from tests.support.host_device import HostDevice

FOLDER = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def tridiagonal_spec():
    return load_spec(FOLDER)


@pytest.fixture(scope="session")
def spec(tridiagonal_spec):
    return tridiagonal_spec


@pytest.fixture
def device(spec, kernel_cache):
    return HostDevice(FOLDER, spec.headers, cache=kernel_cache)


@pytest.fixture(scope="module")
def published(request):
    """The paper's tables of the study that a module names."""
    return read_tables(FOLDER / "studies" / request.module.STUDY)


@pytest.fixture(scope="module")
def page(request, made, published):
    """The sections of the study that a module makes."""
    return request.module.own(made, published)
