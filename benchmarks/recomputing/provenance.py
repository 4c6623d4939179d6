"""The tables of provenance on the health page."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd

from launchwise.tables.files import read_facts
from recomputing.comparing import Cell, Cells, Figure, Ledger, Table
from recomputing.material import Material
from recomputing.pages import Record, ShownPage
from recomputing.sweeps import Sweep

TASKS = {
    "in all": "total",
    "opening the device": "start",
    "inputs and references": "inputs",
    "verifying": "verify",
    "warming up": "warm_up",
    "timing": "time",
    "reference kernel": "control",
    "pauses for a throttled card": "rest",
    "energy loops": "energy",
    "writing the journal": "write",
}
"""Column of the measuring time to its key in a sweep's facts."""

ORIGINS = {
    "commit": ("commit", 12),
    "driver": ("driver", 40),
    "CUDA toolkit": ("toolkit", 40),
    "back-end": ("backend", 40),
    "card, hash of its UUID": ("card", 8),
}
"""Title to a column of rows, and how much of its values is shown."""


def compare(
    page: ShownPage,
    known: Sequence[Sweep],
    materials: Sequence[Material],
    seed: int,
    ledger: Ledger,
) -> None:
    """Compare sweeps, quality of times, measuring time, extensions, and fits of models.

    ``seed`` is that of the settings.
    """
    for each in page.tables_of("This run"):
        cells = {row[0].text: row[1] for row in each.rows}
        ledger.table(page.path, each.caption).said("seed", cells["seed of the settings"], seed)
    for workload in dict.fromkeys(one.workload for one in known):
        own = {one.gpu: one for one in known if one.workload == workload}
        for begin, read in (
            ("Measurements of", _counted),
            ("Timed rows of", _quality),
            ("Measuring time of", _spent),
        ):
            caption = f"{begin} {workload}"
            tables = [one for one in page.tables if one.caption.split(" by task")[0] == caption]
            wanted = {gpu: partial(read, one) for gpu, one in own.items()}
            ledger.beside(page, tables, ["GPU"], wanted)
        _extensions(page, workload, own, ledger)
    for one in materials:
        for each in page.tables_of(f"Models of {one.name},"):
            _models(one, each.records(), ledger.table(page.path, each.caption))


def _counted(one: Sweep, row: Record) -> Cells:
    """Rows in all and by status, and what the rows say of where they come from."""
    statuses = {
        name: one.count(name.removeprefix("rows ").replace(" ", "_"))
        for name in row
        if name.startswith("rows ")
    }
    # A row of a status that is not shown is missing in the sum.
    every = len(one.rows) if sum(statuses.values()) == len(one.rows) else None
    days = sorted({day for day in one.rows["measured_at"].str[:10].unique() if day})
    origins = {
        name: ", ".join(sorted({str(value)[:digits] for value in one.rows[column].unique()}))
        for name, (column, digits) in ORIGINS.items()
    }
    said = " to ".join(dict.fromkeys((days[0], days[-1]))) if days else "–"
    return {"rows": every, **statuses, "measured on (UTC)": said, **origins}


def _quality(one: Sweep, _: Record) -> Cells:
    """Errors and conditions of the rows that were timed repeatedly; nothing where unknown."""
    timed = one.timed

    def counted(which: pd.Series, column: str) -> Figure:
        unknown = (timed[column].isna() | (timed[column] == "unknown")).all()
        return None if unknown else int(which.sum())

    clocks = timed["sm_clock_mhz"].dropna()
    error = "relative error of the median"
    return {
        f"{error}, median (%)": 100 * float(timed["relative_error"].quantile(0.5)),
        f"{error}, 95th percentile (%)": 100 * float(timed["relative_error"].quantile(0.95)),
        "rows with a repeat outside the Tukey limits": counted(
            timed["outlier_repeats"] > 0, "spread_ms"
        ),
        "rows timed as replayed graphs": counted(timed["timer"] == "graph", "spread_ms"),
        "rows measured twice": counted(timed["attempt"] > 1, "control_ratio"),
        "rows on a throttled card": counted(timed["throttled"] == 1, "throttle"),
        "largest drift of the reference kernel (%)": 100 * one.drifts[1],
        "SM clock (MHz)": [clocks.min(), clocks.max()] if len(clocks) else None,
    }


def _spent(one: Sweep, _: Record) -> Cells:
    """Seconds by task, over the shards of a sweep."""
    spent: dict[str, float] = {}
    for shard in one.facts.get("shards", [one.facts]):
        for task, seconds in shard.get("seconds", {}).items():
            spent[task] = spent.get(task, 0.0) + seconds
    return {name: spent.get(task) for name, task in TASKS.items()}


def _extensions(page: ShownPage, workload: str, own: Mapping[str, Sweep], ledger: Ledger) -> None:
    """What later visits added, card by card, and how rows compare that were measured again."""
    every = [row for one in own.values() for row in _joined(one)]
    caption = f"Extensions of the sweep of {workload}"
    shown = [row for each in page.tables if each.caption == caption for row in each.rows]
    if not shown and not every:
        return
    table = ledger.table(page.path, caption)
    table.same("rows", len(shown), len(every))
    for row, wanted in zip(shown, every, strict=False):
        for cell, one in zip(row, wanted, strict=True):
            table.said(", ".join(map(str, wanted[:3])), cell, one)


def _joined(one: Sweep) -> Iterator[list[str | Figure]]:
    for entry in one.facts.get("joined", []):
        for card, found in entry["cards"].items():
            ratios = [found[f"{name}_ratio"] for name in ("median", "lowest", "highest")]
            words = [one.gpu, card[:8], entry["first_measured_at"][:10]]
            yield [*words, entry["rows"], found["anchors"], *ratios]


def _models(one: Material, rows: Iterator[Record], table: Table) -> None:
    """Fits of the first split: parameters, trials and rows of the first fold, seconds of all."""
    shown = list(rows)
    table.same("models", [row["model"].text for row in shown], list(one.titles.values()))

    def fits(model: str) -> list[Mapping[str, Any]]:
        folds = read_facts(one.results / f"learnt/{one.name}/{model}.parquet")["folds"]
        return [each for each in folds if each["split"] == one.first_split]

    for model, row in zip(one.titles, shown, strict=False):
        first: Mapping[str, Any] = next(iter(fits(model)), {})
        facts = read_facts(one.results / f"learnt/{one.name}/{model}.parquet")
        # What is made of other methods takes what the fits of these take.
        members = [each for each in facts.get("members", [model]) if each in one.titles]
        seconds = [
            each["seconds_search"] + each["seconds_fit"] for name in members for each in fits(name)
        ]
        wanted = {
            "search (trials)": first.get("trials"),
            "learnt from (rows)": first.get("rows"),
            "training (s)": Cell(sum(seconds) if seconds else None, digits=2),
        }
        table.row(model, row, wanted)
        row["hyper-parameters"].seen = True
        for name, value in first.get("parameters", {}).items():
            said = re.search(rf"(?:^|, ){name}=([^,]*)", row["hyper-parameters"].text)
            if isinstance(value, int | float) and not isinstance(value, bool):
                text = said[1] if said else ""
                digits = 3 if isinstance(value, float) else None
                table.numbers(f"{model}, {name}", text, value, digits=digits)
