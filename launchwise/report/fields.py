"""Words that studies' own sections share: tables by fields, a paper's cells beside ours, lines.

A field is a column of a table and its value in a record, so that heading and text stand together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pandas as pd

from launchwise.experiment.published import Records
from launchwise.report import theme, wording
from launchwise.report.blocks import MISSING, Block, Cell, Column, Row, Table, Text
from launchwise.report.numbers import records

THEIRS = "theirs"
"""Role of a cell with a figure of the paper."""
FROM_PAPER = "from_paper"
"""Key of records whose every cell is the paper's."""

Shown = Callable[[Any], str]


@dataclass(frozen=True)
class Field:
    """A column, and its value in a record.

    Parameters
    ----------
    value
        Key of the record, or a function of the record; a cell that it returns stays as it is.
    shown
        Text of the value.
    """

    column: Column
    value: str | Callable[[Any], Any]
    shown: Shown
    role: str = ""

    def cell(self, record: Any) -> Cell:
        """Its value in a record; all cells of a record with :data:`FROM_PAPER` are the paper's."""
        value = record[self.value] if isinstance(self.value, str) else self.value(record)
        if isinstance(value, Cell):
            return value
        printed_row = isinstance(record, Mapping) and FROM_PAPER in record
        return Cell(self.shown(value), role=THEIRS if printed_row else self.role)

    @property
    def missing(self) -> Cell:
        """Its cell where there is no record."""
        return Cell(MISSING, role=self.role)


def field(
    title: str,
    value: str | Callable[[Any], Any],
    shown: Shown = str,
    unit: str = "",
    number: bool | None = None,
) -> Field:
    """A field; its column is one of numbers if ``shown`` is not ``str``, or as ``number`` says."""
    is_number = shown is not str if number is None else number
    return Field(Column(title, unit, is_number), value, shown)


def grouped(group: str, *members: Field, role: str = "") -> list[Field]:
    """Fields below one heading, and of one role."""
    return [
        replace(one, column=replace(one.column, group=group), role=role or one.role)
        for one in members
    ]


def significant(digits: int) -> Shown:
    """:func:`launchwise.report.wording.number` with so many digits."""
    return partial(wording.number, digits=digits)


def decimals(places: int) -> Shown:
    """:func:`launchwise.report.wording.fixed` with so many decimals."""
    return partial(wording.fixed, places=places)


def printed(value: str | None) -> str:
    """A figure as the paper prints it; a dash where it prints none."""
    return value or MISSING


def table_of(
    caption: str, fields: Sequence[Field], rows: pd.DataFrame | Iterable[Any], role: str = ""
) -> Table:
    """A row per record, all of one role."""
    listed = records(rows) if isinstance(rows, pd.DataFrame) else rows
    made = [Row([one.cell(record) for one in fields], role) for record in listed]
    return Table(caption, [one.column for one in fields], made)


Part = tuple[Sequence[Field], Mapping[Any, Any]]
"""Fields of a source, and its records by key."""


def beside(
    caption: str,
    heading: Field,
    keys: Iterable[Any],
    *parts: Part,
) -> Table:
    """Records of several sources beside each other, dashes where a source has none of a key.

    Parameters
    ----------
    heading
        First column; its record is the key.
    keys
        One per row.
    """
    rows = [
        Row([heading.cell(key), *(cell for part in parts for cell in _cells(*part, key))])
        for key in keys
    ]
    columns = [heading.column, *(one.column for fields, _ in parts for one in fields)]
    return Table(caption, columns, rows)


def _cells(fields: Sequence[Field], known: Mapping[Any, Any], key: Any) -> list[Cell]:
    return [one.cell(known[key]) if key in known else one.missing for one in fields]


def by_key(table: pd.DataFrame, key: str) -> dict[Any, dict[str, Any]]:
    """Records by the value of one of their columns."""
    return {record[key]: record for record in records(table)}


def of_texts(
    caption: str, titles: Sequence[str], rows: Iterable[Sequence[str | Cell]], role: str = THEIRS
) -> Table:
    """Texts, such as claims; ``role`` is that of the second column, which the paper says."""
    made = [
        Row(
            [
                cell if isinstance(cell, Cell) else Cell(cell, role=role if place == 1 else "")
                for place, cell in enumerate(row)
            ]
        )
        for row in rows
    ]
    return Table(caption, [Column(title, number=False) for title in titles], made)


def contradictions(published: Mapping[str, Records]) -> Iterator[Block]:
    """What a paper says twice, in its table ``contradictions``: what differs, and what agrees.

    Columns ``subject``, ``here``, ``there`` and ``conflict``, which is empty where both agree.
    """
    told = published.get("contradictions", [])
    titles = ("subject", "here", "there", "conflict")
    if rows := [[row[name] for name in titles] for row in told if row["conflict"]]:
        yield of_texts("Contradictions in the paper", titles, rows, role="")
    if held := [row["subject"] for row in told if not row["conflict"]]:
        yield Text(
            f"Of {len(told)} things that the paper says twice, {len(held)} agree: "
            f"{wording.listed(held)}.",
            "note",
        )


def lines(drawn: Mapping[str, pd.Series], template: str) -> list[dict[str, Any]]:
    """A line per name, in the order of the legend, of values over their index."""
    return [
        theme.line(values.index, values, name=name, place=place, template=template)
        for place, (name, values) in enumerate(drawn.items())
    ]
