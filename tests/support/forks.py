"""Runs a program in a fork of this process, where its imports are there already.

Python, numpy, pandas and Snakemake take longer to start than most tests to run. The fork has
directory, environment, output and exit code of its own, as a process that is started has.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import io
import os
import select
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import IO, Any

from python_forks import ForkingPopen, exit_code, leave, places, search
from snakemake.cli import get_argument_parser, main

from launchwise.base.storage import user_cache

ROOT = Path(__file__).resolve().parents[2]
OWN = {str(ROOT), str(ROOT / "tests" / "support"), ""}


Program = Callable[[list[str]], int | None]
"""Imports what it needs inside; its result or that of ``SystemExit`` is the exit code."""


def at_home(folder: Path) -> dict[str, str]:
    """Variables of a user whose home is ``folder``; what is known of the project's code stays."""
    return {
        **{"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(folder)},
        "XDG_CACHE_HOME": str(user_cache().parent),
    }


class Fork:
    """A call of ``program`` with ``arguments`` in a process of its own.

    Where ``PYTHONPATH`` names a copy of the project, what lies in the project is imported anew from
    there: a test may have changed it. Where it names a folder with a ``sitecustomize.py``, that is
    run first, as at Python's start, and what the folder holds is imported from there.

    ``environment``: all variables of the process.
    ``output``, ``errors``: where it prints.
    ``session``: whether it leads a session of its own, so that it and what it starts can be killed
        together.
    """

    def __init__(
        self,
        program: Program,
        arguments: list[str],
        folder: Path,
        environment: Mapping[str, str],
        output: IO[Any],
        errors: IO[Any],
        session: bool = False,
    ) -> None:
        self.returncode: int | None = None
        if program is run_snakemake:
            load_libraries()
        self.pid = os.fork()
        if not self.pid:
            if session:
                os.setsid()
            _be(program, arguments, folder, environment, output, errors)
        self._handle = os.pidfd_open(self.pid)

    def poll(self) -> int | None:
        """Exit code, None while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, seconds: float | None = None) -> int:
        """Exit code, minus the number of the signal that ended it. Raises subprocess.TimeoutExpired
        when it does not end in time."""
        if self.returncode is None:
            if not select.select([self._handle], [], [], seconds)[0]:
                raise subprocess.TimeoutExpired(str(self.pid), seconds or 0)
            os.close(self._handle)
            self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Signal it, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)
        self.wait()


def forked(
    program: Program,
    arguments: list[str],
    folder: Path,
    environment: Mapping[str, str],
    seconds: float,
) -> subprocess.CompletedProcess[str]:
    """What a :class:`Fork` printed, and its exit code. Raises subprocess.TimeoutExpired when it
    does not end in time; it is killed."""
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        process = Fork(program, arguments, folder, environment, output, errors)
        try:
            code = process.wait(seconds)
        finally:
            process.kill()
        for stream in (output, errors):
            stream.seek(0)
        return subprocess.CompletedProcess(arguments, code, output.read(), errors.read())


def _be(
    program: Program,
    arguments: list[str],
    folder: Path,
    environment: Mapping[str, str],
    output: IO[Any],
    errors: IO[Any],
) -> None:
    """Be that process; never returns."""
    code = 1
    try:
        # What the tests' process would do at its end is not for its forks to do.
        atexit._clear()
        gc.freeze()
        os.dup2(output.fileno(), 1)
        os.dup2(errors.fileno(), 2)
        sys.stdout, sys.stderr = _stream(1), _stream(2)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        sys.argv = [program.__name__, *arguments]
        # A script's shell lets what it starts in the background ignore Ctrl-C.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        subprocess.Popen = ForkingPopen  # type: ignore[misc]
        named = places(environment)
        if str(ROOT) not in named:
            sys.path[:] = [one for one in sys.path if one not in OWN]
        search(named)
        code = program(arguments) or 0
    except SystemExit as end:
        code = exit_code(end)
    except BaseException:
        traceback.print_exc()
    finally:
        leave(code)


def _stream(number: int) -> io.TextIOWrapper:
    return open(number, "w", buffering=1, encoding="utf-8", closefd=False)


LOADED_LATE = (
    *("snakemake.report.html_reporter", "snakemake.profiles", "snakemake.storage"),
    *("nbformat", "smart_open", "statistics", "platformdirs"),
    *("pandas", "pyarrow.parquet"),
    *("sklearn.ensemble", "sklearn.neighbors", "sklearn.tree"),
    *("lightgbm", "xgboost", "optuna"),
)
"""What Snakemake imports when it reads a Snakefile, or later, and what its scripts import."""


@cache
def load_libraries() -> None:
    """Load what Snakemake and its scripts load: each fork has it then."""
    for name in LOADED_LATE:
        importlib.import_module(name)
    # Snakemake looks for its plugins in every folder of packages, once per process.
    get_argument_parser()


def run_snakemake(arguments: list[str]) -> None:
    """Snakemake's command line."""
    main(arguments)


def run_launchwise(arguments: list[str]) -> int:
    """The command ``launchwise``."""
    from launchwise.cli.app import main

    return main(arguments)
