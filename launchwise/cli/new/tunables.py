"""Tunables with values and roles, from the names of macros and template parameters."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from launchwise.cli.new.indices import Indices
from launchwise.cli.new.macros import FIXED, Need, constants, used_names
from launchwise.cli.new.polynomials import names_of
from launchwise.cli.new.signature import Kernel, Source
from launchwise.cuda_text.names import identifiers

_ROLES = {
    "flag": r"^(use|with|enable|has|do|is|no)_|padding|flag|read_only|_enabled$",
    "grid": r"^(num|n)_?blocks|grid_?(size|dim)|^blocks$|blocks_per_(sm|grid)",
    "unroll": r"unroll|vec|prefetch|stages",
    # of the part of the result that a block computes
    "side": r"^(b|block|blk|block_size|blocksize|bs)_?([mnk])$",
    "block": r"block|threads|work_?group|local_(work_)?size|group_size|\bcta|^bdim|^b[xyz]$|tpb$"
    r"|^tpb|^blk|^wgs|^lws|^nt$|^bs$|^ls[xyz]?$",
    "tile": r"tile|per_thread|per_block|items|coarsen|elements|work_|^t[xyzmn]$|^ipt$|^wpt|chunk"
    r"|rows|granul",
    "size": r"width|height|depth|radius|border|filter|^nx$|^ny$|^nz$|_n$|^n_",
}
"""Role of a tunable to the names that say it, lower case; the first one counts."""
_NO_BLOCK = re.compile(r"blocks|per_thread|threads_per_(item|row)|per_block(?<!threads_per_block)")
_HOW = re.compile(
    r"unroll|prefetch|pad|read_only|vec|shared|smem|cache|ldg|texture|^use_|^with_|_enabled$|align|fast"
    r"|coalesc|buffer|async"
)
"""Names of flags that say how a kernel computes, not what."""
_CHANGES = "tunes nothing if it changes the result: then make it a problem parameter with values"
_AXIS = re.compile(r"(?:_|size|dim|block|tile|^b|^t|^ls)([xyz])$")
_SMALLEST, _LARGEST = 2, 4096  # Numbers beyond are no sides of blocks and no tiles


@dataclass(frozen=True)
class Tunable:
    """A tunable."""

    name: str
    kind: str  # ``build`` or ``launch``
    values: list[Any]  # from which launchwise chooses
    start: Any  # value of the baseline
    role: str  # as :func:`role_of` says
    axis: str = ""  # ``x``, ``y``, ``z``, or nothing
    question: str = ""  # what a person must decide; empty for nothing
    given: bool = False  # whether the file itself gives ``start``


def axis_of(name: str) -> str:
    """Axis that the end of a name says."""
    lower = name.lower()
    if match := _AXIS.search(lower):
        return match[1]
    if lower.endswith(("rows", "height")):
        return "y"
    return "x" if lower.endswith(("cols", "columns", "width")) and "vec" not in lower else ""


def role_of(name: str) -> str:
    """Role of a tunable of this name: block, grid, side, tile, unroll, flag, size or other."""
    lower = name.lower()
    for role, names in _ROLES.items():
        if re.search(names, lower) and not (role == "block" and _NO_BLOCK.search(lower)):
            return role
    return "other"


def compiled_in(needs: Sequence[Need], reserved: Collection[str]) -> dict[str, str]:
    """Macros that are no tunables, such as the width of a filter or a type, to their values.
    ``reserved`` are names that no tunable may have."""
    found = {need.name: "'float'" for need in needs if need.is_type}
    for need in needs:
        is_size = need.is_size or (role_of(need.name) == "size" and not need.compared)
        no_tunable = is_size or need.name in reserved
        if no_tunable and not (need.in_template or need.is_type or need.only_tested):
            usual = 1024 if "max" in need.name.lower() else 5
            found[need.name] = str(usual if need.default is None else need.default)
    return found


def draft_tunables(needs: Sequence[Need]) -> list[Tunable]:
    """Build tunables for the macros of a kernel: blocks first, then as the file uses them."""
    several = sum(role_of(need.name) == "block" for need in needs) > 1
    found = [_tunable(need, several) for need in needs]
    order = ("block", "grid", "side", "tile", "unroll", "flag", "size", "other")
    return sorted(found, key=lambda one: (order.index(one.role), one.axis))


def _tunable(need: Need, several: bool) -> Tunable:
    """``several`` says that the block has several sides by their names."""
    name, own = need.name.lower(), need.default
    role, axis, question = role_of(name), axis_of(name), ""
    values: Sequence[Any]
    start: Any
    if need.names:
        start = need.text if need.text in need.names else need.names[0]
        return Tunable(need.name, "build", [*need.names], start, "flag", "", _CHANGES, True)
    if need.is_flag or (need.only_read_by_if and role in ("other", "flag", "size", "unroll")):
        usual = {1} if re.search("vec|width", name) else set()
        values = sorted({*need.compared} | ({0, 1} if len(need.compared) < 2 else usual))
        start, role, question = values[0], "flag", "" if _HOW.search(name) else _CHANGES
    elif len(need.launched) > 1 and role != "block":
        values, start, question, own = need.launched, need.launched[0], _CHANGES, need.launched[0]
    elif role == "block":
        values, start = block_values(axis, several)
    else:
        values, start = _VALUES.get(
            "sides of k" if role == "side" and name[-1] == "k" else role, _FEW
        )
        question = "values" if role == "other" else ""
        if own is not None and own > max(values) and role not in ("grid", "flag", "side"):
            values = [max(own // 4, 1), max(own // 2, 1), own, 2 * own]
    values = sorted({*values, *need.compared, *([] if own is None else [own])})
    start = start if own is None else own
    return Tunable(need.name, "build", values, start, role, axis, question, own is not None)


_FEW = [1, 2, 4], 1
_VALUES = {
    "flag": ([0, 1], 0),
    "grid": ([64, 128, 256, 512, 1024], 256),
    "side": ([32, 64, 128], 64),
    "sides of k": ([8, 16, 32], 8),
}
"""Role to the values of a tunable, and that of the baseline."""


def block_values(axis: str, several: bool) -> tuple[list[Any], Any]:
    """Values of a side of the block, and the baseline's."""
    if axis == "y":
        return [1, 2, 4, 8, 16, 32], 8
    if axis == "z":
        return [1, 2, 4, 8], 1
    return ([16, 32, 64, 128], 32) if several else ([32, 64, 128, 256, 512, 1024], 256)


