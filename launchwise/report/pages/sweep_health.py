"""Health of the sweeps: a verdict per sweep by stated limits, and what to measure again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from launchwise.exporting.worth import measuring_s
from launchwise.learning.answers import MEASURED as BASIS
from launchwise.measuring.telemetry import THROTTLED, reasons_in
from launchwise.report import wording
from launchwise.report.study_tables import StudyData, remembered
from launchwise.workloads.metrics import UNKNOWN, UNVERIFIED
from launchwise.workloads.parts import Value
from launchwise.workloads.spec import Spec

MOST_HELD_BACK = 0.05
"""Share of timed rows below full clocks (power, heat) above which a sweep is not well."""

MEDIAN_DRIFT, LARGEST_DRIFT = 0.02, 0.10
"""Limits of the reference kernel's drift: median over the rows, and largest."""

MOST_HUNG = 0.05
"""Share of rows that hung or ran out of memory. A failed launch is its configuration's fault."""

MOST_MIXED = 0.05
"""Share of problems whose verified rows come from several cards: their comparison mixes cards."""

Problem = tuple[Value, ...]  # Values of a problem, in the order of the workload's problem columns

HUNG = ("timeout", "out_of_memory")

REPEATED = ("ok", UNVERIFIED)  # Statuses of rows with repeats

NO_TIME = ("failed", "wrong", *HUNG)


@dataclass(frozen=True)
class Health:
    """Size, conditions and failures of one sweep."""

    gpu: str
    workload: str
    rows: int  # with or without a time
    held_back: float  # share of timed rows on a throttled card; NaN if it was not recorded
    median_drift: float  # of the reference kernel, relative to its first time; NaN without one
    largest_drift: float
    slow: int  # rows that were stopped early, with the time of one launch
    no_time: int  # rows; hung and wrong are among them
    hung: int  # or ran out of memory
    wrong: int
    clocks_mhz: tuple[float, float] | None  # lowest and highest of the SMs; None where unknown
    cards: int  # with commits and drivers: none where they were not recorded
    commits: tuple[str, ...]  # in the order of the rows
    drivers: tuple[str, ...]
    first: str  # day of the first row
    last: str
    problems: int
    # Beyond a limit that the whole sweep exceeds, the furthest first; all where the driver is old.
    worst_problems: tuple[Problem, ...] = ()
    mixed: float = 0.0  # share of problems whose verified rows come from several cards
    newest_driver: str = ""  # of the report, if its major version is above all of these
    # Rows that another card measured again, by the same timer; how far apart, median and of 95 %.
    repeats: tuple[int, float, float] | None = None
    minutes: float | None = None  # that GPUs measured it; None where no row says when
    resting: tuple[int, int] = (0, 0)  # answers that rest on rows in doubt, and measured ones

    @property
    def is_known(self) -> bool:
        """Whether the sweep recorded its conditions."""
        return not (np.isnan(self.held_back) and np.isnan(self.median_drift))

    @property
    def shares(self) -> dict[str, float]:
        """Its figures relative to their limits, which are 1; NaN where it is unknown."""
        return {
            "held back": self.held_back / MOST_HELD_BACK,
            "median drift": self.median_drift / MEDIAN_DRIFT,
            "largest drift": self.largest_drift / LARGEST_DRIFT,
            "mixed": self.mixed / MOST_MIXED,
            "hung": self.hung / (MOST_HUNG * max(self.rows, 1)),
        }

    @property
    def complaints(self) -> list[str]:
        """Limits that the sweep exceeds, in words."""
        found, over = [], {name for name, share in self.shares.items() if share > 1}
        if "held back" in over:
            found.append(f"{wording.percent(self.held_back, 0)} % of the rows throttled")
        if over & {"median drift", "largest drift"}:
            found.append(
                f"drift of {wording.percent(self.median_drift)} % (median), "
                f"{wording.percent(self.largest_drift)} % (largest)"
            )
        if "hung" in over:
            share = wording.percent(self.hung / self.rows)
            found.append(f"{share} % of the rows hung or ran out of memory")
        if self.wrong:
            found.append(f"{wording.plural(self.wrong, 'wrong result')}")
        if "mixed" in over:
            share = wording.percent(self.mixed, 0)
            found.append(f"rows of several cards at {share} % of the problems")
        if self.newest_driver:
            found.append(f"driver {', '.join(self.drivers)}, others have {self.newest_driver}")
        return found

    @property
    def severity(self) -> float:
        """The largest of its figures relative to its limit; 0 if unknown."""
        return float(np.nanmax([*self.shares.values(), 0.0]))

    @property
    def verdict(self) -> str:
        """``sound``, ``doubtful``, or ``unknown`` if the sweep did not record its conditions."""
        if self.complaints:
            return "doubtful"
        return "sound" if self.is_known else "unknown"


