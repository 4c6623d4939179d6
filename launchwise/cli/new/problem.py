"""Problem parameters of a first spec, from the integers that a kernel takes."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from launchwise.cli.new.indices import AXES, Indices
from launchwise.cli.new.polynomials import names_of
from launchwise.cli.new.signature import Kernel

_LENGTHS = {
    "x": r"w|cols?|columns|n_?cols|width|.*_(w|width|cols|columns)|(n|dim|size|len)_?x",
    "y": r"h|rows?|n_?rows|height|.*_(h|height|rows)|(n|dim|size|len)_?y",
    "z": r"d|depth|batch(es)?|n_?batch(es)?|batch_?size|channels|slices|planes|frames|.*_depth"
    r"|(n|dim|size|len)_?z",
    "": r"n|m|k|size|length|len|count|dim|num\w*|n_\w+|\w+_(n|size|length|len|count)",
}
"""Axis to the names of its length, lower case; of '' those of any size."""
PITCH = re.compile(r"pitch|stride|^ld\w?$")
_SHORTEST = 64
"""Below it, a fixed number is the width of a filter or of a tile, not the size of a problem."""


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
    fixed: Mapping[str, int],
    compiled: Collection[str],
) -> Sizes:
    """Problem parameters: integers whose names are those of sizes, or that bound indices.

    Parameters
    ----------
    taken
        Names that none may have.
    fixed
        Macros that the file itself sets to integers: lengths of a kernel that takes no size.
    compiled
        Sizes among the parameters of its template.
    """
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
    if not sizes.names:
        sizes.names.append("n")
        sizes.axes = _fixed_axes(fixed)
    # Names that bound only loops which every thread runs alike are walked by no grid.
    loops = {sizes.renamed[name] for name in indices.loops() - pitches if name in sizes.renamed}
    walked = [name for name in sizes.names if name not in loops]
    only = [sizes.renamed[name] for name in pitches if name in sizes.renamed]
    if dimensions > 1 and len(only) == 1 and not sizes.axes and len(walked) != dimensions:
        sizes.axes = dict.fromkeys(AXES[:dimensions], only[0])
    rest = [name for name in sizes.names if name not in sizes.axes.values()]
    for each in AXES[:dimensions]:
        if each not in sizes.axes:
            known = sizes.axes.get("x", "") if not sizes.renamed else ""
            sizes.axes[each] = known or (rest.pop(0) if rest else sizes.names[0])
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


def _fixed_axes(fixed: Mapping[str, int]) -> dict[str, str]:
    """Axis to length, from macros such as ``image_width``; the longest of each axis."""
    found: dict[str, int] = {}
    for axis, names in _LENGTHS.items():
        own = [length for name, length in fixed.items() if re.fullmatch(names, name.lower())]
        long = [length for length in own if length >= _SHORTEST]
        if long:
            found.setdefault(axis or "x", max(long))
    return {axis: str(length) for axis, length in found.items()}
