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
from dataclasses import dataclass, replace

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
COLUMNS = {"sustained time": "sustained_ms", "energy": "energy_j"}
UNITS = {"sustained_ms": "ms back to back", "energy_j": "J per run"}


@dataclass(frozen=True)
class Objective:
    """What an answer takes least of: a column of what runs back to back."""

    name: str
    column: str
    within: float  # most loss of time that is allowed, relative to the choice by time

    @classmethod
    def of(cls, text: str) -> Objective | None:
        """The objective that settings name; None where time alone decides."""
        found = re.fullmatch(OBJECTIVE, text)
        if not found or not found[1]:
            return None
        within = math.inf if found[2] is None else float(found[2]) / 100
        return cls(found[1], COLUMNS[found[1]], within)


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
    asked = Objective.of(text)
    if asked is None:
        return stored
    entries = [_by(asked, one, stored.devices[one.device].apart) for one in stored.entries]
    return stored.model_copy(update={"entries": tuple(entries), "objective": text})


def _by(asked: Objective, entry: Entry, visits: Mapping[str, float]) -> Entry:
    values = {one.place: getattr(one, asked.column) for one in entry.ran}
    known = {one.place: one for one in entry.ran if values[one.place] is not None}
    if entry.choice not in known or asked.column not in visits:
        return replace(entry, why=f"{entry.why}; {by_time(asked.name)}")
    own, error = known[entry.choice], math.exp(visits[asked.column])
    most_ms = own.time_ms * (1 + asked.within)
    least = [
        one
        for one in known.values()
        if values[one.place] * error < values[own.place] and one.time_ms <= most_ms
    ]
    number = f"{len(known)} configurations that ran back to back"
    if not least:
        return replace(entry, why=f"{entry.why}; none of {number} surely takes less {asked.name}")
    # Of those that cannot be told apart the usual choice, then the one of least time.
    limit = min(values[one.place] for one in least) * error
    near = [one for one in least if values[one.place] <= limit]
    chosen = min(near, key=lambda one: (one.place != entry.usual, one.time_ms, one.place))
    factor = chosen.time_ms / own.time_ms
    saved = 100 * (1 - values[chosen.place] / values[own.place])
    why = (
        f"of {number} this takes least {asked.name}: {values[chosen.place]:.3g} "
        f"{UNITS[asked.column]}, {saved:.0f} % less than the choice by time, at "
        f"{100 * (factor - 1):+.1f} % of its time alone"
    )
    return _replaced(entry, chosen, factor, why)


def _replaced(entry: Entry, chosen: Ran, factor: float, why: str) -> Entry:
    """An entry with another choice, which takes ``factor`` times as long."""
    others = [one for one in entry.others if one[0] != chosen.place]
    limits = entry.interval_ms
    is_usual = chosen.place == entry.usual
    return replace(
        entry,
        choice=chosen.place,
        time_ms=chosen.time_ms,
        interval_ms=limits and (limits[0] * factor, limits[1] * factor),
        gain=1.0 if is_usual else entry.gain and entry.gain / factor,
        gain_interval=None,
        improvement=entry.improvement and entry.improvement / factor,
        improvement_interval=None,
        alike=None,
        why=why,
        others=((entry.choice, entry.time_ms, limits), *others),
    )


def by_time(name: str) -> str:
    """What is said of an answer where an objective is not known."""
    return f"chosen by time: no {name} is known of it here"
