"""Guesses from the names of macros: tunables with values, block and grid."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
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
    given
        Whether the file itself gives ``start``.
    """

    name: str
    kind: str
    values: list[Any]
    start: Any
    role: str
    axis: str = ""
    question: str = ""
    given: bool = False


@dataclass(frozen=True)
class Launch:
    """Block and grid of a kernel as expressions.

    Parameters
    ----------
    block
        Threads per block, per dimension of the block.
    extent
        Elements of the result that a block computes, per dimension of the grid.
    tunables
        All tunables: those of the file, with values that fit the block, and launch tunables for
        sides of the block that the file does not name.
    """

    block: list[str]
    extent: list[str]
    tunables: list[Tunable]

    @property
    def dimensions(self) -> int:
        """Dimensions of the grid."""
        return len(self.extent)


def axis_of(name: str) -> str:
    """Axis that the end of a name says."""
    lower = name.lower()
    if match := _AXIS.search(lower):
        return match[1]
    if lower.endswith(("rows", "height")):
        return "y"
    return "x" if lower.endswith(("cols", "columns", "width")) else ""


def role_of(name: str) -> str:
    """Role of a tunable of this name: block, grid, tile, unroll, flag, size or other."""
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


def compiled_in(needs: Sequence[Need]) -> dict[str, str]:
    """Macros that are no tunables, such as the width of a filter or a type, to their values."""
    found = {need.name: "'float'" for need in needs if need.is_type}
    for need in needs:
        if not need.is_type and role_of(need.name) == "size":
            found[need.name] = str(5 if need.default is None else need.default)
    return found


def guess_tunables(needs: Sequence[Need]) -> list[Tunable]:
    """Build tunables for the macros of a kernel: blocks first, then as the file uses them."""
    fixed = compiled_in(needs)
    needs = [need for need in needs if need.name not in fixed]
    roles = {need.name: role_of(need.name) for need in needs}
    blocks = [name for name, role in roles.items() if role == "block"]
    found = []
    for need in needs:
        role = roles[need.name]
        axis = axis_of(need.name)
        values, start = _values(role, axis, len(blocks))
        question = ""
        if need.only_tested:
            values, start, role = [1], 1, "flag"
            question = "the file asks only whether it is defined; 0 defines it, too"
        elif role == "other":
            question = "values"
        if need.default is not None:
            values, start = sorted({*values, need.default}), need.default
        given = need.default is not None
        found.append(Tunable(need.name, "build", values, start, role, axis, question, given))
    order = ("block", "grid", "tile", "unroll", "flag", "other")
    return sorted(found, key=lambda one: (order.index(one.role), one.axis))


def _values(role: str, axis: str, blocks: int) -> tuple[list[Any], Any]:
    """Values and the baseline's."""
    if role == "flag":
        return [0, 1], 0
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


def _dimensions(tokens: Sequence[str], readers: Collection[str]) -> int:
    """Largest dimension that is read of some built-in variables, such as ``threadIdx``; or 1."""
    used = {
        tokens[place + 2]
        for place, token in enumerate(tokens[:-2])
        if token in readers and tokens[place + 1] == "."
    }
    return max((AXES.index(axis) + 1 for axis in used if axis in AXES), default=1)


_INDEX = re.compile(
    r"blockIdx \. ([xyz]) \* (\w+) \+ threadIdx \. \1"
    r"|threadIdx \. ([xyz]) \+ blockIdx \. \3 \* (\w+)(?! \*)"
)
"""``blockIdx.y * TILE + threadIdx.y``: the side of the block is TILE."""

_ITEMS = re.compile(
    r"\( blockIdx \. ([xyz]) \* (?:blockDim \. \1|\w+) \+ threadIdx \. \1 \) \* (\w+)"
)
"""``(blockIdx.y * blockDim.y + threadIdx.y) * ROWS``: a thread computes ROWS elements."""


def by_index(tokens: Sequence[str], tunables: Sequence[Tunable]) -> list[Tunable]:
    """Tunables with the role and the axis that the arithmetic of indices gives them.

    A name that stands for a side along two axes says nothing: threads may walk along one of them.
    """
    text = " ".join(tokens)
    sides: dict[str, set[str]] = {}
    for found in _INDEX.finditer(text):
        sides.setdefault(found[2] or found[4], set()).add(found[1] or found[3])
    items = {found[2]: found[1] for found in _ITEMS.finditer(text)}
    changed = []
    for one in tunables:
        if one.role != "block" and len(axes := sides.get(one.name, set())) == 1:
            (axis,) = axes
            values, start = _block_values(axis, several=True)
            if one.given:
                values, start = sorted({*values, one.start}), one.start
            one = replace(one, role="block", axis=axis, values=values, start=start, question="")
        elif one.name in items and one.role in ("other", "tile", "unroll"):
            one = replace(one, role="tile", axis=items[one.name], question="")
        changed.append(one)
    return changed


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
    tunables = by_index(tokens, tunables)
    blocks = {one.axis: one.name for one in tunables if one.role == "block"}
    tiles = {one.axis: one.name for one in tunables if one.role == "tile"}
    sides = [AXES.index(axis) + 1 for axis in blocks if axis]
    block_axes = AXES[: max(_dimensions(tokens, ("threadIdx", "blockDim")), *sides, 1)]
    grid_axes = AXES[: max(_dimensions(tokens, ("blockIdx",)), len(block_axes))]
    # `TILE_DIM` without an axis is the side of the block where no other name is.
    square = blocks.get("") or (
        tiles.get("") if "blockDim" not in tokens and "x" not in blocks else None
    )
    literal = {axis_of(name): str(fixed[name]) for name in fixed if role_of(name) == "block"}
    block, invented = [], []
    for axis in block_axes:
        known = blocks.get(axis) or square or literal.get(axis) or literal.get("")
        if known is None:
            name = f"block_size_{axis}"
            values, start = _block_values(axis, several=len(block_axes) > 1)
            invented.append(Tunable(name, "launch", values, start, "block", axis))
            known = name
        block.append(known)
    extent = []
    for place, axis in enumerate(grid_axes):
        threads = block[place] if place < len(block) else "1"
        tile = tiles.get(axis) or (tiles.get("") if len(grid_axes) == 1 else None)
        if tile is None and square is not None and square == tiles.get(""):
            extent.append(square)
        elif tile is None or tile == threads:
            extent.append(threads)
        else:
            extent.append(tile if threads == "1" else f"{threads} * {tile}")
    fitting = [_side(one, block) if one.name == square else one for one in tunables]
    return Launch(block, extent, [*invented, *fitting])


def _side(one: Tunable, block: Sequence[str]) -> Tunable:
    """A tunable without an axis as the side of a block."""
    known, start = _block_values("", several=len(block) > 1)
    if block.count(one.name) > 1:
        known, start = [8, 16, 32], 16
    if one.given:
        known, start = sorted({*known, one.start}), one.start
    return replace(one, values=known, start=start, role="block")
