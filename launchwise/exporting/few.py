"""Few builds for a load: sets of least time over its launches, and tables that hold them alone.

A build is a variant with its build tunables; configurations that differ in launch tunables share
one. A problem takes the fastest of its configurations: by measured times where it was measured, by
the device's judge (:class:`launchwise.exporting.lookup.Judge`) anywhere else."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
import pandas as pd

from launchwise.experiment.load import Shape
from launchwise.exporting.entries import THOUSANDTHS, Entry, Tested
from launchwise.exporting.lookup import growth
from launchwise.exporting.table import AnswerTable
from launchwise.learning.answers import MEASURED, Interval
from launchwise.learning.merit import FEWEST, geometric_mean, interval_of_mean
from launchwise.learning.row_arrays import configuration_codes
from launchwise.workloads.near_problems import distances
from launchwise.workloads.parts import Value

Build = tuple[Value, ...]  # Variant and build tunables, neutral where the variant has none

SIZES = (1, 2, 4, 8, 16, 32)
"""Numbers of builds of a curve."""

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

    def of(self, places: Sequence[int]) -> np.ndarray:
        """Least time of these configurations, shape (shapes,)."""
        return np.asarray(self.ms[:, list(places)].min(axis=1, initial=math.inf))


def times_of(
    table: AnswerTable, device: int, shapes: Sequence[Shape], known: Known = MappingProxyType({})
) -> Times:
    """Times of every configuration of a table; those that are no candidates have measured ones.

    ``device``: its number. ``known``: see :func:`measured_ms`; beside it the entries count.
    """
    ms, best_ms = _expected(table, device, shapes, known)
    measured = np.zeros(len(shapes), dtype=bool)
    for row, shape in enumerate(shapes):
        entry = table.known.get((device, shape))
        if entry is None or entry.time_ms is None:
            continue
        measured[row], best_ms[row] = entry.basis == MEASURED, entry.time_ms
        own = {at: ms for at, ms, *_ in entry.others if ms} | {entry.choice: entry.time_ms}
        if shape in known:
            own |= known[shape]
            ms[row] = math.inf
        # The answer is the first of what is expected, too.
        ms[row] = np.maximum(ms[row], entry.time_ms)
        ms[row, list(own)] = list(own.values())
    # What rests on one row may be below the time of the answer, by less than their errors.
    least = np.minimum(best_ms, ms.min(axis=1, initial=math.inf))
    return Times(shapes, ms, least, measured)


def measured_ms(table: AnswerTable, judged: pd.DataFrame | None) -> Known:
    """Measured times of the table's configurations by problem, of a device's judged times; of none
    without these."""
    if judged is None:
        return {}
    names, listed = list(table.tunables), pd.DataFrame(table.configurations, columns=table.tunables)
    places = {code: at for at, code in enumerate(configuration_codes(listed, names, table.spec))}
    codes = configuration_codes(judged, names, table.spec)
    kept = judged["time_ms"].notna().to_numpy() & np.isin(codes, list(places))
    columns = (judged.loc[kept, name].tolist() for name in (*table.parameters, "time_ms"))
    found: dict[Shape, dict[int, float]] = {}
    for code, *shape, time_ms in zip(codes[kept].tolist(), *columns, strict=True):
        found.setdefault(tuple(shape), {})[places[code]] = time_ms
    return found


def _expected(
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


ROUNDS = 40  # Times that a set is disturbed and mended before it counts as the best
LESS = 1 - 1e-9  # What is not below this share of a sum is no less than it


def chosen(costs: np.ndarray, sizes: Sequence[int]) -> list[tuple[int, ...]]:
    """Of each size the columns whose least costs add up to the least.

    The column that lowers the sum most is added, then columns are exchanged for others one by one
    as long as that lowers it; then some are exchanged at random, always the same, and it begins
    again. Of equal sets the first that is met counts.

    ``costs``: float64, shape (cases, columns), finite. ``sizes``: ascending, at most its columns.
    """
    found, now = [], list[int]()
    for size in range(1, max(sizes, default=0) + 1):
        now = _exchanged(costs, [*now, _added(costs, now)[0]])
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
    places: tuple[int, ...]  # of their configurations in the table, the one for all problems first
    # Time of the launches with the fastest of all configurations over that with these, and its
    # 95 % interval. Where blind tests measured enough problems, less by what expectations of
    # problems that were not measured are off there; else without an interval.
    reached: float
    interval: Interval | None
    tested: Tested | None  # what their choices reach at problems of blind tests


@dataclass(frozen=True)
class Weighed:
    """A load on some devices of a table: launches of each problem, and times of all configurations.

    ``weights``: device to launches of each of its problems, float64; each device counts alike.
    """

    table: AnswerTable
    times: Mapping[int, Times]
    weights: Mapping[int, np.ndarray]
    blind: Mapping[int, tuple[np.ndarray, Times]]  # expected and measured times of blind problems
    known: Mapping[int, Known]  # measured times of each device

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
        measured = {at: measured_ms(table, judged.get(at)) for at in devices}
        times = {at: times_of(table, at, shapes, measured[at]) for at in devices}
        weights, blind = {}, {}
        for at, one in times.items():
            known = np.isfinite(one.best_ms) & np.isfinite(one.ms.min(axis=1, initial=math.inf))
            own = np.where(known, launches, 0.0)
            weights[at] = own / max(float(own @ np.nan_to_num(one.best_ms)), 1e-300)
            tested = [each.problem for each in table.entries if each.device == at and each.blind]
            blind[at] = _expected(table, at, tested)[0], times_of(table, at, tested, measured[at])
        return cls(table, times, weights, blind, measured)

    def builds(self) -> list[tuple[int, ...]]:
        """Places of the configurations of each build that may answer, in a fixed order."""
        found: dict[Build, list[int]] = {}
        tested = {each.choice for each in self.table.entries if not each.blind}
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
                * np.nan_to_num(
                    np.minimum(
                        np.column_stack([one.of(each) for each in builds]),
                        LOST * one.best_ms[:, None],
                    )
                )
                for at, one in self.times.items()
            ]
        )
        listed, found = sorted({*most, *(one for one in SIZES if one < max(most))}), list[Step]()
        # Of more builds, more are chosen by what was expected wrongly.
        for columns in chosen(costs, listed):
            first = columns[int(np.argmin(costs[:, columns].sum(axis=0)))]
            places = tuple(at for each in dict.fromkeys([first, *columns]) for at in builds[each])
            both = [*found[-1:], self._step(len(columns), places)]
            found.append(max(both, key=lambda one: one.reached))
        return [found[listed.index(size)] for size in most]

    def _step(self, count: int, places: tuple[int, ...]) -> Step:
        blind = [self._blind_fractions(at, places) for at in self.times]
        expected, measured = (np.concatenate([each[side] for each in blind]) for side in (0, 1))
        if len(measured) < FEWEST:
            return Step(count, places, self._reached(places), None, None)
        share = geometric_mean(measured / expected)
        limits = interval_of_mean(measured / expected)
        ends = [min(self._reached(places, end), 1.0) for end in limits]
        tested = Tested(len(measured), geometric_mean(measured))
        return Step(count, places, self._reached(places, share), (ends[0], ends[1]), tested)

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
        problem of a blind test: as it is expected, and as it was measured."""
        expected, measured = self.blind[device]
        own = expected[:, list(places)]
        can = np.isfinite(own.min(axis=1, initial=math.inf))
        at = np.array(places)[own[can].argmin(axis=1)]
        known = expected[can].min(axis=1) / own[can].min(axis=1)
        return known, measured.best_ms[can] / measured.ms[can, at]


