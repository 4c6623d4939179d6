"""Conditions of each sweep, by the limits that the health page states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from launchwise.workloads.spec import Spec
from recomputing.material import Material, records

MOST_THROTTLED, MEDIAN_DRIFT, LARGEST_DRIFT, MOST_HUNG, MOST_MIXED = 0.05, 0.02, 0.10, 0.05, 0.05
"""Limits of a sound sweep, as the page states them."""

THROTTLED = {"sw_power_cap", "hw_slowdown", "sw_thermal", "hw_thermal", "hw_power_brake"}
"""Reasons of NVML for lower clocks that are power or heat."""

REPEATED = ("ok", "unverified")  # Statuses of rows that were timed repeatedly
HUNG = ("timeout", "out_of_memory")


def sweeps(materials: Sequence[Material]) -> list[Sweep]:
    """Every sweep once, in the order of the studies."""
    found: dict[tuple[str, str], Sweep] = {}
    for one in materials:
        for gpu in one.gpus:
            workload = one.settings.workload
            path = one.results / f"sweeps/{gpu}/{workload}.parquet"
            own = found.setdefault((workload, gpu), Sweep(workload, gpu, one.spec, path))
            own.studies.append(one.name)
    drivers = [name for own in found.values() for name in own.drivers]
    newest = max(map(major, drivers), default=0)
    for own in found.values():
        if 0 < max(map(major, own.drivers), default=0) < newest:
            own.newest = next(name for name in drivers if major(name) == newest)
    return list(found.values())


def major(driver: str) -> int:
    """Major version of a driver; 0 where it has none."""
    first = driver.partition(".")[0]
    return int(first) if first.isdecimal() else 0


def _throttled(reason: Any) -> float:
    """1 for a row that power or heat throttled, 0 for another, NaN where unknown."""
    if pd.isna(reason) or reason == "unknown":
        return float("nan")
    return float(bool(THROTTLED & {*reason.split("+")}))


@dataclass
class Sweep:
    """A workload's measurements on a GPU. ``studies`` use it; ``newest`` is a driver of the report
    with a higher major version than any of its own, or nothing."""

    workload: str
    gpu: str
    spec: Spec
    path: Path
    studies: list[str] = field(default_factory=list)
    newest: str = ""

    @cached_property
    def rows(self) -> pd.DataFrame:
        """Every row, without its repeats."""
        return pd.read_parquet(self.path).drop(columns=["times_ms"])

    @cached_property
    def timed(self) -> pd.DataFrame:
        """Rows that were timed repeatedly; ``throttled`` as :func:`_throttled`."""
        timed = self.rows[self.rows["status"].isin(REPEATED)]
        return timed.assign(throttled=timed["throttle"].map(_throttled).astype(float))

    @cached_property
    def drivers(self) -> list[str]:
        """Versions, sorted."""
        return sorted(map(str, self.rows["driver"].unique()))

    def named(self, column: str) -> list[str]:
        """Values that rows have of a text, without the empty one."""
        return [str(value) for value in self.rows[column].unique() if value != ""]

    def count(self, *statuses: str) -> int:
        """Rows of some statuses."""
        return int(self.rows["status"].isin(statuses).sum())

    @property
    def throttled(self) -> float:
        """Share of timed rows that power or heat throttled; NaN where unknown."""
        return float(self.timed["throttled"].mean())

    @property
    def drifts(self) -> tuple[float, float]:
        """Median and largest |reference time / first reference time - 1|."""
        drift = (self.rows["control_ratio"] - 1).abs()
        return float(drift.median()), float(drift.max())

    @cached_property
    def mixed(self) -> float:
        """Share of problems whose verified rows come from several cards."""
        verified = self.rows[self.rows["status"] == "ok"]
        cards = verified.groupby(self.spec.problem_columns)["card"].nunique()
        return float((cards > 1).mean()) if len(cards) else 0.0

    @cached_property
    def days(self) -> list[str]:
        """First and last day."""
        stamps = self.rows["measured_at"].str[:10]
        return [str(stamps.min()), str(stamps.max())]

    def _multiples(self, rows: pd.DataFrame, timed: pd.DataFrame) -> dict[str, float]:
        """Figures of some rows over their limits; NaN where unknown."""
        drift = (rows["control_ratio"] - 1).abs()
        return {
            "throttled": timed["throttled"].mean() / MOST_THROTTLED,
            "median": drift.median() / MEDIAN_DRIFT,
            "largest": drift.max() / LARGEST_DRIFT,
            "hung": rows["status"].isin(HUNG).mean() / MOST_HUNG,
            "wrong": 2.0 * (rows["status"] == "wrong").sum(),
        }

    @cached_property
    def multiples(self) -> dict[str, float]:
        """The same of all rows, and of the problems with verified rows of several cards."""
        return {**self._multiples(self.rows, self.timed), "mixed": self.mixed / MOST_MIXED}

    @cached_property
    def worst(self) -> list[str]:
        """Problems beyond a limit that the sweep exceeds, most affected first. All of them where
        another sweep has a newer driver."""
        exceeded = [name for name, multiple in self.multiples.items() if multiple > 1]
        over = []
        for _, own in self.rows.groupby(self.spec.problem_columns):
            timed = self.timed.loc[own.index[own["status"].isin(REPEATED)]]
            cards = own.loc[own["status"] == "ok", "card"].nunique()
            multiples = {**self._multiples(own, timed), "mixed": float(cards)}
            known = [multiples[name] for name in exceeded if not np.isnan(multiples[name])]
            most = max(known, default=0.0)
            if most > 1 or self.newest:
                over.append((most if most > 1 else 0.0, self.problem_words(records(own)[0])))
        return [words for _, words in sorted(over, key=lambda each: -each[0])]

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
    def complaints(self) -> list[str]:
        """Limits that it exceeds, in the page's words."""
        over = {name for name, multiple in self.multiples.items() if multiple > 1}
        median, largest = self.drifts
        wrong, hung = self.count("wrong"), 100 * self.count(*HUNG) / max(1, len(self.rows))
        said = {
            f"{100 * self.throttled:.0f} % of the rows throttled": "throttled" in over,
            f"drift of {100 * median:.1f} % (median), {100 * largest:.1f} % (largest)": bool(
                {"median", "largest"} & over
            ),
            f"{hung:.1f} % of the rows hung or ran out of memory": "hung" in over,
            f"{wrong} wrong result{'' if wrong == 1 else 's'}": wrong > 0,
            f"rows of several cards at {100 * self.mixed:.0f} % of the problems": "mixed" in over,
            f"driver {', '.join(self.drivers)}, others have {self.newest}": bool(self.newest),
        }
        return [words for words, is_so in said.items() if is_so]

    @property
    def verdict(self) -> str:
        """Doubtful with a complaint, unknown where neither throttling nor drift was recorded."""
        if self.complaints:
            return "doubtful"
        known = not (np.isnan(self.throttled) and np.isnan(self.drifts[0]))
        return "sound" if known else "unknown"
