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
from launchwise.base.robust import MIN_SAMPLE_SIZE, quartile_fences
from launchwise.tables.measurements import RATIOS, in_turn
from launchwise.tables.rows import DEFAULT_ERROR, OF_ROUNDS, ONCE, UNTOLD, Z95, row_numbers
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
from launchwise.tables.visits import CLOSE, by_rounds, say_errors, whole_errors
from launchwise.workloads.metrics import BACK_TO_BACK, STATUSES
from launchwise.workloads.spec import Spec

PAIRS = "pairs"  # Basis of a time whose ratio to the usual choice was measured in pairs
SWEEP = ONCE  # Basis of a time that stands as the sweep measured it

SAID = ("time_low_ms", "time_high_ms", *OF_ROUNDS, "error", "ratio_error")
"""Columns that say how sure a judged time is."""

JUDGED = ("time_ms", *SAID, "sweep_ms", "basis")
"""Columns of a judged time."""

JUDGED_FROM = (
    *("workload", "status", "time_ms", "relative_error", "timer", "sm_clock_mhz", "card"),
    *BACK_TO_BACK,
)
"""Columns of a sweep that :func:`judged_times` reads, beside its keys."""

APART = tuple(f"{name}_apart" for name in BACK_TO_BACK)
"""Columns of how far two visits lie apart in what launches back to back took."""


