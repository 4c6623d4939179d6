"""Errors between visits: how far measurements of one configuration lie apart, and ratios of two.

Learnt from what was measured more than once: by a sweep and in pairs, in two visits of pairs, in
both halves of one. They err alike where the least times of problems are alike, and distances from
these: small systems err by what is none of large ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from launchwise.base.robust import EQUAL, LEAST_ROUNDS
from launchwise.tables.measurements import RATIOS
from launchwise.tables.rows import DEFAULT_ERROR, ONCE, Z95, row_numbers
from launchwise.workloads.spec import Spec

CLOSE = 1.1
"""Times of the fastest in pairs up to which a configuration tells the level of its problem."""

SHARE = 0.95  # Share of measurements that an interval holds

NEAREST = 40  # Configurations that were measured twice, which say how far visits lie apart

FEWEST = 19  # Fewest of them: the largest of so many differences bounds 95 % of others

LEAST_ERROR = 5e-4  # What a clock resolves: visits that agree by chance say no less
PLACE = ["least", "gap", "timer"]
FAR, GRAPH = 1e3, "graph"  # No logarithms of times lie so far apart; timer of short kernels


def by_rounds(pairs: pd.DataFrame, spec: Spec) -> pd.DataFrame:
    """What rounds of pairs tell beyond their medians; NaN for too few.

    ``pairs``: rows from 0 on, all with a ``gain``. Returns ``halves``, the logarithm of the ratio
    to the usual choice in the first half of the rounds over that in the second, NaN for the usual
    choice itself; and ``least`` and ``most``, the limits of a row's time over that of the fastest
    of its problem in one round, in times of the usual choice.
    """
    problems, gains = row_numbers(pairs, spec.problem_columns), pairs["gain"]
    rounds = [np.asarray(each, dtype=float) for each in pairs["times_ms"]]
    usual = dict(zip(problems[gains == 1], np.flatnonzero(gains == 1), strict=True))
    fastest = gains.groupby(problems).idxmax()
    found = np.full((len(pairs), 3), np.nan)
    for row, problem in enumerate(problems):
        own, reference = rounds[row], rounds[usual.get(problem, row)]
        if len(own) == len(reference) >= LEAST_ROUNDS and usual.get(problem, row) != row:
            logs, half = np.log(reference / own), len(own) // 2
            found[row, 0] = np.median(logs[:half]) - np.median(logs[half:])
        best = fastest[problem]
        if len(own) == len(rounds[best]) >= LEAST_ROUNDS:
            ratios = own / rounds[best] / gains[best]
            found[row, 1:] = ratios.min(), ratios.max()
    return pd.DataFrame(found, columns=["halves", "least", "most"])


def places_of(logs: pd.Series, problems: np.ndarray, timers: Any = "") -> pd.DataFrame:
    """Logarithms of times, of the least of their problem, and of their distances from it (what is
    near it repeats better on any GPU, as does what graphs replay: far from all else), and numbers
    of problems; by the index of ``logs``."""
    least, clock = logs.groupby(problems).transform("min"), FAR * (timers == GRAPH)
    found = {"log": logs, "least": least, "gap": np.log(logs - least + EQUAL), "timer": clock}
    return pd.DataFrame({**found, "problem": problems})


def _places(timed: pd.DataFrame, spec: Spec) -> pd.DataFrame:
    """:func:`places_of` the sweep's times."""
    problems = row_numbers(timed, [*spec.problem_columns, "blind"])
    return places_of(np.log(timed["sweep_ms"]), problems, timed["timer"])


def beyond_common(apart: pd.Series, near: pd.Series, problems: Any) -> pd.Series:
    """How far rows lie ``apart`` in two visits beyond what the ``near`` ones of their problem have
    in common: their median. NaN where it has less than two."""
    groups = apart.where(near).groupby(problems)
    count = groups.transform("count")
    # Of two, half the difference lies on either side; one alone tells nothing.
    share = np.sqrt(count / (count - 1).where(count > 1))
    return (apart - groups.transform("median")).abs() * share


