"""Tunables with values and roles, from the names of macros and template parameters."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from launchwise.cli.new.macros import Need

AXES = "xyz"

_FLAG = re.compile(r"^(use|with|enable|has|do|is|no)_|padding|flag|read_only|_enabled$")
_BLOCK = re.compile(
    r"block|threads|work_?group|local_(work_)?size|group_size|\bcta|^bdim|^b[xyz]$|tpb$|^tpb"
    r"|^blk|^wgs|^lws|^nt$|^bs$|^ls[xyz]?$"
)
_NO_BLOCK = re.compile(r"blocks|per_thread|threads_per_(item|row)|per_block(?<!threads_per_block)")
_GRID = re.compile(r"^(num|n)_?blocks|grid_?(size|dim)|^blocks$|blocks_per_(sm|grid)")
_TILE = re.compile(
    r"tile|per_thread|per_block|items|coarsen|elements|work_|^t[xyzmn]$|^ipt$|^wpt|chunk|rows|granul"
)
_BLOCK_TILE = re.compile(r"^(b|block|blk|block_size|blocksize|bs)_?([mnk])$")
"""A side of the part of a matrix product that a block computes."""
_UNROLL = re.compile(r"unroll|vec|prefetch|stages")
_HOW = re.compile(
    r"unroll|prefetch|pad|read_only|vec|shared|smem|cache|ldg|texture|^use_|^with_|_enabled$|align|fast"
    r"|coalesc|buffer|async"
)
"""Names of flags that say how a kernel computes, not what."""
CHANGES = "tunes nothing if it changes the result: then make it a problem parameter with values"
_COMPILED_SIZE = re.compile(r"width|height|depth|radius|border|filter|^nx$|^ny$|^nz$|_n$|^n_")
_AXIS = re.compile(r"(?:_|size|dim|block|tile|^b|^t|^ls)([xyz])$")


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
    """Role of a tunable of this name: block, grid, side, tile, unroll, flag, size or other.

    A ``side`` is that of the part of the result that a block computes.
    """
    lower = name.lower()
    if _FLAG.search(lower):
        return "flag"
    if _GRID.search(lower):
        return "grid"
    if _UNROLL.search(lower):
        return "unroll"
    if _BLOCK_TILE.search(lower):
        return "side"
    if _BLOCK.search(lower) and not _NO_BLOCK.search(lower):
        return "block"
    if _TILE.search(lower):
        return "tile"
    return "size" if _COMPILED_SIZE.search(lower) else "other"


def compiled_in(needs: Sequence[Need], reserved: Collection[str] = ()) -> dict[str, str]:
    """Macros that are no tunables, such as the width of a filter or a type, to their values.

    ``reserved`` are names that no tunable may have.
    """
    found = {need.name: "'float'" for need in needs if need.is_type}
    for need in needs:
        if need.in_template or need.is_type or need.only_tested:
            continue
        if need.name in reserved or need.is_size or _is_size(need):
            usual = 1024 if "max" in need.name.lower() else 5
            found[need.name] = str(usual if need.default is None else need.default)
    return found


def _is_size(need: Need) -> bool:
    return role_of(need.name) == "size" and not need.compared


def draft_tunables(needs: Sequence[Need], reserved: Collection[str] = ()) -> list[Tunable]:
    """Build tunables for the macros of a kernel: blocks first, then as the file uses them."""
    fixed = compiled_in(needs, reserved)
    # A name that `#ifdef` alone reads is on as 0, too: it stays undefined.
    needs = [need for need in needs if need.name not in fixed and not need.only_tested]
    roles = {need.name: role_of(need.name) for need in needs}
    blocks = [name for name, role in roles.items() if role == "block"]
    found = [_tunable(need, roles[need.name], len(blocks)) for need in needs]
    order = ("block", "grid", "side", "tile", "unroll", "flag", "size", "other")
    return sorted(found, key=lambda one: (order.index(one.role), one.axis))


def _tunable(need: Need, role: str, blocks: int) -> Tunable:
    axis = axis_of(need.name)
    given = need.default is not None
    if need.names:
        start: Any = need.text if need.text in need.names else need.names[0]
        return Tunable(need.name, "build", list(need.names), start, "flag", "", CHANGES, True)
    if need.is_flag or (need.only_read_by_if and role in ("other", "flag", "size", "unroll")):
        usual: tuple[int, ...] = () if len(need.compared) > 1 else (0, 1)
        usual = (1,) if not usual and re.search("vec|width", need.name.lower()) else usual
        own = () if need.default is None else (need.default,)
        values = sorted({*usual, *need.compared, *own})
        start = need.default if need.default is not None else values[0]
        question = "" if _HOW.search(need.name.lower()) else CHANGES
        return Tunable(need.name, "build", values, start, "flag", axis, question, given)
    if len(need.launched) > 1 and role != "block":
        values = sorted(need.launched)
        return Tunable(need.name, "build", values, need.launched[0], role, axis, CHANGES, True)
    values, start = values_of(role, axis, blocks, need.name)
    if need.default is not None:
        values, start = around(values, need.default, role), need.default
    values = sorted({*values, *need.compared})
    return Tunable(
        need.name, "build", values, start, role, axis, "values" if role == "other" else "", given
    )


def around(values: Sequence[int], default: int, role: str) -> list[int]:
    """Values with a default of the file: the usual ones, or half and twice a large default."""
    if role in ("block", "grid", "flag", "side") or default <= max(values):
        return sorted({*values, default})
    return sorted({max(default // 4, 1), max(default // 2, 1), default, 2 * default})


def values_of(role: str, axis: str, blocks: int, name: str = "") -> tuple[list[Any], Any]:
    """Values and the baseline's."""
    if role == "flag":
        return [0, 1], 0
    if role == "grid":
        return [64, 128, 256, 512, 1024], 256
    if role == "side":
        return ([8, 16, 32], 8) if name.lower().endswith("k") else ([32, 64, 128], 64)
    if role != "block":
        return [1, 2, 4], 1
    return block_values(axis, several=blocks > 1)


def block_values(axis: str, several: bool) -> tuple[list[Any], Any]:
    """Values of a side of the block, and the baseline's."""
    if axis == "y":
        return [1, 2, 4, 8, 16, 32], 8
    if axis == "z":
        return [1, 2, 4, 8], 1
    return ([16, 32, 64, 128], 32) if several else ([32, 64, 128, 256, 512, 1024], 256)


def as_block(one: Tunable, axis: str, several: bool) -> Tunable:
    """A tunable as a side of the block."""
    values, start = block_values(axis, several)
    if one.given:
        values, start = sorted({*values, one.start}), one.start
    return replace(one, role="block", axis=axis, values=values, start=start, question="")
