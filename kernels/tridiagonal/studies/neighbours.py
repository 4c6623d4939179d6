"""A table of what nearest neighbours make of optima, beside a paper's figures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pandas as pd

from launchwise.learning.optima import Classification, classify_optima
from launchwise.report import wording
from launchwise.report.blocks import Cell, Column, Row, Table

SEED = 2026

COLUMNS = [
    Column("GPU and problems", number=False),
    Column("optima", number=False),
    Column("neighbours", group="ours"),
    Column("accuracy", group="ours"),
    Column("always the most frequent", group="ours"),
    Column("time lost", "% (mean)", group="ours"),
    Column("time lost", "% (worst)", group="ours"),
    Column("accuracy", group="paper"),
    Column("always the most frequent", group="paper"),
]


@dataclass(frozen=True)
class Learnt:
    """Optima to learn from, the measurements that say what a miss costs, the paper's accuracies."""

    title: str
    optima: str
    table: pd.DataFrame
    rows: pd.DataFrame
    paper: tuple[str, str]


def neighbours_table(caption: str, entries: Iterable[Learnt], size: str, choice: str) -> Table:
    """Accuracy and lost time of nearest neighbours in log(size), one row an entry."""
    rows = []
    for entry in entries:
        found = _classified(entry, size, choice)
        ours = ["–"] * 5 if found is None else _texts(found)
        cells = [Cell(entry.title), Cell(entry.optima), *map(Cell, ours)]
        rows.append(Row([*cells, *(Cell(text, role="theirs") for text in entry.paper)]))
    return Table(caption, COLUMNS, rows)


def _classified(entry: Learnt, size: str, choice: str) -> Classification | None:
    """None where every size has the same optimum, so that there is nothing to tell apart."""
    if entry.table[choice].nunique() < 2:
        return None
    return classify_optima(entry.table, entry.rows, SEED, size, choice)


def _texts(found: Classification) -> list[str]:
    return [
        wording.count(found.neighbours),
        wording.fixed(found.accuracy, 2),
        wording.fixed(found.null_accuracy, 2),
        wording.fixed(found.loss_percent, 2),
        wording.fixed(found.worst_loss_percent, 2),
    ]