def _near(times_ms: pd.Series, problems: pd.Series) -> pd.Series:
    """Which of the known times are within :data:`CLOSE` of the least of their problem."""
    return times_ms <= CLOSE * times_ms.groupby(problems).transform("min")


def _twice(times: pd.DataFrame, spec: Spec) -> pd.DataFrame:
    """Places of rows that both a sweep and pairs measured by one timer, and how far ``apart``: the
    logarithm of the ratio; ``away`` is that of the times themselves, whose levels may differ, too.
    Not of those that alone tell the level of their problem."""
    timed = times[times["time_ms"].notna()]
    places = _places(timed, spec)
    paired_ms = timed["time_ms"].where(timed["paired_ms"].notna())
    near = _near(paired_ms, places["problem"])
    alone = near & (near.groupby(places["problem"]).transform("sum") == 1)
    apart = np.abs(np.log(timed["sweep_ms"] * timed["level"] / paired_ms))
    away = np.abs(np.log(timed["sweep_ms"] / timed["paired_ms"]))
    return places.assign(apart=apart, away=away)[paired_ms.notna() & ~alone]


def _revisited(times: pd.DataFrame, spec: Spec) -> pd.DataFrame:
    """Places of rows whose paired ratio two visits found, and how far ``apart`` these are;
    ``among`` others: beyond what near ones of the problem (:data:`CLOSE`) have in common."""
    timed = times[times["time_ms"].notna()]
    places, apart = _places(timed, spec), timed["visits_apart"]
    near = _near(timed["time_ms"].where(apart.notna()), places["problem"])
    among = beyond_common(apart, near, places["problem"])
    return places.assign(apart=apart.abs(), among=among)[apart.notna()]


def errors_near(known: pd.DataFrame, asked: pd.DataFrame, by: str) -> np.ndarray:
    """Standard errors at places, of which :data:`Z95` reach as far as 95 % of the :data:`NEAREST`
    known rows of other problems lay apart (column ``by``); for fewer than :data:`FEWEST` as far as
    all, and at least :data:`DEFAULT_ERROR`. float64, shape (asked,); NaN where there is none."""
    from scipy.spatial import KDTree

    if known.empty or asked.empty:
        return np.full(len(asked), np.nan)
    count = min(len(known), NEAREST + int(known["problem"].value_counts().iloc[0]))
    near = KDTree(known[PLACE]).query(asked[PLACE], k=count)[1].reshape(len(asked), count)
    apart = known[by].to_numpy()[near]
    apart[known["problem"].to_numpy()[near] == asked["problem"].to_numpy()[:, None]] = np.nan
    apart[np.isfinite(apart).cumsum(axis=1) > NEAREST] = np.nan
    counts = np.isfinite(apart).sum(axis=1)
    ranks = np.minimum(np.ceil(SHARE * (counts + 1)).astype(np.int64), np.maximum(counts, 1)) - 1
    errors = np.sort(apart, axis=1)[np.arange(len(apart)), ranks] / Z95
    return np.asarray(np.maximum(errors, np.where(counts < FEWEST, DEFAULT_ERROR, LEAST_ERROR)))


def _mean_errors(known: Sequence[pd.DataFrame], asked: pd.DataFrame, by: str) -> np.ndarray:
    """Geometric mean of :func:`errors_near` over GPUs that have any; NaN where none has."""
    # Of one array: of several rows pandas would make each column by itself.
    logs = pd.DataFrame(np.log([errors_near(each, asked, by) for each in known]))
    return np.exp(logs.mean().to_numpy())


def _apart_from(others: Iterable[pd.DataFrame]) -> list[pd.DataFrame]:
    """Known rows of other GPUs, whose problems are none of this one's."""
    return [each.assign(problem=-1 - each["problem"]) for each in others]


def _digits(values: Any, count: int) -> Any:
    """Positive numbers rounded to as many digits: limits and errors need few, files are smaller."""
    scale = 10.0 ** (count - 1 - np.floor(np.log10(values)))
    return np.round(values * scale) / scale


