"""How sure an answer between entries of a table is: judges, scaled times, and limits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from launchwise.exporting.entries import THOUSANDTHS, Entry, Tested
from launchwise.exporting.lookup import Judged
from launchwise.exporting.table import AnswerTable
from launchwise.learning.answers import MEASURED, SITUATIONS, Answer, Interval
from launchwise.learning.conformal import FEWEST, calibration, quantiles, stretched
from launchwise.learning.final import Final
from launchwise.learning.merit import geometric_mean
from launchwise.tables.rows import row_numbers
from launchwise.workloads.near_problems import sortable
from launchwise.workloads.parts import Value

HELD_OUT = 4  # One in so many drawn problems tells how far a judge is from the model


def candidates(
    entries: Sequence[Entry], configurations: Sequence[Mapping[str, Value]], final: Final
) -> tuple[int, ...]:
    """Places of the configurations that are the answer to a problem on a GPU that was learnt from,
    of those that differ in what follows from the problem alone the first."""
    found: dict[tuple[Value, ...], int] = {}
    for entry in entries:
        if entry.device < len(final.facts["gpus"]):
            whole = {**final.spec.neutral, **configurations[entry.choice]}
            key = tuple(whole[name] for name in final.domain.choice_columns)
            found.setdefault(key, entry.choice)
    return tuple(sorted(found.values()))


def calibrated(table: AnswerTable, judged: Sequence[pd.DataFrame], final: Final) -> AnswerTable:
    """The table with judges, with what the model says of every candidate at the problems that it
    answered, with the work by which each time is scaled, and with limits of what is stated between
    entries.

    Such an answer errs as the model's answers do, and by what it differs from them: in time by what
    entries differ from their neighbours, in gain by what a judge says of problems that it has not
    learnt from.
    """
    said = _judged(table, judged, final)
    losses = _candidate_losses(said, table) if said else {}

    def told(one: Entry) -> Entry:
        key = (table.devices[one.device].name, *one.problem)
        return replace(one, losses=losses.get(key, ()))

    scaled = [_scaled([told(one) for one in own], table) for own in table.listed.values()]
    entries = sorted(
        (one for own, _ in scaled for one in own),
        key=lambda one: (one.device, sortable(one.problem)),
    )
    apart: dict[int, list[float]] = {}
    for own, errors in scaled:
        apart.setdefault(own[0].device, []).extend(errors)
    whole = [one for one in table.devices if not final.domain.profiles[one.name].is_slice]
    of_cards = {one.name: _gain_errors(said, one.name) for one in whole} if said else {}
    # Slices of a card err as cards do.
    every = [each for some in of_cards.values() for each in some]
    devices = []
    for place, device in enumerate(table.devices):
        own = [one for one in entries if one.device == place and one.basis != MEASURED]
        between_ms = _factors(apart.get(place, []), [(one.time_ms, one.interval_ms) for one in own])
        judge = said.judge(device.name) if said else None
        between_gain = None
        if said and judge:
            limits = [(one.gain, one.gain_interval) for one in own]
            between_gain = _factors(of_cards.get(device.name, every), limits)
        devices.append(
            replace(device, judge=judge, between_ms=between_ms, between_gain=between_gain)
        )
    return table.storing(devices=tuple(devices), entries=tuple(entries))


def _judged(table: AnswerTable, judged: Sequence[pd.DataFrame], final: Final) -> Judged | None:
    """What the model said of the table's candidates and of the usual choices."""
    every = [one for one in judged if len(one)]
    if not every:
        return None
    rows = pd.concat(every, ignore_index=True)
    columns = final.domain.choice_columns
    places = table.stored.candidates
    named = pd.DataFrame([table.configuration(place) for place in places])[columns]
    numbers = row_numbers(pd.concat([named, rows[columns]], ignore_index=True), columns)
    kept = np.isin(numbers[len(named) :], numbers[: len(named)]) | final.domain.is_usual(rows)
    kept &= np.isfinite(rows["loss"].to_numpy(dtype=float))
    # The first numbers are those of candidates.
    own = rows.assign(candidate=numbers[len(named) :])[kept].reset_index(drop=True)
    return Judged(own, list(table.stored.features), final.domain) if len(own) else None


