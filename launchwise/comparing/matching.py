"""Match the rows of two sweeps by key: ratios, intervals, outcomes, and how they were measured."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from launchwise.workloads.metrics import MEASURED, STATUSES, TIMED, UNKNOWN
from launchwise.workloads.spec import Spec

LEAST_REPEATS = 3  # Fewest repeats on either side for an interval: two may agree by chance


def ratio_intervals(
    old: Sequence[np.ndarray], new: Sequence[np.ndarray], confidence: float
) -> tuple[np.ndarray, np.ndarray]:
    """Limits of new / old for each row.

    Student's interval of two samples, of the logarithms of the repeats. Its pooled variance is what
    three repeats allow: a rank test of 3 against 3 repeats never reaches 95 %, and Welch's interval
    is too narrow for 3 repeats against 25.

    ``old``, ``new``: repeats of each row, ms (> 0), of any number. ``confidence``: between 0 and 1.
    Returns float64, shape (rows,); NaN where a side has fewer than :data:`LEAST_REPEATS`.
    """
    sizes = np.array([[len(one), len(other)] for one, other in zip(old, new, strict=True)])
    low, high = np.full(len(sizes), np.nan), np.full(len(sizes), np.nan)
    if not len(sizes):
        return low, high
    logs = [_flat_logs(side) for side in (old, new)]
    # One call for all rows with the same numbers of repeats: scipy has no ragged samples.
    for pair in np.unique(sizes[sizes.min(axis=1) >= LEAST_REPEATS], axis=0):
        rows = np.flatnonzero((sizes == pair).all(axis=1))
        before, after = (
            values[starts[rows, None] + np.arange(count)]
            for (values, starts), count in zip(logs, pair, strict=True)
        )
        with warnings.catch_warnings():
            # Equal repeats have no spread, and their interval no width.
            warnings.simplefilter("ignore", RuntimeWarning)
            test = stats.ttest_ind(after, before, axis=1)
            limits = test.confidence_interval(confidence)
        low[rows], high[rows] = np.exp(limits.low), np.exp(limits.high)
    return low, high


def _flat_logs(side: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Logarithms of all repeats one after another, and where those of each row begin."""
    counts = np.array([len(times) for times in side])
    flat = np.concatenate([np.asarray(times, dtype=float) for times in side])
    return np.log(flat), np.cumsum(counts) - counts


@dataclass(frozen=True)
class Rule:
    """When times differ."""

    # Least relative difference of medians that counts, such as 0.02. Both ways alike: a row is
    # faster below 1 / (1 + threshold).
    threshold: float = 0.02
    confidence: float = 0.99  # of the intervals of ratios, such as 0.99

    def differ(self, ratios: np.ndarray) -> np.ndarray:
        """Whether ratios of times are beyond the threshold: bool; False for NaN."""
        with np.errstate(invalid="ignore"):
            return np.asarray(np.abs(np.log(ratios)) > math.log1p(self.threshold))


OK = "ok"  # Status of rows with several launches and a verified result

OUTCOMES: dict[str, str] = {
    "same": "medians within the threshold, or the same failure",
    "slower": "median longer by more than the threshold, and the interval above 1",
    "faster": "median shorter by more than the threshold, and the interval below 1",
    "noise": "medians differ by more than the threshold, but the interval holds 1",
    "unproven": (
        f"medians differ by more than the threshold, with fewer than {LEAST_REPEATS} repeats"
    ),
    "stopped": "ok before, now stopped early: longer than each launch before",
    "broken": "had a verified time, or a time, and has none now",
    "mended": "had no time, or no verified one, and has one now",
    "changed": "another status, neither broken nor mended",
    "new": "only in NEW",
    "gone": "only in OLD",
}
"""Outcome of a row to what it means."""

COMPARED = ("status", "time_ms", "times_ms", "first_ms", "reason")
CONDITIONS = (
    *("sm_clock_mhz", "throttle", "card", "driver", "toolkit", "backend", "timer", "l2"),
    *("commit", "measured_at"),
)
"""Columns that say how a row was measured."""

_SIDES = ("old", "new")
_WORTH = {status: 2 if status in MEASURED else int(status in TIMED) for status in STATUSES}
"""Status to 2 for a verified time, 1 for a time, 0 for none."""


def matched(old: pd.DataFrame, new: pd.DataFrame, spec: Spec, rule: Rule) -> pd.DataFrame:
    """Rows of two sweeps of one workload, one per problem and configuration of either.

    ``old``, ``new``: as :func:`launchwise.tables.measurements.measurement_schema` declares them, of
    one GPU each. Returns, sorted by key, the columns of problem and configuration; :data:`COMPARED`
    and :data:`CONDITIONS` with ``old_`` or ``new_`` before them, empty on a side without the row;
    ``ratio`` (new / old ``time_ms``) with ``ratio_low`` and ``ratio_high``; ``outcome``
    (:data:`OUTCOMES`).
    """
    keys = [*spec.problem_columns, *spec.tunable_columns]
    sides = [
        table[[*keys, *COMPARED, *CONDITIONS]].rename(
            columns={name: f"{side}_{name}" for name in (*COMPARED, *CONDITIONS)}
        )
        for side, table in zip(_SIDES, (old, new), strict=True)
    ]
    rows = sides[0].merge(sides[1], how="outer", on=keys, indicator="found")
    rows = rows.sort_values(keys, ignore_index=True)
    rows["ratio"] = rows["new_time_ms"] / rows["old_time_ms"]
    limits = np.full((2, len(rows)), np.nan)
    # Rows within the threshold get an interval, too: it says how sure that is.
    timed = rows["ratio"].notna().to_numpy()
    old_times, new_times = (rows.loc[timed, f"{side}_times_ms"].tolist() for side in _SIDES)
    limits[:, timed] = ratio_intervals(old_times, new_times, rule.confidence)
    rows["ratio_low"], rows["ratio_high"] = limits
    rows["outcome"] = _outcomes(rows, rule)
    return rows.drop(columns="found")


