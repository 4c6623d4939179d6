"""Triton as the compile stage calls it: a cubin per build, without a GPU and without PyTorch.

A ``.py`` source of a variant has a ``@triton.jit`` function. A process per group of builds imports
Triton (:mod:`launchwise.measuring.triton_child`); what it compiled is kept by Triton's own cache,
by the content of source, options and Triton itself.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from launchwise.base.storage import user_cache, why_not_written
from launchwise.measuring import triton_child
from launchwise.measuring.bundle import Apart, Compiled
from launchwise.workloads.builds import Build
from launchwise.workloads.triton_functions import INSTALL, MISSING

CACHE = "TRITON_CACHE_DIR"
"""Variable of Triton with the folder of its cache; the user's own value stays."""


class TritonMissing(Exception):
    """Triton is not there, or is of a release that cannot be called; the message says which."""


@cache
def release() -> str:
    """Release of the Triton that is installed.

    Raises
    ------
    TritonMissing
        With what to install.
    """
    if importlib.util.find_spec("triton") is None:
        raise TritonMissing(MISSING)
    return _release(*_answers({"folder": ".", "arch": "", "builds": [], "scratch": ""}))


def left_out(builds: Iterable[Build]) -> dict[str, str]:
    """Sources among those of ``builds`` that this machine cannot compile, and why."""
    sources = dict.fromkeys(build.source for build in builds if build.is_triton)
    try:
        if sources:
            release()
    except TritonMissing as missing:
        return dict.fromkeys(sources, str(missing))
    return {}


def compile_builds(folder: Path, builds: list[Build], arch: str) -> tuple[str, Compiled]:
    """Compile builds of Triton for an architecture, such as ``sm_90``, one after the other.

    A build that ends the process twice (LLVM aborts) is refused, and the next ones go on in
    another. Once is not enough: a request to stop that is sent to all processes ends it, too.

    Returns
    -------
    The release of Triton, and the outcome.

    Raises
    ------
    TritonMissing
        With what to install.
    """
    if importlib.util.find_spec("triton") is None:
        raise TritonMissing(MISSING)
    installed, ended = "", ""
    refused: dict[str, str] = {}
    apart: list[Apart] = []
    remaining = list(builds)
    with tempfile.TemporaryDirectory(prefix="launchwise-triton-") as name:
        while remaining:
            asked = {
                "folder": str(folder.resolve()),
                "arch": arch,
                "scratch": name,
                "builds": [_asked(build) for build in remaining],
            }
            answers, last = _answers(asked)
            installed = _release(answers, last)
            for build, answer in zip(remaining, answers[1:], strict=False):
                if "refused" in answer:
                    refused[build.key] = answer["refused"]
                    continue
                member = f"{build.key}.cubin"
                kernels = {build.kernels[0]: {"cubin": member, **answer["kernel"]}}
                apart.append(Apart(build, member, Path(name, member).read_bytes(), kernels))
            remaining = remaining[len(answers) - 1 :]
            if remaining and remaining[0].key == ended:
                died = remaining.pop(0)
                refused[ended] = f"triton failed: {died.source}: its process ended: {last}"
            elif remaining:
                ended = remaining[0].key
    return installed, Compiled([], refused, apart)


def _release(answers: list[dict[str, Any]], last: str) -> str:
    first = answers[0] if answers else {"missing": f"cannot be started: {last}"}
    if "missing" in first:
        raise TritonMissing(f"triton {first['missing']}: {INSTALL}")
    return str(first["release"])


def _asked(build: Build) -> dict[str, Any]:
    (kernel,) = build.kernels
    known = {"key": build.key, "source": build.source, "kernel": kernel}
    return {**known, "defines": dict(build.defines)}


def _kept(scratch: str) -> Path:
    """Where Triton keeps what it compiled; a full or read-only home costs speed alone."""
    folder = user_cache() / "triton"
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    return Path(scratch) if why_not_written(folder) is not None else folder


def _answers(asked: Mapping[str, Any]) -> tuple[list[dict[str, Any]], str]:
    """Answers of a process until its end, and the last line that it said beside them."""
    environment = {CACHE: str(_kept(asked["scratch"])), **os.environ}
    # A kernel that the interpreter runs has nothing to compile.
    environment.pop("TRITON_INTERPRET", None)
    done = subprocess.run(
        [sys.executable, "-m", triton_child.__name__],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        errors="replace",
        env=environment,
        check=False,
    )
    said = done.stderr.strip().splitlines()
    last = said[-1].strip() if said else f"code {done.returncode}"
    return [json.loads(line) for line in done.stdout.splitlines()], last