def _candidate_losses(
    said: Judged, table: AnswerTable
) -> dict[tuple[Any, ...], tuple[int | None, ...]]:
    """GPU and problem to :attr:`Entry.losses`. Of rows that differ in what follows from the
    problem alone, the best one is the candidate."""
    rows, places = said.rows.assign(loss=said.losses), range(len(table.stored.candidates))
    case = ["gpu", *table.parameters]
    best = rows.groupby([*case, "candidate"], sort=False)["loss"].min()
    found = best.unstack().reindex(columns=places)
    every = (
        tuple(None if math.isnan(each) else round(each * THOUSANDTHS) for each in row)
        for row in found.to_numpy().tolist()
    )
    return dict(zip(found.index.to_list(), every, strict=True))


def _gain_errors(said: Judged, gpu: str) -> list[float]:
    """Log of the gain that the model says over that of a judge, of what the judge chooses for
    problems that it has not learnt from."""
    spec = said.domain.spec
    cases = row_numbers(said.rows, ["gpu", *spec.problem_columns])
    held = cases % HELD_OUT == 0
    judge = said.judge(gpu, held)
    asked = held & (said.rows["gpu"] == gpu).to_numpy()
    if judge is None or not asked.any():
        return []
    values, usual = said.values[asked], said.domain.is_usual(said.rows)[asked]
    losses = said.rows["loss"].to_numpy(dtype=float)[asked]
    expected = judge.sums(values)
    found = []
    for case in np.unique(cases[asked]):
        own = np.flatnonzero(cases[asked] == case)
        first = own[np.argmin(expected[own])]
        beside = own[usual[own]]
        if len(beside) and first != beside[0]:
            found.append(float(expected[first] - expected[beside[0]] - losses[first]))
    return found


NEIGHBOURS = 5  # Nearest entries that tell by which work a time is scaled


def _scaled(own: Sequence[Entry], table: AnswerTable) -> tuple[list[Entry], list[float]]:
    """Entries that are looked up together, each with the work that brings its time the nearest to
    those of its neighbours; and for those that the model answered the logarithm of their time over
    that of their nearest neighbour, scaled."""
    known = [one for one in own if one.time_ms is not None]
    if not known:
        return list(own), []
    sizes = [[each for each in one.problem if not isinstance(each, str)] for one in known]
    plain = np.array(sizes, dtype=float).reshape(len(known), -1)
    logs = np.where(plain < 0, -1, 1) * np.log(np.abs(plain) + 1)
    times = np.log(np.array([one.time_ms for one in known], dtype=float))
    texts = ["", *table.formulas.work]
    problems = [table.problem(one.problem) for one in known]
    work = [[table.formulas.work_of(text, each) for text in texts] for each in problems]
    works = np.log(np.maximum(np.array(work, dtype=float).reshape(len(known), -1), 1.0))
    # Where the work is none, it cannot be divided by.
    usable = np.array(work, dtype=float).reshape(len(known), -1) > 0
    scales, nearest = [], []
    for place in range(len(known)):
        apart = np.abs(logs - logs[place]).sum(axis=1)
        near = np.argsort(apart, kind="stable")
        near = near[near != place][:NEIGHBOURS]
        errors = np.abs((times[near] - times[place])[:, None] - (works[near] - works[place]))
        scales.append(int(np.argmin(np.where(usable[place], errors.sum(axis=0), math.inf))))
        nearest.append(int(near[0]) if len(near) else place)
    errors = [
        float(times[place] - times[near] - works[place, scales[near]] + works[near, scales[near]])
        for place, near in enumerate(nearest)
        if known[place].basis != MEASURED and near != place
    ]
    without = [one for one in own if one.time_ms is None]
    found = [replace(one, scale=scale) for one, scale in zip(known, scales, strict=True)]
    return [*found, *without], errors


def _factors(
    apart: Sequence[float], limits: Sequence[tuple[float | None, Interval | None]]
) -> Interval | None:
    """Limits that hold errors of two independent causes, as factors.

    ``apart``: logarithms of what the model says over what is stated; ``limits``: what the model
    says, and the limits of its own errors.
    """
    own = [np.log(np.array(ends) / value) for value, ends in limits if value and ends]
    if not own:
        return None
    low, high = np.sqrt(np.mean(np.square(own), axis=0))
    known = np.array(apart, dtype=float)
    least, most = quantiles(known) or (known.min(initial=0.0), known.max(initial=0.0))
    return (
        float(np.exp(-np.hypot(low, min(least, 0.0)))),
        float(np.exp(np.hypot(high, max(most, 0.0)))),
    )


