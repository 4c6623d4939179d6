"""Blocks of a page: sections that hold text, tables, figures and folds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

MISSING = "–"


class Block:
    """A part of a section; the template shows it by its :attr:`kind`."""

    @property
    def kind(self) -> str:
        """Name of its class in lower case."""
        return type(self).__name__.lower()


@dataclass(frozen=True)
class Text(Block):
    """A paragraph. ``role`` is ``lead`` (the answer), ``note`` (a caveat), ``code`` or empty."""

    text: str
    role: str = ""


@dataclass(frozen=True)
class Notice(Block):
    """A notice at the top of a page, with a link."""

    text: str
    link: str
    link_text: str


@dataclass(frozen=True)
class Bullets(Block):
    """A list of short statements; a pair is a bold beginning and the rest."""

    items: Sequence[str | tuple[str, str]]


@dataclass(frozen=True)
class Column:
    """Heading of a table column; ``unit`` stands below the title, numbers align right. Neighbours
    with the same ``group`` share a heading above theirs."""

    title: str
    unit: str = ""
    number: bool = True
    group: str = ""


@dataclass(frozen=True)
class Cell:
    """One value as text; ``best`` marks the winner of its column, ``role`` names a CSS class.
    ``detail`` is a second, smaller line, ``link`` the address that the text leads to."""

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
class Table(Block):
    """A table with its caption; :mod:`launchwise.report.fields` makes them."""

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Row]

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
    """An entry of a figure's legend; ``shape`` is a style of lines or a symbol of
    :mod:`launchwise.report.theme`. ``marker`` is drawn on a line: the symbol of its points."""

    label: str
    colour: str
    shape: str = "line"
    marker: str = ""


@dataclass(frozen=True)
class Figure(Block):
    """Panels that share a caption and a legend; they wrap where the screen is narrow."""

    id: str
    caption: str
    alt: str  # what is drawn, in words
    panels: Sequence[Panel]
    keys: Sequence[Key] = ()
    height: int = 260  # of one panel, pixels
    width: int = 300  # the least of a panel, pixels
    limit: int = 0  # the greatest width, pixels; 0: all there is


@dataclass(frozen=True)
class Fold(Block):
    """Blocks that stay closed until somebody opens them, or follows a link to the ``id``."""

    title: str
    blocks: Sequence[Block]
    id: str = ""


@dataclass(frozen=True)
class File(Block):
    """A file beside the pages, such as a table that is too long for one; the page links to it."""

    path: str  # below the report's folder
    title: str
    content: Table | str | None = None  # a table becomes CSV; None where the report has the file


@dataclass(frozen=True)
class Finder(Block):
    """A lookup over all studies; each study's answers are in a file beside the page."""

    id: str
    studies: Sequence[tuple[str, str]]  # name and title
    first: Mapping[str, Any]  # study, gpu and problem (parameter to value) at the beginning
    workloads: Mapping[str, str]  # of each study: those of one workload may know a faster kernel
    options: Sequence[str] = ()  # of the command that asks the model: files of the settings


@dataclass(frozen=True)
class Compared(Block):
    """GPUs beside each other on the same problems; each study's times lie in a file beside."""

    id: str
    studies: Sequence[tuple[str, str]]  # name and title
    first: Mapping[str, str]  # study and beside (a GPU) at the beginning
    tdp_w: Mapping[str, float]  # of the whole card, W
    prices: Mapping[str, Sequence[Any]]  # GPU to euro, euro per hour, date and source
    table: str  # path of all rows as CSV, below the folder of the report


@dataclass(frozen=True)
class Landscape(Block):
    """Controls of a figure of all configurations; each GPU's rows lie in a file beside."""

    id: str
    figure: str  # id of the figure of one panel that they change
    gpus: Sequence[str]
    gpu: str  # at the beginning, as the problem
    parameters: Mapping[str, Sequence[str]]  # problem parameter to its values in order
    chosen: Mapping[str, str]
    across: Sequence[tuple[str, str]]  # axes to choose from: name and title
    up: Sequence[tuple[str, str]]
    lead: str  # what is said of them
    data: Mapping[str, Any]  # what the script reads


@dataclass(frozen=True)
class Section:
    """A part of the page that the contents point to."""

    id: str
    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Page:
    path: str  # below the report's folder
    name: str  # what leads to it is called so
    title: str
    lead: str
    sections: Sequence[Section]
    study: str = ""  # whose page it is; empty for a page of the whole report
    doi: str = ""  # of what the study repeats; empty where none is known

    @property
    def root(self) -> str:
        """Way from this page to the report's folder."""
        return "../" * self.path.count("/")
