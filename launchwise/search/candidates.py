"""What a search knows of candidates: their tunables as numbers, and how fast they were elsewhere.

A candidate is known by its key: the values of its tunables, in one order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from launchwise.workloads.spec import Spec

Key = tuple[Any, ...]


def losses_of(times: Mapping[Key, float | None]) -> dict[Key, float]:
    """log(time / best time) on one other GPU; inf for what failed. Empty where nothing has a time
    (ms; None where a candidate failed)."""
    logs = {key: math.inf if time is None else math.log(time) for key, time in times.items()}
    best = min(logs.values(), default=math.inf)
    return {key: log - best for key, log in logs.items()} if best < math.inf else {}


def fastest_elsewhere(losses: Iterable[Mapping[Key, float]], most: int) -> list[Key]:
    """Keys that other GPUs measured, the fastest on any of them first, at most so many."""
    smallest: dict[Key, float] = {}
    for each in losses:
        for key, loss in each.items():
            smallest[key] = min(loss, smallest.get(key, math.inf))
    return sorted(smallest, key=smallest.__getitem__)[:most]


def texts_of(spec: Spec) -> list[list[Any]]:
    """Of each tunable of a workload the values that are texts, as :func:`described` takes them."""
    return [
        list(spec.variants)
        if name == "variant"
        else [each for each in spec.tunables[name].values if isinstance(each, str)]
        for name in spec.tunable_columns
    ]


def described(
    keys: Sequence[Key], texts: Sequence[Sequence[Any]], losses: Sequence[Mapping[Key, float]]
) -> tuple[np.ndarray, np.ndarray]:
    """Points and losses of candidates, as ``TransferSearch`` takes them.

    ``texts``: of each tunable the values that stand for themselves, as one column each; empty for
    numbers. ``losses``: of each other GPU (:func:`losses_of`).
    """
    columns = []
    for place, values in enumerate(texts):
        here = [key[place] for key in keys]
        if values:
            columns += [[float(value == text) for value in here] for text in values]
        else:
            columns.append([float(value) for value in here])
    known = [[each.get(key, math.nan) for key in keys] for each in losses]
    shape = len(known), len(keys)
    return np.array(columns, dtype=float).T, np.array(known, dtype=float).reshape(shape).T