def held(table: AnswerTable, blind: pd.DataFrame, final: Final) -> AnswerTable:
    """The table with limits between entries that hold what blind tests measured of such answers,
    and with what these reach.

    A device with too few such problems has the stretch of all
    (:func:`launchwise.learning.conformal.calibration`). A test is one visit, and the next one meets
    another level of host and power: times of all tested devices have the widest limits of any test.
    ``blind``: see :func:`asked_again`.
    """
    found = asked_again(table, blind, final)
    within = found[found["outside"] == 1]
    devices = []
    for device in table.devices:
        own = within[within["gpu"] == device.name]
        reached = own["fraction"].dropna().to_numpy()
        tested = Tested(len(reached), geometric_mean(reached)) if len(reached) >= FEWEST else None
        devices.append(
            replace(
                device,
                between_ms=_held(device.between_ms, "time_ms", own, within),
                between_gain=_held(device.between_gain, "gain", own, within),
                tested=tested,
            )
        )
    visits = [one.between_ms for one in devices if one.tested and one.between_ms]
    widest = max(visits, key=lambda ends: ends[1] / ends[0], default=None)
    said = [
        replace(one, between_ms=widest) if one.tested and one.between_ms else one for one in devices
    ]
    return table.storing(devices=tuple(said))


def asked_again(table: AnswerTable, blind: pd.DataFrame, final: Final) -> pd.DataFrame:
    """Answers of a table to problems of blind tests with their measurements withheld, a row per
    problem: it has no entries of them, and no candidates that only they name.

    ``blind``: judged times of blind tests (:func:`launchwise.tables.times.times_schema`). Returns
    ``gpu``, ``outside`` (:attr:`launchwise.learning.answers.Answer.outside`), ``fraction`` (time of
    the fastest over that of the answer), ``time_ms`` and ``gain`` as they were measured of the
    answer, and the limits that it states, ``_low`` and ``_high`` of both: NaN without.
    """
    kept = tuple(one for one in table.entries if not one.blind)
    named = candidates(kept, table.stored.configurations, final)
    devices = tuple(replace(one, reach=final.swept.reach(one.name)) for one in table.devices)
    without = table.storing(entries=kept, candidates=named, devices=devices)
    columns = table.spec.key_columns
    keys = blind[columns].itertuples(index=False, name=None)
    measured = dict(zip(keys, blind["time_ms"].tolist(), strict=True))
    cases = ["gpu", *table.spec.problem_columns]
    least = blind.groupby(cases)["time_ms"].min().to_dict()

    def time_ms(answer: Answer, configuration: Mapping[str, Value]) -> float:
        values = {**table.spec.neutral, **configuration, **answer.problem, "gpu": answer.gpu}
        return measured.get(tuple(values[name] for name in columns), math.nan)

    found = []
    for one in table.entries:
        gpu, problem = table.devices[one.device].name, table.problem(one.problem)
        answer = without.answer(gpu, problem) if one.blind else None
        if answer is not None and answer.basis in SITUATIONS:
            (first,) = answer.suggestions
            taken_ms = time_ms(answer, first.configuration)
            gain = time_ms(answer, answer.usual) / taken_ms
            limits = [*(first.interval_ms or _UNKNOWN), *(first.gain_interval or _UNKNOWN)]
            fraction = least.get((gpu, *one.problem), math.nan) / taken_ms
            found.append([gpu, answer.outside, fraction, taken_ms, gain, *limits])
    ends = [f"{name}_{end}" for name in ("time_ms", "gain") for end in ("low", "high")]
    return pd.DataFrame(found, columns=["gpu", "outside", "fraction", "time_ms", "gain", *ends])


_UNKNOWN = (math.nan, math.nan)


def _held(factors: Interval | None, name: str, *tests: pd.DataFrame) -> Interval | None:
    """Factors that hold what was measured of the first of some tests that has enough problems."""
    for found in tests:
        limits = found[[f"{name}_low", f"{name}_high"]].to_numpy(dtype=float)
        known = calibration(limits, found[name].to_numpy(dtype=float))
        if known and factors:
            ((low, high),) = stretched(np.array([factors]), known.stretch).tolist()
            return low, high
    return factors
