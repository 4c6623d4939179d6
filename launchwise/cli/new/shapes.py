"""Problem parameters, and shapes of arrays as a kernel's indices and their guards prove them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from launchwise.cli.new.accesses import Access, Accesses
from launchwise.cli.new.body import Polynomial, add, divided, length_of, multiply, names_of, written
from launchwise.cli.new.indices import AXES, Indices
from launchwise.cli.new.launches import Launch
from launchwise.cli.new.signature import Kernel, Parameter, Source


def draft_sizes(
    kernel: Kernel, indices: Indices, taken: Collection[str], compiled: Collection[str]
) -> dict[str, str]:
    """Names in the kernel to those of problem parameters: integers, and fields of structures that
    bound indices. None may have a name in ``taken``. ``compiled`` are sizes among the parameters of
    its template."""
    sizes: dict[str, str] = {}
    values = [one for one in kernel.parameters if not one.pointer]
    for one in values:
        if one.counts and one.width == 1:
            name = one.name.strip("_")
            usable = name not in taken and name[:1].isalpha()
            sizes[one.name] = name if usable else f"{name}_size"
    sizes |= {name: name for name in compiled}
    owners = {one.name for one in values}
    for bound in sorted({name for one in indices.comparisons for name in names_of(one.bound)}):
        owner, _, member = bound.partition(".")
        if owner in owners and member.isidentifier():
            long = member in AXES or member in {*taken, *sizes.values()}
            name = f"{owner}_{member}" if long else member
            sizes |= {bound: name} if name[:1].isalpha() else {}
    return sizes


@dataclass(frozen=True)
class Reading:
    source: Source
    kernel: Kernel
    indices: Indices
    accesses: Accesses
    sizes: Mapping[str, str]
    launch: Launch
    fixed: Mapping[str, int]  # macros that the file itself sets to integers


def draft_shape(one: Parameter, reading: Reading) -> tuple[list[Any], str]:
    """Shape of an array argument, outermost first, and a question unless all indices that the
    kernel uses prove it by their guards."""
    found, is_sure = _by_index(one.name, reading)
    shape = _written(found, reading)
    question = "" if shape and is_sure else "shape"
    shape = shape or [next(iter(reading.sizes.values()), "n")]
    return [*shape, one.width] if one.width > 1 else shape, question


def _by_index(array: str, reading: Reading) -> tuple[list[Polynomial], bool]:
    """Lengths by the accesses of an array, none where they do not say; and whether they are proven:
    by each access, which all say the same but for constants."""
    if array in reading.accesses.recast:
        return [], False
    found = [_lengths(one, reading) for one in reading.accesses.of(array) if one.use]
    best = max((each for each, _ in found), key=_room, default=[])
    names = [*map(names_of, best)]
    is_sure = all(fits and [*map(names_of, each)] == names for each, fits in found)
    if any("gridDim" in name for each in names for name in each):
        is_sure &= not reading.launch.grid_question
    if not any(names):
        return (best if is_sure else []), is_sure
    # `i < n - 1` keeps a distance from the end of an array of n elements.
    last = {term: factor for term, factor in best[0].items() if term or factor > 0}
    return [last, *best[1:]], is_sure and last == best[0]


def _room(lengths: Sequence[Polynomial]) -> tuple[int, int]:
    return len(lengths), lengths[0].get((), 0) if lengths else 0


def _guarded(one: Access, reading: Reading) -> tuple[Polynomial, dict[str, Polynomial]]:
    """Index of an access with a name for each comparison that guards it, and what each name stays
    below."""
    limits: dict[str, Polynomial] = {}
    walks: dict[str, Polynomial] = {}
    guards = [(each.walking, each.limit) for each in reading.indices.guards(one.frame, one.pointer)]
    guards += [({(f"blockIdx.{each}",): 1}, {(f"gridDim.{each}",): 1}) for each in AXES]
    for walking, limit in sorted(guards, key=lambda guard: -len(guard[0])):
        name = f"below {written(walking)}"
        known = limits.setdefault(name, limit)
        # Of `i < n` and `i < n - 1` the lower one holds; of two sizes either does.
        if not names_of(add(limit, known, -1)) and limit.get((), 0) < known.get((), 0):
            limits[name] = limit
        walks[name] = walking
    index = reading.accesses.index(one, reading.indices.kept)
    if index is None:
        return {("?",): 1}, limits
    for name, walking in walks.items():
        lead = max(walking, key=len)
        for term, factor in [*index.items()]:
            stride = divided({term: factor}, {lead: walking[lead]})
            part = multiply(walking, stride) if stride is not None else {}
            if part and all(index.get(each) == own for each, own in part.items()):
                index = add(add(index, part, -1), multiply(stride or {}, {(name,): 1}))
    return index, limits


def _lengths(one: Access, reading: Reading) -> tuple[list[Polynomial], bool]:
    """Lengths that an index ``(z * h + y) * w + x`` walks through, with bounds of x, y and z; and
    whether it stays inside of them."""
    if one.use == "?":
        return [], False
    index, limits = _guarded(one, reading)
    sizes = reading.sizes.keys()
    parts: list[tuple[Polynomial, Polynomial]] = []
    further: Polynomial = {}
    for term, factor in index.items():
        walking = [name for name in term if name in limits]
        stride = {tuple(name for name in term if name not in walking[:1]): factor}
        if not names_of(stride) <= sizes or len(walking) > 1 or (walking and factor < 0):
            return [], False
        if walking:
            parts.append((stride, limits[walking[0]]))
        else:
            further[term] = factor
    if not parts:
        return ([{(): index.get((), 0) + 1}], True) if {*index} <= {()} else ([], False)
    parts.sort(key=lambda part: (len(next(iter(part[0]))), max(part[0].values())))
    if any(one[0] == other[0] for one, other in pairwise(parts)):
        return [], False
    if len(parts) == 1 and set(parts[0][0]) == {()}:
        # `x[2 * i]`
        parts = [({(): 1}, multiply(parts[0][1], parts[0][0]))]
    shape = [] if parts[0][0] == {(): 1} else [parts[0][0]]
    for (stride, _), (wider, _) in pairwise(parts):
        length = divided(wider, stride)
        if length is None:
            return [], False
        shape.append(length)
    stride, last = parts[-1]
    ((widest, factor),) = stride.items()
    last = add(last, {(): max(further.pop(widest, 0) // factor, 0)})
    # What is left of the largest stride: a neighbour stays below it, too.
    rest = add(add(stride, {(): 1}, -1), further, -1)
    for inner, limit in parts[:-1]:
        rest = add(rest, multiply(inner, add(limit, {(): 1}, -1)), -1)
    fits = all(n > 0 for term, n in rest.items() if term) and sum(rest.values()) >= 0
    return [last, *reversed(shape)], fits


# Polynomials as expressions of a spec


def _written(lengths: Sequence[Polynomial], reading: Reading) -> list[Any]:
    blocks = zip(AXES, reading.launch.grid, strict=False)
    names = {**{f"gridDim.{axis}": text for axis, text in blocks}, **reading.sizes}
    found = [one[()] if {*one} == {()} else length_of(one, names) for one in lengths]
    return found if all(one and one != 0 for one in found) else []
