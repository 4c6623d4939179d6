"""Nearest-neighbour prediction of optima beside a paper's figures: a table and a figure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from launchwise.report import theme, wording
from launchwise.report.blocks import Cell, Column, Figure, Key, Panel, Row, Table

from ..learning.optima import Classification, classify_optima

SEED = 2026

COLUMNS = [
    Column("GPU and problems", number=False),
    Column("optima", number=False),
    Column("neighbours", group="ours"),
    Column("accuracy", group="ours"),
    Column("majority-class accuracy", group="ours"),
    Column("time lost", "% (mean)", group="ours"),
    Column("time lost", "% (worst)", group="ours"),
    Column("accuracy", group="paper"),
    Column("majority-class accuracy", group="paper"),
]

TRAINING, HIT, MISSED, REAL = (
    "training size",
    "predicted, right",
    "predicted, wrong",
    "real, missed",
)


@dataclass(frozen=True)
class Learnt:
    """Optima to learn from, the measurements that give the cost of a miss, the paper's accuracies.

    ``table`` has a row per size (``size``, ``choice``), ``rows`` the times (ms) of every choice.
    """

    title: str
    optima: str
    table: pd.DataFrame
    rows: pd.DataFrame
    paper: tuple[str, str]
    size: str
    choice: str

    @cached_property
    def classification(self) -> Classification | None:
        """None where every size has the same optimum, so that there is nothing to tell apart."""
        if self.table[self.choice].nunique() < 2:
            return None
        return classify_optima(self.table, self.rows, SEED, self.size, self.choice)


def neighbours_table(caption: str, entries: Iterable[Learnt]) -> Table:
    """Accuracy and lost time of nearest neighbours in log(size), one row per entry."""
    rows = []
    for entry in entries:
        classes = entry.classification
        ours = [Cell("–")] * 5 if classes is None else _cells(classes)
        cells = [Cell(entry.title), Cell(entry.optima), *ours]
        rows.append(Row([*cells, *(Cell(text, role="theirs") for text in entry.paper)]))
    return Table(caption, COLUMNS, rows)


def _cells(classes: Classification) -> list[Cell]:
    """Accuracies with their numbers of sizes."""
    tested = len(classes.predictions)
    hits, usual = (
        f"{round(share * tested)} of {wording.plural(tested, 'size')}"
        for share in (classes.accuracy, classes.null_accuracy)
    )
    without = f"{classes.unmeasured} of {tested} not timed" if classes.unmeasured else ""
    return [
        Cell(wording.count(classes.neighbours)),
        Cell(wording.fixed(classes.accuracy, 2), detail=hits),
        Cell(wording.fixed(classes.null_accuracy, 2), detail=usual),
        Cell(wording.fixed(classes.loss_percent, 2), detail=without),
        Cell(wording.fixed(classes.worst_loss_percent, 2)),
    ]


def neighbours_figure(
    id_: str, caption: str, entries: Sequence[Learnt], x: dict[str, Any], y: dict[str, Any]
) -> Figure:
    """Real and predicted choices against size, a panel per entry.

    Parameters
    ----------
    x, y
        Axes that all panels share.
    """
    panels = [
        Panel(f"{entry.title}, {entry.optima}", _traces(entry, classes), theme.layout(x, y))
        for entry in entries
        if (classes := entry.classification) is not None
    ]
    return Figure(
        id=id_,
        caption=caption,
        alt="Dots: real and predicted choice against size; wrong predictions are black crosses.",
        panels=panels,
        keys=[
            Key(TRAINING, theme.GREY, "circle"),
            Key(HIT, theme.BLUE, "circle"),
            Key(MISSED, theme.INK, "cross"),
            Key(REAL, theme.ORANGE, "circle"),
        ],
    )


def _traces(entry: Learnt, classes: Classification) -> list[dict[str, Any]]:
    """Training sizes, hits, wrong predictions, and what would have been right there."""
    size, choice, predicted = entry.size, entry.choice, f"predicted_{entry.choice}"
    tested = classes.predictions
    training = entry.table[~entry.table[size].isin(tested[size])]
    right = tested[tested[choice] == tested[predicted]]
    wrong = tested[tested[choice] != tested[predicted]]
    drawn = (
        (TRAINING, training[size], training[choice], theme.GREY, "circle"),
        (HIT, right[size], right[choice], theme.BLUE, "circle"),
        (REAL, wrong[size], wrong[choice], theme.ORANGE, "circle"),
        (MISSED, wrong[size], wrong[predicted], theme.INK, "x"),
    )
    template = f"{size}=%{{x}}: {choice}=%{{y}}"
    return [
        theme.dots(
            sizes,
            choices,
            name=name,
            colour_=colour,
            shape=shape,
            size=7,
            opacity=0.9,
            template=template,
        )
        for name, sizes, choices, colour, shape in drawn
        if len(sizes)
    ]