def times_schema(spec: Spec) -> Schema:
    """Schema of judged times of one GPU: one row per (problem, configuration) of its sweep.

    ``sweep_ms`` is what the sweep measured (:data:`DISTURBED`), ``time_ms`` what is held true. They
    are the same but for ``level`` where ``basis`` is ``sweep``. Where it is ``pairs``, ``time_ms``
    has the ratios that the pairs found, at the level of the sweep; ``level`` is the factor of the
    sweep's times beside those of pairs, 1 but at problems that several studies compared (see
    :func:`judged_times`). ``paired_ms`` is what pairs measured by the timer of the sweep,
    ``visits_apart`` the logarithm of the paired ratio over that of an earlier visit of pairs, where
    there was one. ``rounds_low_ms`` and ``rounds_high_ms`` have the least and the largest ratio to
    the fastest of its pairs in one round, at its time. Between ``time_low_ms`` and ``time_high_ms``
    lie 95 % of what another visit measures. ``error`` is the standard error between visits of the
    logarithm of ``time_ms``, compared with others of its problem; ``ratio_error`` that of its
    paired ratio to another of its problem, empty where ``basis`` is ``sweep``.

    ``energy_j`` and ``sustained_ms`` are those of pairs, ``energy_j_apart`` and
    ``sustained_ms_apart`` the logarithms of these over what the sweep found, where both ran back to
    back. ``blind``: measured in a blind test, whose problems are no problems of the sweep.
    ``sweep_row`` is the number of the row in the file of its sweep. Rows that failed are there,
    without a time.
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
            **dict.fromkeys(OF_ROUNDS, limit),
            "error": real_column(at_least(0), nullable=True),
            "sweep_ms": limit,
            "basis": text_column(one_of([PAIRS, SWEEP, ""])),
            "level": real_column(POSITIVE),
            "paired_ms": limit,
            "visits_apart": real_column(nullable=True),
            "ratio_error": real_column(at_least(0), nullable=True),
            **dict.fromkeys(BACK_TO_BACK, limit),
            **dict.fromkeys(APART, real_column(nullable=True)),
            "blind": Column("bool"),
            "sm_clock_mhz": real_column(at_least(0), nullable=True),
            "timer": text_column(),
            "card": text_column(),
            "sweep_row": whole_column(),
        },
        demands=[TIMED_ROWS, reasoned, within, wide],
        unique=spec.key_columns,
    )


def judged_times(
    sweep: pd.DataFrame,
    contests: Sequence[pd.DataFrame],
    spec: Spec,
    *,
    blind: bool = False,
    others: Sequence[pd.DataFrame] = (),
) -> pd.DataFrame:
    """Judge the times of one GPU by what one study or several compared.

    Of each problem, configurations that were compared in pairs take times with their paired ratios,
    at the level that the times of the fastest (:data:`CLOSE`) have in the sweep in the median: one
    alone was partly lucky, and would lift all others with it; those of slow ones, such as the
    baseline, may have moved since the sweep by what does not concern the fastest. What several
    studies compared is on one scale (:func:`_on_one_scale`). Configurations that were not compared
    keep the sweep's time, at the level of the study whose fastest is nearest to it; what ran alone
    was not compared (:func:`launchwise.tables.measurements.in_turn`).

    How far a measurement lies from another of the same configuration is what those show that have
    both, at problems of similar least times and as far from these. The error of a paired
    ratio is what two visits of pairs show, and at least what halves of one do. Where too few were
    measured twice, the geometric mean with the errors of ``others`` counts; without any
    :data:`DEFAULT_ERROR` and the repeats'. Of a row that was disturbed (:func:`_disturbed`) and not
    measured again the error is at least :data:`launchwise.tables.rows.UNTOLD`.

    ``sweep``: rows of a sweep of which the result holds one each, with their number in it as index.
    ``contests``: pairs of the same GPU, a table of each study that has any.
    ``blind``: whether it is the sweep of a blind test.
    ``others``: judged times of other GPUs.
    Returns a table as :func:`times_schema` declares it.
    """
    swept_ms, disturbed = sweep["time_ms"].to_numpy(dtype=float), _disturbed(sweep)
    ran = pd.concat(contests, ignore_index=True) if contests else None
    earlier_ms = _first_of(sweep, ran, ["sweep_ms"], spec)["sweep_ms"].to_numpy(dtype=float)
    # A row that was disturbed yields to the earlier one.
    swept_ms = np.where(disturbed & ~np.isnan(earlier_ms), earlier_ms, swept_ms)
    found = sweep[["gpu", "workload", *_keys(spec), "status"]].reset_index(drop=True)
    found["time_ms"] = swept_ms
    found[["time_low_ms", "time_high_ms", *OF_ROUNDS]] = np.nan
    found["error"] = np.hypot(DEFAULT_ERROR, sweep["relative_error"].fillna(0.0).to_numpy(float))
    found["sweep_ms"] = swept_ms
    found["basis"] = np.where(np.isnan(swept_ms), "", SWEEP)
    found["level"] = 1.0
    found[["paired_ms", "visits_apart", "ratio_error"]] = np.nan
    own = _first_of(sweep, ran, BACK_TO_BACK, spec).to_numpy(dtype=float)
    found[[*BACK_TO_BACK]] = own
    found[[*APART]] = np.nan
    if ran is not None:
        found[[*APART]] = np.log(own / sweep[[*BACK_TO_BACK]].to_numpy(dtype=float))
    found["blind"] = blind
    found["sm_clock_mhz"] = sweep["sm_clock_mhz"].to_numpy(dtype=float)
    found["timer"], found["card"] = sweep["timer"].array, sweep["card"].array
    found["sweep_row"] = sweep.index.to_numpy(dtype=np.int64)
    compared = _take_over(found, contests, spec) if contests else None
    say_errors(found, compared, spec, others)
    alone = disturbed & np.isnan(earlier_ms) & ~np.isnan(swept_ms)
    found.loc[alone, "error"] = np.fmax(found.loc[alone, "error"], UNTOLD)
    reach = np.exp(Z95 * found.loc[alone, "error"])
    found.loc[alone, "time_low_ms"] = found.loc[alone, "time_ms"] / reach
    found.loc[alone, "time_high_ms"] = found.loc[alone, "time_ms"] * reach
    return found.astype({"basis": found["status"].dtype})


DISTURBED = 0.1
"""Relative error of the median of its repeats above which any row was disturbed."""


def _disturbed(sweep: pd.DataFrame) -> np.ndarray:
    """Whether the repeats of each row disagree by more than :data:`DISTURBED`, or far more than
    those of the sweep's others do (outside the Tukey filter of logarithms): bool, shape (rows,)."""
    errors = sweep["relative_error"]
    logs = np.log(errors.where(errors > 0)).to_numpy(dtype=float)
    known, limit = logs[np.isfinite(logs)], np.log(DISTURBED)
    if len(known) >= MIN_SAMPLE_SIZE:
        limit = min(limit, quartile_fences(known)[1])
    return np.asarray(logs > limit)


