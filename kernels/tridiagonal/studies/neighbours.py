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


OURS, SPLIT = "classification", "published_split"


@dataclass(frozen=True)
class Learnt:
    """Optima to learn from, the measurements that give the cost of a miss, the paper's accuracies.
    ``table`` has a row per size (``size``, ``choice``), ``rows`` the times (ms) of every choice."""

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


def _accuracy(share: float, classes: Classification) -> Cell:
    tested = len(classes.predictions)
    hits = f"{round(share * tested)} of {wording.plural(tested, 'size')}"
    return Cell(wording.fixed(share, 2), detail=hits)


def _loss(classes: Classification) -> Cell:
    untimed, tested = classes.unmeasured, len(classes.predictions)
    detail = f"{untimed} of {tested} not known" if untimed else ""
    return Cell(wording.fixed(classes.loss_percent, 2), detail=detail)


def _number(title: str, unit: str, value: Callable[[Any], str | Cell], of: str = OURS) -> Field:
    """A figure of an entry's classification, or of its published split; a dash without one."""

    def found(entry: Learnt) -> str | Cell:
        return MISSING if (fitted := getattr(entry, of)) is None else value(fitted)

    return field(title, found, unit=unit, number=True)


def _range(split: PublishedSplit) -> Cell:
    ends = " to ".join(wording.fixed(each, 2) for each in (split.least, split.largest))
    return Cell(wording.fixed(split.mean, 2), detail=ends)


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
        _number("neighbours", "found", lambda one: ", ".join(map(str, one.neighbours)), SPLIT),
        _number("accuracy", "mean, range", _range, SPLIT),
        _number("majority-class accuracy", "mean", lambda one: wording.fixed(one.null, 2), SPLIT),
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
