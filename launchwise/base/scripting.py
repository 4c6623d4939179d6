"""Runs a rule's script: fills its function from the rule, log file, one-line errors, exit code.

A script is a function ``main`` and ``run(main)``. What ``main`` calls its parameters is what the
rule calls its inputs, outputs, parameters and wildcards (:func:`arguments_of`), so that neither is
written twice. Names of the rule that ``main`` does not take are what the rule waits for, or reruns
after.
"""

from __future__ import annotations

import inspect
import logging
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_origin, get_type_hints

from launchwise.base import work
from launchwise.base.errors import Interrupted, UserError, out_of, unknown
from launchwise.base.storage import FULL, RESULTS, why_not_written, write_text

LOAD = Path(__file__).with_name("load_modules.sh")
"""For bash. What is loaded are arguments, never part of this text."""

SHELLS_OWN = frozenset({"_", "SHLVL", "PWD", "OLDPWD", "ENV_PROGRAM"})
CONTAINERS = frozenset({"APPTAINER_CONTAINER", "SINGULARITY_CONTAINER"})
"""Variables of processes in a container."""

PATIENCE_S = 120.0


def load_modules(names: Sequence[str]) -> None:
    """Change this process's environment as ``module load`` does; child processes inherit it.
    Nothing happens without a name, or in a container, which brings its own toolkit. Raises
    UserError when a module cannot be loaded, with what the module system said."""
    if not names or not CONTAINERS.isdisjoint(os.environ):
        return
    bash, env = shutil.which("bash"), shutil.which("env")
    if bash is None or env is None:
        raise UserError(f"module load {' '.join(names)}", "", "needs bash and env")
    try:
        done = subprocess.run(
            [bash, "--noprofile", "--norc", str(LOAD), *names],
            env={**os.environ, "ENV_PROGRAM": env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=PATIENCE_S,
        )
    except subprocess.TimeoutExpired:
        raise _failed(names, f"took longer than {PATIENCE_S:g} s") from None
    said = done.stderr.decode(errors="replace").strip()
    # Old versions of Environment Modules end with 0 where they found nothing.
    if done.returncode != 0 or "ERROR" in said:
        raise _failed(names, said or f"ended with status {done.returncode}")
    _take(done.stdout)


def _take(listed: bytes) -> None:
    pairs = (entry.partition(b"=")[::2] for entry in listed.split(b"\0") if entry)
    loaded = {os.fsdecode(name): os.fsdecode(value) for name, value in pairs}
    for name in {*os.environ} - {*loaded} - SHELLS_OWN:
        del os.environ[name]
    for name, value in loaded.items():
        if name not in SHELLS_OWN:
            os.environ[name] = value


def _failed(names: Sequence[str], why: str) -> UserError:
    where = f"module load {' '.join(names)}"
    return UserError(where, "", f"{socket.gethostname()}: {why}; see `modules` in config.yaml")


log = logging.getLogger("launchwise")

EXIT_RESUMABLE = 75  # Exit code of a script that was interrupted: the same command resumes


@dataclass(frozen=True)
class Job:
    """What a rule gives its script, as plain values."""

    rule: str  # name of the rule
    log: Sequence[str]  # log file; empty without one
    # ``input``, ``output``, ``params`` and ``wildcards``: name to value, files without a name under
    # the word itself; ``job``: ``threads`` and ``log``. JSON-able.
    given: Mapping[str, Mapping[str, Any]]
    # Environment modules to load, from the rule's resource of that name.
    modules: Sequence[str] = ()

    @classmethod
    def of(cls, snakemake: Any) -> Job:
        """Job of the object ``snakemake`` that Snakemake gives a script."""
        kinds = ("input", "output", "params", "wildcards")
        given = {kind: _named(kind, getattr(snakemake, kind)) for kind in kinds}
        given["job"] = {"threads": snakemake.threads, "log": list(snakemake.log)}
        modules = str(snakemake.resources.get("modules", "")).split()
        return cls(snakemake.rule, list(snakemake.log), given, modules)


def _named(kind: str, items: Any) -> dict[str, Any]:
    named = {
        name: list(value) if isinstance(value, list) else value for name, value in items.items()
    }
    count = sum(len(value) if isinstance(value, list) else 1 for value in named.values())
    unnamed = list(items)[: len(items) - count]
    return {kind: unnamed, **named} if unnamed and kind in ("input", "output") else named


def run(main: Callable[..., None]) -> None:
    """Call a script's function with what its rule gives it (:func:`arguments_of`). ``main`` is a
    function of the script's own file, to which Snakemake gives ``snakemake`` as a global. Raises
    SystemExit when the script fails; its message was logged (:func:`running`)."""
    run_job(main, Job.of(main.__globals__["snakemake"]))


def run_job(main: Callable[..., None], job: Job) -> None:
    """Call ``main`` for ``job`` in this process, see :func:`run`."""
    started, before = time.monotonic(), work.counted()
    with running(job):
        if job.modules:
            load_modules(job.modules)
        main(**arguments_of(main, job))
        if job.log:
            work.write(job.log[0], started, before)


def arguments_of(main: Callable[..., None], job: Job) -> dict[str, Any]:
    """Arguments of ``main``: each is what the rule gives by the name of the parameter.

    A name is looked up among inputs, outputs, parameters and wildcards; ``input`` and ``output``
    are the files without a name, ``threads`` and ``log`` those of the rule. A parameter with a
    default may be missing. Values are validated as the annotations say (pydantic): files become
    :class:`~pathlib.Path`, settings their models. ``list[Path]`` takes all files that the rule
    lists under a name, ``Path`` the only one, ``Path | None`` one or none. Raises UserError when
    the rule lacks a name, has it twice, or gives it something of another type.
    """
    hints, found = get_type_hints(main), {}
    for name, parameter in inspect.signature(main).parameters.items():
        kinds = [kind for kind, values in job.given.items() if name in values]
        if len(kinds) > 1:
            message = f"main of its script asks for it, and it is named in {' and in '.join(kinds)}"
            raise UserError(f"rule {job.rule}", name, message)
        if kinds:
            value = job.given[kinds[0]][name]
            found[name] = _validated(hints.get(name, Any), value, kinds[0], (job.rule, name))
        elif parameter.default is parameter.empty:
            known = [each for values in job.given.values() for each in values]
            message = f"main of its script asks for an {unknown('name', name, known)}"
            raise UserError(f"rule {job.rule}", name, message)
    return found


def _validated(annotation: Any, value: Any, kind: str, blamed: tuple[str, str]) -> Any:
    # Loading pydantic takes longer than many a script, and scripts that fork need it there alone.
    from pydantic import TypeAdapter, ValidationError

    takes_list = get_origin(annotation) is list
    if kind != "params" and takes_list and not isinstance(value, list):
        value = [value]
    if kind != "params" and isinstance(value, list) and not takes_list and len(value) < 2:
        value = next(iter(value), None)
    try:
        return TypeAdapter(annotation).validate_python(value)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, (blamed[1], *first["loc"])))
        message = f"is {value!r} in {kind}, main of its script takes {annotation}: {first['msg']}"
        raise UserError(f"rule {blamed[0]}", where, message) from None


