"""A page as HTML: complete by itself, or one of a folder of pages that share plotly.js."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import resources
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from launchwise.base.literals import html_text, visible_json, visible_output
from launchwise.exporting.lookup import Judge
from launchwise.report.blocks import (
    Block,
    Compared,
    Figure,
    Finder,
    Fold,
    Landscape,
    Section,
    Table,
)
from launchwise.report.theme import INK
from launchwise.report.wording import count

PLOTLY = "assets/plotly.js"  # Path of the compressed plotly.js in a folder of pages

STYLE, SCRIPT = "assets/style.css", "assets/page.js"
"""Other files that the pages of a folder share. The front page works without them."""

SCRIPTS = ("literals", "page", "row", "save", "lookup", "answer", "finder", "compare", "landscape")
"""Parts of the pages' script in order; one whose block a page lacks does nothing there."""

FEW_SECTIONS = 2  # A page of so many sections needs no list of them
MOST_ROWS = 60  # Rows of a table that stands open; a longer one is folded


@dataclass(frozen=True)
class Link:
    """A way to another page; ``current`` says that the reader is there already."""

    name: str
    href: str
    current: bool = False


@dataclass(frozen=True)
class Frame:
    """Frame of a page in a folder of pages."""

    root: str  # way from the page to the folder
    pages: Sequence[Link]  # of the whole report
    studies: Sequence[Link]  # first page of every study
    parts: Sequence[Link]  # of the study that this page belongs to
    name: str  # of its study, or of all of them; files that it saves are named after it
    citation: str  # of the report; empty for none
    bibtex: str = ""  # the same as an entry; empty for none
    places: Mapping[str, str] = field(default_factory=dict)  # id of a section to its page

    def href(self, link: str, inside: Collection[str]) -> str:
        """A link to a section, from this page, which holds those ``inside``. What does not begin
        with ``#`` is the path of a page, below the folder."""
        if not link.startswith("#"):
            return f"{self.root}{link}"
        page = "" if link[1:] in inside else self.places.get(link[1:], "")
        return f"{self.root if page else ''}{page}{link}"


def render(
    title: str,
    lead: str,
    sections: Sequence[Section],
    *,
    figures: bool = True,
    frame: Frame | None = None,
    doi: str = "",
) -> str:
    """A page as HTML: it loads nothing from elsewhere, and no link but that of the DOI leaves it.

    ``figures``: whether to draw them; without figures and plotly.js the page is small.
    ``frame``: the folder that the page is in, with plotly.js beside it; None for a page that is
        complete by itself and loads nothing.
    ``doi``: below the lead; empty for none.
    Raises ValueError when two sections have one id: a link would find the first of them only.
    """
    check_ids(sections)
    blocks = list(every_block(sections))
    drawn = figures and any(isinstance(block, Figure) for block in blocks)
    # The front page, which is sent around by itself.
    is_front = frame and not frame.root and any(isinstance(one, Finder) for one in blocks)
    ids = {part.id for part in parts_of(sections)}
    href = partial(frame.href, inside=ids) if frame else _same
    return _template().render(
        title=title,
        lead=lead,
        doi=doi,
        sections=sections,
        frame=frame,
        figures=figures,
        panel_id=panel_id,
        ink=INK,
        most_rows=MOST_ROWS,
        count=count,
        pairs=lambda names: [(name, name) for name in names],
        table_rows=partial(table_rows, href=href),
        href=href,
        style=_asset("style.css"),
        script=_script(),
        shortcuts=[] if is_front or len(sections) <= FEW_SECTIONS else sections,
        **_beside(frame, drawn, bool(is_front)),
        data=Markup(embedded(_data(sections, figures, frame))),
    )


def _beside(frame: Frame | None, drawn: bool, alone: bool) -> dict[str, str]:
    """plotly.js in the page, and links to what lies beside it; empty where none is loaded."""
    return {
        "plotly": Markup(plotly_script()) if drawn and not frame else "",
        "plotly_beside": f"{frame.root}{PLOTLY}" if frame and drawn else "",
        "style_beside": f"{frame.root}{STYLE}" if frame and not alone else "",
        "script_beside": f"{frame.root}{SCRIPT}" if frame and not alone else "",
    }