def _first_of(
    sweep: pd.DataFrame, ran: pd.DataFrame | None, columns: Sequence[str], spec: Spec
) -> pd.DataFrame:
    """Columns of pairs beside rows of a sweep, of the first pairs that have any of them; NaN
    without. ``sweep_ms`` is the time of the row that chose the configuration."""
    if ran is None:
        return pd.DataFrame(np.nan, sweep.index, list(columns))
    keys = _keys(spec)
    known = ran.loc[ran[list(columns)].notna().any(axis=1), [*keys, *columns]]
    return sweep[keys].merge(known.drop_duplicates(keys), on=keys, how="left")[list(columns)]


def _take_over(times: pd.DataFrame, contests: Sequence[pd.DataFrame], spec: Spec) -> pd.DataFrame:
    """Give configurations that were compared the ratios of their pairs, in place. Returns ``row``
    in ``times`` and what the first pairs say of each (:func:`_ratios`)."""
    known = [_ratios(pairs, spec).assign(contest=at) for at, pairs in enumerate(contests)]
    columns = [*_keys(spec), "time_ms", "status"]
    rows = times.loc[times["time_ms"].notna(), columns].reset_index(names="row")
    joined = rows.merge(pd.concat(known, ignore_index=True), on=_keys(spec), how="inner")
    numbers = row_numbers(times, spec.problem_columns)
    problems = numbers[joined["row"].to_numpy()]
    joined["speed"], joined["scale"], joined["between"] = joined["gain"], 1.0, 0.0
    several = joined.groupby(problems)["contest"].transform("nunique") > 1
    for problem, own in joined[several].groupby(problems[several]):
        speeds, scales = _on_one_scale(own)
        own = own.assign(speed=speeds, scale=scales, gain=own["gain"] * scales)
        # Two rows may each lie this far from what another contest found.
        own["between"] = 2 * np.log(own["gain"] / speeds).abs().max()
        taken = ["speed", "scale", "between"]
        joined.loc[own.index, taken] = own[taken]
        whole = _level_ms(own, "speed", problems[own.index.to_numpy()])
        levels = whole / _level_ms(own, "gain", own["contest"])
        fastest = own.loc[own.groupby("contest")["gain"].idxmax(), "time_ms"]
        there = np.flatnonzero(numbers == problem)
        swept_ms = times.loc[there, "sweep_ms"].to_numpy()
        away = np.abs(np.log(np.divide.outer(swept_ms, fastest.to_numpy())))
        times.loc[there, "level"] = levels[fastest.index].to_numpy()[away.argmin(axis=1)]
    times["time_ms"] *= times["level"]
    joined["level_ms"] = _level_ms(joined, "speed", problems)
    joined = joined.drop_duplicates("row")
    at, unit_ms = joined["row"].to_numpy(), joined["level_ms"] / joined["scale"]
    times.loc[at, "time_ms"] = (joined["level_ms"] / joined["speed"]).to_numpy()
    times.loc[at, "basis"] = PAIRS
    times.loc[at, [*OF_ROUNDS]] = joined[["least", "most"]].mul(unit_ms, axis=0).to_numpy()
    taken = ["paired_ms", "visits_apart"]
    times.loc[at, taken] = joined[taken].to_numpy(dtype=float)
    times.loc[at[joined["timer"].to_numpy() != times.loc[at, "timer"]], "paired_ms"] = np.nan
    return joined


def _ratios(pairs: pd.DataFrame, spec: Spec) -> pd.DataFrame:
    """What one study's pairs say of each configuration that ran in turn with others: its gain, how
    far visits lie apart, :func:`launchwise.tables.visits.by_rounds`."""
    compared = in_turn(pairs).reset_index(drop=True)
    ratios = [f"{name}_{end}" for name in RATIOS for end in ("low", "high")]
    known = compared[[*_keys(spec), "gain", *ratios, "timer"]]
    apart = np.log(compared["gain"] / compared["earlier_gain"])
    known = known.assign(paired_ms=compared["time_ms"], visits_apart=apart)
    return pd.concat([known, by_rounds(compared, spec)], axis=1)


