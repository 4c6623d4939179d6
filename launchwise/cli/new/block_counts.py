"""Parameters that say how many blocks of elements a loop goes through: ``n / blockDim.x``."""

from __future__ import annotations

from collections.abc import Iterator

from launchwise.cli.new.indices import Indices
from launchwise.cli.new.launches import Launch
from launchwise.cli.new.polynomials import Polynomial, names_of
from launchwise.cli.new.problem import Sizes
from launchwise.cli.new.tunables import AXES


def counts_of_blocks(indices: Indices, launch: Launch, sizes: Sizes) -> dict[str, str]:
    """Problem parameters that may be another one divided by a side of the block, and that.

    They bound a loop whose variable is multiplied by the side where a thread's index is added.
    """
    sides = dict(zip((f"blockDim.{axis}" for axis in AXES), launch.block, strict=False))
    sides |= {side: side for side in launch.block}
    bounded: dict[str, str] = {}
    for one in indices.comparisons:
        names = names_of(one.bound) & sizes.renamed.keys()
        if one.name in indices.steps and len(names) == len(one.bound) == 1:
            bounded[one.name] = sizes.renamed[names.pop()]
    keep = frozenset(bounded)
    found: dict[str, str] = {}
    for index in _indices(indices, keep):
        if not any(name.startswith("threadIdx") for (name,) in _plain(index)):
            continue
        for term, factor in index.items():
            walking = [name for name in term if name in bounded]
            rest = [name for name in term if name not in bounded]
            if factor != 1 or len(walking) != 1 or len(rest) != 1 or rest[0] not in sides:
                continue
            count = bounded[walking[0]]
            if others := [name for name in sizes.names if name != count]:
                found[count] = f"{others[0]} // {sides[rest[0]]}"
    return found


def _plain(index: Polynomial) -> Iterator[tuple[str]]:
    """Names that stand alone, without a factor."""
    for term, factor in index.items():
        if factor == len(term) == 1:
            yield (term[0],)


def _indices(indices: Indices, keep: frozenset[str]) -> Iterator[Polynomial]:
    """Values of variables, and what stands in brackets."""
    yield from indices.definitions(keep)
    yield from (index for _, index in indices.subscripts(keep))
