"""Few builds for a load: sets of least time over its launches, and tables that hold them alone.

A build is a variant with its build tunables; configurations that differ in launch tunables share
one. A problem takes the fastest of its configurations: by measured times where it was measured, by
the device's judge (:class:`launchwise.exporting.lookup.Judge`) anywhere else. Gains stay those over
the usual choice, which such a table launches only where it is one of them."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from launchwise.base.robust import EQUAL
from launchwise.experiment.load import Shape
from launchwise.exporting.entries import Entry, Places, Tested
from launchwise.exporting.few_times import (
    LOST,
    Known,
    Times,
    expected_ms,
    measured_ms,
    measured_rows,
    stand_ins,
    times_of,
)
from launchwise.exporting.lookup import around
from launchwise.exporting.table import AnswerTable
from launchwise.learning.answers import MEASURED, Interval
from launchwise.learning.merit import FEWEST, geometric_mean, interval_of_mean
from launchwise.learning.row_arrays import records_of
from launchwise.tables.rows import fastest_rows
from launchwise.tables.times import PAIRS
from launchwise.workloads.parts import Value
from launchwise.workloads.space import used

Build = tuple[Value, ...]  # Variant and build tunables, neutral where the variant has none

SIZES = (1, 2, 4, 8, 16, 32)
"""Numbers of builds of a curve."""

ROUNDS = 40  # Times that a set is disturbed and mended before it counts as the best
LESS = 1 - 1e-9  # What is not below this share of a sum is no less than it


def chosen(costs: np.ndarray, sizes: Sequence[int]) -> list[tuple[int, ...]]:
    """Of each size the columns, at most so many, whose least costs add up to the least.

    The column that lowers the sum most is added, then columns are exchanged for others one by one
    as long as that lowers it; then some are exchanged at random, always the same, and it begins
    again. Of equal sets the first that is met counts.

    ``costs``: float64, shape (cases, columns), finite. ``sizes``: ascending, at most its columns.
    """
    found, now = [], list[int]()
    for size in range(1, max(sizes, default=0) + 1):
        place, _ = _added(costs, now)
        if place not in now:  # Else none lowers it
            now = _exchanged(costs, [*now, place])
        if size in sizes:
            now = _disturbed(costs, now)
            found.append(tuple(sorted(now)))
    return found


def _disturbed(costs: np.ndarray, now: list[int]) -> list[int]:
    dice = random.Random(len(now))
    for _ in range(ROUNDS):
        kept = dice.sample(now, max(0, len(now) - 2))
        others = [each for each in range(costs.shape[1]) if each not in kept]
        tried = _exchanged(costs, kept + dice.sample(others, len(now) - len(kept)))
        if _sum(costs, tried) < _sum(costs, now) * LESS:
            now = tried
    return now


def _sum(costs: np.ndarray, columns: Sequence[int]) -> float:
    return float(costs[:, columns].min(axis=1).sum())


def _added(costs: np.ndarray, kept: Sequence[int]) -> tuple[int, float]:
    """The column that lowers the sum of some most, and the sum then."""
    near = costs[:, kept].min(axis=1, initial=math.inf)
    sums = np.minimum(near[:, None], costs).sum(axis=0)
    place = int(np.argmin(sums))
    return place, float(sums[place])


def _exchanged(costs: np.ndarray, now: list[int]) -> list[int]:
    least, since, place = _sum(costs, now), 0, 0
    while since < len(now):
        kept = [each for at, each in enumerate(now) if at != place]
        other, total = _added(costs, kept)
        since += 1
        if total < least * LESS:
            now, least, since = [*kept[:place], other, *kept[place:]], total, 0
        place = (place + 1) % len(now)
    return now


@dataclass(frozen=True)
class Step:
    """A number of builds, and what a load reaches with them."""

    count: int
    # Of their configurations in the table. The best alone is first: of those that are as good the
    # one that is usual for most problems.
    places: tuple[int, ...]
    # Time of the launches with the fastest of all configurations over that with these, and its
    # 95 % interval. Where blind tests measured enough problems, less by what expectations of
    # problems that were not measured are off there; without an interval where there are none.
    reached: float
    interval: Interval | None
    tested: Tested | None  # what their choices reach at problems of blind tests
    lost: int  # problems that none of them may run: each counts :data:`LOST` times the best


class Untimed(NamedTuple):
    """Problems without a time: they weigh what the nearest ones with a time do, scaled."""

    problems: int
    launches: float  # share of all, 0 to 1
    weight: float  # share of what chooses builds, 0 to 1


@dataclass(frozen=True)
class Weighed:
    """A load on some devices of a table: launches of each problem, and times of all configurations.

    ``weights``: device to launches of each of its problems, float64; each device counts alike.
    """

    table: AnswerTable
    times: Mapping[int, Times]
    weights: Mapping[int, np.ndarray]
    blind: Mapping[int, tuple[np.ndarray, Times]]  # expected and measured times of blind problems
    rows: Mapping[int, pd.DataFrame]  # of each device that has any: see :func:`measured_rows`
    launches: np.ndarray  # of each problem: float64

    @classmethod
    def of(
        cls,
        table: AnswerTable,
        devices: Sequence[int],
        counts: Mapping[Shape, int],
        judged: Mapping[int, pd.DataFrame],
    ) -> Weighed:
        """``counts``: launches of each problem; ``judged``: device to its judged times."""
        shapes, launches = list(counts), np.array(list(counts.values()), dtype=float)
        rows = {at: measured_rows(table, at, judged[at]) for at in devices if at in judged}
        known = {at: measured_ms(table, own) for at, own in rows.items()}
        times = {at: times_of(table, at, shapes, known.get(at, {})) for at in devices}
        weights, blind = {}, {}
        for at, one in times.items():
            can = np.isfinite(one.best_ms) & np.isfinite(one.ms.min(axis=1, initial=math.inf))
            own = np.where(can, launches, 0.0)
            weights[at] = own / max(float(own @ np.nan_to_num(one.best_ms)), 1e-300)
            tested = [each.problem for each in table.entries if each.device == at and each.blind]
            blind[at] = (
                expected_ms(table, at, tested)[0],
                times_of(table, at, tested, known.get(at, {})),
            )
        return cls(table, times, weights, blind, rows, launches)

    def known(self, device: int) -> Known:
        """What was measured on a device."""
        return measured_ms(self.table, self.rows[device]) if device in self.rows else {}

    def fastest(self, step: Step, device: int) -> Mapping[Shape, Mapping[str, Any]]:
        """Measured problems to the judged row that counts as the fastest of some builds."""
        if device not in self.rows:
            return {}
        rows, parameters = self.rows[device], self.table.parameters
        found = fastest_rows(rows[rows["place"].isin(step.places)], parameters, self.table.spec)
        return {tuple(row[name] for name in parameters): row for row in records_of(found)}

    def tested(self, device: int, step: Step) -> Tested | None:
        """What the choices among some builds reach at a device's problems of blind tests."""
        _, reached = self._blind_fractions(device, step.places)
        return Tested(len(reached), geometric_mean(reached)) if len(reached) >= FEWEST else None

    def untimed(self, device: int) -> Untimed:
        """Problems of the load whose answers on a device have no time."""
        one, weights = self.times[device], self.weights[device]
        own = ~one.timed & (weights > 0)
        share = self.launches[own].sum() / self.launches.sum()
        return Untimed(int(own.sum()), float(share), float(weights[own] @ one.best_ms[own]))

    def builds(self) -> list[tuple[int, ...]]:
        """Places of the configurations of each build that may answer, in a fixed order."""
        found: dict[Build, list[int]] = {}
        stand = stand_ins(self.table)
        tested = {stand[each.choice] for each in self.table.entries if not each.blind}
        for place in self.table.stored.candidates:
            if place in tested:
                build = self.table.spec.build_choice(self.table.configuration(place))
                found.setdefault(build, []).append(place)
        return [tuple(found[build]) for build in sorted(found, key=lambda one: [*map(str, one)])]

    def steps(self, sizes: Sequence[int]) -> list[Step]:
        """The sets of at most so many builds that reach most; none without any build."""
        if not (builds := self.builds()):
            return []
        most = [min(size, len(builds)) for size in sizes]
        costs = np.concatenate(
            [
                self.weights[at][:, None]
                * np.nan_to_num(one.capped(np.column_stack([one.of(each) for each in builds])))
                for at, one in self.times.items()
            ]
        )
        listed = sorted({*most, *(one for one in SIZES if one < max(most))})
        steps = [self._step([builds[at] for at in each]) for each in chosen(costs, listed)]
        # Of more builds, more are chosen by what was expected wrongly.
        best = accumulate(steps, _better)
        found = dict(zip(listed, best, strict=True))
        return [found[size] for size in most]

    def _step(self, builds: Sequence[tuple[int, ...]]) -> Step:
        count, places = len(builds), [place for build in builds for place in build]
        alone = sum(
            self.weights[at] @ np.nan_to_num(one.capped(one.ms[:, places]))
            for at, one in self.times.items()
        )
        usual = Counter(one.usual for one in self.table.entries)
        near = np.flatnonzero(alone <= (1 + EQUAL) * np.min(alone)).tolist()
        first = places[min(near, key=lambda at: (-usual[places[at]], alone[at]))]
        places = list(dict.fromkeys([first, *places]))
        blind = [self._blind_fractions(at, places) for at in self.times]
        expected, measured = (np.concatenate([each[side] for each in blind]) for side in (0, 1))
        lost = sum(
            int((np.isinf(one.of(places)) & (self.weights[at] > 0)).sum())
            for at, one in self.times.items()
        )
        if len(measured) < FEWEST:
            return Step(count, tuple(places), self._reached(places), None, None, lost)
        ends = geometric_mean(measured / expected), *interval_of_mean(measured / expected)
        reached, low, high = (min(self._reached(places, end), 1.0) for end in ends)
        tested = Tested(len(measured), geometric_mean(measured))
        interval = (low, high) if low < high else None  # Nothing was expected
        return Step(count, tuple(places), reached, interval, tested, lost)

    def _reached(self, places: Sequence[int], share: float = 1.0) -> float:
        """Time with the best over that with some configurations, the mean of the devices.

        ``share``: of what is expected, what problems that were not measured reach.
        """
        found = []
        for at, one in self.times.items():
            own = np.minimum(one.of(places), LOST * one.best_ms)
            own = np.where(one.measured, own, own / share)
            used = self.weights[at] > 0
            spent = self.weights[at][used] @ own[used]
            found.append(self.weights[at][used] @ one.best_ms[used] / spent if spent else math.nan)
        return float(np.mean(found))

    def _blind_fractions(self, device: int, places: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """Best time over that of the choice that a judge makes of some configurations, at each
        problem of a blind test where that choice has a time: as expected, and as measured."""
        expected, measured = self.blind[device]
        own = expected[:, list(places)]
        can = np.isfinite(own.min(axis=1, initial=math.inf))
        at = np.array(places)[own[can].argmin(axis=1)]
        known = expected[can].min(axis=1) / own[can].min(axis=1)
        found = measured.best_ms[can] / measured.ms[can, at]
        return known[found > 0], found[found > 0]


def _better(few: Step, more: Step) -> Step:
    return more if more.reached > few.reached else few


def limited(weighed: Weighed, step: Step) -> AnswerTable:
    """A table whose answers are of some builds alone, on the devices of a load; the first of them
    stands where nothing else is known. Exact where a problem was measured."""
    table, entries, stand = weighed.table, list[Entry](), stand_ins(weighed.table)
    whole = Places(table.configurations[place] for place in step.places)
    for number, at in enumerate(weighed.times):
        own, fastest = [one for one in table.entries if one.device == at], weighed.fastest(step, at)
        times = times_of(table, at, [one.problem for one in own], weighed.known(at))
        for entry, ms in zip(own, times.ms, strict=True):
            if not np.isfinite(ms[list(step.places)]).any():
                continue
            one, chosen = entry, table.configurations[entry.choice]
            if stand[entry.choice] not in step.places:
                before_ms = float(ms[stand[entry.choice]])
                few = {place: float(ms[place]) for place in step.places}
                one, chosen = _other(entry, before_ms, few, fastest.get(entry.problem), table)
            choice, usual = whole.of(chosen), whole.of(table.configurations[entry.usual])
            kept = replace(one, device=number, choice=choice, usual=usual)
            entries.append(replace(kept, others=(), ran=(), losses=()))
    devices = [
        replace(table.devices[at], between_gain=None, tested=weighed.tested(at, step))
        for at in weighed.times
    ]
    named = (dict(zip(table.tunables, values, strict=True)) for values in whole)
    return table.storing(
        devices=tuple(devices),
        configurations=tuple(used(one, table.spec) for one in named),
        candidates=tuple(range(len(step.places))),
        entries=tuple(entries),
        least_gain=None,
        fallback=0,
    )


def _other(
    entry: Entry,
    before_ms: float,
    few: Mapping[int, float],
    fastest: Mapping[str, Any] | None,
    table: AnswerTable,
) -> tuple[Entry, tuple[Value, ...]]:
    """An entry with the best of some configurations, and values of its tunables. ``before_ms``: of
    its own choice; ``few``: those to choose from, by their times; ``fastest``: the judged row that
    counts as the fastest of them, where they were measured."""
    said, paired = "expected", entry.paired
    if entry.basis == MEASURED and fastest is not None:
        said, paired = "measured", paired and fastest["basis"] == PAIRS
        place, time_ms = fastest["place"], fastest["time_ms"]
        limits: Interval | None = (fastest["time_low_ms"], fastest["time_high_ms"])
    else:
        place = min(few, key=lambda each: few[each])
        time_ms = few[place]
        limits = around(time_ms / before_ms, entry.interval_ms)
    facts = table.devices[entry.device].named_facts
    moved = table.moved(place, table.problem(entry.problem), facts) or table.configuration(place)
    chosen = tuple(moved.values())
    choice = entry.usual if chosen == table.configurations[entry.usual] else place
    why = f"the fastest of the {len(few)} configurations of this file, as {said}"
    one = entry.choosing(choice, time_ms, why, limits, before_ms)
    return replace(one, paired=paired), chosen