FAINT = 1e-8
"""Weight of the sweep's times beside that of pairs: they count where contests share nothing."""


def _on_one_scale(own: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Speeds of configurations by several contests of a problem, and what the gains of each contest
    are multiplied by to be speeds: float64, shape (rows,).

    A gain is relative to the usual choice of its study, in one visit. Logarithms of gains are those
    of speeds and one number for each contest, by least squares: what ran in several contests puts
    them on one scale.
    """
    contests, rows = (pd.factorize(own[name])[0] for name in ("contest", "row"))
    first = np.unique(rows, return_index=True)[1]
    offsets, unit = np.eye(contests.max() + 1)[contests], np.eye(len(first))
    faint = np.hstack([np.zeros((len(first), offsets.shape[1])), FAINT * unit])
    swept = -np.log(own["time_ms"].to_numpy(dtype=float))[first]
    known = np.concatenate([np.log(own["gain"]), FAINT * swept])
    equations = np.vstack([np.hstack([offsets, unit[rows]]), faint])
    solved = np.linalg.lstsq(equations, known)[0]
    of_contests, of_rows = np.split(np.exp(solved), [offsets.shape[1]])
    return of_rows[rows], 1 / of_contests[contests]


def _level_ms(rows: pd.DataFrame, by: str, groups: Any) -> pd.Series:
    """Of each row the median time of the usual choice by the fastest (:data:`CLOSE`) of its group:
    float64, ms. What stopped early takes no longer than that: it counts where all of them did."""
    stopped = rows["status"] == "slow"
    speeds = rows[by].where(~stopped | stopped.groupby(groups).transform("all"))
    near = speeds * CLOSE >= speeds.groupby(groups).transform("max")
    return (rows["time_ms"] * speeds).where(near).groupby(groups).transform("median")


def not_in_sweep(pairs: pd.DataFrame, times: pd.DataFrame, spec: Spec) -> pd.DataFrame:
    """Rows of pairs that ran, of which the sweep has no time: they judge nothing."""
    ran = in_turn(pairs)
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
        **dict.fromkeys(SAID, np.nan),
        # Changing the type of the column later would store every column apart.
        basis=pd.Series(basis, index=sweep.index, dtype=own["basis"].dtype),
    )
    places = found.index[at]
    for name in JUDGED:
        found.loc[places, name] = own[name].to_numpy()
    return found


def with_judged_limits(pairs: pd.DataFrame, times: pd.DataFrame, spec: Spec) -> pd.DataFrame:
    """Pairs with intervals of ratios that hold another visit, by judged times of their GPU."""
    own = times.loc[~times["blind"], [*_keys(spec), "ratio_error"]]
    known = pairs[_keys(spec)].merge(own, on=_keys(spec), how="left", validate="one_to_one")
    reach, found = np.exp(Z95 * known["ratio_error"].to_numpy()), pairs.copy()
    for name in RATIOS:
        # Nothing differs from itself.
        value, wide = pairs[name], np.where(pairs[name] == 1, 1.0, reach)
        found[f"{name}_low"] = np.fmin(pairs[f"{name}_low"], value / wide)
        found[f"{name}_high"] = np.fmax(pairs[f"{name}_high"], value * wide)
    return found


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
    unsaid = dict.fromkeys((*OF_ROUNDS, "ratio_error"), np.nan)
    limits = {name: rows[name] * factor for name in ("time_low_ms", "time_high_ms")}
    return rows.assign(
        time_ms=rows["sweep_ms"],
        basis=rows["basis"].where(rows["sweep_ms"].isna(), SWEEP),
        error=rows["error"].where(rows["basis"] == SWEEP, whole_errors(rows)),
        **limits,
        **unsaid,
    )


def _keys(spec: Spec) -> list[str]:
    return [*spec.problem_columns, *spec.tunable_columns]
