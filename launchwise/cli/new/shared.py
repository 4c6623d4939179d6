"""Arrays in shared memory whose length, a number, bounds the threads of a block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from launchwise.cli.new.indices import Indices
from launchwise.cli.new.polynomials import Polynomial
from launchwise.cli.new.tokens import at_commas, closing, is_name


def most_threads(indices: Indices) -> dict[str, tuple[int, str]]:
    """Axis to the threads that arrays of fixed length have room for, and to such an array.

    Arrays that threads index under a bound of their own, such as ``threadIdx.x < 32``, say nothing.
    """
    found: dict[str, tuple[int, str]] = {}
    bounded = [one.index for one in indices.comparisons if set(one.bound) <= {()}]
    for name, lengths in _arrays(indices):
        for place, token in enumerate(indices.tokens[:-1]):
            if token != name:
                continue
            for length, text in zip(lengths, _brackets(indices.tokens, place + 1), strict=False):
                index = indices.value(text, place)
                axis = _axis(index)
                if not axis or not length or {(f"threadIdx.{axis}",): 1} in bounded:
                    continue
                most = (length - index.get((), 0) - 1) // index[f"threadIdx.{axis}",] + 1
                if 1 < most < found.get(axis, (1025, ""))[0]:
                    found[axis] = most, name
    return found


def _axis(index: Polynomial) -> str:
    """Axis of the threads on which an index depends, and on nothing else; or ''."""
    terms = [term for term in index if term]
    if len(terms) != 1 or len(terms[0]) != 1 or index[terms[0]] < 1:
        return ""
    return terms[0][0][-1] if terms[0][0].startswith("threadIdx.") else ""


def _arrays(indices: Indices) -> Iterator[tuple[str, list[int]]]:
    """Arrays in shared memory and their lengths; 0 for one that is no number."""
    tokens = indices.tokens
    for place, token in enumerate(tokens):
        if token != "__shared__" or ";" not in tokens[place:]:
            continue
        for part in at_commas(tokens[place + 1 : tokens.index(";", place)]):
            if "[" not in part or not is_name(part[max(part.index("[") - 1, 0)]):
                continue
            start = part.index("[")
            values = [indices.value(text, place) for text in _brackets(part, start)]
            yield part[start - 1], [one.get((), 0) if set(one) == {()} else 0 for one in values]


def _brackets(tokens: Sequence[str], place: int) -> list[list[str]]:
    """Tokens in the brackets that follow one another from a place on."""
    found = []
    while place < len(tokens) and tokens[place] == "[":
        end = closing(tokens, place)
        found.append(list(tokens[place + 1 : end]))
        place = end + 1
    return found