def _outcomes(rows: pd.DataFrame, rule: Rule) -> np.ndarray:
    old, new = rows["old_status"], rows["new_status"]
    before, after = old.map(_WORTH).to_numpy(float), new.map(_WORTH).to_numpy(float)
    ratio = rows["ratio"].to_numpy()
    same_status = (old == new).to_numpy(bool)
    apart = rule.differ(ratio)
    proven = rows["ratio_low"].notna().to_numpy()
    slower = (ratio > 1) & (rows["ratio_low"] > 1).to_numpy()
    faster = (ratio < 1) & (rows["ratio_high"] < 1).to_numpy()
    cases = [
        (rows["found"] == "right_only", "new"),
        (rows["found"] == "left_only", "gone"),
        (after < before, "broken"),
        (after > before, "mended"),
        (_stopped(rows, rule), "stopped"),
        (~same_status, "changed"),
        (~apart, "same"),
        (~proven, "unproven"),
        (slower, "slower"),
        (faster, "faster"),
    ]
    masks = [np.asarray(mask, dtype=bool) for mask, _ in cases]
    return np.select(masks, [outcome for _, outcome in cases], default="noise")


def _stopped(rows: pd.DataFrame, rule: Rule) -> np.ndarray:
    """Whether a row that was timed stopped early now, with a first launch longer than any before.
    Without that, a row near the limit of stopping would count as slower by chance."""
    found = np.array((rows["old_status"] == OK) & (rows["new_status"] == "slow"), dtype=bool)
    stopped = rows[found]
    longest = np.array([max(times) for times in stopped["old_times_ms"]], dtype=float)
    longest = np.fmax(longest, stopped["old_first_ms"].to_numpy(float))
    found[found] = stopped["new_time_ms"].to_numpy() > longest * (1 + rule.threshold)
    return found


LABELS = ("card", "driver", "toolkit", "backend", "commit", "timer", "l2")
"""Columns with a text that is compared as it is."""

CLOCK_TOLERANCE = 0.01
"""Relative difference of SM clocks that counts: their readings jitter by a few MHz."""


@dataclass(frozen=True)
class Difference:
    """A measuring condition that differs between the sides."""

    what: str  # one of LABELS, `sm_clock_mhz` or `throttle`
    # Labels, sorted; the median clock, MHz; reasons for throttling, sorted.
    old: list[str]
    new: list[str]
    rows: int  # matched rows in which both differ
    of: int  # matched rows where both are known


def differences(rows: pd.DataFrame) -> list[Difference]:
    """Measuring conditions of the common rows that differ between the sides.

    ``rows``: from :func:`launchwise.comparing.matching.matched`.
    """
    both = rows[rows["old_status"].notna() & rows["new_status"].notna()]
    found = [_label(both, name) for name in LABELS]
    found += [_clocks(both), _throttling(both)]
    return [each for each in found if each.rows]


def remeasured(rows: pd.DataFrame) -> np.ndarray:
    """Whether a row is in both and its measurements are two: bool, shape (rows,). An extension
    carries rows over: those are the same measurement. Imported rows without a time stamp count as
    two."""
    both = rows["old_status"].notna() & rows["new_status"].notna()
    same_time = rows["old_time_ms"].eq(rows["new_time_ms"]) | (
        rows["old_time_ms"].isna() & rows["new_time_ms"].isna()
    )
    stamp = rows["old_measured_at"]
    carried = same_time & stamp.eq(rows["new_measured_at"]) & stamp.ne("")
    return (both & ~carried).to_numpy(bool)


def _label(both: pd.DataFrame, name: str) -> Difference:
    old, new = both[f"old_{name}"], both[f"new_{name}"]
    # Facts that an imported sweep lacks are empty.
    known = ((old != "") & (new != "")).to_numpy(bool)
    old, new = old[known], new[known]
    return Difference(name, _named(old), _named(new), int((old != new).sum()), len(old))


def _clocks(both: pd.DataFrame) -> Difference:
    pair = both[["old_sm_clock_mhz", "new_sm_clock_mhz"]].to_numpy(dtype=float)
    pair = pair[np.isfinite(pair).all(axis=1) & (pair > 0).all(axis=1)]
    apart = np.abs(pair[:, 1] - pair[:, 0]) > CLOCK_TOLERANCE * pair[:, 0]
    old, new = ([f"{median:.0f}"] for median in np.median(pair, axis=0)) if len(pair) else ([], [])
    return Difference("sm_clock_mhz", old, new, int(apart.sum()), len(pair))


def _throttling(both: pd.DataFrame) -> Difference:
    old, new = both["old_throttle"], both["new_throttle"]
    known = ((old != UNKNOWN) & (new != UNKNOWN)).to_numpy(bool)
    old, new = old[known], new[known]
    rows = int((old != new).sum())
    return Difference("throttle", _reasons(old), _reasons(new), rows, len(old))


def _named(column: Iterable[str]) -> list[str]:
    return sorted({str(value) for value in column})


def _reasons(column: Iterable[str]) -> list[str]:
    """Reasons for throttling, each alone."""
    return sorted({reason for value in _named(column) for reason in value.split("+") if reason})