@contextmanager
def running(job: Any) -> Iterator[logging.Logger]:
    """Log to the job's log file (first of ``job.log``, if any) and to the terminal.

    A :class:`UserError`, a full disk, too little memory and too deep nesting are logged in one line
    and end the process with exit code 1, an :class:`Interrupted` likewise with
    :data:`EXIT_RESUMABLE`, Ctrl-C with that code and no line. Any other exception is
    logged with its traceback and raised again.
    """
    log.handlers = []
    log.setLevel(logging.INFO)
    log.propagate = False
    # A log that has no space must not hide what stands in the terminal.
    logging.raiseExceptions = False
    log.addHandler(in_lines(logging.StreamHandler(sys.stderr)))
    try:
        if job.log:
            write_text(job.log[0], "")  # It says where nothing can be written.
            log.addHandler(in_lines(logging.FileHandler(job.log[0], encoding="utf-8")))
        yield log
    except UserError as error:
        log.error("launchwise: %s", error)
        raise SystemExit(1) from None
    except Interrupted as stopped:
        log.warning("%s; run the same command again to resume", stopped)
        raise SystemExit(EXIT_RESUMABLE) from None
    except KeyboardInterrupt:
        # Ctrl-C reaches every job at once; Snakemake's own process says so in one line.
        raise SystemExit(EXIT_RESUMABLE) from None
    except (MemoryError, RecursionError) as error:
        log.error("launchwise: %s", out_of(error))
        raise SystemExit(1) from None
    except Exception as error:
        if (full := _full_disk(error)) is not None:
            log.error("launchwise: %s", full)
            raise SystemExit(1) from None
        log.exception("internal error in launchwise; please report it")
        raise


def _full_disk(error: BaseException) -> UserError | None:
    """The mistake where a library could not write, whatever it makes of that; None otherwise."""
    refused = why_not_written(Path(RESULTS), nbytes=1 << 16)
    each: BaseException | None = error
    while each is not None:
        if isinstance(each, OSError) and each.errno in FULL:
            refused = each
            break
        each = each.__cause__ or each.__context__
    if refused is None or refused.errno not in FULL:
        return None
    why = os.strerror(refused.errno or 0)
    message = f"cannot be written: {why}: free space, then run the same command again"
    return UserError(refused.filename or RESULTS, "", message)


def in_lines(handler: logging.Handler) -> logging.Handler:
    """The handler, as the log of a stage is written: the first letter of the level, the message."""
    handler.setFormatter(logging.Formatter("%(levelname).1s %(message)s"))
    handler.setLevel(logging.INFO)
    return handler
