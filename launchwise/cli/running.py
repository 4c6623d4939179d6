"""Runs Snakemake for a command."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence

from launchwise.base.places import ROOT


def print_line(line: Sequence[str]) -> None:
    """Print a command as a shell reads it, on standard error."""
    print(shlex.join(line), file=sys.stderr, flush=True)


def run_snakemake(line: Sequence[str], say: bool = True) -> None:
    """Print a line that begins with ``snakemake``, unless that was done, and run it.

    Raises
    ------
    SystemExit
        With Snakemake's exit code when it fails; it has said why.
    """
    if say:
        print_line(line)
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH", ""))))
    done = subprocess.run(
        [sys.executable, "-m", *line],
        env={**os.environ, "PYTHONPATH": path},
        # What the command answers goes alone to standard output.
        stdout=2,
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.returncode)
