"""Runs a program in a fork of this process, where its imports are there already.

Python, numpy, pandas and Snakemake take longer to start than most tests to run. The fork has
directory, environment, output and exit code of its own, as a process that is started has.
"""

from __future__ import annotations

import atexit
import io
import os
import select
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

from snakemake.cli import main

ROOT = Path(__file__).resolve().parents[2]


def forked(
    program: Callable[[list[str]], int | None],
    arguments: list[str],
    folder: Path,
    environment: Mapping[str, str],
    seconds: float,
) -> subprocess.CompletedProcess[str]:
    """Call ``program`` with ``arguments`` and return what it printed and its exit code.

    Where ``PYTHONPATH`` names a copy of the project, what lies in the project is imported anew from
    there: a test may have changed it.

    Parameters
    ----------
    program
        Imports what it needs inside; its result or that of ``SystemExit`` is the exit code.
    environment
        All variables of the process.

    Raises
    ------
    subprocess.TimeoutExpired
        When it does not end in time; it is killed.
    """
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        process = os.fork()
        if not process:
            _be(program, arguments, folder, environment, output, errors)
        handle = os.pidfd_open(process)
        try:
            ended, _, _ = select.select([handle], [], [], seconds)
            if not ended:
                os.kill(process, signal.SIGKILL)
        finally:
            os.close(handle)
            code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        if not ended:
            raise subprocess.TimeoutExpired(arguments, seconds)
        for stream in (output, errors):
            stream.seek(0)
        return subprocess.CompletedProcess(arguments, code, output.read(), errors.read())


def _be(
    program: Callable[[list[str]], int | None],
    arguments: list[str],
    folder: Path,
    environment: Mapping[str, str],
    output: IO[str],
    errors: IO[str],
) -> None:
    """Be that process; never returns."""
    code = 1
    try:
        # What the tests' process would do at its end is not for its forks to do.
        atexit._clear()
        os.dup2(output.fileno(), 1)
        os.dup2(errors.fileno(), 2)
        sys.stdout, sys.stderr = _stream(1), _stream(2)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        sys.argv = [program.__name__, *arguments]
        places = [one for one in environment.get("PYTHONPATH", "").split(os.pathsep) if one]
        if str(ROOT) not in places:
            _forget_project(places)
        code = program(arguments) or 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _stream(number: int) -> io.TextIOWrapper:
    return open(number, "w", buffering=1, encoding="utf-8", closefd=False)


def _forget_project(places: list[str]) -> None:
    """Import what is asked for from ``places`` first, and nothing of the project from before."""
    own = {str(ROOT), str(ROOT / "tests" / "support"), ""}
    sys.path[:] = [*places, *(one for one in sys.path if one not in own)]
    # All are named before one goes: a package without __init__ asks its parent where it lies.
    for name in [name for name, module in list(sys.modules.items()) if _of_project(module)]:
        del sys.modules[name]


def _of_project(module: Any) -> bool:
    """Whether a module lies in the project, which the environment inside it does not."""
    file = getattr(module, "__file__", None)
    if file is None:
        paths = list(getattr(module, "__path__", []))
        file = paths[0] if paths else ""
    return str(file).startswith(f"{ROOT}/") and "/.venv/" not in str(file)


def run_snakemake(arguments: list[str]) -> None:
    """Snakemake's command line."""
    main(arguments)


def run_launchwise(arguments: list[str]) -> int:
    """The command ``launchwise``."""
    from launchwise.cli.app import main

    return main(arguments)
