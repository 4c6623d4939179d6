"""Quality of a sweep's times, and the measuring time by task."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd

from launchwise.report import wording
from launchwise.report.blocks import MISSING, Block, Column, Fold, table, turned
from launchwise.report.health import held_back
from launchwise.workloads.metrics import UNKNOWN

TASKS = {
    "start": "opening the device",
    "inputs": "inputs and references",
    "verify": "verifying",
    "warm_up": "warming up",
    "time": "timing",
    "control": "reference kernel",
    "rest": "pauses for a throttled card",
    "energy": "energy loops",
    "write": "writing the journal",
}
"""Keys of a sweep's ``seconds`` to words."""


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
    columns = [Column("", number=False), *(Column(gpu) for gpu in sweeps)]
    timed = [sweep[sweep["status"] == "ok"] for sweep in sweeps.values()]
    rows = [[what, *(of(own) for own in timed)] for what, of in FIGURES.items()]
    found: list[Block] = [turned(table(f"Timed rows of {workload}", columns, rows), "GPU")]
    seconds = {gpu: spent_s(facts.get(gpu, {})) for gpu in sweeps}
    if any(seconds.values()):
        names = [Column("task", number=False), *(Column(gpu) for gpu in sweeps)]
        spent = [["in all", *(_seconds(one, "total") for one in seconds.values())]]
        spent += [
            [words, *(_seconds(one, task) for one in seconds.values())]
            for task, words in TASKS.items()
        ]
        went = table(f"Measuring time of {workload} by task, in seconds", names, spent)
        found.append(turned(went, "GPU"))
    if rows := [row for gpu in sweeps for row in _joined(gpu, facts.get(gpu, {}))]:
        found.append(table(f"Extensions of the sweep of {workload}", JOINED, rows))
    return [Fold(f"Quality of the times of {workload}", found)]


JOINED = [
    Column("GPU", number=False),
    Column("card", number=False),
    Column("measured", number=False),
    Column("rows"),
    Column("measured again"),
    Column("repeated time / original time"),
    Column("lowest"),
    Column("highest"),
]
"""Columns of the table of extensions."""


def _joined(gpu: str, facts: Mapping[str, Any]) -> list[list[str]]:
    """A row per card that measured an extension of a sweep."""
    return [
        [
            gpu,
            card[:8],
            entry["first_measured_at"][:10],
            str(entry["rows"]),
            str(found["anchors"]),
            *(f"{found[f'{name}_ratio']:.3f}" for name in ("median", "lowest", "highest")),
        ]
        for entry in facts.get("joined", [])
        for card, found in entry["cards"].items()
    ]


def spent_s(facts: Mapping[str, Any]) -> dict[str, float]:
    """Seconds per task, summed over the shards of a sweep; empty if not recorded."""
    found: dict[str, float] = {}
    for shard in facts.get("shards", [facts]):
        for task, seconds in shard.get("seconds", {}).items():
            found[task] = found.get(task, 0.0) + float(seconds)
    return found


def _seconds(spent: Mapping[str, float], task: str) -> str:
    return f"{spent[task]:.1f}" if task in spent else MISSING


def _percent(share: float) -> str:
    return MISSING if pd.isna(share) else f"{100 * share:.2f}"


def _quantile(column: str, quantile: float) -> Callable[[pd.DataFrame], str]:
    return lambda rows: _percent(float(rows[column].quantile(quantile)))


def _counted(
    chosen: Callable[[pd.DataFrame], pd.Series], known: str
) -> Callable[[pd.DataFrame], str]:
    """Number of ``chosen`` rows; a dash if the sweep lacks the column ``known``."""

    def counted(rows: pd.DataFrame) -> str:
        unknown = rows[known].isna() | (rows[known] == UNKNOWN)
        return MISSING if unknown.all() else wording.count(int(chosen(rows).sum()))

    return counted


def _largest_drift(rows: pd.DataFrame) -> str:
    return _percent((rows["control_ratio"] - 1).abs().max())


def _clocks(rows: pd.DataFrame) -> str:
    clocks = rows["sm_clock_mhz"].dropna()
    return f"{clocks.min():.0f} to {clocks.max():.0f}" if len(clocks) else MISSING


FIGURES: dict[str, Callable[[pd.DataFrame], str]] = {
    "relative error of the median, median (%)": _quantile("relative_error", 0.5),
    "relative error of the median, 95th percentile (%)": _quantile("relative_error", 0.95),
    "rows with a repeat outside the Tukey limits": _counted(
        lambda rows: rows["outlier_repeats"] > 0, "spread_ms"
    ),
    "rows timed as replayed graphs": _counted(lambda rows: rows["timer"] == "graph", "spread_ms"),
    "rows measured twice": _counted(lambda rows: rows["attempt"] > 1, "control_ratio"),
    "rows on a throttled card": _counted(held_back, "throttle"),
    "largest drift of the reference kernel (%)": _largest_drift,
    "SM clock (MHz)": _clocks,
}
"""Quality figures of the timed rows of a sweep."""
