"""Arrays in shared memory whose length, a number, bounds the threads of a block."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from launchwise.cli.new.indices import Indices
from launchwise.cli.new.polynomials import Polynomial
from launchwise.cuda_text.syntax import child, text_of


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
