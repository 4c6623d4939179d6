"""Runs the command ``launchwise`` as a user does, in a process of its own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from forks import forked, run_launchwise
from samples import ROOT

from launchwise.base.typed import read_yaml
from launchwise.cli.app import main


def launchwise(
    *arguments: str, folder: Path = ROOT, **variables: str
) -> subprocess.CompletedProcess[str]:
    """``launchwise`` in a folder, with environment variables."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    return forked(run_launchwise, [*arguments], folder, environment, seconds=120)


def with_every_gpu(*workloads: str) -> dict[str, Any]:
    """The project's settings with these workloads; its GPUs, and a live one, have all studies."""
    settings: dict[str, Any] = read_yaml(ROOT / "config.yaml")
    for entry in settings["gpus"].values():
        entry.pop("studies", None)
    settings["gpus"]["own"] = {"source": "live", "arch": "sm_90"}
    return {**settings, "workloads": [*workloads]}


def line_of(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The one line that a command in this process tells a mistake of the user in."""
    capsys.readouterr()
    assert main([*words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1, err
    return err.removeprefix("launchwise: ").rstrip("\n")


def complaint(done: subprocess.CompletedProcess[str]) -> str:
    """The one line that a mistake of the user is told in, after it was checked to be that."""
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith("launchwise: ")
    return done.stderr.removeprefix("launchwise: ").rstrip("\n")
