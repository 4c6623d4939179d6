"""The tables of provenance on the health page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from launchwise.tables.files import read_facts
from recomputing.comparing import Figure, Ledger, Table
from recomputing.material import Material
from recomputing.pages import Shown, ShownPage
from recomputing.sweeps import THROTTLED, Sweep

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


def compare(
    page: ShownPage,
    known: Sequence[Sweep],
    materials: Sequence[Material],
    seed: int,
    ledger: Ledger,
) -> None:
    """Compare sweeps, quality of times, measuring time, extensions, and fits of models.

    Parameters
    ----------
    seed
        Of the settings.
    """
    for each in page.tables_of("This run"):
        cells = {row[0].text: row[1] for row in each.rows}
        ledger.table(page.path, each.caption).cell("seed", cells["seed of the settings"], seed)
    for workload in dict.fromkeys(one.workload for one in known):
        own = {one.gpu: one for one in known if one.workload == workload}
        for begin, read in (
            ("Measurements of", _counted),
            ("Timed rows of", _quality),
            ("Measuring time of", _spent),
        ):
            _by_gpu(page, f"{begin} {workload}", own, read, ledger)
        _extensions(page, workload, own, ledger)
    for one in materials:
        for each in page.tables_of(f"Models of {one.name},"):
            _models(one, each.records(), ledger.table(page.path, each.caption))


Compare = Callable[[str, Mapping[str, Shown], Sweep, Table], None]


def _by_gpu(
    page: ShownPage, begin: str, own: Mapping[str, Sweep], read: Compare, ledger: Ledger
) -> None:
    for each in page.tables:
        if each.caption.partition(" by task")[0] != begin:
            continue
        table = ledger.table(page.path, each.caption)
        rows = {row["GPU"].text: row for row in each.turned("GPU").records()}
        table.same("GPUs", sorted(rows), sorted(own))
        for gpu, row in rows.items():
            if gpu in own:
                read(gpu, row, own[gpu], table)


def _counted(place: str, row: Mapping[str, Shown], one: Sweep, table: Table) -> None:
    """Rows in all and by status, and what the rows say of where they come from."""
    table.cell(f"{place}, rows", row["rows"], len(one.rows))
    statuses = [name for name in row if name.startswith("rows ")]
    known = [name.removeprefix("rows ").replace(" ", "_") for name in statuses]
    table.same(f"{place}, other statuses", len(one.rows), one.count(*known))
    for name, status in zip(statuses, known, strict=True):
        table.cell(f"{place}, {name}", row[name], one.count(status))
    days = sorted({day for day in one.rows["measured_at"].str[:10].unique() if day})
    said = " to ".join(dict.fromkeys((days[0], days[-1]))) if days else "–"
    table.words(f"{place}, measured on", row["measured on (UTC)"], said)
    for name, column, digits in (
        ("commit", "commit", 12),
        ("driver", "driver", 40),
        ("CUDA toolkit", "toolkit", 40),
        ("back-end", "backend", 40),
        ("card, hash of its UUID", "card", 8),
    ):
        values = sorted({str(value)[:digits] for value in one.rows[column].unique()})
        table.words(f"{place}, {name}", row[name], ", ".join(values))


def _quality(place: str, row: Mapping[str, Shown], one: Sweep, table: Table) -> None:
    """Errors and conditions of the rows that were timed repeatedly; nothing where unknown."""
    timed = one.timed

    def counted(which: pd.Series, column: str) -> Figure:
        unknown = (timed[column].isna() | (timed[column] == "unknown")).all()
        return None if unknown else int(which.sum())

    def quantile(share: float) -> float:
        return 100 * float(timed["relative_error"].quantile(share))

    held_back = timed["throttle"].map(lambda text: bool(THROTTLED & {*str(text).split("+")}))
    clocks = timed["sm_clock_mhz"].dropna()
    figures: dict[str, Sequence[Figure]] = {
        "relative error of the median, median (%)": [quantile(0.5)],
        "relative error of the median, 95th percentile (%)": [quantile(0.95)],
        "rows with a repeat outside the Tukey limits": [
            counted(timed["outlier_repeats"] > 0, "spread_ms")
        ],
        "rows timed as replayed graphs": [counted(timed["timer"] == "graph", "spread_ms")],
        "rows measured twice": [counted(timed["attempt"] > 1, "control_ratio")],
        "rows on a throttled card": [counted(held_back, "throttle")],
        "largest drift of the reference kernel (%)": [100 * one.drifts[1]],
        "SM clock (MHz)": [clocks.min(), clocks.max()] if len(clocks) else [None],
    }
    for name, values in figures.items():
        table.cell(f"{place}, {name}", row[name], *values)


def _spent(place: str, row: Mapping[str, Shown], one: Sweep, table: Table) -> None:
    """Seconds by task, over the shards of a sweep."""
    spent: dict[str, float] = {}
    for shard in one.facts.get("shards", [one.facts]):
        for task, seconds in shard.get("seconds", {}).items():
            spent[task] = spent.get(task, 0.0) + seconds
    for name, task in TASKS.items():
        table.cell(f"{place}, {name}", row[name], spent.get(task))


def _extensions(page: ShownPage, workload: str, own: Mapping[str, Sweep], ledger: Ledger) -> None:
    """What later visits added, card by card, and how rows compare that were measured again."""
    every = [row for one in own.values() for row in _joined(one)]
    shown = [
        row
        for each in page.tables
        if each.caption == f"Extensions of the sweep of {workload}"
        for row in each.rows
    ]
    if not shown and not every:
        return
    table = ledger.table(page.path, f"Extensions of the sweep of {workload}")
    table.same("rows", len(shown), len(every))
    for row, (words, figures) in zip(shown, every, strict=False):
        place = ", ".join(words)
        for cell, word in zip(row[:3], words, strict=True):
            table.words(place, cell, word)
        for cell, figure in zip(row[3:], figures, strict=True):
            table.cell(place, cell, figure)


def _joined(one: Sweep) -> Iterator[tuple[list[str], list[float]]]:
    for entry in one.facts.get("joined", []):
        for card, found in entry["cards"].items():
            ratios = [found[f"{name}_ratio"] for name in ("median", "lowest", "highest")]
            words = [one.gpu, card[:8], entry["first_measured_at"][:10]]
            yield words, [entry["rows"], found["anchors"], *ratios]


def _models(one: Material, rows: Iterator[dict[str, Shown]], table: Table) -> None:
    """Fits of the first split: parameters, trials and rows of the first fold, seconds of all."""
    shown = list(rows)
    table.same("models", [row["model"].text for row in shown], list(one.titles.values()))
    for model, row in zip(one.titles, shown, strict=False):
        facts = read_facts(one.results / f"learnt/{one.name}/{model}.parquet")
        folds = [each for each in facts["folds"] if each["split"] == one.first_split]
        first: Mapping[str, Any] = folds[0] if folds else {}
        table.cell(f"{model}, trials", row["search (trials)"], first.get("trials"))
        table.cell(f"{model}, rows", row["learnt from (rows)"], first.get("rows"))
        # What is made of other methods takes what the fits of these take.
        members = [each for each in facts.get("members", [model]) if each in one.titles]
        files = [one.results / f"learnt/{one.name}/{each}.parquet" for each in members]
        fits = [fold for path in files for fold in read_facts(path)["folds"]]
        fits = [fold for fold in fits if fold["split"] == one.first_split]
        seconds = [fold["seconds_search"] + fold["seconds_fit"] for fold in fits]
        cell = row["training (s)"]
        table.cell(f"{model}, training", cell, sum(seconds) if fits else None, digits=2)
        row["hyper-parameters"].seen = True
        for name, value in first.get("parameters", {}).items():
            said = re.search(rf"(?:^|, ){name}=([^,]*)", row["hyper-parameters"].text)
            if isinstance(value, int | float) and not isinstance(value, bool):
                text = said[1] if said else ""
                digits = 3 if isinstance(value, float) else None
                table.numbers(f"{model}, {name}", text, value, digits=digits)