def _data(sections: Sequence[Section], figures: bool, frame: Frame | None) -> dict[str, Any]:
    """What scripts read: id of each interactive block to its data; under ``plots`` that of panels,
    packed."""
    data: dict[str, Any] = {}
    plots: dict[str, Any] = {}
    root = frame.root if frame else ""
    for block in every_block(sections):
        if isinstance(block, Figure) and figures:
            for place, panel in enumerate(block.panels):
                plots[panel_id(block, place)] = {"data": panel.data, "layout": panel.layout}
        elif isinstance(block, Finder):
            data[block.id] = {"first": block.first, "workloads": block.workloads, "root": root}
        elif isinstance(block, Compared):
            data[block.id] = {"first": block.first, "tdp": block.tdp_w, "prices": block.prices}
        elif isinstance(block, Landscape):
            plot = f"plot-{block.figure}-0"
            data[block.id] = {**block.data, "gpu": block.gpu, "plot": plot, "root": root}
    return {**data, "plots": packed(embedded(plots))} if plots else data


def _same(link: str) -> str:
    return link


@cache
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("launchwise.report", "templates"),
        autoescape=True,
        finalize=visible_output,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html")


def table_rows(block: Table, href: Callable[[str], str] = _same) -> Markup:
    """Rows of a table's body as HTML: a template takes ten times as long for so many cells."""
    # Most cells are numbers, so that only texts say what they are.
    columns = ["" if column.number else "text" for column in block.columns]
    lines = []
    for row in block.rows:
        lines.append(f'<tr class="{html_text(row.role)}">' if row.role else "<tr>")
        for place, cell in enumerate(row.cells):
            text = html_text(cell.text)
            if cell.best:
                text = f"<strong>{text}</strong>"
            if cell.link:
                text = f'<a href="{html_text(href(cell.link))}">{text}</a>'
            if cell.detail:
                text += f'<span class="detail">{html_text(cell.detail)}</span>'
            if place:
                kinds = " ".join(filter(None, (columns[place], html_text(cell.role))))
                lines.append(f'<td class="{kinds}">{text}</td>' if kinds else f"<td>{text}</td>")
            else:
                # A heading without words would be read as one.
                lines.append(f'<th scope="row">{text}</th>' if text else "<td></td>")
        lines.append("</tr>")
    return Markup("".join(f"{line}\n" for line in lines))


def check_sections(sections: Sequence[Section], others: Sequence[Section] = ()) -> None:
    """Raise what :func:`render` would raise of these sections on a page with ``others``."""
    check_ids([*sections, *others])
    render("", "", sections, figures=False)
    for block in every_block(sections):
        if isinstance(block, Figure):
            embedded([[panel.data, panel.layout] for panel in block.panels])


def check_ids(sections: Sequence[Section]) -> None:
    """Raise a ValueError if two sections have one id."""
    ids = [part.id for part in parts_of(sections)]
    if twice := {name for name in ids if ids.count(name) > 1}:
        raise ValueError(f"sections share an id: {', '.join(sorted(twice))}")


def parts_of(sections: Sequence[Section]) -> list[Section | Fold]:
    """What a link can lead to: sections, and folds that have an id."""
    folds = (block for block in every_block(sections) if isinstance(block, Fold) and block.id)
    return [*sections, *folds]


def panel_id(figure: Figure, place: int) -> str:
    return f"plot-{figure.id}-{place}"


def every_block(sections: Sequence[Section]) -> Iterator[Block]:
    """Every block of the page, those in folds included, in order."""
    for section in sections:
        yield from _inside(section.blocks)


def _inside(blocks: Sequence[Block]) -> Iterator[Block]:
    for block in blocks:
        yield block
        if isinstance(block, Fold):
            yield from _inside(block.blocks)


def embedded(value: Any) -> str:
    """JSON that may stand inside a script element: no ``<`` can end it early, nothing hides."""
    text = json.dumps(
        value, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False
    )
    return visible_json(text).replace("<", "\\u003c")


