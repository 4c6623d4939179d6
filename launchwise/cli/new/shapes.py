"""Problem parameters, and shapes of arrays from the indices of a kernel."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

from launchwise.cli.new.accesses import Access, Accesses
from launchwise.cli.new.body import Polynomial, add, divided, multiply, names_of, written
from launchwise.cli.new.indices import AXES, Indices
from launchwise.cli.new.signature import Kernel, Parameter, Source
from launchwise.cuda_text.syntax import text_of

_LENGTHS = {
    "x": r"w|cols?|columns|n_?cols|width|.*_(w|width|cols|columns)|(n|dim|size|len)_?x",
    "y": r"h|rows?|n_?rows|height|.*_(h|height|rows)|(n|dim|size|len)_?y",
    "z": r"d|depth|batch(es)?|n_?batch(es)?|batch_?size|channels|slices|planes|frames|.*_depth"
    r"|(n|dim|size|len)_?z",
    "": r"n|m|k|size|length|len|count|dim|num\w*|n_\w+|\w+_(n|size|length|len|count)",
}
"""Axis to the names of its length, lower case; of '' those of any size."""
PITCH = re.compile(r"pitch|stride|^ld\w?$")


@dataclass
class Sizes:
    """Problem parameters and what they measure."""

    # problem parameters in the order of the kernel's parameters
    names: list[str] = field(default_factory=list)
    axes: dict[str, str] = field(default_factory=dict)  # axis to the expression of its length
    renamed: dict[str, str] = field(default_factory=dict)  # name in the kernel to that in the spec

    def add(self, own: str, name: str, axis: str | None = None) -> None:
        """Add a problem parameter by its name in the kernel."""
        self.names.append(name)
        self.renamed[own] = name
        if axis:
            self.axes.setdefault(axis, name)


def draft_sizes(
    kernel: Kernel,
    indices: Indices,
    dimensions: int,
    taken: Collection[str],
    compiled: Collection[str],
) -> Sizes:
    """Problem parameters: integers whose names are those of sizes, or that bound indices. None may
    have a name in ``taken``. ``compiled`` are sizes among the parameters of its template."""
    pitches = indices.pitches()
    bounds = pitches | {name for one in indices.comparisons for name in names_of(one.bound)}
    sizes = Sizes()
    for one in kernel.parameters:
        if one.pointer or not one.counts or one.width > 1:
            continue
        axis = _axis(one.name)
        if axis is not None or (one.name in bounds and not PITCH.search(one.name.lower())):
            name = one.name.strip("_")
            name = name if name not in taken and name[:1].isalpha() else f"{name}_size"
            sizes.add(one.name, name, axis)
    for name in compiled:
        sizes.add(name, name)
    _add_fields(sizes, kernel, taken, bounds)
    by_name = {name.lower(): name for name in sizes.names}
    if {"m", "n"} <= by_name.keys():
        sizes.axes = {"x": by_name["n"], "y": by_name["m"]} | sizes.axes
    apart = {name for _, factor in indices.placed("x") for name in names_of(factor)}
    if dimensions == 1 and sizes.names and apart >= {*sizes.renamed} and not indices.bounds("x"):
        # Blocks are whole rows apart, and no parameter is the number of rows.
        sizes.add("gridDim.x", "blocks" if "rows" in {*taken, *sizes.names} else "rows")
    if not sizes.names:
        sizes.names.append("n")
    only = [sizes.renamed[name] for name in pitches if name in sizes.renamed]
    if dimensions > 1 and len(only) == 1 and not sizes.axes:
        sizes.axes = dict.fromkeys(AXES[:dimensions], only[0])
    rest = [name for name in sizes.names if name not in sizes.axes.values()]
    for each in AXES[:dimensions]:
        if each not in sizes.axes:
            sizes.axes[each] = rest.pop(0) if rest else sizes.names[0]
    return sizes


def _axis(name: str) -> str | None:
    """Axis whose length a name says, '' for any; None for no size."""
    found = (axis for axis, names in _LENGTHS.items() if re.fullmatch(names, name.lower()))
    return next(found, None)


def _add_fields(
    sizes: Sizes, kernel: Kernel, taken: Collection[str], bounds: Collection[str]
) -> None:
    """Problem parameters for fields of a structure by value that bound indices: ``size.x``."""
    values = {one.name for one in kernel.parameters if not one.pointer}
    for bound in sorted(bounds):
        owner, _, member = bound.partition(".")
        if owner in values and member.isidentifier():
            long = member in AXES or member in {*taken, *sizes.names}
            name = f"{owner}_{member}" if long else member
            if name[:1].isalpha():
                sizes.add(bound, name, member if member in AXES else None)


@dataclass(frozen=True)
class Reading:
    """What was read of a kernel before its arguments are drafted."""

    source: Source
    kernel: Kernel
    indices: Indices
    accesses: Accesses
    sizes: Sizes
    grid: Sequence[str]  # blocks per dimension
    fixed: Mapping[str, int]  # macros that the file itself sets to integers

    @cached_property
    def blocks(self) -> dict[str, str]:
        """``blockIdx.x`` and the like to the number of blocks."""
        return {f"blockIdx.{axis}": text for axis, text in zip(AXES, self.grid, strict=False)}

    @cached_property
    def bounds(self) -> dict[str, Polynomial]:
        """Lengths of variables that are compared, and numbers of blocks."""
        own = {name: parameter for parameter, name in self.sizes.renamed.items()}
        bounds: dict[str, Polynomial] = {
            name: {(own[length],): 1} for name, length in self.blocks.items() if length in own
        }
        for one in self.indices.comparisons:
            if one.name and (one.name not in bounds or names_of(one.bound)):
                bounds[one.name] = one.bound
        return bounds

    def index(self, one: Access) -> Polynomial | None:
        """Element that is used, in variables with bounds; None where that is unclear."""
        return self.accesses.index(one, frozenset(self.bounds))


def draft_shape(one: Parameter, reading: Reading) -> list[Any]:
    """Shape of an array argument, outermost first."""
    accesses, sizes = reading.accesses, reading.sizes
    by_name = {name.lower(): name for name in sizes.names}
    letter = one.name.lower().strip("_").removeprefix("d_")[:1]
    shape = _by_index(one.name, reading)
    if {"m", "n", "k"} <= by_name.keys() and letter in {*"abc"}:
        shape = [by_name[each] for each in {"a": "mk", "b": "kn", "c": "mn"}[letter]]
    elif not shape:
        shape = [sizes.axes[axis] for axis in reversed(AXES) if axis in sizes.axes]
        is_square = len({*shape}) == 1
        if is_square and accesses.reaches_next(one.name):
            shape = [f"{shape[0]} + 1"]
        elif is_square and (len(reading.grid) == 1 or _is_flat(accesses, one.name, sizes)):
            shape = shape[:1]
    return [*shape, one.width] if one.width > 1 else shape


def _is_flat(accesses: Accesses, array: str, sizes: Sizes) -> bool:
    """Whether no index of an array is multiplied by a size: it has one dimension."""
    every = [accesses.index(one) for one in accesses.of(array) if one.index is not None]
    names = {name for one in every if one for name in names_of(one)}
    plain = all(not name.startswith("?") and "[" not in name for name in names)
    return bool(names) and plain and not names & sizes.renamed.keys()


def shape_of_atomics(array: str, reading: Reading) -> tuple[list[Any], str]:
    """Shape of an array with atomic operations, and a question."""
    first = reading.accesses.atomics(array)[0]
    index = reading.index(first) or {}
    if not names_of(index):
        return [index.get((), 0) + 1], "shape"
    if shape := _written(_lengths(index, reading), reading.sizes):
        return shape, "shape"
    return [256], "shape: how many elements does the index reach?"


def _by_index(array: str, reading: Reading) -> list[Any]:
    """Shape by the accesses of an array; empty where they do not say."""
    best: list[Polynomial] = []
    per_block: list[Any] = []
    for one in reading.accesses.of(array):
        if one.index is None or len(text_of(one.index)) > 320:
            continue
        index = reading.index(one)
        if index is None:
            return []
        block = next((name for name in reading.blocks if index == {(name,): 1}), "")
        if block and block not in reading.bounds:
            # One element per block: `sums[blockIdx.x]`.
            per_block = [reading.blocks[block]]
            continue
        found = _lengths(index, reading)
        if not found:
            return []
        best = max(best, found, key=lambda one: (len(one), one[-1].get((), 0) if one else 0))
    return _written(best, reading.sizes) if best or not per_block else per_block


def _lengths(index: Polynomial, reading: Reading) -> list[Polynomial]:
    """Lengths that an index ``(z * h + y) * w + x`` walks through, with bounds of x, y and z."""
    bounds, sizes = reading.bounds, reading.sizes.renamed.keys()
    parts: list[tuple[Polynomial, Polynomial]] = []
    for term, factor in index.items():
        walking = [name for name in term if name in bounds]
        stride = {tuple(name for name in term if name not in walking[:1]): factor}
        if len(walking) == 1 and factor > 0 and names_of(stride) <= sizes:
            parts.append((stride, bounds[walking[0]]))
        elif walking or not names_of(stride) <= sizes:
            return []  # Else it is the distance of a neighbour: `x[i + 1]`.
    parts.sort(key=lambda part: (len(next(iter(part[0]))), max(part[0].values())))
    if not parts or any(one[0] == other[0] for one, other in pairwise(parts)):
        return []
    if len(parts) == 1 and set(parts[0][0]) == {()}:
        # `x[2 * i]`
        parts = [({(): 1}, multiply(parts[0][1], parts[0][0]))]
    shape = [] if parts[0][0] == {(): 1} else [parts[0][0]]
    for (stride, _), (wider, _) in pairwise(parts):
        length = divided(wider, stride)
        if length is None:
            return []
        shape.append(length)
    last = parts[-1][1]
    if len(parts) == 1 and not shape:
        # `x[i + 1]` reaches one element further, unless `i + 1 < n` is compared, too.
        further: Polynomial = {(): max(index.get((), 0), 0)}
        compared = [one.bound for one in reading.indices.comparisons]
        last = last if add(last, further, -1) in compared else add(last, further)
    # `i < n - 1` keeps a distance from the end of an array of n elements.
    return [
        {term: factor for term, factor in one.items() if term or factor > 0}
        for one in reversed([*shape, last])
    ]


# Polynomials as expressions of a spec


def _written(lengths: Sequence[Polynomial], sizes: Sizes) -> list[Any]:
    found = [one[()] if {*one} == {()} else length_of(one, sizes) for one in lengths]
    return found if all(one and one != 0 for one in found) else []


def length_of(bound: Polynomial, sizes: Sizes) -> str:
    """A bound as an expression over problem parameters; '' where it reads other names."""
    found: Polynomial = {}
    for term, factor in bound.items():
        names = tuple(sizes.renamed.get(name, "") for name in term)
        if "" in names:
            return ""
        found = add(found, {names: factor})
    return written(found) if names_of(found) else ""
