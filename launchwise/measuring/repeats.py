"""Rows: repeats of one launch with the columns that they fill, complete rows, and a table of them.

pandas is loaded for the table alone: the supervisor of a sweep starts without it.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from launchwise.base.errors import UserError
from launchwise.base.places import now
from launchwise.base.robust import median_error
from launchwise.experiment.method import Repeats
from launchwise.workloads.metrics import BACK_TO_BACK, SWEEP
from launchwise.workloads.spec import Spec
from launchwise.workloads.workload import Finding

if TYPE_CHECKING:
    import pandas as pd


ONE_WAY = ("driver", "toolkit", "backend")  # Columns that are the same in all rows of a sweep

NEUTRAL: dict[str, Any] = {
    # JSON has no NaN.
    each.name: {"real": None, "times": []}.get(each.kind, each.absent)
    for each in SWEEP
    if each.made == "row"
}
"""Neutral values for columns without a result."""


def check_one_way(table: pd.DataFrame, where: str | Path) -> None:
    """Reject a sweep whose rows differ in driver, toolkit or back-end. Another version shifts times
    by 2 to 3 %, which would look like a difference between configurations. Raises UserError, naming
    the column and what it holds."""
    for name in ONE_WAY:
        values = sorted(set(table[name]))
        if len(values) > 1:
            message = (
                f"differs between rows of one sweep ({', '.join(values)}): "
                "measure all rows with the same one"
            )
            raise UserError(where, name, message)


def make_row(
    labels: Mapping[str, str], names: Mapping[str, Any], found: Mapping[str, Any]
) -> dict[str, Any]:
    """Complete row: labels, names, results, and neutral values for columns without a result."""
    return {**labels, **names, **NEUTRAL, "measured_at": now(), **found}


def rows_to_table(
    rows: list[dict[str, Any]], notes: list[dict[str, Any]], spec: Spec
) -> pd.DataFrame:
    """Journal rows as a table of measurements, sorted by key, as
    :func:`launchwise.tables.measurements.measurement_schema` declares it. Of the journal's notes,
    ``control`` holds the drift of the reference kernel around a row, ``energy`` what launches back
    to back gave."""
    from launchwise.tables.measurements import measured_table

    told = {"control_ratio": _control_ratios(notes)}
    told |= {name: _back_to_back(notes, spec, name) for name in BACK_TO_BACK}
    return measured_table(rows, spec, told)


def _control_ratios(notes: list[dict[str, Any]]) -> dict[tuple[Any, ...], float]:
    """Key of a row to reference time after the row / first reference time on that card."""
    return {
        tuple(names): float(note["ratio"])
        for note in notes
        if note["note"] == "control"
        for names in note["rows"]
    }


def _back_to_back(
    notes: list[dict[str, Any]], spec: Spec, column: str
) -> dict[tuple[Any, ...], float]:
    # Older journals hold the energy alone.
    return {
        tuple(map(note["names"].get, spec.key_columns)): float(note[column])
        for note in notes
        if note["note"] == "energy" and isinstance(note.get(column), int | float)
    }


def relative_error(times_ms: list[float]) -> float:
    """Relative standard error of the median of ``times_ms``; infinite for a single time."""
    if len(times_ms) < 2:
        return math.inf
    return float(median_error(np.asarray([times_ms]))[0])


RESTORED = "restored"
"""Timer of launches before which arrays that they change are put back; L2 is empty then."""


@dataclass(frozen=True)
class Repeated:
    """Times of the repeats of one configuration."""

    times_ms: list[float]  # one time per repeat, ms per launch
    # ``events``: a pair of CUDA events around every launch; ``graph``: around a replayed graph of
    # several launches, for kernels so short that the events would be a part of them; ``restored``:
    # events around every launch, arrays put back before it; ``host``: the host's clock around a run
    # that the host drives.
    timer: str
    launches: int  # launches (runs of a sequence) in one repeat


def repeat(
    timed: Callable[[int], list[float]],
    repeats: Repeats,
    first_ms: float,
    best_ms: float = math.inf,
    begun: list[float] | None = None,
) -> list[float]:
    """Repeat until the median is known well enough or the budget of device time is spent.

    Time is spent where it decides something: a configuration that is not near the best so far needs
    ``few`` repeats and the precision ``coarse``, one that is needs ``minimum`` and ``precision``.

    ``timed``: gives the times (ms) of so many repeats; ``begun``: those that were made already.
    ``first_ms``: what one repeat took before: one that takes most of the budget is not made often.
    ``best_ms``: the best median so far of the same problem; infinite for a configuration that is to
        be known well wherever it lies.
    """
    few = min(repeats.few, repeats.minimum)
    long = first_ms * repeats.minimum > repeats.budget_ms
    times = list(begun or []) or timed(few)
    while len(times) < repeats.maximum and sum(times) < repeats.budget_ms:
        near = statistics.median(times) <= (1 + repeats.near) * best_ms
        least = repeats.minimum if near and not long else few
        precision = repeats.precision if near else max(repeats.precision, repeats.coarse)
        if len(times) >= least and relative_error(times) <= precision:
            break
        missing = least - len(times) if len(times) < least else least
        times += timed(min(missing, repeats.maximum - len(times)))
    return times


def checked_columns(found: Finding) -> dict[str, Any]:
    """Results of verification, as columns of a row."""
    # Neither the journal nor the table takes NaN or infinity; the reason says it.
    max_error = found.max_error if math.isfinite(found.max_error) else None
    return {"max_error": max_error, "tolerance": found.tolerance, **found.more}


def complaint(found: Finding) -> str:
    if not found.wrong and not math.isfinite(found.max_error):
        return f"the largest error is {found.max_error}"
    return found.wrong


def unverified(timed: dict[str, Any], found: Finding) -> dict[str, Any]:
    """Row of a timed variant that is not verified. Its status is ``unverified`` whatever the check
    found: with a data race, the next launch may give another result."""
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


LONGEST_REST = 1.5
"""Longest pause divided by the busy time before it.

With pauses up to 4 times the busy time, an H200 was idle for 70 % of a sweep of large grids and
drew 320 W of its 700 W on average.
"""


class Rest:
    """Pauses between configurations while the card is throttled. A busy card may reach its power or
    temperature limit and lower its clocks: times grow by 10 % and more. While the card is
    throttled, pauses grow up to :data:`LONGEST_REST` times the busy time before them; afterwards
    they shrink again."""

    def __init__(self, wanted: bool = True) -> None:
        self._wanted = wanted
        self.share = 0.0  # length of a pause divided by the busy time before it
        self._busy_since = time.monotonic()

    def after(self, throttled: Callable[[], bool]) -> None:
        """Called between configurations, when nothing is timed."""
        if not self._wanted:
            return
        if throttled():
            self.share = min(LONGEST_REST, max(0.25, 1.5 * self.share))
        else:
            self.share = 0.0 if self.share < 0.05 else 0.9 * self.share
        busy = time.monotonic() - self._busy_since
        if self.share:
            time.sleep(min(1.0, self.share * busy))
        self._busy_since = time.monotonic()
