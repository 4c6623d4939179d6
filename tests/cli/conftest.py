"""Fixtures of tests of the commands."""

import pytest

from launchwise.cli.check import cpu_runs
from launchwise.cli.check.on_cpu import Runner


@pytest.fixture
def without_nvcc(monkeypatch):
    """Compilation by nvcc has tests of its own."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")


@pytest.fixture
def in_one_process(without_nvcc, monkeypatch):
    """``launchwise check --cpu`` runs kernels in this process: another takes half a second more."""

    class Here(cpu_runs.CpuProcess):
        def __init__(self, folder):
            self._folder, self._runner = folder, list[Runner]()

        def __exit__(self, *error):
            pass

        def run(self, job, seconds):
            self._runner = self._runner or [Runner(self._folder)]
            return self._runner[0].answer(job)

    monkeypatch.setattr(cpu_runs, "CpuProcess", Here)
