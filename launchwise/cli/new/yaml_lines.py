"""The text of a drafted spec: lines of YAML with a question as a comment, and their order."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

QUESTION = "# ? "
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")


@dataclass(frozen=True)
class Line:
    key: str
    value: Any
    question: str = ""


_ASKED = "what is computed? Or `variant: NAME`, or `call:` a function of NumPy or SciPy"
REFERENCE = Line("file", "reference.py:expected", _ASKED)
"""What computes the expected result: a function that a person writes."""


def section(key: str, lines: Sequence[Line], comment: str = "", indent: int = 0) -> list[str]:
    """A mapping with one line per key; ``{}`` where there is none."""
    before = " " * indent
    head = f"{before}{written_as(key)}:{'' if lines else ' {}'}"
    return [f"{head}  # {comment}" if comment else head, *lines_of(lines, indent + 2)]


def lines_of(lines: Sequence[Line], indent: int = 0) -> list[str]:
    return [
        f"{' ' * indent}{written_as(line.key)}: {written_as(line.value)}"
        + (f"  {QUESTION}{line.question}" if line.question else "")
        for line in lines
    ]


def written_as(value: Any) -> str:
    if isinstance(value, Mapping):
        inside = ", ".join(f"{written_as(key)}: {written_as(one)}" for key, one in value.items())
        return f"{{{inside}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(written_as, value))}]"
    if isinstance(value, float):
        # YAML reads 1e-05 as a text.
        return f"{value:.1e}".replace("e-0", "e-") if 0 < value < 1e-3 else str(value)
    if isinstance(value, int):
        return str(value)
    is_plain = _PLAIN.fullmatch(value) and yaml.safe_load(value) == value
    return str(value) if is_plain else json.dumps(value)


def spec_of(
    workload: str,
    kernel: str,  # its name, that of the variant without ``_kernel``
    notes: Sequence[str],  # comments at its head
    parts: Mapping[str, tuple[Sequence[Line], str]],  # lines of each part, and a comment on it
    variant: Sequence[Line],
    baseline: Mapping[str, Any],  # its tunables
    options: Sequence[str] = (),  # of the compiler
) -> str:
    """Content of ``spec.yaml`` in a workload's folder. Parts without lines are left out, but for
    tunables."""
    name = kernel.removesuffix("_kernel").strip("_") or kernel.strip("_") or "variant"
    lines = [
        *(f"# {note}" for note in notes),
        *lines_of([Line("workload", workload), Line("title", workload.replace("_", " "))]),
    ]
    for key, (own, comment) in parts.items():
        lines += section(key, own, comment) if own or key == "tunables" else []
    lines += ["variants:", *section(name, variant, "", 2)]
    lines += lines_of([Line("compiler_options", list(options))] if options else [])
    lines += lines_of([Line("baseline", {"variant": name, **baseline})])
    return "\n".join(lines) + "\n"


def head(said: str, others: Sequence[str], remarks: Sequence[str]) -> list[str]:
    """Notes at the head: what is drafted, the other kernels of its file, what a person must do."""
    return [
        said,
        "A comment that begins with a question mark asks for a decision.",
        *([f"Other kernels of the file: {', '.join(others)}."] if others else []),
        *(f"{QUESTION[2:]}{each}" for each in remarks),
    ]
