"""Specs of made-up workloads: spaces of any size, to be explored without a kernel."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from launchwise.measuring.explore import RandomDraws
from launchwise.workloads.space import Configuration, Problem
from launchwise.workloads.spec import Spec

Outcome = Callable[[Configuration], float | None]
PROBLEM: Problem = {"m": 4}
POWERS = [1, 2, 4, 8, 16, 32, 64, 128]
LARGE = list("abcdefg")  # Tunables of `large`, each with the values `POWERS`


def made(
    tunables: dict[str, Sequence[int | str]],
    variants: dict[str, tuple[Sequence[str], Sequence[str]]],
    constraints: Sequence[str] = (),
    neutral: Mapping[str, int | str] = MappingProxyType({}),
    build: Collection[str] = (),
    **baseline: int | str,
) -> Spec:
    """A spec of tunables with their values, and of variants with their tunables and constraints.
    What a variant does not use sits at its ``neutral`` value, the first one when left out. The
    tunables in ``build`` need a compilation."""
    common = {"source": "x.cu", "title": "x", "block": ["1", "1", "1"], "grid": ["1", "1", "1"]}
    return Spec.model_validate(
        {
            "workload": "made",
            "title": "x",
            "description": "x",
            "problem": {"m": {"type": "integer", "description": "x"}},
            "tunables": {
                name: {
                    "kind": "build" if name in build else "launch",
                    "values": values,
                    "neutral": neutral.get(name, values[0]),
                    "description": "x",
                }
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


def key(configuration: Configuration) -> tuple[Any, ...]:
    """What tells a configuration from others."""
    return tuple(configuration.values())


def steady(configuration: Configuration) -> float | None:
    """A made-up time of any configuration; one in five has none."""
    chance = random.Random(str(sorted(configuration.items()))).random()
    return None if chance < 0.2 else chance


def driven(
    explorer: RandomDraws, outcome: Outcome = steady, most: int = 10_000
) -> list[tuple[Configuration, float | None]]:
    """What an explorer proposes, with the outcomes, until it ends or ``most`` were told."""
    told: list[tuple[Configuration, float | None]] = []
    while len(told) < most and (proposed := explorer.propose()) is not None:
        told.append((proposed, outcome(proposed)))
        explorer.tell(*told[-1])
    return told


def best(told: list[tuple[Configuration, float | None]]) -> float:
    """The shortest time told, infinite when there is none."""
    return min((time for _, time in told if time is not None), default=math.inf)
