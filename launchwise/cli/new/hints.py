"""How to make a tunable of what a file fixes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

from launchwise.cli.new.macros import FIXED, Need, constants, reached_by
from launchwise.cli.new.signature import Kernel, Source
from launchwise.cli.new.tunables import role_of

SMALLEST, LARGEST = 2, 4096
"""Numbers beyond are no sides of blocks and no tiles."""


def tuning_hints(source: Source, kernel: Kernel, fixed: Mapping[str, int]) -> list[str]:
    """One line per macro or constant of a kernel that is like a tunable but cannot be set.

    Its name says so, or it is a side of an array in shared memory, or a step between blocks.

    Parameters
    ----------
    fixed
        What the file sets to integers.
    """
    tokens = (*kernel.head, ";", *kernel.body, ";", *reached_by(source, kernel))
    sides = _sides(tokens)
    declared = {name: number for name, (number, _) in constants(source).items()}
    hints = []
    for name, number in {**declared, **fixed}.items():
        named = role_of(name) in ("block", "tile", "side", "unroll")
        if name not in tokens or name in FIXED or not (named or name in sides):
            continue
        if name in source.expanded.numbers:
            hints.append(f"To tune {name}, write #ifndef {name} before its #define.")
        elif name in declared and SMALLEST <= number <= LARGEST:
            lines = f"#ifndef {name}, #define {name} {number} and #endif"
            hints.append(f"To tune {name}, write {lines} in the place of its declaration.")
    return hints


def left_undefined(needs: Sequence[Need]) -> list[str]:
    """One line about names that ``#ifdef`` and ``defined()`` alone read; none where none does."""
    names = ", ".join(need.name for need in needs if need.only_tested)
    if not names:
        return []
    return [f"Left undefined, as #ifdef alone reads it: {names}. Define a name under macros."]


def _sides(tokens: tuple[str, ...]) -> set[str]:
    """Names that are lengths in shared memory, factors of ``blockIdx`` or steps of a loop."""
    text = " ".join(tokens)
    found = set()
    for match in re.finditer(r"__shared__ [^;=]*", text):
        for size in re.findall(r"\[ ([^\]]*)\]", match[0]):
            found |= {*size.split()}
    block = r"blockIdx \. [xyz]"
    for match in re.finditer(rf"{block} (?:\) )?\* (\w+)|(\w+) \* (?:\( \w+ \) )?{block}", text):
        found |= {match[1], match[2]} - {None}
    found |= {after for one, after in pairwise(tokens) if one == "+="}
    return found
