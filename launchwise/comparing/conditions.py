"""Other differences between two sweeps: cards, versions, clocks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from launchwise.workloads.metrics import UNKNOWN

LABELS = ("card", "driver", "toolkit", "backend", "commit", "timer", "l2")
"""Columns with a text that is compared as it is."""

CLOCK_TOLERANCE = 0.01
"""Relative difference of SM clocks that counts: their readings jitter by a few MHz."""


@dataclass(frozen=True)
class Difference:
    """A measuring condition that differs between the sides."""

    # One of LABELS, ``sm_clock_mhz`` or ``throttle``.
    what: str
    # Labels, sorted; the median clock, MHz; reasons for throttling, sorted.
    old: list[str]
    new: list[str]
    # Matched rows in which both differ.
    rows: int
    # Matched rows where both are known.
    of: int


def differences(rows: pd.DataFrame) -> list[Difference]:
    """Measuring conditions of the common rows that differ between the sides.

    Parameters
    ----------
    rows
        From :func:`launchwise.comparing.rows.matched`.
    """
    both = rows[rows["old_status"].notna() & rows["new_status"].notna()]
    found = [_label(both, name) for name in LABELS]
    found += [_clocks(both), _throttling(both)]
    return [each for each in found if each.rows]


def remeasured(rows: pd.DataFrame) -> np.ndarray:
    """Whether a row is in both and its measurements are two: bool, shape (rows,).

    An extension carries rows over: those are the same measurement. Imported rows without a time
    stamp count as two.
    """
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
