"""Block and grid of a kernel: what its indices prove, else names of tunables and questions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from launchwise.base.literals import whole
from launchwise.cli.new.body import Polynomial, coefficient, names_of, written
from launchwise.cli.new.indices import AXES, Indices
from launchwise.cli.new.shapes import Sizes, length_of
from launchwise.cli.new.tunables import VALUES, Tunable, as_block, block_values


@dataclass(frozen=True)
class Launch:
    """Block and grid of a kernel as expressions."""

    block: list[str]  # threads per block, per dimension of the block
    # elements of the result that a block computes, per dimension of the grid; ``0`` along an
    # axis of which the kernel does not read ``blockIdx``
    extent: list[str]
    # all tunables: those of the file, and launch tunables for sides of the block without a name
    tunables: list[Tunable]
    # axes along which indices say what a block computes
    sure: frozenset[str] = field(default_factory=frozenset)
    question: str = ""  # what a person must decide about the block; empty for nothing


def draft_launch(
    indices: Indices,
    axes: Mapping[str, set[str]],
    tunables: Sequence[Tunable],
    threads: Sequence[int | None],
) -> Launch:
    """Block and grid. ``axes`` are those of built-in variables that the kernel and what it calls
    read, ``threads`` those of a block of the host code, None for what is no number."""
    block, every, question = _block(indices, axes, tunables, threads)
    count = max((AXES.index(axis) + 1 for axis in axes["blockIdx"]), default=1)
    extent, sure = [], set()
    for axis, side in zip(AXES[:count], [*block, "1", "1"], strict=False):
        found = _extent(indices, axis, block, every) if axis in axes["blockIdx"] else "0"
        extent.append(found or side)
        sure |= {axis} if found and _is_proven(indices, axis, every) else set()
    proven = {name for text in extent for name in re.findall(r"\w+", text)}
    every = [
        replace(one, question="") if one.question == VALUES and one.name in proven else one
        for one in every
    ]
    return Launch(block, extent, every, frozenset(sure), question)


# Sides of the block


def _block(
    indices: Indices,
    axes: Mapping[str, set[str]],
    tunables: Sequence[Tunable],
    given_threads: Sequence[int | None],
) -> tuple[list[str], list[Tunable], str]:
    """Sides of the block, all tunables, and a question. A side is what the name of a tunable says
    for its axis, else what indices say, else a tunable that is named as a side of any axis, else a
    launch tunable with the threads of the host code as its baseline."""
    named = {one.axis: one.name for one in reversed(tunables) if one.role == "block"}
    threads = axes["threadIdx"] | axes["blockDim"] | {axis for axis in named if axis}
    several = len(threads) > 1
    count = max((AXES.index(axis) + 1 for axis in threads), default=1)
    block, invented, questions = [], [], []
    for axis, given in zip(AXES[:count], [*given_threads, None, None, None], strict=False):
        side = named.get(axis) or _side(indices, axis, tunables) or named.get("")
        if side is None or side == "":
            side = f"block_size_{axis}"
            values, start = block_values(axis, several=count > 1)
            if given is not None and 1 <= given <= 1024:
                values, start = sorted({*values, given}), given
            invented.append(Tunable(side, "launch", values, start, "block", axis))
            if axis in axes["threadIdx"] and axis not in axes["blockDim"]:
                questions.append(f"threads along {axis}: blockDim.{axis} is not read")
            elif array := indices.held_by_threads(axis):
                questions.append(f"{axis}: for how many threads has {array} room?")
        block.append(side)
    every = [
        as_block(one, AXES[block.index(one.name)], several, block.count(one.name) > 1)
        if one.name in block
        else one
        for one in tunables
    ]
    every.sort(key=lambda one: (("block", "other", "flag").index(one.role), one.axis))
    return block, [*invented, *every], "; ".join(questions)


def _side(indices: Indices, axis: str, tunables: Sequence[Tunable]) -> str:
    """Side of the block in indices, a tunable or a number: ``blockIdx.x * SIDE + threadIdx.x``, or
    ``(i = threadIdx.x; i < n; i += SIDE)``; '' where they do not say one."""
    own = {one.name for one in tunables}
    steps = [step for name, step in indices.steps.items() if indices.started_by(name) == {axis}]
    for every in (indices.sides()[axis], steps):
        found = {written(one) for one in every if names_of(one) <= own}
        known = {one for one in found if one in own or 1 < (whole(one) or 0) <= 1024}
        if len(known) == 1:
            return known.pop()
    return ""


# Elements per block


def _extent(indices: Indices, axis: str, block: Sequence[str], tunables: Sequence[Tunable]) -> str:
    """Elements per block along an axis by the indices; '' where they do not say."""
    known = {one.name for one in tunables} | {f"blockDim.{each}" for each in AXES}
    compared = [coefficient(one.index, f"blockIdx.{axis}") for one in indices.bounds(axis)]
    candidates = [_stripped(each, known) for each in (*compared, *indices.per_block(axis))]
    usable = [one for one in candidates if one and names_of(one) <= known]
    if not usable:
        return ""
    best = max(usable, key=lambda one: (len(names_of(one)), sum(one.values())))
    text = written(usable[0] if compared and usable[0] == candidates[0] else best)
    for each, side in zip(AXES, [*block, "1", "1"], strict=False):
        text = text.replace(f"blockDim.{each}", side)
    if not re.fullmatch(r"[\w *]+", text):
        return text
    # A product with the sides of the block first.
    return " * ".join(sorted(text.split(" * "), key=lambda one: (one.isdigit(), one not in block)))


def _is_proven(indices: Indices, axis: str, tunables: Sequence[Tunable]) -> bool:
    """Whether a bound is that of the elements of blocks; not ``i * items < n`` for n elements.
    Where ``items`` is a parameter of the kernel, a block has that many times as many."""
    known = {one.name for one in tunables} | {f"blockDim.{each}" for each in AXES}
    return any(
        names_of(coefficient(one.index, f"blockIdx.{axis}")) <= known | names_of(one.bound)
        for one in indices.bounds(axis)
    )


def _stripped(one: Polynomial, known: set[str]) -> Polynomial:
    """A factor without pitches: names that are neither tunables nor sides of the block. A number
    beside them may be a part of the pitch: `blockIdx.x * 2 * n`."""
    if len(one) != 1:
        return one
    ((term, factor),) = one.items()
    if any("gridDim" in name or name.startswith("?") for name in term):
        return {}
    own = tuple(name for name in term if name in known)
    return {own: factor if own == term else 1}


_UNBOUNDED = "no bound of the kernel says how many elements"


def draft_grid(indices: Indices, launch: Launch, sizes: Sizes) -> tuple[list[str], str]:
    """Blocks per dimension, and a question unless the kernel's bounds say all of them."""
    grid, questions = [], []
    for axis, extent in zip(AXES, launch.extent, strict=False):
        if extent == "0":
            grid.append("1")
            continue
        length, question = _length(indices, axis, launch, sizes)
        grid.append(length if extent == "1" else f"ceil_div({length}, {extent})")
        questions.append(f"{axis}: {question}" if question else "")
    if not any(extent != "0" for extent in launch.extent):
        questions.append("blockIdx is not read")
    return grid, "; ".join(filter(None, questions))


