"""Outputs whose places a counter gives: ``kept[atomicAdd(counter, 1)] = x;``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from launchwise.cli.new.roles import aliases_of, written_at
from launchwise.cli.new.signature import Function
from launchwise.cli.new.tokens import closing, is_name

_COUNT = ("atomicAdd", "atomicInc", "atomicSub", "atomicDec", "fetch_add", "fetch_sub")
_ASSIGN = ("=", "+=")


def is_counted(tokens: Sequence[str], array: str, functions: Mapping[str, Function]) -> bool:
    """Whether a kernel writes an array where the result of an atomic counter says.

    Parameters
    ----------
    tokens
        Of the kernel, expanded.
    functions
        Those of the device, by name.
    """
    counted = _counted(tokens, functions)
    names, _ = aliases_of(tokens, array)
    places = {place for name in names for place in written_at(tokens, name)}
    return any(
        not counted.isdisjoint(tokens[place + 2 : closing(tokens, place + 1)])
        for place in places
        if tuple(tokens[place + 1 : place + 2]) == ("[",)
    )


def _counted(tokens: Sequence[str], functions: Mapping[str, Function]) -> set[str]:
    """Atomic counters, functions that return one's result, and variables that hold it."""
    found = {*_COUNT, *(f"{name}_block" for name in _COUNT)}
    found |= {
        name
        for name, one in functions.items()
        if not found.isdisjoint(one.body) and "return" in one.body
    }
    growing = True
    while growing:
        growing = False
        for place, token in enumerate(tokens[:-1]):
            if token in found or not is_name(token) or tokens[place + 1] not in _ASSIGN:
                continue
            end = next((at for at in range(place, len(tokens)) if tokens[at] == ";"), len(tokens))
            if not found.isdisjoint(tokens[place + 2 : end]):
                found.add(token)
                growing = True
    return found
