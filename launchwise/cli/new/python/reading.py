"""Starts the child that runs a Python file, reads what it says, and writes ``spec.yaml`` of it."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

import launchwise
from launchwise.base.errors import UserError
from launchwise.base.expressions import names_in
from launchwise.cli.new.python.draft import Draft
from launchwise.cli.new.python.facts import CPU_SECONDS, STATEMENT_SECONDS, Code, Facts
from launchwise.cli.new.writing import RESERVED, reference_lines
from launchwise.cli.new.yaml_lines import Line, head, spec_of
from launchwise.workloads.parts import compiler_option
from launchwise.workloads.sources import OPTIONS, source_text

_MOST_BYTES = 256 << 10
"""Longest Python file, bytes: Python's own parser takes long, and cannot be stopped."""

_WALL_SECONDS = 20
_MACRO = re.compile(r"(?:-D|--define-macro=)(?P<name>[A-Za-z_]\w*)(?:=(?P<value>[^\n\r\\]*))?")


def facts_of(path: Path, kernel: str | None) -> Facts:
    """What a Python file says when it runs in a process of its own. It reads the function of Triton
    ``kernel``, the first that is launched when None. Raises UserError when the file cannot be read,
    is no Python, or cannot be run, or takes too long."""
    return _facts_of(path, source_text(path, _MOST_BYTES), kernel)


@lru_cache(maxsize=1)  # A file without functions of Triton is asked for once more.
def _facts_of(path: Path, text: str, kernel: str | None) -> Facts:
    asked = {
        **{"path": str(path), "text": text, "kernel": kernel, "taken": [*RESERVED, *OPTIONS]},
        **{"cpu_seconds": CPU_SECONDS, "seconds": STATEMENT_SECONDS},
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
            return TypeAdapter(Facts).validate_python(read)
    except (ValueError, TypeError) as error:
        raise UserError(path, "", "ends its own process while it runs") from error
    raise UserError(path, read["key"], read["failed"])


def raw_codes(path: Path) -> list[Code]:
    """CUDA texts that a Python file gives to CuPy. Raises UserError when it cannot be read, is no
    Python, or cannot be run."""
    codes = facts_of(path, None).codes
    for code in codes:
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
    return codes


_WHOLE = re.compile(r"(\w+) // (\w+)")  # Blocks that the host takes for filled

_LARGEST = {1: 1 << 26, 2: 16_384, 3: 8_192}  # Number of sizes to the largest that a draft allows


def spec_of_triton(workload: str, file: str, draft: Draft) -> str:
    """Content of ``spec.yaml`` in the folder ``workload``, which holds the Python file."""
    kernel = draft.kernel.name
    said = f"Function {kernel} of {file}. Every value is a draft of a run with stand-ins."
    variant = [
        Line("source", file),
        Line("kernel", kernel),
        Line("tunables", [*draft.tunables]),
        Line("grid", draft.grid, draft.grid_question),
    ]
    pairs = [found.groups() for text in draft.grid if (found := _WHOLE.fullmatch(text))]
    if whole := [f"{size} % {block} == 0" for size, block in pairs]:
        variant.append(Line("constraints", whole, "what the grid leaves out, no block computes"))
    tunables = [
        Line(name, {"kind": "build", "values": values}, question)
        for name, (values, _, question) in draft.tunables.items()
    ]
    macros = [Line(name, text, question) for name, (text, question) in draft.macros.items()]
    parts: dict[str, tuple[Sequence[Line], str]] = {
        "problem": (_problem(draft), ""),
        "tunables": (tunables, "constexprs, and options of Triton's compiler"),
        "macros": (macros, "constexprs that follow from others"),
        "arguments": (draft.arguments, "in the order of the function's parameters"),
        "reference": (reference_lines(draft.arguments), ""),
    }
    notes = head(said, [name for name in draft.kernels if name != kernel], remarks(draft))
    starts = {name: start for name, (_, start, _) in draft.tunables.items()}
    return spec_of(workload, kernel, notes, parts, variant, starts)


def _problem(draft: Draft) -> list[Line]:
    texts = [*draft.grid, *(text for text, _ in draft.macros.values()), *draft.values.values()]
    texts += [text for line in draft.arguments for text in line.value.get("shape", [])]
    own = {*draft.tunables, *OPTIONS}
    names = [name for text in texts for name in sorted(names_in(text)) if name not in own]
    order = [*draft.values.values(), *names]
    sizes = sorted(dict.fromkeys(names), key=lambda name: order.index(name))
    if not sizes:
        value = {"type": "integer", "minimum": 1024, "maximum": _LARGEST[1] // 4}
        return [Line("n", value, "which sizes?")]
    return [_size(name, draft, len(sizes)) for name in sizes]


def _size(name: str, draft: Draft, number: int) -> Line:
    """A problem parameter, one of a number of them, with its values."""
    if name in draft.choices:
        return Line(name, {"type": "category", "values": draft.choices[name]}, "which texts?")
    if name in draft.heads:
        question = "values: each has builds of its own"
        return Line(name, {"type": "integer", "values": [64, 128]}, question)
    least, most = 1024 if number == 1 else 16, _LARGEST[min(number, 3)]
    if name in draft.grid:
        least = 1
    return Line(name, {"type": "integer", "minimum": least, "maximum": most}, "range")


def remarks(draft: Draft) -> list[str]:
    """What the file says and the draft does not, one line each with file and line."""
    return [f"{draft.path.name}: {note}" for note in draft.notes]