def _length(indices: Indices, axis: str, launch: Launch, sizes: Sizes) -> tuple[str, str]:
    """Elements along an axis, and a question unless all bounds agree."""
    bounds = [(one, length_of(one.bound, sizes)) for one in indices.bounds(axis)]
    # `i < n - 1` may be the bound of a neighbour alone: of `x[i + 1]`.
    texts = [text for one, text in bounds if text and min(one.bound.values()) > 0]
    if not texts:
        return _unbounded(indices, axis, launch, sizes), _UNBOUNDED
    # Bounds that differ by more than a constant.
    leading = {
        frozenset((term, factor) for term, factor in one.bound.items() if term)
        for one, text in bounds
        if text or names_of(one.bound)
    }
    question = ""
    if indices.strides_over_grid(axis):
        question = "a loop strides over the grid, fewer blocks do as well"
    elif len(leading) > 1 or any(not text and names_of(one.bound) for one, text in bounds):
        question = "several bounds"
    elif axis not in launch.sure:
        question = "elements per block"
    return min(texts, key=len), question


def _unbounded(indices: Indices, axis: str, launch: Launch, sizes: Sizes) -> str:
    """Length of an axis without a bound: a size by which its index is not multiplied."""
    if len(launch.extent) > 1 or len(sizes.names) != 2:
        return sizes.axes.get(axis, sizes.names[0])
    factors = {name for _, factor in indices.placed(axis) for name in names_of(factor)}
    strides = {sizes.renamed[name] for name in factors & sizes.renamed.keys()}
    return next((name for name in sizes.names if name not in strides), sizes.names[0])
