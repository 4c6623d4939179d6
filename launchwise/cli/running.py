"""Runs Snakemake for a command."""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from launchwise.base.places import ROOT, shipped
from launchwise.base.storage import user_cache, why_not_written


@contextlib.contextmanager
def _cache() -> Iterator[dict[str, str]]:
    """Variables by which Snakemake, which does not start without a cache, finds a folder for it."""
    usual = user_cache().parent
    with contextlib.suppress(OSError):
        usual.mkdir(parents=True, exist_ok=True)
    if why_not_written(usual) is None:
        yield {}
    else:
        with tempfile.TemporaryDirectory(prefix="launchwise-") as folder:
            yield {"XDG_CACHE_HOME": folder}


def snakemake_line(
    targets: Iterable[str | Path], cores: int, *options: str, files: Sequence[Path] = ()
) -> list[str]:
    """Words that make targets with launchwise's workflow; ``files`` are settings."""
    settings = ["--configfile", *map(str, files)] if files else []
    words = ["snakemake", "--snakefile", str(shipped("Snakefile")), *options, *settings]
    quiet = ["--quiet", "rules", "progress", "host"]
    return [*words, "--cores", str(cores), *quiet, "--", *map(str, targets)]


def print_line(line: Sequence[str]) -> None:
    """Print a command as a shell reads it, on standard error."""
    print(shlex.join(line), file=sys.stderr, flush=True)


def run_snakemake(line: Sequence[str], say: bool = True) -> None:
    """Print a line that begins with ``snakemake``, unless that was done, and run it. Raises
    SystemExit with Snakemake's exit code when it fails; it has said why."""
    if say:
        print_line(line)
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH", ""))))
    with _cache() as cache:
        done = subprocess.run(
            [sys.executable, "-m", *line],
            env={**os.environ, **cache, "PYTHONPATH": path},
            # What the command answers goes alone to standard output.
            stdout=2,
            check=False,
        )
    if done.returncode:
        raise SystemExit(done.returncode)
