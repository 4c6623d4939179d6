"""Quality of a sweep's times, and the measuring time by task."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from operator import methodcaller
from typing import Any

import pandas as pd

from launchwise.report import wording
from launchwise.report.blocks import MISSING, Block, Fold
from launchwise.report.fields import Value, by_gpu, decimals, field, percents, table_of
from launchwise.report.health import held_back
from launchwise.workloads.statuses import UNKNOWN

TASKS = [
    field(title, methodcaller("get", task), decimals(1))
    for task, title in {
        "total": "in all",
        "start": "opening the device",
        "inputs": "inputs and references",
        "verify": "verifying",
        "warm_up": "warming up",
        "time": "timing",
        "control": "reference kernel",
        "rest": "pauses for a throttled card",
        "energy": "energy loops",
        "write": "writing the journal",
    }.items()
]
"""Seconds of a sweep by task."""


def blocks(
    workload: str, sweeps: Mapping[str, pd.DataFrame], facts: Mapping[str, Any]
) -> list[Block]:
    """A fold for the sweeps of one workload.

    Parameters
    ----------
    sweeps
        GPU to its measurements.
    facts
        GPU to the metadata of its table (see :func:`launchwise.tables.files.read_facts`).
    """
    timed = {gpu: sweep[sweep["status"] == "ok"] for gpu, sweep in sweeps.items()}
    found: list[Block] = [by_gpu(f"Timed rows of {workload}", "", FIGURES, timed)]
    seconds = {gpu: spent_s(facts.get(gpu, {})) for gpu in sweeps}
    if any(seconds.values()):
        caption = f"Measuring time of {workload} by task, in seconds"
        found.append(by_gpu(caption, "task", TASKS, seconds))
    if rows := [row for gpu in sweeps for row in _joined(gpu, facts.get(gpu, {}))]:
        found.append(table_of(f"Extensions of the sweep of {workload}", JOINED, rows))
    return [Fold(f"Quality of the times of {workload}", found)]


JOINED = [
    field("GPU", "gpu"),
    field("card", "card"),
    field("measured", "measured"),
    field("rows", "rows", wording.count),
    field("measured again", "anchors", wording.count),
    field("repeated time / original time", "median_ratio", wording.fixed),
    field("lowest", "lowest_ratio", wording.fixed),
    field("highest", "highest_ratio", wording.fixed),
]


def _joined(gpu: str, facts: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A row per card that measured an extension of a sweep."""
    for entry in facts.get("joined", []):
        for card, found in entry["cards"].items():
            measured = entry["first_measured_at"][:10]
            own = {"gpu": gpu, "card": card[:8], "measured": measured, "rows": entry["rows"]}
            yield {**found, **own}


def spent_s(facts: Mapping[str, Any]) -> dict[str, float]:
    """Seconds per task, summed over the shards of a sweep; empty if not recorded."""
    found: dict[str, float] = {}
    for shard in facts.get("shards", [facts]):
        for task, seconds in shard.get("seconds", {}).items():
            found[task] = found.get(task, 0.0) + float(seconds)
    return found


def _counted(chosen: Callable[[pd.DataFrame], pd.Series], known: str) -> Value:
    """Number of ``chosen`` rows; None if the sweep lacks the column ``known``."""

    def counted(rows: pd.DataFrame) -> int | None:
        unknown = rows[known].isna() | (rows[known] == UNKNOWN)
        return None if unknown.all() else int(chosen(rows).sum())

    return counted


def _relative_error(rows: pd.DataFrame, share: float) -> float:
    return float(rows["relative_error"].quantile(share))


def _clocks(rows: pd.DataFrame) -> str:
    clocks = rows["sm_clock_mhz"].dropna()
    return f"{clocks.min():.0f} to {clocks.max():.0f}" if len(clocks) else MISSING


FIGURES = [
    *(
        field(
            f"relative error of the median, {name}",
            partial(_relative_error, share=share),
            percents(2),
            "%",
        )
        for name, share in (("median", 0.5), ("95th percentile", 0.95))
    ),
    field(
        "rows with a repeat outside the Tukey limits",
        _counted(lambda rows: rows["outlier_repeats"] > 0, "spread_ms"),
        wording.count,
    ),
    field(
        "rows timed as replayed graphs",
        _counted(lambda rows: rows["timer"] == "graph", "spread_ms"),
        wording.count,
    ),
    field(
        "rows measured twice",
        _counted(lambda rows: rows["attempt"] > 1, "control_ratio"),
        wording.count,
    ),
    field("rows on a throttled card", _counted(held_back, "throttle"), wording.count),
    field(
        "largest drift of the reference kernel",
        lambda rows: (rows["control_ratio"] - 1).abs().max(),
        percents(2),
        "%",
    ),
    field("SM clock", _clocks, unit="MHz"),
]
"""Quality figures of the timed rows of a sweep."""
