"""Times of a table's configurations for problems on one device: measured, or expected."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pandas as pd

from launchwise.experiment.load import Shape
from launchwise.exporting.entries import THOUSANDTHS
from launchwise.exporting.lookup import growth
from launchwise.exporting.table import AnswerTable
from launchwise.learning.answers import MEASURED
from launchwise.learning.row_arrays import configuration_codes
from launchwise.workloads.near_problems import distances

Known = Mapping[Shape, Mapping[int, float]]
"""Problem to the measured times of configurations, by their places in a table, ms."""

LOST = 1e3
"""Times the best that a problem counts which no chosen build may run: such a set is the last."""


@dataclass(frozen=True)
class Times:
    """What each configuration of a table takes for some problems on one device."""

    shapes: Sequence[Shape]
    # Measured or expected: float64, ms, shape (shapes, configurations); infinite where it may not
    # run or has no time.
    ms: np.ndarray
    best_ms: np.ndarray  # of the fastest of all: float64, shape (shapes,); NaN where unknown
    measured: np.ndarray  # which shapes were measured: bool, shape (shapes,)
    timed: np.ndarray  # which shapes have an answer with a time: likewise

    def of(self, places: Sequence[int]) -> np.ndarray:
        """Least time of these configurations, shape (shapes,)."""
        return np.asarray(self.ms[:, list(places)].min(axis=1, initial=math.inf))

    def capped(self, ms: np.ndarray) -> np.ndarray:
        """Times, shape (shapes, any number), no longer than :data:`LOST` times the best."""
        return np.minimum(ms, LOST * self.best_ms[:, None])


def times_of(
    table: AnswerTable, device: int, shapes: Sequence[Shape], known: Known = MappingProxyType({})
) -> Times:
    """Times of every configuration of a table; those that are no candidates have measured ones.

    ``device``: its number. ``known``: see :func:`measured_ms`; beside it the entries count.
    """
    ms, best_ms = expected_ms(table, device, shapes, known)
    stand = stand_ins(table)
    measured, timed = np.zeros((2, len(shapes)), dtype=bool)
    for row, shape in enumerate(shapes):
        entry = table.known.get((device, shape))
        if entry is None:
            timed[row] = table.measured[device].outside(shape) == 1
        if entry is None or entry.time_ms is None:
            continue
        timed[row] = True
        measured[row], best_ms[row] = entry.basis == MEASURED, entry.time_ms
        own = {stand[at]: ms for at, ms, *_ in entry.others if ms}
        if shape in known:
            own = dict(known[shape])
            ms[row] = math.inf
        own[stand[entry.choice]] = entry.time_ms
        # The answer is the first of what is expected, too.
        ms[row] = np.maximum(ms[row], entry.time_ms)
        ms[row, list(own)] = list(own.values())
    # What rests on one row may be below the time of the answer, by less than their errors.
    least = np.minimum(best_ms, ms.min(axis=1, initial=math.inf))
    return Times(shapes, ms, least, measured, timed)


def stand_ins(table: AnswerTable) -> list[int]:
    """Of each configuration's place that of the candidate that differs in nothing but what follows
    from the problem; without one its own."""
    of_problem = {name for name, _ in table.formulas.follows}
    free = [place for place, name in enumerate(table.tunables) if name not in of_problem]
    keys = [tuple(one[place] for place in free) for one in table.configurations]
    found = {keys[place]: place for place in table.stored.candidates}
    return [found.get(key, place) for place, key in enumerate(keys)]


def measured_rows(table: AnswerTable, device: int, judged: pd.DataFrame) -> pd.DataFrame:
    """A device's judged times of what the study chooses from, with the ``place`` of the candidate
    (:func:`stand_ins`) and ``is_usual``: other studies of the workload compared other
    configurations there, or other values of what follows from the problem here."""
    stand, follows = stand_ins(table), dict(table.formulas.follows)
    names = [name for name in table.tunables if name not in follows]
    listed = pd.DataFrame(table.configurations, columns=table.tunables)
    chosen = {*table.stored.candidates}
    for one in table.entries:
        chosen |= {one.choice, one.usual, *(place for place, *_ in one.others)}
    codes = configuration_codes(listed, names, table.spec)
    places = {code: stand[at] for at, code in enumerate(codes) if at in chosen}
    found = pd.Series(configuration_codes(judged, names, table.spec), judged.index).map(places)
    kept = judged["time_ms"].notna() & found.notna()
    rows = judged[kept].assign(place=found[kept].astype(int))
    problems, choices = (
        list(zip(*(rows[name].tolist() for name in each), strict=True))
        for each in (table.parameters, table.tunables)
    )
    usual = {one.problem: stand[one.usual] for one in table.entries if one.device == device}
    rows["is_usual"] = rows["place"] == [usual.get(each, -1) for each in problems]
    if not follows or rows.empty:
        return rows
    columns = table.columns(device, problems, choices)
    return rows[np.logical_and.reduce([columns.value(t) == rows[n] for n, t in follows.items()])]


def measured_ms(table: AnswerTable, rows: pd.DataFrame) -> Known:
    """``rows``: see :func:`measured_rows`."""
    columns = (rows[name].tolist() for name in (*table.parameters, "place", "time_ms"))
    found: dict[Shape, dict[int, float]] = {}
    for *shape, place, time_ms in zip(*columns, strict=True):
        found.setdefault(tuple(shape), {})[place] = time_ms
    return found


def expected_ms(
    table: AnswerTable, device: int, shapes: Sequence[Shape], known: Known = MappingProxyType({})
) -> tuple[np.ndarray, np.ndarray]:
    """Times of configurations and of the best that are expected: by the model where an entry holds
    what it says, else by the device's judge; without one nothing is. ``known``: problems that need
    neither. A problem whose answer has no time weighs what its nearest entry with one does."""
    found = np.full((len(shapes), len(table.configurations)), math.inf)
    best = np.full(len(shapes), math.nan)
    places, others = list(table.stored.candidates), list[int]()
    for row, shape in enumerate(shapes):
        entry = table.known.get((device, shape))
        if entry is not None and entry.losses:
            found[row, places] = growth(np.array(entry.losses, dtype=float) / THOUSANDTHS)
            best[row] = entry.time_ms or math.nan
        elif shape not in known:
            others.append(row)
    judged = table.expected(device, [shapes[row] for row in others])
    if judged is not None:
        least = np.fmin(judged.losses.min(axis=1, initial=math.inf), judged.usual_losses)
        found[np.ix_(others, places)] = growth(judged.losses - least[:, None])
    own = [one for one in table.entries if one.device == device and one.time_ms is not None]
    untimed = (np.isnan(best) & np.isfinite(found).any(axis=1) & bool(own)).nonzero()[0].tolist()
    apart = distances([shapes[row] for row in untimed], [entry.problem for entry in own])
    for row, each in zip(untimed, apart, strict=True):
        if each.min() < math.inf:
            best[row] = table.time_at(own[each.argmin()], table.problem(shapes[row])) or math.nan
    found *= best[:, None]
    return np.where(np.isnan(found), math.inf, found), best
