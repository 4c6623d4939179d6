"""Sides of the block, from the steps in which threads walk and from their number in the block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tree_sitter import Node

from launchwise.cli.new.hosts import HostLaunch
from launchwise.cli.new.indices import Indices
from launchwise.cli.new.polynomials import Polynomial
from launchwise.cli.new.tunables import AXES, Tunable
from launchwise.cuda_text.syntax import child, text_of


def known_sides(indices: Indices, tunables: Iterable[Tunable], host: HostLaunch) -> dict[str, str]:
    """Tunables to the axis whose threads they number, as host code and arithmetic say.

    The side in ``(i = threadIdx.x; i < n; i += SIDE)``, in ``j * SIDE + threadIdx.x`` and in
    ``threadIdx.y * SIDE + threadIdx.x``, the number of a thread in its block.
    """
    names = {one.name for one in tunables if one.role in ("other", "block")}
    names = {name for name in names if not indices.is_square(name)}
    found: dict[str, set[str]] = {}
    for name, axis in _steps(indices):
        if name in names:
            found.setdefault(name, set()).add(axis)
    for axis, name in zip(AXES, host.sides, strict=False):
        if name in {one.name for one in tunables} and host.sides.count(name) == 1:
            found[name] = {axis}
    return {name: axes.pop() for name, axes in found.items() if len(axes) == 1}


def _steps(indices: Indices) -> Iterable[tuple[str, str]]:
    """Names by which loops go on whose first value is an index of threads, with its axis."""
    for variable, step in indices.steps.items():
        for term, factor in step.items():
            if len(step) == len(term) == factor == 1:
                yield from ((term[0], axis) for axis in indices.started_by(variable))


def side_in_memory(indices: Indices, one: Tunable) -> str:
    """Axis of the threads that have an element each in an array of shared memory; or ''."""
    if one.role != "other" or indices.is_square(one.name) or indices.axes["threadIdx"] != {"x"}:
        return ""
    arrays = {
        name
        for name, sizes, _ in indices.body.shared_arrays()
        if [text_of(size) for size in sizes] == [one.name]
    }
    threads = {name for name, index in indices.subscripts() if index == {("threadIdx.x",): 1}}
    return "x" if arrays & threads else ""


def most_threads(indices: Indices) -> dict[str, tuple[int, str]]:
    """Axis to the threads that arrays of fixed length have room for, and to such an array.

    Arrays that threads index under a bound of their own, such as ``threadIdx.x < 32``, say nothing.
    """
    found: dict[str, tuple[int, str]] = {}
    bounded = [one.index for one in indices.comparisons if set(one.bound) <= {()}]
    lengths = {
        name: [indices.body.value(size, frame) for size in sizes]
        for name, sizes, frame in indices.body.shared_arrays()
    }
    for name, place, index in _indexed(indices):
        length = lengths.get(name, [])[place : place + 1]
        axis = _axis(index)
        if not axis or not length or set(length[0]) != {()}:
            continue
        if {(f"threadIdx.{axis}",): 1} in bounded:
            continue
        most = (length[0][()] - index.get((), 0) - 1) // index[f"threadIdx.{axis}",] + 1
        if 1 < most < found.get(axis, (1025, ""))[0]:
            found[axis] = most, name
    return found


def _indexed(indices: Indices) -> Iterator[tuple[str, int, Polynomial]]:
    """Arrays, the number of a pair of brackets behind each, and what stands in it."""
    for frame, array, index in indices.body.subscripts():
        place, here = 0, array
        inner: Node | None = array
        while inner is not None and inner.type == "subscript_expression":
            place, here, inner = place + 1, inner, child(inner, "argument")
        yield text_of(inner or here), place, indices.body.value(index, frame)


def _axis(index: Polynomial) -> str:
    """Axis of the threads on which an index depends, and on nothing else; or ''."""
    terms = [term for term in index if term]
    if len(terms) != 1 or len(terms[0]) != 1 or index[terms[0]] < 1:
        return ""
    return terms[0][0][-1] if terms[0][0].startswith("threadIdx.") else ""
