"""The page itself: sections in, one self-contained HTML file out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from launchwise.report.blocks import Block, Figure, Fold, Lookup, Section, Table


def render(title: str, lead: str, sections: Sequence[Section], *, figures: bool = True) -> str:
    """The whole page as HTML: no link leaves it and nothing is loaded.

    Parameters
    ----------
    title
        Heading and title of the page.
    lead
        One line below it.
    sections
        In order; the contents list them with their children.
    figures
        Whether to draw them; without figures and plotly.js the page is small.

    Raises
    ------
    ValueError
        When two sections have one id: a link would find the first of them only.
    """
    _check_ids(sections)
    data: dict[str, Any] = {}
    for block in every_block(sections):
        if isinstance(block, Figure) and figures:
            for place, panel in enumerate(block.panels):
                data[panel_id(block, place)] = {"data": panel.data, "layout": panel.layout}
        elif isinstance(block, Lookup):
            data[block.id] = {
                "answers": block.answers,
                "numbers": [c.number for c in block.columns],
            }
    return _template().render(
        title=title,
        lead=lead,
        sections=sections,
        panel_id=panel_id,
        table_rows=table_rows,
        style=_asset("style.css"),
        script=_asset("page.js"),
        plotly=Markup(plotly_source()) if figures else "",
        data=Markup(embedded(data)),
    )


@cache
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("launchwise.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html")


def table_rows(block: Table) -> Markup:
    """Rows of a table's body as HTML: a template takes ten times as long for so many cells."""
    columns = ["number" if column.number else "" for column in block.columns]
    lines = []
    for row in block.rows:
        lines.append(f'<tr class="{_escaped(row.role)}">' if row.role else "<tr>")
        for place, cell in enumerate(row.cells):
            text = _escaped(cell.text)
            if cell.best:
                text = f"<strong>{text}</strong>"
            if cell.link:
                text = f'<a href="{_escaped(cell.link)}">{text}</a>'
            if cell.detail:
                text += f'<span class="detail">{_escaped(cell.detail)}</span>'
            if place:
                role = _escaped(cell.role) if cell.role else ""
                lines.append(f'<td class="{columns[place]} {role}">{text}</td>')
            else:
                lines.append(f'<th scope="row">{text}</th>')
        lines.append("</tr>")
    return Markup("".join(f"{line}\n" for line in lines))


def _escaped(text: str) -> str:
    return str(escape(text))


def check_sections(sections: Sequence[Section], others: Sequence[Section] = ()) -> None:
    """Raise what :func:`render` would raise of these sections on a page with ``others``."""
    _check_ids([*sections, *others])
    render("", "", sections, figures=False)
    for block in every_block(sections):
        if isinstance(block, Figure):
            embedded([[panel.data, panel.layout] for panel in block.panels])


def _check_ids(sections: Sequence[Section]) -> None:
    ids = [section.id for section in every_section(sections)]
    if twice := {name for name in ids if ids.count(name) > 1}:
        raise ValueError(f"sections share an id: {', '.join(sorted(twice))}")


def panel_id(figure: Figure, place: int) -> str:
    """Id of one panel's element."""
    return f"plot-{figure.id}-{place}"


def every_section(sections: Sequence[Section]) -> Iterator[Section]:
    """Every section with its children, in order."""
    for section in sections:
        yield section
        yield from every_section(section.children)


def every_block(sections: Sequence[Section]) -> Iterator[Block]:
    """Every block of the page, those in folds included, in order."""
    for section in every_section(sections):
        yield from _inside(section.blocks)


def _inside(blocks: Sequence[Block]) -> Iterator[Block]:
    for block in blocks:
        yield block
        if isinstance(block, Fold):
            yield from _inside(block.blocks)


def embedded(value: Any) -> str:
    """JSON that may stand inside a script element: no ``<`` can end it early."""
    text = json.dumps(
        value, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False
    )
    return text.replace("<", "\\u003c")


def plotly_source() -> str:
    """plotly.js as plotly's own package carries it (the full build: it ships no smaller one)."""
    folder = resources.files("plotly") / "package_data"
    return (folder / "plotly.min.js").read_text(encoding="utf-8")


def _asset(name: str) -> Markup:
    folder = resources.files("launchwise.report") / "templates"
    return Markup((folder / name).read_text(encoding="utf-8"))
