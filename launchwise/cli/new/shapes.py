"""Shapes of arrays, from the names of arguments and from the indices of a kernel."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from launchwise.base.expressions import names_in
from launchwise.cli.new.accesses import Access, Accesses
from launchwise.cli.new.draft import SMALL_ARRAY
from launchwise.cli.new.indices import Indices
from launchwise.cli.new.polynomials import Polynomial, add, divided, multiply, names_of, written
from launchwise.cli.new.problem import Sizes, default_shape
from launchwise.cli.new.signature import Parameter
from launchwise.cuda_text.syntax import text_of

_BINS = re.compile(r"bins?$|^n?_?bins|num_?bins|buckets|classes|levels|histogram_size|hist_size")


def draft_shape(
    parameter: Parameter,
    role: str,
    title: str,
    sizes: Sizes,
    dimensions: int,
    accesses: Accesses,
    indices: Indices,
    blocks: Mapping[str, str],
) -> list[Any]:
    """Shape of an array argument, outermost first.

    ``blocks`` are ``blockIdx.x`` and the like to the number of blocks.
    """
    lower = parameter.name.lower()
    by_name = {name.lower(): name for name in sizes.names}
    shape = default_shape(sizes, dimensions)
    first = lower.strip("_").removeprefix("d_")[:1]
    if {"m", "n", "k"} <= by_name.keys() and first in {*"abc"}:
        shape = [by_name[each] for each in {"a": "mk", "b": "kn", "c": "mn"}[first]]
    elif found := _by_index(indices, accesses, parameter.name, sizes, blocks):
        shape = found
    elif len({*shape}) == 1 and accesses.reaches_next(parameter.name):
        shape = [f"{shape[0]} + 1" if isinstance(shape[0], str) else shape[0] + 1]
    elif len({*shape}) == 1 and _is_flat(accesses, parameter.name, sizes):
        shape = shape[:1]
    elif SMALL_ARRAY.search(lower):
        shape = [5] * min(dimensions, 2)
    elif "transpos" in title and role == "output":
        shape = shape[::-1]
    return [*shape, parameter.width] if parameter.width > 1 else shape


def shape_of_atomics(
    accesses: Accesses, array: str, sizes: Sizes, fixed: Mapping[str, int]
) -> tuple[list[Any], str]:
    """Shape of an array with atomic operations, and a question."""
    index = accesses.index(accesses.atomics(array)[0]) or {}
    if set(index) <= {()}:
        return [index.get((), 0) + 1], "shape"
    for name in sizes.names:
        if _BINS.search(name.lower()):
            return [name], "shape: one element per bin?"
    for name, number in fixed.items():
        if _BINS.search(name.lower()):
            return [number], "shape: one element per bin?"
    return [256], "shape: how many elements does the index reach?"


def length_of(bound: Polynomial, sizes: Sizes) -> str:
    """A bound as an expression over problem parameters; '' where it reads other names."""
    found: Polynomial = {}
    for term, factor in bound.items():
        names = []
        for name in term:
            text = _over_sizes(name, sizes)
            if not text:
                return ""
            names.append(text)
        found[tuple(names)] = found.get(tuple(names), 0) + factor
    text = _unwrapped(written(found)) if found else ""
    try:
        return text if text and names_in(text) else ""
    except ValueError:
        return ""


def _over_sizes(name: str, sizes: Sizes) -> str:
    if not name.startswith("? "):
        return sizes.renamed.get(name, "")
    # `n / 4` and `(n + 3) / 4`
    match = re.fullmatch(r"\? ([\w +*-]+) / (\w+)", name)
    if match is None:
        return ""
    words = [sizes.renamed.get(word, word) for word in match[1].split()]
    divisor = sizes.renamed.get(match[2], match[2])
    unknown = [word for word in (*words, divisor) if word[0].isalpha() and word not in sizes.names]
    if unknown:
        return ""
    inside = " ".join(words)
    return f"({inside if len(words) == 1 else f'({inside})'} // {divisor})"


def _unwrapped(text: str) -> str:
    """An expression without brackets around all of it."""
    inner = text[1:-1]
    whole = text[:1] == "(" and text[-1:] == ")" and "(" not in inner and ")" not in inner
    return inner if whole else text


def shape_at(
    one: Access, accesses: Accesses, indices: Indices, sizes: Sizes, blocks: Mapping[str, str]
) -> list[Any]:
    """Shape that an index walks through; empty where it does not say."""
    bounds = _bounds(indices, sizes, blocks)
    value = accesses.index(one, frozenset(bounds)) or {}
    return _written(_lengths(value, bounds, sizes), sizes) if names_of(value) else []


def _bounds(indices: Indices, sizes: Sizes, blocks: Mapping[str, str]) -> dict[str, Polynomial]:
    """Lengths of variables that are compared, and numbers of blocks."""
    own = {name: parameter for parameter, name in sizes.renamed.items()}
    bounds: dict[str, Polynomial] = {
        name: {(own[length],): 1} for name, length in blocks.items() if length in own
    }
    for one in indices.comparisons:
        if one.name and (one.name not in bounds or names_of(one.length)):
            bounds[one.name] = one.length
    return bounds


def _by_index(
    indices: Indices, accesses: Accesses, array: str, sizes: Sizes, blocks: Mapping[str, str]
) -> list[Any]:
    """Shape by the accesses of an array; empty where they do not say."""
    bounds = _bounds(indices, sizes, blocks)
    keep = frozenset(bounds)
    best: list[Polynomial] = []
    per_block: list[Any] = []
    for one in accesses.of(array):
        if one.index is None or len(text_of(one.index)) > 320:
            continue
        index = accesses.index(one, keep)
        if index is None:
            return []
        if len(index) == 1 and next(iter(index))[:1] in [(name,) for name in blocks]:
            # One element per block: `sums[blockIdx.x]`.
            ((term, factor),) = index.items()
            if len(term) == factor == 1 and term[0] not in bounds:
                per_block = [blocks[term[0]]]
                continue
        found = _lengths(index, bounds, sizes)
        if not found:
            return []
        best = max(best, found, key=lambda one: (len(one), one[-1].get((), 0) if one else 0))
    return _written(best, sizes) if best or not per_block else per_block


def _is_flat(accesses: Accesses, array: str, sizes: Sizes) -> bool:
    """Whether no index of an array is multiplied by a size: it has one dimension."""
    every = [accesses.index(one) for one in accesses.of(array) if one.index is not None]
    terms = [term for one in every if one for term in one if term]
    plain = all(not name.startswith("?") and "[" not in name for term in terms for name in term)
    return bool(terms) and plain and not any({*term} & sizes.renamed.keys() for term in terms)


def _lengths(index: Polynomial, bounds: Mapping[str, Polynomial], sizes: Sizes) -> list[Polynomial]:
    """Lengths that an index ``(z * h + y) * w + x`` walks through, with bounds of x, y and z."""
    parts: list[tuple[Polynomial, Polynomial]] = []
    for term, factor in index.items():
        if not term:
            continue  # A neighbour: `x[i + 1]`.
        walking = [name for name in term if name in bounds]
        if len(walking) != 1 or factor < 1:
            if not walking and names_of({term: 1}) <= sizes.renamed.keys():
                continue
            return []
        stride = {tuple(name for name in term if name != walking[0]): factor}
        if not names_of(stride) <= sizes.renamed.keys():
            return []
        parts.append((stride, bounds[walking[0]]))
    parts.sort(key=lambda part: (len(next(iter(part[0]))), max(part[0].values())))
    if not parts or any(one[0] == other[0] for one, other in pairwise(parts)):
        return []
    shape: list[Polynomial] = []
    if len(parts) == 1 and set(parts[0][0]) == {()}:
        # `x[2 * i]`
        parts = [({(): 1}, multiply(parts[0][1], parts[0][0]))]
    if parts[0][0] != {(): 1}:
        shape.append(parts[0][0])
    for (stride, _), (wider, _) in pairwise(parts):
        length = divided(wider, stride)
        if length is None:
            return []
        shape.append(length)
    last = parts[-1][1]
    if len(parts) == 1 and not shape:
        # `x[i + 1]` reaches one element further.
        last = add(last, {(): max(index.get((), 0), 0)})
    shape.append(last)
    # `i < n - 1` keeps a distance from the end of an array of n elements.
    return [
        {term: factor for term, factor in one.items() if term or factor > 0}
        for one in reversed(shape)
    ]


def _written(lengths: Sequence[Polynomial], sizes: Sizes) -> list[Any]:
    found: list[Any] = []
    for one in lengths:
        if set(one) == {()} and one[()] > 0:
            found.append(one[()])
            continue
        text = length_of(one, sizes)
        if not text:
            return []
        found.append(text)
    return found
