"""Answers as deployed: of configurations that ran back to back, the one of least time or energy.

Pairs run a few configurations of a problem back to back, for long enough that the card may be at
its power limit. A table of answers holds what these took
(:class:`launchwise.exporting.entries.Ran`); whoever reads it names the objective. An answer changes
where another of them takes less by more than two visits of one configuration differ; everywhere
else the choice stays the one by time.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from launchwise.experiment.settings import OBJECTIVE
from launchwise.exporting.entries import Entry, Ran, Stored
from launchwise.learning.row_arrays import records_of
from launchwise.tables.times import APART
from launchwise.tables.visits import FEWEST, SHARE
from launchwise.workloads.metrics import BACK_TO_BACK
from launchwise.workloads.parts import Value
from launchwise.workloads.space import plain, used
from launchwise.workloads.spec import Spec

TIME = "time"
COLUMNS = {
    "sustained time": ("sustained_ms", "ms back to back"),
    "energy": ("energy_j", "J per run"),
}
"""Objective to a column of what ran back to back, and its unit."""


def apart(times: pd.DataFrame) -> dict[str, float]:
    """Column of :data:`BACK_TO_BACK` to the logarithm of the ratio that 95 % of configurations stay
    below in two visits; without those of which too few were measured twice. The energy is a time
    and a power: where only energies were measured twice, sustained times differ by no more.

    ``times``: judged times of a GPU."""
    found = {}
    for name, column in zip(BACK_TO_BACK, APART, strict=True):
        known = times[column].abs().dropna()
        if len(known) >= FEWEST:
            found[name] = float(np.quantile(known, SHARE))
    energy, sustained = BACK_TO_BACK
    return {sustained: found[energy], **found} if energy in found else found


def back_to_back(
    times: pd.DataFrame, spec: Spec, place: Callable[[Mapping[str, Value]], int]
) -> dict[tuple[Value, ...], tuple[Ran, ...]]:
    """Problem to what ran back to back there. ``times``: judged times of a GPU; ``place`` numbers
    configurations."""
    found: dict[tuple[Value, ...], tuple[Ran, ...]] = {}
    for row in records_of(times[times["sustained_ms"].notna() & times["time_ms"].notna()]):
        problem = tuple(plain(row, spec.problem_columns).values())
        energy_j = None if pd.isna(row["energy_j"]) else float(row["energy_j"])
        at = place(used(plain(row, spec.tunable_columns), spec))
        one = Ran(at, float(row["time_ms"]), float(row["sustained_ms"]), energy_j)
        found[problem] = (*found.get(problem, ()), one)
    return found


def by_objective(stored: Stored, text: str) -> Stored:
    """A table with the choices by an objective of the settings."""
    found = re.fullmatch(OBJECTIVE, text)
    if not found or not found[1]:
        return stored
    within = math.inf if found[2] is None else float(found[2]) / 100
    entries = [
        _by(found[1], within, one, stored.devices[one.device].apart) for one in stored.entries
    ]
    return stored.model_copy(update={"entries": tuple(entries), "objective": text})


def _by(name: str, within: float, entry: Entry, visits: Mapping[str, float]) -> Entry:
    """``within``: most loss of time that is allowed, relative to the choice by time."""
    column, unit = COLUMNS[name]
    values = {one.place: float(value) for one in entry.ran if (value := getattr(one, column))}
    if entry.choice not in values or column not in visits:
        return replace(entry, why=f"{entry.why}; {by_time(name)}")
    times = {one.place: one.time_ms for one in entry.ran}
    own, own_ms, error = values[entry.choice], times[entry.choice], math.exp(visits[column])
    less = [
        place
        for place, value in values.items()
        if value * error < own and times[place] <= own_ms * (1 + within)
    ]
    number = f"{len(values)} configurations that ran back to back"
    if not less:
        return replace(entry, why=f"{entry.why}; none of {number} surely takes less {name}")
    # Of those that cannot be told apart the usual choice, then the one of least time.
    least = min(values[place] for place in less) * error
    near = [place for place in less if values[place] <= least]
    chosen = min(near, key=lambda place: (place != entry.usual, times[place], place))
    why = (
        f"of {number} this takes least {name}: {values[chosen]:.3g} {unit}, "
        f"{100 * (1 - values[chosen] / own):.0f} % less than the choice by time, at "
        f"{100 * (times[chosen] / own_ms - 1):+.1f} % of its time alone"
    )
    others = [one for one in entry.others if one[0] != chosen]
    before = (entry.choice, entry.time_ms, entry.interval_ms)
    return replace(entry.choosing(chosen, times[chosen], why), others=(before, *others))


def by_time(name: str) -> str:
    """What is said of an answer where an objective is not known."""
    return f"chosen by time: no {name} is known of it here"
