"""Specs of made-up workloads: spaces of any size, to be explored without a kernel."""

from __future__ import annotations

from collections.abc import Sequence

from launchwise.space import Problem
from launchwise.spec import Spec

PROBLEM: Problem = {"m": 4}
POWERS = [1, 2, 4, 8, 16, 32, 64, 128]
LARGE = list("abcdefg")
"""Tunables of :func:`large`, each with the values :data:`POWERS`."""


def made(
    tunables: dict[str, Sequence[int | str]],
    variants: dict[str, tuple[Sequence[str], Sequence[str]]],
    constraints: Sequence[str] = (),
    **baseline: int | str,
) -> Spec:
    """A spec of tunables with their values, and of variants with their tunables and constraints.

    Values that a variant does not use sit at the first one.
    """
    common = {"source": "x.cu", "title": "x", "block": ["1", "1", "1"], "grid": ["1", "1", "1"]}
    return Spec.model_validate(
        {
            "workload": "made",
            "title": "x",
            "description": "x",
            "problem": {"m": {"type": "integer", "description": "x"}},
            "tunables": {
                name: {"kind": "launch", "values": values, "neutral": values[0], "description": "x"}
                for name, values in tunables.items()
            },
            "variants": {
                name: {**common, "tunables": used, "constraints": own}
                for name, (used, own) in variants.items()
            },
            "constraints": constraints,
            "baseline": {"variant": "plain", **baseline},
            "work": {"items": "m", "item": "x", "bytes": "m", "flop": "m", "footprint_bytes": "m"},
        }
    )


def large(constraints: Sequence[str] = (), variants: Sequence[str] = ("tiled",)) -> Spec:
    """Two million configurations of each variant beside the baseline's one."""
    return made(
        dict.fromkeys(LARGE, POWERS),
        {"plain": ([], []), **{name: (LARGE, constraints) for name in variants}},
    )
