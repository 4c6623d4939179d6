"""The source of Granger's study."""

from __future__ import annotations

import pytest
from samples import ROOT

from launchwise.experiment.published import Records, read_tables


@pytest.fixture
def in_the_project(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.fixture
def published() -> dict[str, Records]:
    return read_tables(ROOT / "kernels" / "granger" / "studies" / "granger_time")
