"""What a run of a Python file says: the child writes it as JSON, the parent reads it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from launchwise.cli.new.yaml_lines import Line

TYPES: tuple[str, ...] = ("float16", "bfloat16", "float32", "float64", "int1")
TYPES += ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
"""Types of Triton's language."""

Literal = bool | int | float | str | None


@dataclass
class Draft:
    """What is decided of a kernel of Triton."""

    kernel: str
    # Lines of the spec, and of its variant.
    problem: list[Line]
    tunables: list[Line]
    macros: list[Line]
    arguments: list[Line]
    variant: list[Line]
    starts: dict[str, Any]  # Tunables to their values of the baseline.
    notes: list[str]  # What a person must do.
    kernels: list[str] = field(default_factory=list)  # No other one calls them; launched first.
    copied: str = ""  # The part of the file that a build needs; '' for all of it,
    modules: list[str] = field(default_factory=list)  # and files beside it that must be copied.


@dataclass
class Code:
    """CUDA text of a call of ``cupy.RawKernel`` or ``cupy.RawModule``."""

    line: int
    text: str = ""
    names: list[str] = field(default_factory=list)  # The kernel, or name expressions.
    options: list[str] = field(default_factory=list)  # Of the compiler,
    macros: dict[str, str] = field(default_factory=dict)  # without those that define macros.
    refused: str = ""  # Why it cannot be taken.


@dataclass
class Facts:
    """What a file says: of its chosen kernel, or of those that it gives to CuPy."""

    draft: Draft | None = None
    codes: list[Code] = field(default_factory=list)