def as_block(one: Tunable, axis: str, several: bool, square: bool = False) -> Tunable:
    """A tunable as a side of the block, or as all sides of a square."""
    values, start = ([8, 16, 32], 16) if square else block_values(axis, several)
    if one.given:
        values, start = sorted({*values, one.start}), one.start
    return replace(one, role="block", axis=axis, values=values, start=start, question="")


# What a file fixes


def tuning_hints(
    source: Source, kernel: Kernel, indices: Indices, fixed: Mapping[str, int]
) -> list[str]:
    """One line per macro or constant of a kernel that is like a tunable but cannot be set. Its name
    says so, or it is a side of an array in shared memory, or a step between blocks. ``fixed`` is
    what the file sets to integers; in ``indices`` its names stand for themselves."""
    used = used_names(source, kernel)
    sides = identifiers(size for _, sizes, _ in indices.body.shared_arrays() for size in sizes)
    sides |= indices.pitches() | {
        name for step in indices.steps.values() for name in names_of(step)
    }
    declared = {name: number for name, (number, _) in constants(source).items()}
    hints = []
    for name, number in {**declared, **fixed}.items():
        named = role_of(name) in ("block", "tile", "side", "unroll")
        if name not in used or name in FIXED or not (named or name in sides):
            continue
        if name in source.expanded.numbers:
            hints.append(f"To tune {name}, write #ifndef {name} before its #define.")
        elif name in declared and _SMALLEST <= number <= _LARGEST:
            lines = f"#ifndef {name}, #define {name} {number} and #endif"
            hints.append(f"To tune {name}, write {lines} in the place of its declaration.")
    return hints
