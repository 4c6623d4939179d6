"""Fixtures of tests of the commands."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from launchwise.cli.check import cpu_runs
from launchwise.cli.check.on_cpu import Runner


@pytest.fixture
def without_nvcc(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compilation by nvcc has tests of its own."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")


@pytest.fixture
def in_one_process(without_nvcc: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """``launchwise check --cpu`` runs kernels in this process: another takes half a second more."""

    class Here(cpu_runs.CpuProcess):
        def __init__(self, folder: Path) -> None:
            self._folder, self._runner = folder, list[Runner]()

        def __exit__(self, *error: object) -> None:
            pass

        def run(self, job: Mapping[str, Any], seconds: float) -> dict[str, Any]:
            self._runner = self._runner or [Runner(self._folder)]
            return self._runner[0].answer(job)

    monkeypatch.setattr(cpu_runs, "CpuProcess", Here)