@cache
def plotly_script() -> str:
    """A script that holds plotly.js compressed; pages inflate it once a figure is near. plotly's
    own package carries the full build and no smaller one. Deflated and in base 85 it takes 38 % of
    that; its licence stays readable."""
    folder = resources.files("plotly") / "package_data"
    source = (folder / "plotly.min.js").read_text(encoding="utf-8")
    licence = source[: source.index("*/") + 2]
    return f'{licence}\nwindow.launchwisePlotly = "{packed(source, 9)}";\n'


DIGITS = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%.()*+-;,=>?@^_:{|}~"
"""Of base 85: none ends a string or an element. ``templates/page.js`` has the same."""

FAST = 6  # Level of deflating data: 9 takes three times as long for 1 % less


def packed(text: str, level: int = FAST) -> str:
    """A text deflated, in base 85; a page's script inflates it."""
    made = zlib.compress(text.encode(), level)
    lacking = -len(made) % 4
    words = np.frombuffer(made + bytes(lacking), ">u4").astype(np.int64)
    digits = words[:, np.newaxis] // 85 ** np.arange(4, -1, -1) % 85
    found = np.frombuffer(DIGITS, np.uint8)[digits].tobytes().decode()
    return found[: len(found) - lacking]


def whole_numbers(values: np.ndarray) -> list[str]:
    """Numbers of 0 or above, int64, as texts: a digit of base 64 of each number, the last digits
    first. Digits of one place are alike, and deflate well."""
    places = max(1, -(-int(values.max(initial=0)).bit_length() // 6))
    letters = np.frombuffer(DIGITS[:64], np.uint8)
    return [letters[values // 64**place % 64].tobytes().decode() for place in range(places)]


LEAF_DIGITS = 5  # Digits that leaves of judges are rounded to


def in_preorder(judge: Judge) -> dict[str, Any]:
    """Trees one after the other, each node before what is left of it, then right of it.

    Returns ``features``: of each node, plus 1, 0 of a leaf; ``cuts``: thresholds of each feature;
    ``places``: which of them each node has; ``leaves``: numbers without their decimal point, twice,
    plus 1 below 0; ``shifts``: how many decimals each has. All but ``cuts`` as
    :func:`whole_numbers`. Raises ValueError where a leaf has more
    than :data:`LEAF_DIGITS` digits: the page would answer by another one.
    """
    order: list[int] = []
    waiting = list(reversed(judge.starts))
    while waiting:
        order.append(waiting.pop())
        if judge.feature[order[-1]] >= 0:
            waiting += (judge.right[order[-1]], judge.left[order[-1]])
    features, thresholds = np.array(judge.feature)[order], np.array(judge.threshold)[order]
    of_feature = [np.flatnonzero(features == each) for each in range(features.max(initial=-1) + 1)]
    places = np.zeros(len(order), dtype=np.int64)
    cuts = []
    for own in of_feature:
        values, places[own] = np.unique(thresholds[own], return_inverse=True)
        cuts.append(values.tolist())
    leaves = np.array(judge.value, dtype=float)[order][features < 0]
    size = np.floor(np.log10(np.abs(np.where(leaves == 0, 1, leaves)))).astype(np.int64)
    shifts = np.clip(LEAF_DIGITS - 1 - size, 0, None)
    whole = np.rint(leaves * 10.0**shifts).astype(np.int64)
    if (whole / 10.0**shifts != leaves).any():
        raise ValueError(f"a leaf has more than {LEAF_DIGITS} digits")
    return {
        "features": whole_numbers(features + 1),
        "cuts": cuts,
        "places": whole_numbers(places[features >= 0]),
        "leaves": whole_numbers(2 * np.abs(whole) + (whole < 0)),
        "shifts": whole_numbers(shifts),
    }


def assets() -> dict[str, str]:
    """Files that the pages of a folder share: path below it to text."""
    return {STYLE: _asset("style.css"), SCRIPT: _script(), PLOTLY: plotly_script()}


def _script() -> Markup:
    return Markup("").join(_asset(f"{name}.js") for name in SCRIPTS)


@cache
def _asset(name: str) -> Markup:
    folder = resources.files("launchwise.report") / "templates"
    return Markup((folder / name).read_text(encoding="utf-8"))
