"""Runs the command ``launchwise`` as a user does, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from samples import ROOT


def launchwise(
    *arguments: str, folder: Path = ROOT, **variables: str
) -> subprocess.CompletedProcess[str]:
    """``launchwise`` in a folder, with environment variables."""
    return subprocess.run(
        [sys.executable, "-m", "launchwise", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def complaint(done: subprocess.CompletedProcess[str]) -> str:
    """The one line that a mistake of the user is told in, after it was checked to be that."""
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith("launchwise: ")
    return done.stderr.removeprefix("launchwise: ").rstrip("\n")
