"""Judged times: what each configuration takes, how sure that is, and which measurement says so.

A sweep times each configuration once, pairs compare a few of them again and again, a blind test
measures other problems. This table judges between them, once; whoever needs a time reads it here.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from launchwise.base.errors import UserError
from launchwise.base.robust import EQUAL, LEAST_ROUNDS
from launchwise.tables.measurements import RATIOS
from launchwise.tables.rows import DEFAULT_ERROR, ONCE, Z95, row_numbers
from launchwise.tables.schema import (
    POSITIVE,
    TIMED_ROWS,
    Column,
    Demand,
    Schema,
    at_least,
    configuration_schema,
    equal_to,
    one_of,
    problem_schema,
    real_column,
    text_column,
    whole_column,
)
from launchwise.workloads.metrics import STATUSES
from launchwise.workloads.spec import Spec

PAIRS = "pairs"  # Basis of a time whose ratio to the usual choice was measured in pairs
SWEEP = ONCE  # Basis of a time that stands as the sweep measured it

CLOSE = 1.1
"""Times of the fastest in pairs up to which a configuration tells the level of its problem."""

JUDGED = ("time_ms", "time_low_ms", "time_high_ms", "error", "sweep_ms", "basis")
"""Columns of a judged time."""

GAIN_LIMITS = tuple(f"{name}_{end}" for name in RATIOS for end in ("low", "high"))
"""Columns of the limits of what was measured in pairs: time of the usual choice, and of the
baseline, over that of the row."""

JUDGED_FROM = ("workload", "status", "time_ms", "relative_error", "sm_clock_mhz", "card")
"""Columns of a sweep that :func:`judged_times` reads, beside its keys."""


def times_schema(spec: Spec) -> Schema:
    """Schema of judged times of one GPU: one row per (problem, configuration) of its sweep.

    ``sweep_ms`` is what the sweep measured, ``time_ms`` what is held true. They are the same where
    ``basis`` is ``sweep``. Where it is ``pairs``, ``time_ms`` has the ratio to the usual choice
    that the pairs found, at the level of the sweep (see :func:`judged_times`); ``paired_ms`` is
    what they measured, ``visits_apart`` the logarithm of the paired ratio over that of an earlier
    visit of pairs, where there was one. Between
    ``time_low_ms`` and ``time_high_ms`` lie 95 % of what another visit measures. ``error`` is the
    standard error between visits of the logarithm of ``time_ms``, compared with others of its
    problem. The columns of :data:`GAIN_LIMITS` are the limits of the 95 % intervals of its paired
    ratios, to the usual choice and to the baseline, between visits; empty where the basis is
    ``sweep``.

    ``blind``: measured in a blind test, whose problems are no problems of the sweep. ``sweep_row``
    is the number of the row in the file of its sweep. Rows that failed are there, without a time.
    """
    limit = real_column(POSITIVE, nullable=True)
    reasoned = Demand(
        "must be given exactly where time_ms is",
        lambda table: table["time_ms"].notna() == (table["basis"] != ""),
        "basis",
    )
    wide = Demand(
        "must be given, with limits of its own, exactly where time_ms is",
        lambda table: (
            (table["time_ms"].notna() == table["error"].notna())
            & (table["time_ms"].notna() == (table["time_low_ms"] < table["time_high_ms"]))
        ),
        "error",
    )
    within = Demand(
        "must lie between time_low_ms and time_high_ms",
        lambda table: (
            ~(table["time_ms"] < table["time_low_ms"]) & ~(table["time_ms"] > table["time_high_ms"])
        ),
        "time_ms",
    )
    return Schema(
        "judged times",
        {
            "gpu": text_column(),
            "workload": text_column(equal_to(spec.workload)),
            **problem_schema(spec),
            **configuration_schema(spec),
            "status": text_column(one_of(STATUSES)),
            "time_ms": limit,
            "time_low_ms": limit,
            "time_high_ms": limit,
            "error": real_column(at_least(0), nullable=True),
            "sweep_ms": limit,
            "basis": text_column(one_of([PAIRS, SWEEP, ""])),
            "paired_ms": limit,
            "visits_apart": real_column(nullable=True),
            **dict.fromkeys(GAIN_LIMITS, limit),
            "blind": Column("bool"),
            "sm_clock_mhz": real_column(at_least(0), nullable=True),
            "card": text_column(),
            "sweep_row": whole_column(),
        },
        demands=[TIMED_ROWS, reasoned, within, wide],
        unique=[*spec.key_columns, "blind"],
    )


SHARE = 0.95  # Share of measurements that an interval holds

NEAREST = 40  # Configurations that were measured twice, which say how far visits lie apart

FEWEST = 19  # Fewest of them: the largest of so many differences bounds 95 % of others

LEAST_ERROR = 5e-4  # What a clock resolves: visits that agree by chance say no less


def judged_times(
    sweep: pd.DataFrame,
    pairs: pd.DataFrame | None,
    spec: Spec,
    *,
    blind: bool = False,
    others: Sequence[pd.DataFrame] = (),
) -> pd.DataFrame:
    """Judge the times of one GPU.

    Of each problem, configurations that were compared in pairs take times with their paired ratios,
    at the level that the times of the fastest (:data:`CLOSE`) have in the sweep in the median: one
    alone was partly lucky, and would lift all others with it; those of slow ones, such as the
    baseline, may have moved since the sweep by what does not concern the fastest. Configurations
    that were not compared keep the sweep's time.

    How far a measurement lies from another of the same configuration is what those show that have
    both, at similar times and as far from the fastest, in other problems. The error of a paired
    ratio is what two visits of pairs show, and at least what halves of one do. Where too few were
    measured twice, the geometric mean with the errors of ``others`` counts; without any
    :data:`DEFAULT_ERROR` and the repeats'.

    ``sweep``: rows of a sweep of which the result holds one each, with their number in it as index.
    ``pairs``: pairs of the same GPU; None without any.
    ``blind``: whether it is the sweep of a blind test.
    ``others``: judged times of the study's other sweeps.
    Returns a table as :func:`times_schema` declares it.
    """
    swept_ms = sweep["time_ms"].to_numpy(dtype=float)
    found = sweep[["gpu", "workload", *_keys(spec), "status"]].reset_index(drop=True)
    found["time_ms"] = swept_ms
    found[["time_low_ms", "time_high_ms"]] = np.nan
    found["error"] = np.hypot(DEFAULT_ERROR, sweep["relative_error"].fillna(0.0).to_numpy(float))
    found["sweep_ms"] = swept_ms
    found["basis"] = np.where(np.isnan(swept_ms), "", SWEEP)
    found[["paired_ms", "visits_apart", *GAIN_LIMITS]] = np.nan
    found["blind"] = blind
    found["sm_clock_mhz"] = sweep["sm_clock_mhz"].to_numpy(dtype=float)
    found["card"] = sweep["card"].array
    found["sweep_row"] = sweep.index.to_numpy(dtype=np.int64)
    compared = None if pairs is None else _take_over(found, pairs, spec)
    _say_errors(found, compared, spec, others)
    return found.astype({"basis": found["status"].dtype})


def _take_over(times: pd.DataFrame, pairs: pd.DataFrame, spec: Spec) -> pd.DataFrame:
    """Give configurations that were compared the ratios of their pairs, in place. Returns ``row``
    in ``times`` and ``halves``, see :func:`_between_halves`, of each."""
    compared = pairs[pairs["gain"].notna()].reset_index(drop=True)
    known = compared[[*_keys(spec), "gain", *RATIOS[1:], *GAIN_LIMITS]]
    apart = np.log(compared["gain"] / compared["earlier_gain"])
    known = known.assign(
        paired_ms=compared["time_ms"],
        visits_apart=apart,
        halves=_between_halves(compared, spec),
    )
    rows = times.loc[times["time_ms"].notna(), [*_keys(spec), "time_ms"]].reset_index(names="row")
    joined = rows.merge(known, on=_keys(spec), how="inner")
    most = joined.groupby(spec.problem_columns)["gain"].transform("max")
    usual_ms = (joined["time_ms"] * joined["gain"]).where(joined["gain"] * CLOSE >= most)
    level_ms = usual_ms.groupby([joined[name] for name in spec.problem_columns]).transform("median")
    at = joined["row"].to_numpy()
    times.loc[at, "time_ms"] = (level_ms / joined["gain"]).to_numpy()
    times.loc[at, "basis"] = PAIRS
    taken = ["paired_ms", "visits_apart", *GAIN_LIMITS]
    times.loc[at, taken] = joined[taken].to_numpy(dtype=float)
    return joined


def _between_halves(pairs: pd.DataFrame, spec: Spec) -> np.ndarray:
    """Logarithm of each ratio to the usual choice in the first half of its rounds over that in the
    second: float64, shape (rows,). NaN for too few rounds, and for the usual choice itself."""
    problems = row_numbers(pairs, spec.problem_columns)
    rounds = [np.asarray(each, dtype=float) for each in pairs["times_ms"]]
    usual = dict(zip(problems[pairs["gain"] == 1], np.flatnonzero(pairs["gain"] == 1), strict=True))
    found = np.full(len(pairs), np.nan)
    for row, problem in enumerate(problems):
        reference, own = rounds[usual.get(problem, row)], rounds[row]
        if len(own) == len(reference) >= LEAST_ROUNDS and usual.get(problem, row) != row:
            logs, half = np.log(reference / own), len(own) // 2
            found[row] = np.median(logs[:half]) - np.median(logs[half:])
    return found


def _places(timed: pd.DataFrame, spec: Spec) -> pd.DataFrame:
    """Logarithms of the sweep's times and of their distances from the least of the problem (what is
    near it repeats better on any GPU), and numbers of problems; by the rows of ``timed``."""
    problems = row_numbers(timed, [*spec.problem_columns, "blind"])
    logs = np.log(timed["sweep_ms"])
    gaps = np.log(logs - logs.groupby(problems).transform("min") + EQUAL)
    return pd.DataFrame({"log": logs, "gap": gaps, "problem": problems})


def _twice(times: pd.DataFrame, spec: Spec) -> pd.DataFrame:
    """Places of rows that both a sweep and pairs measured, and how far ``apart``: the logarithm of
    the ratio; ``away`` is that of the times themselves, whose levels may differ, too. Not of those
    that alone tell the level of their problem."""
    timed = times[times["time_ms"].notna()]
    places = _places(timed, spec)
    paired_ms = timed["time_ms"].where(timed["basis"] == PAIRS)
    near = paired_ms <= CLOSE * paired_ms.groupby(places["problem"]).transform("min")
    alone = near & (near.groupby(places["problem"]).transform("sum") == 1)
    apart = np.abs(np.log(timed["sweep_ms"] / paired_ms))
    away = np.abs(np.log(timed["sweep_ms"] / timed["paired_ms"]))
    return places.assign(apart=apart, away=away)[paired_ms.notna() & ~alone]


def _revisited(times: pd.DataFrame, spec: Spec) -> pd.DataFrame:
    """Places of rows whose paired ratio two visits found, and how far ``apart`` these are;
    ``among`` others: beyond what near ones of the problem (:data:`CLOSE`) have in common."""
    timed = times[times["time_ms"].notna()]
    places, apart = _places(timed, spec), timed["visits_apart"]
    known_ms = timed["time_ms"].where(apart.notna())
    near = known_ms <= CLOSE * known_ms.groupby(places["problem"]).transform("min")
    groups = apart.where(near).groupby(places["problem"])
    count = groups.transform("count")
    # Of two, half the difference lies on either side.
    share = np.sqrt(count / (count - 1).where(count > 1))
    among = share * (apart - groups.transform("median")).abs()
    return places.assign(apart=apart.abs(), among=among)[apart.notna()]


def _errors(known: pd.DataFrame, asked: pd.DataFrame, by: str = "apart") -> np.ndarray:
    """Standard errors at places, of which :data:`Z95` reach as far as 95 % of the :data:`NEAREST`
    known rows of other problems lay apart (column ``by``); for fewer than :data:`FEWEST` as far as
    all, and at least :data:`DEFAULT_ERROR`. float64, shape (asked,); NaN where there is none."""
    from scipy.spatial import KDTree

    if known.empty or asked.empty:
        return np.full(len(asked), np.nan)
    count = min(len(known), NEAREST + int(known["problem"].value_counts().iloc[0]))
    near = KDTree(known[["log", "gap"]]).query(asked[["log", "gap"]], k=count)[1]
    near = near.reshape(len(asked), count)
    apart = known[by].to_numpy()[near]
    apart[known["problem"].to_numpy()[near] == asked["problem"].to_numpy()[:, None]] = np.nan
    apart[np.isfinite(apart).cumsum(axis=1) > NEAREST] = np.nan
    counts = np.isfinite(apart).sum(axis=1)
    ranks = np.minimum(np.ceil(SHARE * (counts + 1)).astype(np.int64), np.maximum(counts, 1)) - 1
    errors = np.sort(apart, axis=1)[np.arange(len(apart)), ranks] / Z95
    return np.asarray(np.maximum(errors, np.where(counts < FEWEST, DEFAULT_ERROR, LEAST_ERROR)))


def _digits(values: Any, count: int) -> Any:
    """Positive numbers rounded to as many digits: limits and errors need few, files are smaller."""
    scale = 10.0 ** (count - 1 - np.floor(np.log10(values)))
    return np.round(values * scale) / scale


def _say_errors(
    times: pd.DataFrame, compared: pd.DataFrame | None, spec: Spec, others: Sequence[pd.DataFrame]
) -> None:
    """Give all rows with a time their error, in place of that of their repeats, and intervals.

    ``compared``: what :func:`_take_over` found.
    """
    places, twice = _places(times[times["time_ms"].notna()], spec), _twice(times, spec)
    siblings = twice.drop(columns="gap").sort_values("log")
    known = [twice]
    if twice["problem"].nunique() < FEWEST:
        more = [_twice(each, spec) for each in others]
        known += [each.assign(problem=-1 - each["problem"]) for each in more]

    def between(by: str) -> pd.Series:
        means = pd.DataFrame([np.log(_errors(each, places, by)) for each in known]).mean()
        found = pd.Series(_digits(np.exp(means.to_numpy()), 3), places.index)
        return found.fillna(times["error"]).reindex(times.index)

    one, whole = between("apart"), between("away")
    # A row that was in no pairs is as uncertain as the nearest of its problem turned out to be.
    once = places[times.loc[places.index, "basis"] == SWEEP].sort_values("log").reset_index()
    near = pd.merge_asof(once, siblings, on="log", by="problem", direction="nearest")
    one[near["index"]] = np.fmax(one[near["index"]], near["apart"].to_numpy())
    times["error"] = one
    reach = np.exp(Z95 * np.fmax(one, whole))
    times["time_low_ms"] = _digits(times["time_ms"] / reach, 4)
    times["time_high_ms"] = _digits(times["time_ms"] * reach, 4)
    if compared is None or compared.empty:
        return
    at = compared["row"].to_numpy()
    own = places.loc[at].assign(apart=compared["halves"].abs().to_numpy())
    visits = [_revisited(each, spec) for each in (times, *others)]
    # Halves of one visit, of which each has half the rounds, differ less than visits do.
    least = _errors(own[own["apart"].notna()], own) / np.sqrt(2)
    ratio = np.fmax(least, _visit_errors(own, visits, "apart"))
    ratio = np.where(np.isnan(ratio), one[at] * np.sqrt(2), ratio)
    spans = np.log((compared["gain_high"] / compared["gain_low"]).to_numpy()) / 2 / Z95
    # Two rows share the error of a ratio.
    shared = np.fmax(np.where(np.isnan(least), ratio, least), spans) / np.sqrt(2)
    among = np.fmin(_visit_errors(own, visits, "among"), ratio / np.sqrt(2))
    times.loc[at, "error"] = _digits(np.fmax(shared, among), 3)
    for name in RATIOS:
        value, low, high = (compared[f"{name}{end}"].to_numpy() for end in ("", "_low", "_high"))
        reach = np.where(value == 1, 1.0, np.exp(Z95 * ratio))  # nothing differs from itself
        times.loc[at, f"{name}_low"] = np.fmin(low, value / reach)
        times.loc[at, f"{name}_high"] = np.fmax(high, value * reach)


def _visit_errors(asked: pd.DataFrame, visits: Sequence[pd.DataFrame], by: str) -> np.ndarray:
    """:func:`_errors` of what two visits found, on this GPU (the first of ``visits``) or, where it
    has too few of those, on others; NaN where nobody has any."""
    own, *others = (each[each[by].notna()] for each in visits)
    known = [own]
    if len(own) < FEWEST:
        known += [each.assign(problem=-1 - each["problem"]) for each in others]
    found = [np.log(_errors(each, asked, by)) for each in known if len(each)]
    return np.exp(pd.DataFrame(found).mean().to_numpy()) if found else np.full(len(asked), np.nan)


def not_in_sweep(pairs: pd.DataFrame, times: pd.DataFrame, spec: Spec) -> pd.DataFrame:
    """Rows of pairs that ran, of which the sweep has no time: they judge nothing."""
    ran = pairs[pairs["gain"].notna()]
    timed = times.loc[times["time_ms"].notna(), _keys(spec)]
    joined = ran.merge(timed, on=_keys(spec), how="left", indicator=True)
    return joined[joined["_merge"] == "left_only"].drop(columns="_merge")


def with_judged_times(
    sweep: pd.DataFrame, times: pd.DataFrame, spec: Spec, source: str | Path = "judged times"
) -> pd.DataFrame:
    """A sweep with the columns of :data:`JUDGED`, in place of its own times.

    Rows that were not judged, because the study does not ask about them, keep the sweep's time.

    ``sweep``: a whole sweep.
    ``times``: judged times of the same GPU; those of a blind test are left out.
    ``source``: file of ``times``, for messages.
    Raises UserError when ``times`` were judged of another sweep.
    """
    own = times[~times["blind"]]
    at = own["sweep_row"].to_numpy()
    fits = len(at) == 0 or at.max() < len(sweep)
    keys = [name for name in ("gpu", *_keys(spec), "status") if name in sweep]
    if not fits or any((sweep[name].array.take(at) != own[name].array).any() for name in keys):
        raise UserError(source, "sweep_row", "is of another sweep: make the judged times anew")
    basis = np.where(sweep["time_ms"].isna(), "", SWEEP)
    found = sweep.assign(
        sweep_ms=sweep["time_ms"],
        time_low_ms=np.nan,
        time_high_ms=np.nan,
        error=np.nan,
        # Changing the type of the column later would store every column apart.
        basis=pd.Series(basis, index=sweep.index, dtype=own["basis"].dtype),
    )
    places = found.index[at]
    for name in JUDGED:
        found.loc[places, name] = own[name].to_numpy()
    return found


def with_judged_limits(pairs: pd.DataFrame, times: pd.DataFrame, spec: Spec) -> pd.DataFrame:
    """Pairs with the intervals of their ratios that judged times of the same GPU hold."""
    own = times.loc[~times["blind"], [*_keys(spec), *GAIN_LIMITS]]
    known = pairs[_keys(spec)].merge(own, on=_keys(spec), how="left", validate="one_to_one")
    known = known[[*GAIN_LIMITS]].set_axis(pairs.index)
    return pairs.assign(**{name: known[name].fillna(pairs[name]) for name in GAIN_LIMITS})


def by_sweep(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows with the time of the sweep in place of the judged one.

    Pairs take place at other times than a sweep, at other clocks and on a host that is busy in
    another way. Where only some of the configurations that are compared were in pairs, a ratio of a
    judged time of each basis tells of that, too.

    ``rows``: as :func:`with_judged_times` makes them; rows that were not judged stay as they are.
    """
    if "sweep_ms" not in rows:
        return rows
    factor = rows["sweep_ms"] / rows["time_ms"]
    limits = {name: rows[name] * factor for name in ("time_low_ms", "time_high_ms")}
    of_one = np.log(rows["time_high_ms"] / rows["time_low_ms"]) / (2 * Z95)
    return rows.assign(
        time_ms=rows["sweep_ms"],
        basis=rows["basis"].where(rows["sweep_ms"].isna(), SWEEP),
        error=rows["error"].where(rows["basis"] == SWEEP, of_one),
        **limits,
    )


def _keys(spec: Spec) -> list[str]:
    return [*spec.problem_columns, *spec.tunable_columns]
