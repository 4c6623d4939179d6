"""CUDA texts that a Python file gives to CuPy."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from launchwise.cli.new.python.excerpt import parsed, python_text
from launchwise.cli.new.python.facts import Code
from launchwise.cli.new.python.reading import facts_of
from launchwise.workloads.compiler_options import compiler_option

_MACRO = re.compile(r"(?:-D|--define-macro=)(?P<name>[A-Za-z_]\w*)(?:=(?P<value>[^\n\r\\]*))?")


@dataclass(frozen=True)
class RawCode:
    """CUDA text of a call of ``cupy.RawKernel`` or ``cupy.RawModule``.

    Parameters
    ----------
    names
        The kernel that the call names; for a module its name expressions.
    macros, options
        What the call gives to the compiler: ``-DNAME=VALUE``, and options of ``spec.yaml``.
    refused
        Why the text cannot be taken; empty where it can.
    """

    line: int
    text: str = ""
    names: tuple[str, ...] = ()
    macros: Mapping[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    refused: str = ""


@dataclass(frozen=True)
class RawLaunch:
    """The first launch of a kernel whose sizes are numbers: threads per block, and bytes."""

    block: tuple[int, ...]
    shared_bytes: int


def raw_codes(path: Path) -> tuple[list[RawCode], dict[str, RawLaunch]]:
    """CUDA texts of a Python file in its order, and launches of their kernels.

    Raises
    ------
    UserError
        When the file cannot be read, is no Python, or cannot be run.
    """
    text = python_text(path)
    parsed(path, text)
    facts = facts_of(path, text, None, ())
    launches = {
        name: RawLaunch(tuple(block), size) for name, (block, size) in facts.launches.items()
    }
    return [_raw(one) for one in facts.codes], launches


def _raw(code: Code) -> RawCode:
    found = RawCode(code.line, code.text, tuple(code.names), refused=code.refused)
    try:
        macros, kept = _as_in_a_spec(code.options)
    except ValueError as error:
        return replace(found, refused=found.refused or str(error))
    if "__global__" not in code.text and not found.refused:
        return replace(found, refused="code has no kernel: no function is __global__")
    return replace(found, macros=macros, options=kept)


def _as_in_a_spec(options: Sequence[str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Macros, and the options that ``spec.yaml`` knows; raises ValueError for others."""
    macros: dict[str, str] = {}
    kept = []
    for option in options:
        if match := _MACRO.fullmatch(option):
            macros[match["name"]] = "1" if match["value"] is None else match["value"]
        else:
            kept.append(compiler_option(option))
    return macros, tuple(dict.fromkeys(kept))
