"""Says which changes of a comparison a caller, such as continuous integration, must see."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

from launchwise.comparing.sweep_comparison import Comparison, SweepComparison


class Complaint(StrEnum):
    """Complaints that may reject a comparison: outcomes of rows, and ``stale`` answers."""

    slower = "slower"
    stopped = "stopped"
    broken = "broken"
    stale = "stale"
    gone = "gone"


DEFAULT = (Complaint.slower, Complaint.stopped, Complaint.broken)

MEASURED = (Complaint.slower, Complaint.stopped)
"""Complaints that chance makes, too; the others are facts."""


def complaints(
    comparison: Comparison, wanted: Collection[Complaint], allowed_percent: float
) -> list[str]:
    """A line for each complaint about each sweep; none where nothing got worse.

    Parameters
    ----------
    wanted
        What counts.
    allowed_percent
        Share of a sweep's matched rows that may be slower or stopped, 0 to 100.
    """
    return [line for one in comparison.sweeps for line in _of_sweep(one, wanted, allowed_percent)]


def _of_sweep(
    one: SweepComparison, wanted: Collection[Complaint], allowed_percent: float
) -> list[str]:
    counts = {
        each: one.verdicts[each] if each == Complaint.stale else one.outcomes[each]
        for each in Complaint
        if each in wanted
    }
    if 100 * sum(counts.get(each, 0) for each in MEASURED) <= allowed_percent * one.matched:
        counts = {each: count for each, count in counts.items() if each not in MEASURED}
    where = f"{one.spec.workload} on {one.new_gpu}"
    return [
        f"{where}: {count} {'best configuration' if each == Complaint.stale else 'row'}"
        f"{'s' if count > 1 else ''} {each}"
        for each, count in counts.items()
        if count
    ]
