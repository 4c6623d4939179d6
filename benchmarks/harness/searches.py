"""Evaluations of a search until it is near the best."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

NEAR = {"within_5_percent": 1.05, "within_1_percent": 1.01}
OF_AMD = frozenset({"mi250x", "w6600", "w7800"})


def others_of(gpu: str, table: pd.DataFrame) -> list[str]:
    """Cards of a table that a search of ``gpu`` may know: those of its vendor, no slice of it."""
    return [
        each
        for each in map(str, table)
        if each.split(".")[0] != gpu.split(".")[0] and (each in OF_AMD) == (gpu in OF_AMD)
    ]


def needle(times: pd.Series, percent: float = 5.0) -> int:
    """Configurations within ``percent`` of the best: the fewer, the harder the search."""
    return int((times <= (1 + percent / 100) * times.min()).sum())


def evaluations(times: Sequence[float | None], best_ms: float) -> dict[str, int | None]:
    """How many evaluations it took, by the keys of :data:`NEAR`; None where it never got there.

    Parameters
    ----------
    times
        Of the configurations in the order in which they were evaluated, ms; None where one failed.
    """
    found = {}
    for name, factor in NEAR.items():
        hits = (place for place, time in enumerate(times, 1) if time and time <= factor * best_ms)
        found[name] = next(hits, None)
    return found


def share(times: Sequence[float | None], best_ms: float) -> float:
    """Best time over the best one evaluated: 1 when it was found, 0 when nothing worked."""
    known = [time for time in times if time is not None]
    return best_ms / min(known) if known else 0.0
