"""Starts the child that runs a Python file, and reads what it says."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

import launchwise
from launchwise.base.errors import UserError
from launchwise.cli.new.python.kernels import Code, Facts
from launchwise.cli.new.writing import RESERVED
from launchwise.workloads.parts import compiler_option
from launchwise.workloads.sources import OPTIONS, source_text

_MOST_BYTES = 256 << 10
"""Longest Python file, bytes: Python's own parser takes long, and cannot be stopped."""

CPU_SECONDS = 6  # Most CPU time of the child
STATEMENT_SECONDS = 1.0  # and of a statement of the file, or of an argument of a decorator
_WALL_SECONDS = 20
_MACRO = re.compile(r"(?:-D|--define-macro=)(?P<name>[A-Za-z_]\w*)(?:=(?P<value>[^\n\r\\]*))?")


def facts_of(path: Path, kernel: str | None, workload: str) -> Facts:
    """What a Python file says when it runs in a process of its own. It drafts the function of
    Triton ``kernel``, the first that is launched when None, for the folder ``workload``; a file
    without any gives CUDA text to CuPy. Raises UserError when the file cannot be read, is no
    Python, or cannot be run, or takes too long."""
    text = source_text(path, _MOST_BYTES)
    asked = {
        **{"path": str(path), "text": text, "kernel": kernel, "workload": workload},
        **{"taken": [*RESERVED, *OPTIONS], "cpu_seconds": CPU_SECONDS},
        "seconds": STATEMENT_SECONDS,
    }
    root = str(Path(launchwise.__file__).resolve().parent.parent)
    with tempfile.TemporaryDirectory(prefix="launchwise-") as folder:
        environment = {
            **{"PYTHONPATH": root, "HOME": folder, "TMPDIR": folder, "PATH": "/usr/bin:/bin"},
            **{"PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8"},
        }
        command = [sys.executable, "-s", "-m", "launchwise.cli.new.python.running"]
        nowhere, text_in = subprocess.DEVNULL, json.dumps(asked)
        try:
            done = subprocess.run(
                command, input=text_in, cwd=folder, env=environment, timeout=_WALL_SECONDS,
                stdout=subprocess.PIPE, stderr=nowhere, encoding="utf-8", errors="replace",
                check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            message = f"takes more than {_WALL_SECONDS} s to run"
            raise UserError(path, "", message) from error
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        raise UserError(path, "", f"takes more than {CPU_SECONDS} s of CPU time to run")
    try:
        read: Any = json.loads(done.stdout)
        if "failed" not in read:
            found = TypeAdapter(Facts).validate_python(read)
            return Facts(found.draft, [*map(_with_macros, found.codes)])
    except (ValueError, TypeError) as error:
        raise UserError(path, "", "ends its own process while it runs") from error
    raise UserError(path, read["key"], read["failed"])


def _with_macros(code: Code) -> Code:
    """CUDA text with the macros among its options apart, and what keeps it from being taken."""
    options, code.options = code.options, []
    try:
        for option in options:
            if match := _MACRO.fullmatch(option):
                code.macros[match["name"]] = "1" if match["value"] is None else match["value"]
            else:
                code.options += {compiler_option(option)} - {*code.options}
    except ValueError as error:
        code.refused = code.refused or str(error)
    if "__global__" not in code.text:
        code.refused = code.refused or "code has no kernel: no function is __global__"
    return code
