"""Conditions of each sweep, by the limits that the health page states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from launchwise.tables.files import read_facts
from launchwise.workloads.spec import Spec
from recomputing.material import Material, records

MOST_THROTTLED, MEDIAN_DRIFT, LARGEST_DRIFT, MOST_HUNG, MOST_MIXED = 0.05, 0.02, 0.10, 0.05, 0.05
"""Limits of a sound sweep, as the page states them."""

THROTTLED = {"sw_power_cap", "hw_slowdown", "sw_thermal", "hw_thermal", "hw_power_brake"}
"""Reasons of NVML for lower clocks that are power or heat."""

LONGEST_ROW_S = 120.0
"""More between two rows is a pause between sessions."""


def sweeps(materials: Sequence[Material]) -> list[Sweep]:
    """Every sweep once, in the order of the studies."""
    found: dict[tuple[str, str], Sweep] = {}
    for one in materials:
        for gpu in one.gpus:
            workload = one.settings.workload
            path = one.results / f"sweeps/{gpu}/{workload}.parquet"
            own = found.setdefault((workload, gpu), Sweep(workload, gpu, one.spec, path))
            own.studies.append(one.name)
    newest = max((own.major for own in found.values()), default=0)
    drivers = [name for own in found.values() for name in own.drivers]
    for own in found.values():
        if 0 < own.major < newest:
            own.newest = next(name for name in drivers if major(name) == newest)
    return list(found.values())


def major(driver: str) -> int:
    """Major version of a driver; 0 where it has none."""
    first = driver.partition(".")[0]
    return int(first) if first.isdecimal() else 0


def _or_least(value: float) -> float:
    return -1.0 if np.isnan(value) else value


@dataclass
class Sweep:
    """A workload's measurements on a GPU.

    Attributes
    ----------
    studies
        Names of those that use it.
    newest
        Driver of the report with a higher major version than any of its own.
    """

    workload: str
    gpu: str
    spec: Spec
    path: Path
    studies: list[str] = field(default_factory=list)
    newest: str = ""

    @cached_property
    def rows(self) -> pd.DataFrame:
        """Every row, without its repeats."""
        rows = pd.read_parquet(self.path)
        return rows.drop(columns=["times_ms"])

    @cached_property
    def timed(self) -> pd.DataFrame:
        """Rows that were timed repeatedly."""
        return self.rows[self.rows["status"] == "ok"]

    @cached_property
    def facts(self) -> dict[str, Any]:
        """Facts in the file's metadata."""
        return read_facts(self.path)

    @cached_property
    def drivers(self) -> list[str]:
        """Versions, sorted."""
        return sorted(map(str, self.rows["driver"].unique()))

    @property
    def major(self) -> int:
        """Its newest driver's major version."""
        return max(map(major, self.drivers), default=0)

    def named(self, column: str) -> list[str]:
        """Values that rows have of a text, without the empty one."""
        return [str(value) for value in self.rows[column].unique() if value != ""]

    def count(self, *statuses: str) -> int:
        """Rows of some statuses."""
        return int(self.rows["status"].isin(statuses).sum())

    @cached_property
    def held_back(self) -> pd.Series:
        """1 for timed rows that power or heat throttled, 0 for others, NaN where unknown."""

        def held(reason: Any) -> float:
            if pd.isna(reason) or reason == "unknown":
                return float("nan")
            return float(bool(THROTTLED & {*reason.split("+")}))

        return self.timed["throttle"].map(held).astype(float)

    @cached_property
    def throttled(self) -> float:
        """Share of timed rows that power or heat throttled; NaN where unknown."""
        return float(self.held_back.mean())

    @cached_property
    def drifts(self) -> tuple[float, float]:
        """Median and largest |reference time / first reference time - 1|."""
        drift = (self.timed["control_ratio"] - 1).abs()
        return float(drift.median()), float(drift.max())

    @cached_property
    def mixed(self) -> float:
        """Share of problems whose timed rows come from several cards."""
        cards = self.timed.groupby(self.spec.problem_columns)["card"].nunique()
        return float((cards > 1).mean()) if len(cards) else 0.0

    @cached_property
    def days(self) -> list[str]:
        """First and last day."""
        stamps = self.rows["measured_at"].str[:10]
        return [str(stamps.min()), str(stamps.max())]

    @cached_property
    def worst(self) -> list[str]:
        """Problems beyond a limit that the sweep exceeds, most affected first.

        All of them where another sweep has a newer driver.
        """
        columns = self.spec.problem_columns
        over = []
        for _, own in self.rows.groupby(columns):
            timed = own[own["status"] == "ok"]
            drift = (timed["control_ratio"] - 1).abs()
            hung = own["status"].isin(["timeout", "out_of_memory"])
            multiples = {
                "throttled": self.held_back.loc[timed.index].mean() / MOST_THROTTLED,
                "median": drift.median() / MEDIAN_DRIFT,
                "largest": drift.max() / LARGEST_DRIFT,
                "hung": hung.mean() / MOST_HUNG,
                "wrong": 2.0 * (own["status"] == "wrong").sum(),
                "mixed": float(timed["card"].nunique()),
            }
            most = max((multiples[name] for name in self.exceeded), default=0.0, key=_or_least)
            if most > 1 or self.newest:
                over.append((most if most > 1 else 0.0, self.problem_words(records(own)[0])))
        return [words for _, words in sorted(over, key=lambda each: -each[0])]

    @cached_property
    def exceeded(self) -> list[str]:
        """Which limits the whole sweep exceeds."""
        median, largest = self.drifts
        beyond = {
            "throttled": self.throttled > MOST_THROTTLED,
            "median": median > MEDIAN_DRIFT,
            "largest": largest > LARGEST_DRIFT,
            "hung": self.count("timeout", "out_of_memory") > MOST_HUNG * len(self.rows),
            "wrong": self.count("wrong") > 0,
            "mixed": self.mixed > MOST_MIXED,
        }
        return [name for name, is_beyond in beyond.items() if is_beyond]

    @cached_property
    def problems(self) -> int:
        """How many it measured."""
        return len(self.rows[self.spec.problem_columns].drop_duplicates())

    def problem_words(self, row: dict[str, Any]) -> str:
        """A problem as pages name it: numbers with their name."""
        return ", ".join(
            row[name] if isinstance(row[name], str) else f"{name}={row[name]}"
            for name in self.spec.problem_columns
        )

    @cached_property
    def repair_s(self) -> float:
        """Time from each row's predecessor to it, over the rows of :attr:`worst`, or all; s.

        NaN where time stamps do not tell.
        """
        ordered = self.rows.sort_values("measured_at", kind="stable")
        stamps = pd.to_datetime(ordered["measured_at"], errors="coerce", utc=True)
        taken = stamps.diff().dt.total_seconds().clip(lower=0.0)
        kept = (taken <= LONGEST_ROW_S).to_numpy()
        if not taken[kept].sum():
            return float("nan")
        if self.worst and not self.newest:
            problems = records(ordered[self.spec.problem_columns])
            worst = set(self.worst)
            kept = kept & np.array([self.problem_words(row) in worst for row in problems])
        return float(taken[kept].sum())

    @property
    def complaints(self) -> list[str]:
        """Limits that it exceeds, in the page's words."""
        median, largest = self.drifts
        hung, wrong = self.count("timeout", "out_of_memory"), self.count("wrong")
        found = []
        if self.throttled > MOST_THROTTLED:
            found.append(f"{100 * self.throttled:.0f} % of the rows throttled")
        if median > MEDIAN_DRIFT or largest > LARGEST_DRIFT:
            found.append(f"drift of {100 * median:.1f} % (median), {100 * largest:.1f} % (largest)")
        if hung > MOST_HUNG * len(self.rows):
            share = 100 * hung / len(self.rows)
            found.append(f"{share:.1f} % of the rows hung or ran out of memory")
        if wrong:
            found.append(f"{wrong} wrong result{'' if wrong == 1 else 's'}")
        if self.mixed > MOST_MIXED:
            found.append(f"{100 * self.mixed:.0f} % of the problems with rows of several cards")
        if self.newest:
            found.append(f"driver {', '.join(self.drivers)}, others have {self.newest}")
        return found

    @property
    def verdict(self) -> str:
        """Doubtful with a complaint, unknown where neither throttling nor drift was recorded."""
        if self.complaints:
            return "doubtful"
        known = not (np.isnan(self.throttled) and np.isnan(self.drifts[0]))
        return "sound" if known else "unknown"

    @property
    def order(self) -> tuple[bool, bool, float]:
        """The doubtful first, of these wrong results, then the figure largest over its limit."""
        median, largest = self.drifts
        hung = self.count("timeout", "out_of_memory")
        shares = [
            self.throttled / MOST_THROTTLED,
            median / MEDIAN_DRIFT,
            largest / LARGEST_DRIFT,
            self.mixed / MOST_MIXED,
            hung / (MOST_HUNG * len(self.rows)) if len(self.rows) else 0.0,
            0.0,
        ]
        return not self.complaints, not self.count("wrong"), -float(np.nanmax(shares))
