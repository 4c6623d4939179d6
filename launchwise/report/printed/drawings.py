"""A drawing of the report as a file: its SVG with the page's colours, and the same as PDF."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Sheet
from matplotlib.patches import Circle, Rectangle

from launchwise.base.literals import printed_text
from launchwise.base.storage import whole_file, write_text
from launchwise.report import theme
from launchwise.report.blocks import Drawing
from launchwise.report.printed.figures import PIXELS_PER_INCH, POINTS_PER_PIXEL, STYLE

NAMESPACE = "{http://www.w3.org/2000/svg}"
SOFT, LINE = "#55606d", "#d9dee4"

STYLES: Mapping[str, Mapping[str, Any]] = {
    "grid": {"stroke": LINE},
    "one": {"stroke": theme.INK},
    "tick": {"stroke": theme.INK, "stroke-width": 2},
    "single": {"fill-opacity": 0.25},
    "soft": {"fill": SOFT},
}
"""Class of an element to what the page's style says of it (``style.css``, light)."""

STEP = re.compile(r"([MVHL])(-?[\d.]+)(?:[ ,](-?[\d.]+))?")


def save(drawing: Drawing, stem: Path, citation: str) -> list[Path]:
    """Write a drawing as SVG and PDF.

    Returns
    -------
    list of pathlib.Path
        The files.

    Raises
    ------
    ValueError
        When it holds another element than a path of straight lines, a rectangle, a circle or text.
    """
    root = ElementTree.fromstring(drawing.svg)
    rules = "".join(
        f".{name}{{{';'.join(f'{key}:{value}' for key, value in style.items())}}}"
        for name, style in STYLES.items()
    )
    head, rest = drawing.svg.split(">", 1)
    text = f"<style>text{{font-family:sans-serif;fill:{theme.INK}}}{rules}</style>"
    paths = [stem.with_name(f"{stem.name}.{kind}") for kind in ("svg", "pdf")]
    write_text(paths[0], f"{head}>{text}{rest}\n")
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    with matplotlib.rc_context(STYLE):
        sheet = Sheet(figsize=(width / PIXELS_PER_INCH, height / PIXELS_PER_INCH))
        FigureCanvasAgg(sheet)
        ax = sheet.add_axes((0, 0, 1, 1))
        ax.set(xlim=(0, width), ylim=(height, 0))
        ax.set_axis_off()
        size = float(root.get("font-size", 13))
        for element in root:
            _draw(ax, element, size)
        said = {"CreationDate": None, "Title": drawing.caption, "Subject": citation}
        with whole_file(paths[1]) as scratch:
            sheet.savefig(scratch, format="pdf", metadata=said)
    return paths


def _draw(ax: Axes, element: ElementTree.Element, size: float) -> None:
    style = STYLES.get(element.get("class", ""), {})

    def said(name: str, default: Any) -> Any:
        return style.get(name, element.get(name, default))

    def at(name: str) -> float:
        return float(element.attrib[name])

    edge = {"edgecolor": said("stroke", "none"), "facecolor": said("fill", "black")}
    edge |= {"alpha": said("fill-opacity", None)}
    match element.tag.removeprefix(NAMESPACE):
        case "path":
            x, y = zip(*_points(element.attrib["d"]), strict=True)
            width = float(said("stroke-width", 1)) * POINTS_PER_PIXEL
            ax.plot(x, y, color=said("stroke", "black"), linewidth=width)
        case "rect":
            corner = (at("x"), at("y"))
            ax.add_patch(Rectangle(corner, at("width"), at("height"), **edge))
        case "circle":
            ax.add_patch(Circle((at("cx"), at("cy")), at("r"), **edge))
        case "text":
            anchor = {"start": "left", "middle": "center", "end": "right"}
            ax.text(
                at("x"),
                at("y"),
                printed_text(element.text or ""),
                ha=anchor[element.get("text-anchor", "start")],
                va="baseline",
                fontsize=size * POINTS_PER_PIXEL,
                color=style.get("fill", theme.INK),
            )
        case other:
            raise ValueError(f"no {other!r} in a drawing on paper")


def _points(path: str) -> list[tuple[float, float]]:
    """Points of a path of straight lines.

    Raises
    ------
    ValueError
        When it holds anything else.
    """
    if STEP.sub("", path).strip():
        raise ValueError(f"{path!r} is no path of straight lines")
    x = y = 0.0
    found = []
    for kind, first, second in STEP.findall(path):
        match kind:
            case "V":
                y = float(first)
            case "H":
                x = float(first)
            case _:
                x, y = float(first), float(second)
        found.append((x, y))
    return found
