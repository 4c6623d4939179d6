"""Code of a CUDA source that no launch needs: above all that of the host.

A ``.cu`` file of everyday use holds kernels, functions that launch them, and a ``main``. The CPU
device needs the kernels and what they use.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from launchwise.workloads.declarations import CALLS, Item, declarations


def other_code(
    text: str, asked: Iterable[str] = (), refused: re.Pattern[str] | None = None
) -> list[tuple[int, int, str]]:
    """Parts of a source that no launch needs: start, end and the name that they define.

    These are functions that launch kernels, call the CUDA runtime or name one that does, and
    functions, classes and variables that nothing marked ``__device__`` or ``__global__`` uses. Of
    device code, functions that cannot run and that no kernel of those asked uses.

    Parameters
    ----------
    text
        Preprocessed CUDA C++, without the compiler's own headers.
    asked
        Names of kernels; without any, all of them are.
    refused
        What cannot run.
    """
    every = declarations(text)
    unasked = _unasked(every, set(asked), refused) if asked and refused else set()
    items = [item for item in every if id(item) not in unasked]
    host = [item for item in items if not item.of_device]
    calling = {id(item) for item in host if CALLS.search(item.text) and item.kind != "class"}
    calling |= {id(item) for item in host if item.kind == "function" and item.name == "main"}
    while True:
        names = {
            item.name
            for item in host
            if id(item) in calling and not item.of_class and item.kind != "declaration"
        } - {""}
        # A class that is kept keeps its methods' bodies, so they need what they name.
        more = {
            id(item)
            for item in host
            if item.kind != "class" and id(item) not in calling and names & item.functions
        }
        if not more:
            break
        calling |= more
    dropped = unasked | calling | _unused([item for item in items if id(item) not in calling])
    found = [(item.start, item.end, item.name) for item in every if id(item) in dropped]
    return _outermost(found)


def _unasked(items: list[Item], asked: set[str], refused: re.Pattern[str]) -> set[int]:
    """Device functions that cannot run, or use one such, and that no kernel of those asked uses."""
    functions = [item for item in items if item.kind == "function" and item.of_device]
    used, waiting = set(), asked
    while waiting:
        used |= waiting
        words = [item.words for item in functions if item.name in waiting]
        waiting = set().union(*words) - used
    unused = [item for item in functions if item.name not in used]
    dropped = {id(item): item for item in unused if refused.search(item.text)}
    while more := [
        item
        for item in unused
        if id(item) not in dropped and item.words & {each.name for each in dropped.values()}
    ]:
        dropped |= {id(item): item for item in more}
    return set(dropped)


def _unused(items: list[Item]) -> set[int]:
    """Functions and classes of the host that nothing of the rest names."""
    open_items = {id(item): item for item in items if item.droppable}
    classes = [item for item in open_items.values() if item.kind == "class"]
    named: set[str] = set()
    functions: set[str] = set()

    def use(item: Item) -> None:
        # A prototype does not use what it declares.
        own = {item.name} if item.kind == "declaration" and not item.of_device else set()
        named.update(item.foreign - own)
        functions.update(item.functions - own)

    for item in items:
        inside = any(each.start <= item.start and item.end <= each.end for each in classes)
        if id(item) not in open_items and not inside:
            use(item)
    while used := [key for key, item in open_items.items() if item.used_by(named, functions)]:
        for key in used:
            use(open_items.pop(key))
    return set(open_items)


def _outermost(parts: Iterable[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """Parts that lie in no other."""
    kept: list[tuple[int, int, str]] = []
    for start, end, name in sorted(parts, key=lambda part: (part[0], -part[1])):
        if not kept or start >= kept[-1][1]:
            kept.append((start, end, name))
    return kept