def limited(weighed: Weighed, step: Step) -> AnswerTable:
    """A table whose answers are of some builds alone, on the devices of a load: in place of the
    usual choice stands the first of them. Exact where a problem was measured."""
    table, numbers = weighed.table, {at: new for new, at in enumerate(weighed.times)}
    entries = []
    for at, number in numbers.items():
        own = [each for each in table.entries if each.device == at]
        times = times_of(table, at, [each.problem for each in own], weighed.known[at])
        ms = times.ms[:, list(step.places)]
        entries += [
            _entry(entry, number, row)
            for entry, row in zip(own, ms, strict=True)
            if np.isfinite(row).any()
        ]
    configurations = tuple(table.stored.configurations[place] for place in step.places)
    changed = {
        "devices": tuple(
            replace(table.devices[at], between_gain=None, tested=step.tested) for at in numbers
        ),
        "configurations": configurations,
        "candidates": tuple(range(len(configurations))),
        "entries": tuple(entries),
        "least_gain": None,
        "fallback": 0,
    }
    stored = table.stored.model_copy(update=changed)
    return replace(table, stored=stored, formulas=replace(table.formulas, usual=()))


def _entry(entry: Entry, device: int, times: np.ndarray) -> Entry:
    choice = int(np.argmin(times))
    time_ms, first_ms = float(times[choice]), float(times[0])
    measured = "measured" if entry.basis == MEASURED else "expected"
    why = f"the fastest of the {len(times)} configurations of this file, as {measured}"
    return replace(
        entry.choosing(choice, time_ms, why),
        device=device,
        usual=0,
        time_ms=entry.time_ms and time_ms,
        gain=first_ms / time_ms if math.isfinite(first_ms) else None,
        improvement=None,
        paired=False,
        others=(),
        ran=(),
    )
