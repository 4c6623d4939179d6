"""Nearest-neighbour prediction of optima beside a paper's figures: a table and a figure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from launchwise.report import theme, wording
from launchwise.report.blocks import MISSING, Cell, Figure, Key, Panel
from launchwise.report.fields import THEIRS, Field, field, grouped

from ..learning.optima import SPLITS, Classification, PublishedSplit, as_published, classify_optima

SEED = 2026

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

    @cached_property
    def published_split(self) -> PublishedSplit | None:
        """The same as the paper fits it; None where that cannot be."""
        if self.table[self.choice].nunique() < 2:
            return None
        return as_published(self.table, SEED, self.size, self.choice)


def _published(entry: Learnt) -> str | Cell:
    found = entry.published_split
    if found is None:
        return MISSING
    ends = " to ".join(wording.fixed(each, 2) for each in (found.least, found.largest))
    return Cell(wording.fixed(found.mean, 2), detail=ends)


def _published_neighbours(entry: Learnt) -> str:
    found = entry.published_split
    return MISSING if found is None else ", ".join(map(wording.count, found.neighbours))


def _published_null(entry: Learnt) -> str:
    found = entry.published_split
    return MISSING if found is None else wording.fixed(found.null, 2)


def _accuracy(share: float, classes: Classification) -> Cell:
    tested = len(classes.predictions)
    hits = f"{round(share * tested)} of {wording.plural(tested, 'size')}"
    return Cell(wording.fixed(share, 2), detail=hits)


def _loss(classes: Classification) -> Cell:
    untimed, tested = classes.unmeasured, len(classes.predictions)
    detail = f"{untimed} of {tested} not timed" if untimed else ""
    return Cell(wording.fixed(classes.loss_percent, 2), detail=detail)


def _number(title: str, unit: str, value: Callable[[Classification], str | Cell]) -> Field:
    """A figure of an entry's classification; a dash where there is none."""

    def found(entry: Learnt) -> str | Cell:
        return MISSING if entry.classification is None else value(entry.classification)

    return field(title, found, unit=unit, number=True)


FIELDS = [
    field("GPU and problems", lambda entry: entry.title),
    field("optima", lambda entry: entry.optima),
    *grouped(
        "ours",
        _number("neighbours", "", lambda one: wording.count(one.neighbours)),
        _number("accuracy", "", lambda one: _accuracy(one.accuracy, one)),
        _number("majority-class accuracy", "", lambda one: _accuracy(one.null_accuracy, one)),
        _number("time lost", "% (mean)", _loss),
        _number("time lost", "% (worst)", lambda one: wording.fixed(one.worst_loss_percent, 2)),
    ),
    *grouped(
        f"ours, as the paper splits and searches ({SPLITS} splits)",
        field("neighbours", _published_neighbours, unit="found", number=True),
        field("accuracy", _published, unit="mean, range", number=True),
        field("majority-class accuracy", _published_null, unit="mean", number=True),
    ),
    *grouped(
        "paper",
        field("accuracy", lambda entry: entry.paper[0], number=True),
        field("majority-class accuracy", lambda entry: entry.paper[1], number=True),
        role=THEIRS,
    ),
]
"""Accuracy and lost time of nearest neighbours in log(size), of an entry."""


def neighbours_figure(
    id_: str, caption: str, entries: Sequence[Learnt], x: dict[str, Any], y: dict[str, Any]
) -> Figure:
    """Real and predicted choices against size, a panel per entry.

    ``x``, ``y``: axes that all panels share.
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
    style: dict[str, Any] = {"size": 7, "opacity": 0.9}
    style["template"] = f"{size}=%{{x}}: {choice}=%{{y}}"
    return [
        theme.dots(sizes, choices, name=name, colour_=colour, shape=shape, **style)
        for name, sizes, choices, colour, shape in drawn
        if len(sizes)
    ]