def health_of(gpu: str, sweep: pd.DataFrame, spec: Spec) -> Health:
    """Conditions of a sweep (:func:`launchwise.tables.measurements.measurement_schema`)."""
    read = ["throttle", "sm_clock_mhz"]
    timed = sweep.loc[sweep["status"].isin(REPEATED), read]
    held = held_back(timed)
    # Of rows that were stopped early, too: a disturbed first launch decides that.
    drift = (sweep["control_ratio"] - 1).abs().dropna()
    clocks = timed["sm_clock_mhz"].dropna()
    ended = sweep["status"].value_counts()
    found = Health(
        gpu=gpu,
        workload=spec.workload,
        rows=len(sweep),
        held_back=float(held.mean()),
        median_drift=float(drift.median()),
        largest_drift=float(drift.max()),
        slow=int(ended.get("slow", 0)),
        no_time=int(sum(ended.get(name, 0) for name in NO_TIME)),
        hung=int(sum(ended.get(name, 0) for name in HUNG)),
        wrong=int(ended.get("wrong", 0)),
        clocks_mhz=(float(clocks.min()), float(clocks.max())) if len(clocks) else None,
        # Imported sweeps have neither.
        cards=len({*sweep["card"].unique()} - {""}),
        commits=tuple(str(each) for each in sweep["commit"].unique() if each),
        drivers=tuple(sorted(map(str, sweep["driver"].unique()))),
        first=str(sweep["measured_at"].min())[:10],
        last=str(sweep["measured_at"].max())[:10],
        problems=len(sweep[spec.problem_columns].drop_duplicates()),
        minutes=gpu_minutes(sweep),
        mixed=float((_cards(sweep, spec) > 1).mean()),
    )
    return replace(found, worst_problems=_worst(found, sweep, spec))


def gpu_minutes(rows: pd.DataFrame) -> float | None:
    """Time that cards took to measure rows, of all cards together; None where none says when."""
    times = [measuring_s(own.tolist()) for _, own in rows.groupby("card")["measured_at"]]
    known = [each for each in times if each is not None]
    return sum(known) / 60 if known else None


def _cards(sweep: pd.DataFrame, spec: Spec) -> pd.Series:
    """Number of cards by problem behind verified rows: others are no answer and have no rank."""
    return sweep[sweep["status"] == "ok"].groupby(spec.problem_columns)["card"].nunique()


def _worst(found: Health, sweep: pd.DataFrame, spec: Spec) -> tuple[Problem, ...]:
    """Problems beyond a limit that the whole sweep exceeds, those furthest beyond it first."""
    timed = sweep.loc[sweep["status"].isin(REPEATED), ["throttle"]]
    drift = (sweep["control_ratio"] - 1).abs()

    def by_problem(values: pd.Series) -> Any:
        return values.groupby([sweep.loc[values.index, name] for name in spec.problem_columns])

    # Each beyond its limit above 1.
    made: dict[str, Callable[[], pd.Series]] = {
        "held back": lambda: by_problem(held_back(timed)).mean() / MOST_HELD_BACK,
        "median drift": lambda: by_problem(drift).median() / MEDIAN_DRIFT,
        "largest drift": lambda: by_problem(drift).max() / LARGEST_DRIFT,
        "mixed": lambda: _cards(sweep, spec).astype(float),
        "hung": lambda: by_problem(sweep["status"].isin(HUNG)).mean() / MOST_HUNG,
    }
    parts = [made[name]() for name, share in found.shares.items() if share > 1]
    if found.wrong:
        parts.append(by_problem(sweep["status"] == "wrong").sum() * 2.0)
    if not parts:
        return ()
    most = pd.concat(parts, axis=1).max(axis=1).sort_index()
    beyond = most[most > 1].sort_values(ascending=False, kind="stable")
    return tuple(
        tuple(
            value if isinstance(value, str) else int(value)
            for value in (key if isinstance(key, tuple) else (key,))
        )
        for key in beyond.index
    )


