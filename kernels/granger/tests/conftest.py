"""The source of Granger's study."""

import pytest
from samples import ROOT

from launchwise.experiment.published import read_tables


@pytest.fixture
def in_the_project(monkeypatch):
    monkeypatch.chdir(ROOT)


@pytest.fixture
def published():
    return read_tables(ROOT / "kernels" / "granger" / "studies" / "granger_time")
