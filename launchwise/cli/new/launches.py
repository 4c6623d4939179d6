"""Block and grid of a kernel, from its indices and from the names of tunables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from launchwise.cli.new.hosts import HostLaunch
from launchwise.cli.new.indices import Indices
from launchwise.cli.new.polynomials import Polynomial, coefficient, names_of, written
from launchwise.cli.new.sides import known_sides, most_threads, side_in_memory
from launchwise.cli.new.tunables import AXES, Tunable, as_block, axis_of, block_values, role_of


@dataclass(frozen=True)
class Launch:
    """Block and grid of a kernel as expressions."""

    block: list[str]  # threads per block, per dimension of the block
    # elements of the result that a block computes, per dimension of the grid; ``0`` along an
    # axis of which the kernel does not read ``blockIdx``
    extent: list[str]
    # all tunables: those of the file, with values that fit the block, and launch tunables for
    # sides of the block that the file does not name
    tunables: list[Tunable]
    # axes along which indices say what a block computes
    sure: frozenset[str] = field(default_factory=frozenset)
    question: str = ""  # what a person must decide about the block; empty for nothing

    @property
    def dimensions(self) -> int:
        """Dimensions of the grid."""
        return len(self.extent)


def by_index(indices: Indices, tunables: Sequence[Tunable], host: HostLaunch) -> list[Tunable]:
    """Tunables with the role and the axis that host code and the arithmetic of indices give them.

    A name that stands for a side along two axes says nothing: threads may walk along one of them.
    """
    factors = {axis: indices.per_block(axis) for axis in AXES}
    several = len(indices.axes["threadIdx"]) > 1
    known = known_sides(indices, tunables, host)
    changed = []
    for one in tunables:
        axis = known.get(one.name) or indices.side(one.name) or side_in_memory(indices, one)
        own = [
            axis for axis in AXES if any(one.name in names_of(factor) for factor in factors[axis])
        ]
        if axis in known.values() and one.name not in known and one.role in ("side", "tile"):
            # Threads walk through the part of the result that a block computes.
            one = replace(one, role="tile", axis=axis, question="")
        elif axis and (one.role not in ("block", "flag") or (one.axis and one.axis != axis)):
            several_sides = several or one.role != "block"
            one = as_block(one, axis, several_sides and len(indices.axes["threadIdx"]) > 1)
        elif len(own) == 1 and one.role in ("other", "tile", "unroll"):
            one = replace(one, role="tile", axis=own[0], question="")
        changed.append(one)
    return changed


def draft_launch(
    indices: Indices,
    shared_axes: Mapping[str, set[str]],
    tunables: Sequence[Tunable],
    fixed: Mapping[str, int],
    host: HostLaunch,
) -> Launch:
    """Block and grid.

    Parameters
    ----------
    shared_axes
        Axes of built-in variables that functions of the device read.
    fixed
        Macros that the file itself sets to integers.
    """
    tunables = by_index(indices, tunables, host)
    axes = {name: indices.axes[name] or shared_axes[name] for name in indices.axes}
    block, invented, question = _block(indices, axes, tunables, fixed, host)
    square = _square(tunables, axes)
    fitting = [
        _side(one, block) if one.name == square and one.name in block else one for one in tunables
    ]
    invented, asked = _limited(invented, block, indices)
    fitting, more = _limited(fitting, block, indices)
    differ = _differing(block, fitting, host)
    question = "; ".join(filter(None, [question, *asked, *more, *differ]))
    count = max((AXES.index(axis) + 1 for axis in axes["blockIdx"]), default=1)
    extent, sure = [], set()
    for axis in AXES[:count]:
        if axis not in axes["blockIdx"]:
            extent.append("0")
            continue
        found = _extent(indices, axis, block, fitting)
        extent.append(found or (block[AXES.index(axis)] if AXES.index(axis) < len(block) else "1"))
        sure |= {axis} if found and _is_proven(indices, axis, fitting) else set()
    return Launch(block, extent, [*invented, *fitting], frozenset(sure), question)


def _differing(
    block: Sequence[str], tunables: Sequence[Tunable], host: HostLaunch
) -> Iterator[str]:
    """Sides of the block that the file gives other numbers than its own launch has."""
    starts = {one.name: one.start for one in tunables if one.given}
    for axis, side, number in zip(AXES, block, host.block, strict=False):
        own = int(side) if side.isdigit() else starts.get(side)
        if number is not None and own is not None and own != number:
            yield f"{axis}: the host code has {number} threads"


def _limited(
    tunables: Sequence[Tunable], block: Sequence[str], indices: Indices
) -> tuple[list[Tunable], list[str]]:
    """Sides of the block for which arrays in shared memory have room, and questions."""
    room = most_threads(indices)
    limited, questions = [], []
    for one in tunables:
        sides = [axis for axis, side in zip(AXES, block, strict=False) if side == one.name]
        most, array = min((room[axis] for axis in sides if axis in room), default=(0, ""))
        if most and one.role == "block" and max(one.values) > most and not one.given:
            values = [value for value in one.values if value <= most] or [most]
            one = replace(one, values=values, start=min(one.start, values[-1]))
            questions.append(f"{one.name}: {array} has room for {most} threads")
        limited.append(one)
    return limited, questions


def _square(tunables: Sequence[Tunable], axes: Mapping[str, set[str]]) -> str | None:
    """A name without an axis that is the side of the block where no other name is."""
    blocks: dict[str, str] = {}
    for one in tunables:
        if one.role == "block":
            blocks.setdefault(one.axis, one.name)
    tile = next((one.name for one in tunables if one.role == "tile" and not one.axis), None)
    if tile is not None and re.search(r"per_|items|coarsen|work_|wpt|ipt", tile.lower()):
        tile = None
    return blocks.get("") or (tile if not axes["blockDim"] and "x" not in blocks else None)


def _block(
    indices: Indices,
    axes: Mapping[str, set[str]],
    tunables: Sequence[Tunable],
    fixed: Mapping[str, int],
    host: HostLaunch,
) -> tuple[list[str], list[Tunable], str]:
    """Sides of the block, launch tunables for those without a name, and a question."""
    blocks: dict[str, str] = {}
    for one in tunables:
        if one.role == "block":
            blocks.setdefault(one.axis, one.name)
    threads = axes["threadIdx"] | axes["blockDim"] | {axis for axis in blocks if axis}
    count = max((AXES.index(axis) + 1 for axis in threads), default=1)
    square = _square(tunables, axes)
    literal = {axis_of(name): str(fixed[name]) for name in fixed if role_of(name) == "block"}
    product = _threads_of_a_product(tunables) if count == 1 and not axes["blockDim"] else ""
    block, invented, questions = [], [], []
    for place, axis in enumerate(AXES[:count]):
        known = blocks.get(axis) or product or square or literal.get(axis) or literal.get("")
        known = known or _launched_side(_fixed_side(indices, axis, axes), host, place)
        if product and known == product:
            questions.append("threads of the block")
        if known is None:
            name = f"block_size_{axis}"
            values, start = block_values(axis, several=count > 1)
            given = host.block[place] if place < len(host.block) else None
            if given is not None and 1 <= given <= 1024:
                values, start = sorted({*values, given}), given
            invented.append(Tunable(name, "launch", values, start, "block", axis))
            if axis in axes["threadIdx"] and axis not in axes["blockDim"]:
                questions.append(f"threads along {axis}: blockDim.{axis} is not read")
            known = name
        block.append(known)
    return block, invented, "; ".join(questions)


def _launched_side(side: str | None, host: HostLaunch, place: int) -> str | None:
    """Threads of the launch where each computes several elements along a fixed side."""
    threads = host.block[place] if place < len(host.block) else None
    if side is None or threads is None or not 1 <= threads < int(side) or int(side) % threads:
        return side
    return str(threads)


def _threads_of_a_product(tunables: Sequence[Tunable]) -> str:
    """Threads of a matrix product whose threads compute TM x TN elements of BM x BN."""
    by_name = {one.name.lower(): one.name for one in tunables}
    names = [by_name.get(name) for name in ("bm", "bn", "tm", "tn")]
    if None in names:
        return ""
    return "{} * {} // ({} * {})".format(*names)


def _fixed_side(indices: Indices, axis: str, axes: Mapping[str, set[str]]) -> str | None:
    """Side of the block that the kernel writes as a number: ``blockIdx.x * 256 + threadIdx.x``."""
    placed = [(one, factor) for other in AXES for one, factor in indices.placed(other)]
    if axis in axes["blockDim"]:
        if any(f"blockDim.{axis}" in names_of(factor) for _, factor in placed):
            return None
        # Loops may go on by blockDim: only an index that no loop changes says the side.
        plain = list(indices.definitions(frozenset(indices.steps)))
        placed = [
            (one, factor)
            for one in plain
            for other in AXES
            if (factor := coefficient(one, f"blockIdx.{other}"))
        ]
    found = {
        factor[()]
        for one, factor in placed
        if set(factor) == {()} and coefficient(one, f"threadIdx.{axis}") == {(): 1}
    }
    side = found.pop() if len(found) == 1 else 0
    return str(side) if 1 < side <= 1024 else None


def _extent(indices: Indices, axis: str, block: Sequence[str], tunables: Sequence[Tunable]) -> str:
    """Elements per block along an axis by the indices; '' where they do not say."""
    known = {one.name for one in tunables} | {f"blockDim.{each}" for each in AXES}
    compared = [coefficient(one.index, f"blockIdx.{axis}") for one in indices.bounds(axis)]
    candidates = [_stripped(each, known) for each in (*compared, *indices.per_block(axis))]
    usable = [one for one in candidates if one and names_of(one) <= known]
    if not usable:
        return ""
    if compared and usable[0] == candidates[0]:
        best = usable[0]
    else:
        best = max(usable, key=lambda one: (len(names_of(one)), sum(one.values())))
    text = written(best)
    for place, each in enumerate(AXES):
        side = block[place] if place < len(block) else "1"
        side = side if re.fullmatch(r"\w+", side) else f"({side})"
        text = text.replace(f"blockDim.{each}", side)
    return _tidied(text)


def _is_proven(indices: Indices, axis: str, tunables: Sequence[Tunable]) -> bool:
    """Whether a bound is that of the elements of blocks; not ``i * items < n`` for n elements.

    Where ``items`` is a parameter of the kernel, a block has that many times as many.
    """
    known = {one.name for one in tunables} | {f"blockDim.{each}" for each in AXES}
    bounds = indices.bounds(axis)
    return not bounds or any(
        names_of(coefficient(one.index, f"blockIdx.{axis}")) <= known | names_of(one.bound)
        for one in bounds
    )


def _tidied(text: str) -> str:
    """A product with the sides of the block first."""
    if not re.fullmatch(r"[\w *]+", text):
        return text
    factors = text.split(" * ")
    return " * ".join(sorted(factors, key=lambda one: (one.isdigit(), role_of(one) != "block")))


def _stripped(one: Polynomial, known: set[str]) -> Polynomial:
    """A factor without pitches: names that are neither tunables nor sides of the block."""
    if len(one) != 1:
        return one
    ((term, factor),) = one.items()
    if any("gridDim" in name or name.startswith("?") for name in term):
        return {}
    return {tuple(name for name in term if name in known): factor}


def _side(one: Tunable, block: Sequence[str]) -> Tunable:
    """A tunable without an axis as the side of a block."""
    values, start = block_values("", several=len(block) > 1)
    if block.count(one.name) > 1:
        values, start = [8, 16, 32], 16
    if one.given:
        values, start = sorted({*values, one.start}), one.start
    return replace(one, values=values, start=start, role="block", question="")
