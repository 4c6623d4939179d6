"""Programs in Python that are forks of the process that starts them, where imports are there.

Where a process starts Python, most of the time goes into the imports of what its parent has loaded
already. :class:`ForkingPopen` forks instead. The fork has pipes, session, environment, folder and
exit code of its own, as a process that is started has.
"""

from __future__ import annotations

import atexit
import faulthandler
import functools
import gc
import importlib
import importlib.machinery
import itertools
import os
import re
import runpy
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

POPEN = subprocess.Popen
_RULE_SCRIPT = re.compile(r"\s*set -euo pipefail;\s+(?P<command>\S+ \S+\.py)\s*")
_OURS = re.compile(r"-m (launchwise(\.\w+)+|snakemake)|-c .*snakemake.cli import main; main\(\)")


def program(command: Any, shell: bool) -> list[str] | None:
    """What Python is asked to run: ``-m`` and a module of ours or Snakemake, ``-c`` and code that
    calls it, arguments; or a script that Snakemake starts for a rule. None for all else."""
    if shell:
        found = _RULE_SCRIPT.fullmatch(command) if isinstance(command, str) else None
        words = shlex.split(found["command"]) if found else []
        return words[1:] if words[:1] == [sys.executable] else None
    words = [command] if isinstance(command, str | os.PathLike) else list(map(str, command))
    if words[0] == sys.executable and _OURS.fullmatch(" ".join(words[1:3])):
        return words[1:]
    return None


class ForkingPopen(POPEN):  # type: ignore[type-arg]
    """``subprocess.Popen`` that forks where :func:`program` knows what Python is asked to run."""

    program = staticmethod(program)

    def __init__(self, command: Any, **options: Any) -> None:
        arguments = self.program(command, options.get("shell", False))
        if arguments is not None:
            given = options.get("env")
            environment = dict(os.environ if given is None else given)
            kept = frozenset(options.get("pass_fds", ()))
            try:
                fork = functools.partial(_be, arguments, environment, kept)
                super().__init__(command, **options, preexec_fn=fork)
            except subprocess.SubprocessError:
                # What was pending in the forking thread, such as a signal, was raised before the
                # program's first line, which lets nothing through: it has not begun.
                super().__init__(command, **options)
            return
        super().__init__(command, **options)


def _be(arguments: list[str], environment: Mapping[str, str], kept: Collection[int]) -> None:
    """Be the program instead of starting it; never returns."""
    code = 1
    try:
        _be_new(environment, kept)
        is_option = arguments[0] in ("-m", "-c")
        sys.argv = arguments[1:] if is_option else list(arguments)
        first = os.getcwd() if is_option else str(Path(arguments[0]).parent)
        search([first, *places(environment)])
        if arguments[0] == "-c":
            exec(arguments[1], {"__name__": "__main__"})
        elif is_option:
            # A module that was imported under this name may not be what is found now.
            if not hasattr(sys.modules.get(arguments[1]), "__path__"):
                sys.modules.pop(arguments[1], None)
            runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(arguments[0], run_name="__main__")
        code = 0
    except SystemExit as end:
        code = exit_code(end)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        leave(code)


def _be_new(environment: Mapping[str, str], kept: Collection[int]) -> None:
    """Descriptors, streams, signals and variables of a new Python."""
    atexit._clear()
    # What was made before stays: neither collected nor, by a mark of the collector, copied.
    gc.freeze()
    # 0, 1 and 2 are in place. At another one subprocess waits until exec would have closed it.
    ends = sorted({2, *kept, 4096})
    for low, high in itertools.pairwise(ends):
        os.closerange(low + 1, high)
    # A fork of a fork replaces them again: what is collected then must not close them.
    sys.stdin, sys.stdout, sys.stderr = (
        open(0, closefd=False),  # noqa: SIM115
        open(1, "w", closefd=False),  # noqa: SIM115
        open(2, "w", buffering=1, errors="backslashreplace", closefd=False),  # noqa: SIM115
    )
    faulthandler.disable()
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) == signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    signal.set_wakeup_fd(-1)
    os.environ.clear()
    os.environ.update(environment)


def exit_code(end: SystemExit) -> int:
    """Exit code of a program that ends so; a message is printed."""
    if isinstance(end.code, str):
        print(end.code, file=sys.stderr)
    return end.code if isinstance(end.code, int) else int(end.code is not None)


def leave(code: int) -> None:
    """End this fork as Python ends: its threads first, then what it registered for its end."""
    try:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def places(environment: Mapping[str, str]) -> list[str]:
    """Folders that ``PYTHONPATH`` names."""
    return [one for one in environment.get("PYTHONPATH", "").split(os.pathsep) if one]


def search(first: list[str]) -> None:
    """Look for modules in these folders first. What was loaded from another copy of the project
    than they lead to is forgotten, and a ``sitecustomize.py`` of theirs is run, as at Python's
    start, unless that was done."""
    sys.path[:] = dict.fromkeys([*first, *sys.path])
    importlib.invalidate_caches()
    loaded = sys.modules.get("launchwise")
    found = importlib.machinery.PathFinder.find_spec("launchwise", sys.path)
    if loaded and loaded.__file__ and found and found.origin != loaded.__file__:
        forget(Path(loaded.__file__).parents[1])
    customize(first)


def forget(root: Path) -> None:
    """Forget every module that was loaded from a copy of the project."""
    # All are named before one goes: a package without __init__ asks its parent where it lies.
    for name in [name for name, module in list(sys.modules.items()) if _lies_in(root, module)]:
        del sys.modules[name]


def _lies_in(root: Path, module: Any) -> bool:
    """Whether a module lies in a copy of the project, which the environment inside it does not."""
    file = getattr(module, "__file__", None)
    if file is None:
        paths = list(getattr(module, "__path__", []))
        file = paths[0] if paths else ""
    return str(file).startswith(f"{root}/") and "/.venv/" not in str(file)


def customize(folders: list[str]) -> None:
    """Run the first ``sitecustomize`` of these folders; its neighbours come first, too."""
    found = next((one for one in folders if Path(one, "sitecustomize.py").is_file()), None)
    done = getattr(sys.modules.get("sitecustomize"), "__file__", None)
    if found is None or done == str(Path(found, "sitecustomize.py")):
        return
    sys.path[:] = [found, *(one for one in sys.path if one != found)]
    neighbours = {path.stem for path in Path(found).iterdir()}
    for name in [name for name in sys.modules if name.partition(".")[0] in neighbours]:
        del sys.modules[name]
    importlib.import_module("sitecustomize")
