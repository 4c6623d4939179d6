"""Blocks of a page: sections that hold text, tables, figures and folds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

MISSING = "–"


@dataclass(frozen=True)
class Text:
    """A paragraph. ``role`` is ``lead`` (the answer), ``note`` (a caveat), ``code`` or empty."""

    text: str
    role: str = ""
    kind: str = field(default="text", init=False)


@dataclass(frozen=True)
class Notice:
    """A notice at the top of a page, with a link."""

    text: str
    link: str
    link_text: str
    kind: str = field(default="notice", init=False)


@dataclass(frozen=True)
class Drawing:
    """A picture that needs no script: SVG as text, and what it shows in words."""

    id: str
    caption: str
    alt: str
    svg: str
    kind: str = field(default="drawing", init=False)


@dataclass(frozen=True)
class Bullets:
    """A list of short statements; a pair is a bold beginning and the rest."""

    items: Sequence[str | tuple[str, str]]
    kind: str = field(default="bullets", init=False)


@dataclass(frozen=True)
class Column:
    """Heading of a table column; ``unit`` stands below the title, numbers align right.

    Neighbours with the same ``group`` share a heading above theirs.
    """

    title: str
    unit: str = ""
    number: bool = True
    group: str = ""


@dataclass(frozen=True)
class Cell:
    """One value as text; ``best`` marks the winner of its column, ``role`` names a CSS class.

    ``detail`` is a second, smaller line, ``link`` the address that the text leads to.
    """

    text: str
    best: bool = False
    role: str = ""
    detail: str = ""
    link: str = ""


@dataclass(frozen=True)
class Row:
    """Cells of a row, the first of them its heading; ``role`` names a CSS class."""

    cells: Sequence[Cell]
    role: str = ""


@dataclass(frozen=True)
class Table:
    """A table with its caption."""

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    kind: str = field(default="table", init=False)

    @property
    def groups(self) -> list[tuple[str, int]]:
        """(heading, columns it spans) from left to right; empty when no column has a group."""
        spans = [(name, len(list(run))) for name, run in groupby(c.group for c in self.columns)]
        return spans if any(name for name, _ in spans) else []


@dataclass(frozen=True)
class Panel:
    """One plot: a plotly figure as plain data."""

    title: str
    data: list[dict[str, Any]]
    layout: dict[str, Any]


@dataclass(frozen=True)
class Key:
    """An entry of a figure's legend; ``shape`` is ``line``, ``dash``, ``dot`` or ``cross``.

    ``marker`` is drawn on a line: the symbol of its points.
    """

    label: str
    colour: str
    shape: str = "line"
    marker: str = ""


@dataclass(frozen=True)
class Figure:
    """Panels that share a caption and a legend; they wrap where the screen is narrow.

    ``alt`` says in words what is drawn, ``height`` is that of one panel, ``width`` its least and
    ``limit`` its greatest width (0: all there is), in pixels.
    """

    id: str
    caption: str
    alt: str
    panels: Sequence[Panel]
    keys: Sequence[Key] = ()
    height: int = 260
    width: int = 300
    limit: int = 0
    kind: str = field(default="figure", init=False)


@dataclass(frozen=True)
class Fold:
    """Blocks that stay closed until somebody opens them."""

    title: str
    blocks: Sequence[Block]
    kind: str = field(default="fold", init=False)


@dataclass(frozen=True)
class Lookup:
    """A chooser: pick a problem, read one row a GPU.

    Parameters
    ----------
    parameters
        Problem parameter -> its values, as text, in order.
    columns
        Headings of the answer, the first of them the GPU.
    answers
        Values of the parameters, joined by ``|`` -> rows of cells.
    """

    id: str
    parameters: Mapping[str, Sequence[str]]
    units: Mapping[str, str]
    chosen: Mapping[str, str]
    columns: Sequence[Column]
    answers: Mapping[str, Sequence[Sequence[str]]]
    kind: str = field(default="lookup", init=False)


@dataclass(frozen=True)
class Finder:
    """A lookup over all studies; each study's answers are in a file beside the page.

    Parameters
    ----------
    studies
        Name and title of each.
    first
        ``study``, ``gpu`` and ``problem`` (parameter to value) that it begins with.
    workloads
        Study to its workload: studies of one workload may know a faster kernel.
    verdicts
        Workload and GPU to the verdict on the sweep.
    options
        Words behind the command that asks the model: files of the settings.
    """

    id: str
    studies: Sequence[tuple[str, str]]
    first: Mapping[str, Any]
    workloads: Mapping[str, str]
    verdicts: Mapping[str, Mapping[str, str]]
    options: Sequence[str] = ()
    kind: str = field(default="finder", init=False)


@dataclass(frozen=True)
class Compared:
    """GPUs beside each other on the same problems; each study's times lie in a file beside.

    Parameters
    ----------
    studies
        Name and title of each.
    first
        ``study`` and ``beside`` (a GPU) that it begins with.
    tdp_w
        GPU to the power of its whole card, W.
    prices
        GPU to euro, euro per hour, date and source.
    table
        Every row as CSV, below the folder of the report.
    """

    id: str
    studies: Sequence[tuple[str, str]]
    first: Mapping[str, str]
    tdp_w: Mapping[str, float]
    prices: Mapping[str, Sequence[Any]]
    table: str
    kind: str = field(default="compared", init=False)


@dataclass(frozen=True)
class LandscapeControls:
    """Controls of a figure of all configurations; each GPU's rows lie in a file beside.

    Parameters
    ----------
    figure
        Id of the :class:`Figure` of one panel that they change.
    lookup
        Id of the :class:`Lookup` on the same page whose problem the figure shows.
    gpu, problem
        What the figure shows at first; values of the problem as text.
    lead
        What is said of that.
    across, up
        Axes to choose from: name and title.
    variants
        Variant to colour, symbol and names of its tunables.
    titles
        Tunable to its title.
    most_points
        Points that are drawn at most.
    steps
        See :data:`launchwise.report.landscape_rows.STEPS`.
    """

    id: str
    figure: str
    lookup: str
    study: str
    gpus: Sequence[str]
    gpu: str
    across: Sequence[tuple[str, str]]
    up: Sequence[tuple[str, str]]
    problem: Sequence[str]
    lead: str
    variants: Mapping[str, tuple[str, str, Sequence[str]]]
    titles: Mapping[str, str]
    most_points: int
    steps: int
    kind: str = field(default="landscape", init=False)


Block = (
    Text
    | Notice
    | Bullets
    | Table
    | Figure
    | Drawing
    | Fold
    | Lookup
    | Finder
    | Compared
    | LandscapeControls
)


@dataclass(frozen=True)
class Section:
    """A part of the page that the contents point to."""

    id: str
    title: str
    blocks: Sequence[Block]
    children: Sequence[Section] = ()


@dataclass(frozen=True)
class Page:
    """A page of the report.

    Parameters
    ----------
    path
        Below the report's folder.
    name
        What leads to it is called so.
    study
        Name of the study whose page it is; empty for a page of the whole report.
    doi
        Of what the study repeats; empty where none is known.
    """

    path: str
    name: str
    title: str
    lead: str
    sections: Sequence[Section]
    study: str = ""
    doi: str = ""

    @property
    def root(self) -> str:
        """Way from this page to the report's folder."""
        return "../" * self.path.count("/")


def table(caption: str, columns: Sequence[Column], rows: Sequence[Sequence[str | Cell]]) -> Table:
    """A table from plain texts."""
    made = [Row([cell if isinstance(cell, Cell) else Cell(cell) for cell in row]) for row in rows]
    return Table(caption, columns, made)


MOST_COLUMNS = 6
"""Columns of a table of GPUs beside the first; with more GPUs each has a row instead."""


def turned(given: Table, heading: str) -> Table:
    """A table with a column per GPU; one with a row per GPU where there are many.

    Parameters
    ----------
    given
        Its first column says what each row holds, with the unit in brackets at the end.
    heading
        Of the first column of a turned table.
    """
    if len(given.columns) - 1 <= MOST_COLUMNS:
        return given
    columns = [Column(heading, number=False)]
    for row in given.rows:
        title, bracket, unit = row.cells[0].text.removesuffix(")").rpartition(" (")
        names = (title, unit) if bracket else (row.cells[0].text, "")
        columns.append(Column(*names, number=given.columns[1].number))
    rows = [
        Row([Cell(column.title), *(row.cells[place] for row in given.rows)])
        for place, column in enumerate(given.columns)
        if place
    ]
    return Table(given.caption, columns, rows)
