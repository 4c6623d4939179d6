"""Tables by fields: a field is a column and its value in a record, so that heading and text stand
together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pandas as pd

from launchwise.experiment.published import Records
from launchwise.report import theme, wording
from launchwise.report.blocks import MISSING, Block, Cell, Column, File, Fold, Row, Table, Text
from launchwise.report.numbers import records

THEIRS = "theirs"  # Role of a cell with a figure of the paper
FROM_PAPER = "from_paper"  # Key of records whose every cell is the paper's

Shown = Callable[[Any], str]

Value = str | int | Callable[[Any], Any]
"""Key of a record, place in it, or name of its attribute; or a function of the record."""


@dataclass(frozen=True)
class Field:
    """A column, and its cell in a record."""

    column: Column
    value: Value  # a cell that a function returns stays as it is
    shown: Shown  # text of the value
    role: str | Callable[[Any], str] = ""
    detail: Callable[[Any], str] | None = None  # the second line of the cell
    link: Callable[[Any], str] | None = None
    best: Callable[[Any], bool] | None = None

    def cell(self, record: Any) -> Cell:
        """Its value in a record; all cells of a record with :data:`FROM_PAPER` are the paper's."""
        value = self.value(record) if callable(self.value) else _part(record, self.value)
        if isinstance(value, Cell):
            return value
        role = self.role(record) if callable(self.role) else self.role
        return Cell(
            self.shown(value),
            best=self.best is not None and self.best(record),
            role=THEIRS if isinstance(record, Mapping) and FROM_PAPER in record else role,
            detail=self.detail(record) if self.detail else "",
            link=self.link(record) if self.link else "",
        )

    @property
    def missing(self) -> Cell:
        """Its cell where there is no record."""
        return Cell(MISSING, role="" if callable(self.role) else self.role)

    @property
    def words(self) -> str:
        """Title and unit, as the heading of a row."""
        return wording.with_unit(self.column.title, self.column.unit)


def _part(record: Any, name: str | int) -> Any:
    return record[name] if hasattr(record, "__getitem__") else getattr(record, str(name))


def field(
    title: str,
    value: Value,
    shown: Shown = str,
    unit: str = "",
    number: bool | None = None,
    **more: Any,
) -> Field:
    """A field; its column is one of numbers if ``shown`` is not ``str``, or as ``number`` says.

    ``more``: ``role``, ``detail``, ``link`` and ``best`` of :class:`Field`.
    """
    is_number = shown is not str if number is None else number
    return Field(Column(title, unit, is_number), value, shown, **more)


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


def percents(places: int) -> Shown:
    """:func:`launchwise.report.wording.percent` with so many decimals."""
    return partial(wording.percent, places=places)


def printed(value: str | None) -> str:
    """A figure as the paper prints it; a dash where it prints none."""
    return value or MISSING


def table_of(
    caption: str,
    fields: Sequence[Field],
    rows: pd.DataFrame | Iterable[Any],
    role: str | Callable[[Any], str] = "",
) -> Table:
    """A row per record; ``role`` is that of each row."""
    listed = records(rows) if isinstance(rows, pd.DataFrame) else rows
    made = [
        Row([one.cell(record) for one in fields], role(record) if callable(role) else role)
        for record in listed
    ]
    return Table(caption, [one.column for one in fields], made)


def file_of(path: str, table: Table) -> File:
    """A table as CSV beside the pages."""
    rows = wording.plural(len(table.rows), "row")
    return File(path, f"{table.caption} (CSV, {rows})", table)


MOST_COLUMNS = 6
"""Columns of a table of GPUs beside the first; with more GPUs each has a row instead."""


def by_gpu(caption: str, corner: str, fields: Sequence[Field], gpus: Mapping[str, Any]) -> Table:
    """A column per GPU and a row per field; a row per GPU where there are many.

    ``corner`` is the heading above the titles of the fields, ``gpus`` has the record of each GPU.
    Fields that no GPU has are left out.
    """
    known = gpus.values()
    fields = [one for one in fields if any(one.cell(own).text != MISSING for own in known)]
    if len(gpus) > MOST_COLUMNS:
        titles = [Column(one.column.title, one.column.unit) for one in fields]
        rows = [Row([Cell(gpu), *(one.cell(own) for one in fields)]) for gpu, own in gpus.items()]
        return Table(caption, [Column("GPU", number=False), *titles], rows)
    columns = [Column(corner, number=False), *map(Column, gpus)]
    rows = [Row([Cell(one.words), *(one.cell(own) for own in gpus.values())]) for one in fields]
    return Table(caption, columns, rows)


Part = tuple[Sequence[Field], Mapping[Any, Any]]  # Fields of a source, and its records by key


def beside(caption: str, heading: Field, keys: Iterable[Any], *parts: Part) -> Table:
    """Records of several sources beside each other, dashes where a source has none of a key. The
    record of ``heading``, the first column, is the key; each of ``keys`` has a row."""
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
    roles = ("", role, *[""] * len(titles))
    fields = [field(title, at, role=roles[at]) for at, title in enumerate(titles)]
    return table_of(caption, fields, rows)


def contradictions(published: Mapping[str, Records]) -> list[Block]:
    """A fold with what a paper says twice, in its table ``contradictions``; none without one.
    Columns ``subject``, ``here``, ``there`` and ``conflict``, which is empty where both agree."""
    told, found = published.get("contradictions", []), list[Block]()
    title, titles = "Contradictions in the paper", ("subject", "here", "there", "conflict")
    if rows := [[row[name] for name in titles] for row in told if row["conflict"]]:
        found.append(of_texts(title, titles, rows, role=""))
    if held := [row["subject"] for row in told if not row["conflict"]]:
        agree = f"Of {len(told)} things that the paper says twice, {len(held)} agree: "
        found.append(Text(f"{agree}{wording.listed(held)}.", "note"))
    return [Fold(title, found)] if found else []


def lines(drawn: Mapping[str, pd.Series], template: str) -> list[dict[str, Any]]:
    """A line per name, in the order of the legend, of values over their index."""
    return [
        theme.line(values.index, values, name=name, place=place, template=template)
        for place, (name, values) in enumerate(drawn.items())
    ]


AGAINST_USUAL = grouped(
    "relative to the usual choice",
    field("speed-up", "gain_geometric_mean", decimals(2), "geometric"),
    field("slower", "harmed", wording.count, "problems"),
    field("least", "least_gain", decimals(2), "one problem"),
    field("kept", "kept_usual", wording.count, "problems"),
    field(
        "missed", lambda got: f"{got['missed']} of {got['worthwhile']}", str, "of improvable", True
    ),
)
"""Columns of the figures of a model on one split or GPU."""


def of_mean(got: Mapping[str, Any]) -> str:
    """Interval of the mean fraction of the best; empty without one."""
    ends = got["fraction_interval"]
    return wording.interval(tuple(ends)) if ends else ""


def answers_in(name: str) -> Callable[[Mapping[str, Any]], str]:
    """Number of the answers of which a share of intervals tells, by the column that has it."""
    return lambda got: f"of {got[name]}" if got.get(name) else ""