def held_back(rows: pd.DataFrame) -> pd.Series:
    """1 for rows on a throttled card, 0 for others, NaN where it is unknown."""
    shares = {
        throttle: np.nan if throttle == UNKNOWN else float(bool(THROTTLED & reasons_in(throttle)))
        for throttle in rows["throttle"].dropna().unique()
    }
    return rows["throttle"].map(shares).astype(float)


@remembered
def _of_sweep(study: StudyData, gpu: str) -> Health:
    return health_of(gpu, study.sweeps[gpu], study.spec)


def _repeated(study: StudyData, gpu: str) -> pd.Series:
    """How far rows of a sweep lie from those in pairs on another card, by the same timer."""
    rows, keys = study.sweeps[gpu], [*study.spec.key_columns, "status", "timer"]
    first_ms = "sweep_ms" if "sweep_ms" in rows else "time_ms"
    there = rows.loc[rows["status"] == "ok", [*keys, "card", first_ms]].set_axis(
        [*keys, "first_card", "first_ms"], axis=1
    )
    both = study.pairs[gpu].merge(there, on=keys)
    both = both[both["card"] != both["first_card"]]
    ratio = both["time_ms"] / both["first_ms"]
    return ratio.where(ratio > 1, 1 / ratio) - 1


def _resting(study: StudyData, each: Health) -> tuple[int, int]:
    """Measured answers on rows in doubt, but for those that ran in turn with the usual choice; and
    all measured ones."""
    own = [one for one in study.answers if one["gpu"] == each.gpu and one["basis"] == BASIS]
    alone = [one for one in own if not one["paired"] or one["configuration"] == one["usual"]]
    worst = {tuple(map(str, problem)) for problem in each.worst_problems}
    keys = [[str(one["problem"][name]) for name in study.problem_columns] for one in alone]
    return sum(tuple(key) in worst for key in keys), len(own)


def behind(each: Health, studies: Sequence[StudyData]) -> list[StudyData]:
    """Studies that rest on a sweep."""
    of = [study for study in studies if study.spec.workload == each.workload]
    return [study for study in of if each.gpu in study.sweeps]


def _with_answers(each: Health, studies: Sequence[StudyData]) -> Health:
    own = behind(each, studies)
    apart = pd.concat(
        [_repeated(study, each.gpu) for study in own if each.gpu in study.pairs]
        or [pd.Series(dtype=float)]
    )
    known = (len(apart), float(apart.median()), float(apart.quantile(0.95)))
    counts = [_resting(study, each) for study in own]
    resting = (sum(one for one, _ in counts), sum(every for _, every in counts))
    return replace(each, repeats=known if len(apart) else None, resting=resting)


def of_studies(studies: Sequence[StudyData]) -> list[Health]:
    """Every sweep once, in the order of the studies."""
    found: dict[tuple[str, str], Health] = {}
    for study in studies:
        for gpu in study.sweeps:
            if (gpu, study.spec.workload) not in found:
                found[gpu, study.spec.workload] = _of_sweep(study, gpu)
    newest = max((one for each in found.values() for one in each.drivers), key=_major, default="")
    of = {(gpu, study.spec.workload): study for study in studies for gpu in study.sweeps}
    judged = [
        _outdated(each, of[key], newest)
        if 0 < max(map(_major, each.drivers), default=0) < _major(newest)
        else each
        for key, each in found.items()
    ]
    return [_with_answers(each, studies) for each in judged]


def _outdated(each: Health, study: StudyData, newest: str) -> Health:
    """A sweep of an old driver, all of whose problems must be measured again."""
    sweep, columns = study.sweeps[each.gpu], study.spec.problem_columns
    every = sweep[columns].itertuples(index=False, name=None)
    return replace(
        each,
        newest_driver=newest,
        worst_problems=tuple(dict.fromkeys([*each.worst_problems, *every])),
    )


def _major(driver: str) -> int:
    first = driver.partition(".")[0]
    return int(first) if first.isdecimal() else 0


def worst_first(each: Health) -> tuple[bool, bool, float]:
    """Key of an order: wrong results first, then by the limit that is exceeded most."""
    return (not each.complaints, not each.wrong, -each.severity)
