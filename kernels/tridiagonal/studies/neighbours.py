"""Nearest-neighbour prediction of optima beside a paper's figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from launchwise.report import wording
from launchwise.report.blocks import MISSING, Cell
from launchwise.report.fields import THEIRS, Field, field, grouped

from ..learning.optima import SPLITS, Classification, classify_optima

SEED = 2026


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
        """None where every size has the same optimum, or where no split has every optimum."""
        if self.table[self.choice].nunique() < 2:
            return None
        return classify_optima(self.table, self.rows, SEED, self.size, self.choice)


def _number(title: str, unit: str, value: Callable[[Classification], str | Cell]) -> Field:
    """A figure of an entry's classification; a dash without one."""

    def found(entry: Learnt) -> str | Cell:
        return MISSING if (fitted := entry.classification) is None else value(fitted)

    return field(title, found, unit=unit, number=True)


def _accuracy(found: Classification) -> Cell:
    return Cell(wording.fixed(found.mean, 2), detail=wording.span([found.least, found.largest]))


def fields(titles: Mapping[str, str]) -> list[Field]:
    """Columns of a table of entries; ``titles``: of a case to what is shown of it."""
    return [
        field("case", lambda entry: titles[entry.title]),
        field("optima", lambda entry: entry.optima),
        *grouped(
            f"ours, {SPLITS} splits",
            _number("neighbours", "found", lambda one: ", ".join(map(str, one.neighbours))),
            _number("accuracy", "mean, range", _accuracy),
            _number("majority class", "mean", lambda one: wording.fixed(one.null, 2)),
            _number(
                "time lost", "% (geometric mean)", lambda one: wording.fixed(one.loss_percent, 2)
            ),
            _number("time lost", "% (worst)", lambda one: wording.fixed(one.worst_loss_percent, 2)),
            _number(
                "timed",
                "% of the choices",
                lambda one: wording.percent(1 - one.unmeasured / one.tested, 0),
            ),
        ),
        *grouped(
            "paper",
            field("accuracy", lambda entry: entry.paper[0], number=True),
            field("majority class", lambda entry: entry.paper[1], number=True),
            role=THEIRS,
        ),
    ]
