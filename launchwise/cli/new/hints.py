"""How to make a tunable of what a file fixes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from launchwise.cli.new.body import Body
from launchwise.cli.new.indices import Indices
from launchwise.cli.new.macros import FIXED, Need, constants, used_names
from launchwise.cli.new.polynomials import names_of
from launchwise.cli.new.signature import Kernel, Source
from launchwise.cli.new.tunables import role_of
from launchwise.cuda_text.names import identifiers

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
    used = used_names(source, kernel)
    sides = _sides(Indices(Body(source, kernel, {})))
    declared = {name: number for name, (number, _) in constants(source).items()}
    hints = []
    for name, number in {**declared, **fixed}.items():
        named = role_of(name) in ("block", "tile", "side", "unroll")
        if name not in used or name in FIXED or not (named or name in sides):
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


def _sides(indices: Indices) -> set[str]:
    """Names that are lengths in shared memory, factors of ``blockIdx`` or steps of a loop."""
    lengths = identifiers(size for _, sizes, _ in indices.body.shared_arrays() for size in sizes)
    steps = {name for step in indices.steps.values() for name in names_of(step)}
    return lengths | indices.pitches() | steps
