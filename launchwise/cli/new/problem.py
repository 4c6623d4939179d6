"""Problem parameters of a first spec, from the integers that a kernel takes."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from launchwise.cli.new.signature import Kernel
from launchwise.cli.new.tunables import AXES

_WIDTH = re.compile(
    r"^(w|cols?|columns|n_?cols|width|.*_(w|width|cols|columns)|(n|dim|size|len)_?x)$"
)
_HEIGHT = re.compile(r"^(h|rows?|n_?rows|height|.*_(h|height|rows)|(n|dim|size|len)_?y)$")
_DEPTH = re.compile(
    r"^(d|depth|batch(es)?|n_?batch(es)?|batch_?size|channels|slices|planes|frames|.*_depth|(n|dim|size|len)_?z)$"
)
_SIZE = re.compile(
    r"^(n|m|k|size|length|len|count|dim|num\w*|n_\w+|\w+_(n|size|length|len|count))$"
)
PITCH = re.compile(r"pitch|stride|^ld\w?$")


@dataclass
class Sizes:
    """Problem parameters and what they measure."""

    # problem parameters in the order of the kernel's parameters
    names: list[str] = field(default_factory=list)
    axes: dict[str, str] = field(default_factory=dict)  # axis to the expression of its length
    # parameter of the kernel to problem parameter, where the names differ
    renamed: dict[str, str] = field(default_factory=dict)


def draft_sizes(
    kernel: Kernel,
    dimensions: int,
    taken: Collection[str],
    fixed: Mapping[str, int],
    bounds: Collection[str] = (),
    pitches: Collection[str] = (),
    loops: Collection[str] = (),
    compiled: Collection[str] = (),
) -> Sizes:
    """Problem parameters: integers whose names are those of sizes, or that bound indices.

    ``taken`` are names that none may have, ``fixed`` the macros that the file itself sets to
    integers: lengths of a kernel that takes no size. With ``bounds`` and ``pitches`` the kernel
    compares indices of threads and multiplies them; the only one of the pitches is the length of
    every axis. ``loops`` bound only loops that every thread runs alike; ``compiled`` are sizes
    among the parameters of its template.
    """
    sizes = Sizes()
    for one in kernel.parameters:
        lower = one.name.lower()
        if one.pointer or not one.counts or one.width > 1:
            continue
        matching = [each for each in (_WIDTH, _HEIGHT, _DEPTH, _SIZE) if each.match(lower)]
        if not matching and (one.name not in bounds or PITCH.search(lower)):
            continue
        name = one.name.strip("_")
        name = name if name not in taken and name[:1].isalpha() else f"{name}_size"
        sizes.names.append(name)
        sizes.renamed[one.name] = name
        axis = {_WIDTH: "x", _HEIGHT: "y", _DEPTH: "z"}.get(matching[0], "") if matching else ""
        if axis:
            sizes.axes.setdefault(axis, name)
    for name in compiled:
        sizes.names.append(name)
        sizes.renamed[name] = name
    _add_fields(sizes, kernel, taken, bounds)
    by_name = {name.lower(): name for name in sizes.names}
    if {"m", "n"} <= by_name.keys():
        sizes.axes.setdefault("x", by_name["n"])
        sizes.axes.setdefault("y", by_name["m"])
    if not sizes.names:
        sizes.names.append("n")
        sizes.axes = _fixed_axes(fixed)
    loops = {sizes.renamed[name] for name in {*loops} - {*pitches} if name in sizes.renamed}
    walked = [name for name in sizes.names if name not in loops]
    only = [sizes.renamed[name] for name in pitches if name in sizes.renamed]
    if dimensions > 1 and len(only) == 1 and not sizes.axes and len(walked) != dimensions:
        sizes.axes = dict.fromkeys(AXES[:dimensions], only[0])
    rest = [name for name in sizes.names if name not in sizes.axes.values()]
    for axis in AXES[:dimensions]:
        if axis not in sizes.axes:
            known = sizes.axes.get("x", "") if not sizes.renamed else ""
            sizes.axes[axis] = known or (rest.pop(0) if rest else sizes.names[0])
    return sizes


def _add_fields(
    sizes: Sizes, kernel: Kernel, taken: Collection[str], bounds: Collection[str]
) -> None:
    """Problem parameters for fields of a structure by value that bound indices: ``size.x``."""
    values = {one.name for one in kernel.parameters if not one.pointer}
    for bound in sorted(bounds):
        owner, _, field_name = bound.partition(".")
        if owner not in values or not field_name.isidentifier():
            continue
        name = f"{owner}_{field_name}" if field_name in AXES else field_name
        name = name if name not in {*taken, *sizes.names} else f"{owner}_{field_name}"
        if name[:1].isalpha():
            sizes.names.append(name)
            sizes.renamed[bound] = name
            if field_name in AXES:
                sizes.axes.setdefault(field_name, name)


def _fixed_axes(fixed: Mapping[str, int]) -> dict[str, str]:
    """Axis to length, from macros such as ``image_width``; the longest of each axis."""
    found: dict[str, int] = {}
    for axis, pattern in (("x", _WIDTH), ("y", _HEIGHT), ("z", _DEPTH), ("x", _SIZE)):
        lengths = [length for name, length in fixed.items() if pattern.match(name.lower())]
        lengths = [length for length in lengths if length >= SHORTEST]
        if lengths and axis not in found:
            found[axis] = max(lengths)
    return {axis: str(length) for axis, length in found.items()}


SHORTEST = 64
"""Below it, a fixed number is the width of a filter or of a tile, not the size of a problem."""


def default_shape(sizes: Sizes, dimensions: int) -> list[Any]:
    """Lengths of an array of the problem's size, outermost first."""
    known = [sizes.axes[axis] for axis in reversed(AXES) if axis in sizes.axes]
    if dimensions == 1 and len(set(known)) == 1 and len(sizes.names) == 1:
        known = known[:1]
    lengths = known or [sizes.names[0]] * dimensions
    return [int(length) if length.isdigit() else length for length in lengths]
