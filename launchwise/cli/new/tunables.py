"""What the names of macros say: tunables with values, block and grid."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from launchwise.cli.new.macros import Need

AXES = "xyz"

_FLAG = re.compile(r"^(use|with|enable|has|do|is)_|padding|flag|read_only")
_BLOCK = re.compile(r"block|threads|workgroup|\bcta|^bdim|^b[xyz]$|^tpb")
_NO_BLOCK = re.compile(r"blocks|per_thread|threads_per_(item|row)")
_GRID = re.compile(r"^(num|n)_?blocks|grid_?(size|dim)")
_TILE = re.compile(r"tile|per_thread|items|coarsen|elements|work_|^t[xyz]$")
_UNROLL = re.compile(r"unroll|vector|prefetch|stages")
_COMPILED_SIZE = re.compile(r"width|height|depth|radius|border|filter|^nx$|^ny$|^nz$|_n$|^n_")
_AXIS = re.compile(r"(?:_|size|dim|block|tile|^b|^t)([xyz])$")


@dataclass(frozen=True)
class Tunable:
    """A tunable.

    Parameters
    ----------
    kind
        ``build`` or ``launch``.
    values
        From which launchwise chooses.
    start
        Value of the baseline.
    role
        As :func:`role_of` says.
    axis
        ``x``, ``y``, ``z``, or nothing.
    question
        What a person must decide; empty for nothing.
    """

    name: str
    kind: str
    values: list[Any]
    start: Any
    role: str
    axis: str = ""
    question: str = ""


@dataclass(frozen=True)
class Launch:
    """Block and grid of a kernel as expressions.

    Parameters
    ----------
    dimensions
        1 to 3.
    block
        Threads per block, per dimension.
    extent
        Elements of the result that a block computes, per dimension.
    invented
        Launch tunables that the file does not name.
    """

    dimensions: int
    block: list[str]
    extent: list[str]
    invented: list[Tunable]


def axis_of(name: str) -> str:
    """Axis that the end of a name says."""
    lower = name.lower()
    if match := _AXIS.search(lower):
        return match[1]
    if lower.endswith(("rows", "height")):
        return "y"
    return "x" if lower.endswith(("cols", "columns", "width")) else ""


def role_of(name: str) -> str:
    """What a tunable of this name does: block, grid, tile, unroll, flag, size or other."""
    lower = name.lower()
    if _FLAG.search(lower):
        return "flag"
    if _GRID.search(lower):
        return "grid"
    if _UNROLL.search(lower):
        return "unroll"
    if _BLOCK.search(lower) and not _NO_BLOCK.search(lower):
        return "block"
    if _TILE.search(lower):
        return "tile"
    return "size" if _COMPILED_SIZE.search(lower) else "other"


def guess_tunables(needs: Sequence[Need]) -> list[Tunable]:
    """Build tunables for the macros of a kernel: blocks first, then as the file uses them."""
    roles = {need.name: role_of(need.name) for need in needs if not need.is_type}
    blocks = [name for name, role in roles.items() if role == "block"]
    found = []
    for need in needs:
        if need.is_type:
            question = "a type that the compilation sets"
            found.append(Tunable(need.name, "build", ["float"], "float", "other", "", question))
            continue
        role = roles[need.name]
        axis = axis_of(need.name)
        values, start = _values(role, axis, len(blocks))
        question = ""
        if need.only_tested:
            values, start, role = [1], 1, "flag"
            question = "the file asks only whether it is defined; 0 defines it, too"
        elif role == "size":
            question = "a size that is compiled in"
        elif role == "other":
            question = "values"
        if need.default is not None:
            values, start = sorted({*values, need.default}), need.default
        found.append(Tunable(need.name, "build", values, start, role, axis, question))
    order = ("block", "grid", "tile", "unroll", "flag", "size", "other")
    return sorted(found, key=lambda one: (order.index(one.role), one.axis))


def _values(role: str, axis: str, blocks: int) -> tuple[list[Any], Any]:
    """Values and the baseline's."""
    if role == "flag":
        return [0, 1], 0
    if role == "size":
        return [5], 5
    if role == "grid":
        return [64, 128, 256, 512, 1024], 256
    if role != "block":
        return [1, 2, 4], 1
    return _block_values(axis, several=blocks > 1)


def _block_values(axis: str, several: bool) -> tuple[list[Any], Any]:
    if axis == "y":
        return [1, 2, 4, 8, 16, 32], 8
    if axis == "z":
        return [1, 2, 4, 8], 1
    return ([16, 32, 64, 128], 32) if several else ([32, 64, 128, 256, 512, 1024], 256)


def dimensions_of(tokens: Sequence[str], tunables: Sequence[Tunable]) -> int:
    """Dimensions of the launch: of what the kernel reads, and of its block tunables."""
    used = {
        tokens[place + 2]
        for place, token in enumerate(tokens[:-2])
        if token in ("threadIdx", "blockIdx", "blockDim") and tokens[place + 1] == "."
    }
    used |= {one.axis for one in tunables if one.role == "block"}
    return max((AXES.index(axis) + 1 for axis in used if axis in AXES and axis), default=1)


def guess_launch(
    tokens: Sequence[str], tunables: Sequence[Tunable], fixed: Mapping[str, int]
) -> Launch:
    """Block and grid from the names of tunables and of macros with fixed values.

    Parameters
    ----------
    tokens
        Of the kernel and the functions that it may call.
    fixed
        Macros that the file itself sets to integers.
    """
    dimensions = dimensions_of(tokens, tunables)
    axes = AXES[:dimensions]
    blocks = {one.axis: one.name for one in tunables if one.role == "block"}
    tiles = {one.axis: one.name for one in tunables if one.role == "tile"}
    # `TILE_DIM` without an axis is the side of the block where no other name is.
    square = blocks.get("") or (
        tiles.get("") if "blockDim" not in tokens and "x" not in blocks else None
    )
    literal = {axis_of(name): str(fixed[name]) for name in fixed if role_of(name) == "block"}
    block, invented = [], []
    for axis in axes:
        known = blocks.get(axis) or square or literal.get(axis) or literal.get("")
        if known is None:
            name = f"block_size_{axis}"
            values, start = _block_values(axis, several=dimensions > 1)
            invented.append(Tunable(name, "launch", values, start, "block", axis))
            known = name
        block.append(known)
    extent = []
    for axis, threads in zip(axes, block, strict=True):
        tile = tiles.get(axis) or (tiles.get("") if dimensions == 1 else None)
        if tile is None and square == tiles.get("") is not None:
            extent.append(str(square))
        elif tile is None or tile == threads:
            extent.append(threads)
        else:
            extent.append(f"{threads} * {tile}")
    return Launch(dimensions, block, extent, invented)
