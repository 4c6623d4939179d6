"""Block and grid of a kernel: what its indices prove, else names of tunables and questions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from launchwise.base.literals import whole
from launchwise.cli.new.body import coefficient, length_of, names_of, written
from launchwise.cli.new.indices import AXES, Indices
from launchwise.cli.new.undeclared import VALUES, Tunable, as_block, block_values


@dataclass(frozen=True)
class Launch:
    block: list[str]  # threads per block, per dimension of the block
    grid: list[str]  # blocks, per dimension of the grid
    # all tunables: those of the file, and launch tunables for sides of the block without a name
    tunables: list[Tunable]
    question: str  # what a person must decide about the block; empty for nothing
    grid_question: str  # and about the grid


def draft_launch(
    indices: Indices,
    axes: Mapping[str, set[str]],
    tunables: Sequence[Tunable],
    given: Sequence[str],
    sizes: dict[str, str],
) -> Launch:
    """Block and grid. ``axes`` are those of built-in variables that the kernel and what it calls
    read, ``given`` the sides of a block of the host code. A number of blocks that nothing says
    becomes one of ``sizes``."""
    block, every, question = _block(indices, axes, tunables, given)
    count = max((AXES.index(axis) + 1 for axis in axes["blockIdx"]), default=1)
    grid, questions, proven = [], [], set[str]()
    for axis in AXES[:count]:
        if axis not in axes["blockIdx"]:
            # Another block along it would repeat the first.
            grid.append("1")
            continue
        length, extent, asked = _length(indices, axis, block, every, sizes)
        grid.append(length if extent == "1" else f"ceil_div({length}, {extent})")
        questions += [f"{axis}: {asked}"] if asked else []
        proven |= {*re.findall(r"\w+", extent)}
    every = [
        replace(one, question="") if one.question == VALUES and one.name in proven else one
        for one in every
    ]
    questions += [] if axes["blockIdx"] else ["blockIdx is not read"]
    return Launch(block, grid, every, question, "; ".join(questions))


# Sides of the block


def _block(
    indices: Indices,
    axes: Mapping[str, set[str]],
    tunables: Sequence[Tunable],
    given: Sequence[str],
) -> tuple[list[str], list[Tunable], str]:
    """Sides of the block, all tunables, and a question. A side is the tunable that the host code
    gives or that indices say, else a launch tunable with the number of the host code as its
    baseline. ``block_size_x`` and the like are sides by definition."""
    own = {one.name for one in tunables}
    threads = axes["threadIdx"] | axes["blockDim"]
    count = max((AXES.index(axis) + 1 for axis in threads), default=1)
    block, invented, questions = [], [], []
    for axis, text in zip(AXES[:count], [*given, "", "", ""], strict=False):
        usual, number = f"block_size_{axis}", whole(text)
        side = text if text in own else usual if usual in own else _side(indices, axis, tunables)
        if not side:
            side = usual
            values, start = block_values(axis, several=count > 1)
            if number is not None and 1 <= number <= 1024:
                values, start = sorted({*values, number}), number
            invented.append(Tunable(side, "launch", values, start))
            if axis in axes["threadIdx"] and axis not in axes["blockDim"]:
                questions.append(f"threads along {axis}: blockDim.{axis} is not read")
            elif array := indices.held_by_threads(axis):
                questions.append(f"{axis}: for how many threads has {array} room?")
        block.append(side)
    every = [
        as_block(one, AXES[block.index(one.name)], len(threads) > 1, block.count(one.name) > 1)
        if one.name in block
        else one
        for one in tunables
    ]
    return block, [*invented, *every], "; ".join(questions)


def _side(indices: Indices, axis: str, tunables: Sequence[Tunable]) -> str:
    """Side of the block in indices, a tunable or a number: ``blockIdx.x * SIDE + threadIdx.x``, or
    ``(i = threadIdx.x; i < n; i += SIDE)``; '' where they do not say one."""
    own = {one.name for one in tunables}
    turns, blocks = (
        {
            written(one)
            for one in every
            if one != {(): 1} and all(name in own or name[0] == "?" for name in names_of(one))
        }
        for every in indices.sides(axis)
    )
    found = turns or blocks
    side = found.pop() if len(found) == 1 else ""
    return side if side in own or 1 < (whole(side) or 0) <= 1024 else ""


def _length(
    indices: Indices,
    axis: str,
    block: Sequence[str],
    tunables: Sequence[Tunable],
    sizes: dict[str, str],
) -> tuple[str, str, str]:
    """Elements along an axis, those of a block, and a question unless all bounds agree."""
    known = {one.name for one in tunables} | {f"blockDim.{each}" for each in AXES}
    bounds = [one for one in indices.bounds(axis) if names_of(one.bound)]
    factors = [coefficient(one.index, f"blockIdx.{axis}") for one in bounds]
    leading = [{term: n for term, n in one.bound.items() if term} for one in bounds]
    # `i < n - 1` may be the bound of a neighbour alone: of `x[i + 1]`.
    positive = [{term: n for term, n in each.items() if n > 0} for each in leading]
    inner = [length_of(each, sizes) for each in positive]
    said = [length_of(one.bound, sizes) for one in bounds if min(one.bound.values()) > 0]
    text = min(filter(None, said), key=len, default="") or next(filter(None, inner), "")
    if not text:
        own = f"gridDim.{axis}"
        sizes[own] = f"blocks_{axis}"
        return sizes[own], "1", "no bound of the kernel says how many blocks"
    extent = next((written(one) for one in factors if names_of(one) <= known), "")
    question = ""
    if text not in said:
        question = "no bound of the kernel says how many elements"
    elif indices.strides_over_grid(axis):
        question = "a loop strides over the grid, fewer blocks do as well"
    elif "" in inner or any(one != leading[0] for one in leading):
        question = "several bounds"
    elif not extent:
        question = "elements per block"
    for each, side in zip(AXES, [*block, "1", "1"], strict=False):
        extent = extent.replace(f"blockDim.{each}", side)
    if re.fullmatch(r"[\w *]+", extent):
        # A product with the sides of the block first.
        parts = sorted(extent.split(" * "), key=lambda one: (one.isdigit(), one not in block))
        extent = " * ".join(parts)
    return text, extent or [*block, "1", "1"][AXES.index(axis)], question
