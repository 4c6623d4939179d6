"""Columns of a row: results of verification, and times."""

from __future__ import annotations

import math
import statistics
from typing import Any

from launchwise.measuring.timing import Repeated
from launchwise.workloads.workload import Finding


def checked_columns(found: Finding) -> dict[str, Any]:
    """Results of verification, as columns of a row."""
    # Neither the journal nor the table takes NaN or infinity; the reason says it.
    max_error = found.max_error if math.isfinite(found.max_error) else None
    return {"max_error": max_error, "tolerance": found.tolerance, **found.more}


def complaint(found: Finding) -> str:
    """Complaint about a result, or ''."""
    if not found.wrong and not math.isfinite(found.max_error):
        return f"the largest error is {found.max_error}"
    return found.wrong


def unverified(timed: dict[str, Any], found: Finding) -> dict[str, Any]:
    """Row of a timed variant that is not verified.

    Its status is ``unverified`` whatever the check found: with a data race, the next launch may
    give another result.
    """
    allowed = f"largest error {found.max_error:.3g} (allowed {found.tolerance:.3g})"
    said = [f"not verified; the first launch: {complaint(found) or allowed}"]
    if "reason" in timed:
        said.append(timed["reason"])
    return timed | {"status": "unverified", "reason": "; ".join(said)}


def timed_row(status: str, repeated: Repeated, l2: str) -> dict[str, Any]:
    """Columns of a row: status, median and repeats in ms, timer, launches per repeat, L2."""
    return {
        "status": status,
        "time_ms": statistics.median(repeated.times_ms),
        "times_ms": repeated.times_ms,
        "timer": repeated.timer,
        "launches_per_repeat": repeated.launches,
        "l2": l2,
    }