def say_errors(
    times: pd.DataFrame, compared: pd.DataFrame | None, spec: Spec, others: Sequence[pd.DataFrame]
) -> None:
    """Give all rows with a time their error, in place of that of their repeats, and intervals.

    ``compared``: of configurations that ran in pairs: ``row`` in ``times``, limits of ratios,
        ``halves``, and how far ratios lie apart ``between`` contests of the problem.
    """
    places, twice = _places(times[times["time_ms"].notna()], spec), _twice(times, spec)
    siblings = twice.drop(columns=PLACE).sort_values("log")

    def between(by: str) -> pd.Series:
        found = pd.Series(np.nan, places.index)
        for timer, asked in places.groupby("timer"):
            few = twice.loc[twice["timer"] == timer, "problem"].nunique() < FEWEST
            beside = _apart_from(_twice(each, spec) for each in others) if few else []
            found[asked.index] = _digits(_mean_errors([twice, *beside], asked, by), 3)
        return found.fillna(times["error"]).reindex(times.index)

    one, whole = between("apart"), between("away")
    # A row that was in no pairs is as uncertain as the nearest of its problem turned out to be.
    once = places[times.loc[places.index, "basis"] == ONCE].sort_values("log").reset_index()
    near = pd.merge_asof(once, siblings, on="log", by="problem", direction="nearest")
    one[near["index"]] = np.fmax(one[near["index"]], near["apart"].to_numpy())
    times["error"] = one
    reach, alone = Z95 * np.fmax(one, whole), times["basis"] == ONCE
    for kind, held in ((alone, "sweep_ms"), (~alone, "time_ms")):
        apart = (pd.Series(np.log(times[held] / times["paired_ms"])).abs() / reach).dropna()
        if len(apart) >= FEWEST:  # To hold as many visits of pairs: the nearest may move less.
            reach[kind] *= max(1.0, float(np.quantile(apart, SHARE, method="higher")))
    reach = np.exp(reach)
    times["time_low_ms"] = _digits(times["time_ms"] / reach, 4)
    times["time_high_ms"] = _digits(times["time_ms"] * reach, 4)
    if compared is None or compared.empty:
        return
    at = compared["row"].to_numpy()
    own = places.loc[at].assign(apart=compared["halves"].abs().to_numpy())
    visits = [_revisited(each, spec) for each in (times, *others)]
    # Halves of one visit, of which each has half the rounds, differ less than visits do.
    least = errors_near(own[own["apart"].notna()], own, "apart") / np.sqrt(2)
    ratio = np.fmax(least, _visit_errors(own, visits, "apart"))
    ratio = np.where(np.isnan(ratio), one[at] * np.sqrt(2), ratio)
    gain, improvement = (
        np.log(np.asarray(compared[f"{name}_high"] / compared[f"{name}_low"])) / 2 / Z95
        for name in RATIOS
    )
    # Two rows share the error of a ratio.
    shared = np.fmax(np.where(np.isnan(least), ratio, least), gain) / np.sqrt(2)
    among = np.fmin(_visit_errors(own, visits, "among"), ratio / np.sqrt(2))
    disputed = compared["between"].to_numpy() / Z95
    times.loc[at, "error"] = np.fmax(_digits(np.fmax(shared, among), 3), disputed / np.sqrt(2))
    ratio = np.fmax(np.fmax(ratio, gain), improvement)
    times.loc[at, "ratio_error"] = np.fmax(_digits(ratio, 3), disputed)


def whole_errors(rows: pd.DataFrame) -> pd.Series[float]:
    """Standard errors of times between visits, level included; ``error`` without limits of one."""
    if "time_high_ms" not in rows:
        return rows["error"]
    limits = np.log(rows["time_high_ms"] / rows["time_low_ms"]) / (2 * Z95)
    return pd.Series(limits, rows.index).fillna(rows["error"])


def _visit_errors(asked: pd.DataFrame, visits: Sequence[pd.DataFrame], by: str) -> np.ndarray:
    """Errors of what two visits found, on this GPU (the first of ``visits``) or, where it has too
    few of those, on others as well; NaN where none has any."""
    own, *others = (each[each[by].notna()] for each in visits)
    return _mean_errors([own] if len(own) >= FEWEST else [own, *_apart_from(others)], asked, by)
