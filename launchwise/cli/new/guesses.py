"""Guesses from a kernel's names: problem parameters, arguments, reference.

Every guess is a value that a spec may hold. Where a person must decide, it carries a question.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from launchwise.cli.new.signature import Kernel, Parameter
from launchwise.cli.new.tokens import closing, is_name
from launchwise.cli.new.tunables import AXES

_SMALL_ARRAY = re.compile(r"filter|weight|coef|mask|stencil|taps")
_INDICES = re.compile(r"ind(ex|ices)|idx|offset|_ptr$|^ptr")
_WIDTH = re.compile(
    r"^(w|cols?|columns|n_?cols|width|.*_(w|width|cols|columns)|(n|dim|size|len)_?x)$"
)
_HEIGHT = re.compile(r"^(h|rows?|n_?rows|height|.*_(h|height|rows)|(n|dim|size|len)_?y)$")
_DEPTH = re.compile(r"^(d|depth|.*_depth|(n|dim|size|len)_?z)$")
_SIZE = re.compile(
    r"^(n|m|k|size|length|len|count|dim|num\w*|n_\w+|\w+_(n|size|length|len|count))$"
)
_PITCH = re.compile(r"pitch|stride|^ld\w?$")


@dataclass
class Sizes:
    """Problem parameters and what they measure.

    Parameters
    ----------
    names
        Problem parameters in the order of the kernel's parameters.
    axes
        Axis to the expression of its length.
    renamed
        Parameter of the kernel to problem parameter, where the names differ.
    """

    names: list[str] = field(default_factory=list)
    axes: dict[str, str] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)


# Problem


def guess_sizes(
    kernel: Kernel, dimensions: int, taken: Collection[str], fixed: Mapping[str, int]
) -> Sizes:
    """Problem parameters: integers of the kernel whose names are those of sizes.

    Parameters
    ----------
    taken
        Names that no problem parameter may have.
    fixed
        Macros that the file itself sets to integers: lengths of a kernel that takes no size.
    """
    sizes = Sizes()
    for one in kernel.parameters:
        lower = one.name.lower()
        if one.pointer or "int" not in one.type or one.width > 1:
            continue
        matching = [each for each in (_WIDTH, _HEIGHT, _DEPTH, _SIZE) if each.match(lower)]
        if not matching:
            continue
        name = one.name.strip("_")
        name = name if name not in taken and name[:1].isalpha() else f"{name}_size"
        sizes.names.append(name)
        sizes.renamed[one.name] = name
        axis = {_WIDTH: "x", _HEIGHT: "y", _DEPTH: "z"}.get(matching[0], "")
        if axis:
            sizes.axes.setdefault(axis, name)
    by_name = {name.lower(): name for name in sizes.names}
    if {"m", "n"} <= by_name.keys():
        sizes.axes.setdefault("x", by_name["n"])
        sizes.axes.setdefault("y", by_name["m"])
    if not sizes.names:
        sizes.names.append("n")
        sizes.axes = _fixed_axes(fixed)
    rest = [name for name in sizes.names if name not in sizes.axes.values()]
    for axis in AXES[:dimensions]:
        if axis not in sizes.axes:
            known = sizes.axes.get("x", "") if not sizes.renamed else ""
            sizes.axes[axis] = known or (rest.pop(0) if rest else sizes.names[0])
    return sizes


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
    lengths = known or [sizes.names[0]] * dimensions
    return [int(length) if length.isdigit() else length for length in lengths]


# Arguments


def role_in(body: Sequence[str], parameter: Parameter) -> tuple[str, str]:
    """Role of an array, and a question where the kernel's body leaves it open."""
    if parameter.const:
        return "input", ""
    reads = writes = unclear = False
    for place, token in enumerate(body):
        if token != parameter.name or (place and body[place - 1] in (".", "->")):
            continue
        end = place
        while end + 1 < len(body) and body[end + 1] == "[":
            end = closing(body, end + 1)
        if end + 2 < len(body) and body[end + 1] == "." and is_name(body[end + 2]):
            end += 2
        after = body[end + 1] if end + 1 < len(body) else ";"
        before = body[place - 1] if place else ";"
        if before == "&" or (before == "*" and after == "="):
            writes, reads = True, reads or before == "&"
        elif end == place:
            unclear = True
        elif after in ("=", "++", "--") or (
            len(after) > 1 and after[-1] == "=" and after not in _COMPARE
        ):
            writes, reads = True, reads or after != "="
        else:
            reads = True
    if writes:
        return ("inout", "also read: in and out?") if reads else ("output", "")
    if reads and not unclear:
        return "input", "not const but only read"
    return "output", "output or input"


_COMPARE = ("==", "!=", "<=", ">=")


def guess_shape(
    parameter: Parameter, role: str, title: str, sizes: Sizes, dimensions: int
) -> list[Any]:
    """Shape of an array argument, outermost first."""
    lower = parameter.name.lower()
    by_name = {name.lower(): name for name in sizes.names}
    shape = default_shape(sizes, dimensions)
    if {"m", "n", "k"} <= by_name.keys() and lower.strip("_").removeprefix("d_")[:1] in "abc":
        first = lower.strip("_").removeprefix("d_")[:1]
        shape = [by_name[each] for each in {"a": "mk", "b": "kn", "c": "mn"}[first]]
    elif _SMALL_ARRAY.search(lower):
        shape = [5] * min(dimensions, 2)
    elif "transpos" in title and role == "output":
        shape = shape[::-1]
    return [*shape, parameter.width] if parameter.width > 1 else shape


def guess_fill(parameter: Parameter) -> str:
    """Content of an input."""
    if "float" in parameter.type or not parameter.type:
        return "normal"
    return "iota" if _INDICES.search(parameter.name.lower()) else "uniform"


def guess_scalar(parameter: Parameter, sizes: Sizes) -> tuple[Any, str]:
    """Value of a number, and a question where its name says nothing."""
    if parameter.name in sizes.renamed:
        return sizes.renamed[parameter.name], ""
    if _PITCH.search(parameter.name.lower()):
        return sizes.axes.get("x", sizes.names[0]), "elements per row"
    return (1.0 if "float" in parameter.type else 1), "value"


# Reference


def guess_reference(title: str, inputs: Sequence[str]) -> dict[str, Any]:
    """Function that computes the expected result, by the names of file and kernel.

    Parameters
    ----------
    title
        Names of file and kernel, lower case.
    inputs
        Names of array arguments that the kernel reads.
    """
    small = [name for name in inputs if _SMALL_ARRAY.search(name.lower())]
    large = [name for name in inputs if name not in small]
    if re.search(r"convol|correl", title) and small and large:
        return {"call": "scipy.signal.correlate2d", "given": [large[0], small[0], "'valid'"]}
    if "transpos" in title and large:
        return {"call": "numpy.transpose", "given": large[:1]}
    if re.search(r"gemm|matmul|matrix_?mul|(^|[_ ])mm($|[_ ])", title) and len(large) > 1:
        return {"call": "numpy.matmul", "given": large[:2]}
    if re.search(r"(^|[_ ])add($|[_ ])", title) and len(large) > 1:
        return {"call": "numpy.add", "given": large[:2]}
    if re.search(r"(^|[_ ])(sum|reduce|reduction)($|[_ ])", title) and large:
        return {"call": "numpy.sum", "given": large[:1]}
    return {"file": "reference.py:expected"}
