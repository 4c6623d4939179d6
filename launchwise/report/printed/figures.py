"""A figure of the report drawn by Matplotlib: all panels and the legend on one sheet.

Pages hold figures as plain data of plotly, whose own export needs a browser on every machine. Of
plotly's data this reads what :mod:`launchwise.report.theme` writes: lines, markers and heat maps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure as Sheet
from matplotlib.lines import Line2D
from matplotlib.ticker import MultipleLocator, NullFormatter, NullLocator

from launchwise.base.literals import printed_text
from launchwise.base.storage import whole_file
from launchwise.report.blocks import Figure, Key, Panel

PIXELS_PER_INCH = 96
MOST_COLUMNS = 3
LEGEND_ROW_INCHES = 0.22
MOST_LETTERS = 26
"""Letters of the labels below a panel; more of them stand upright."""
POINTS_PER_PIXEL = 72 / PIXELS_PER_INCH

DASHES: Mapping[str, Any] = {
    "solid": "-",
    "dash": "--",
    "dot": ":",
    "dashdot": "-.",
    "longdash": (0, (8, 3)),
    "longdashdot": (0, (8, 3, 2, 3)),
}
MARKERS: Mapping[str, str] = {
    **{"circle": "o", "square": "s", "diamond": "D", "triangle-up": "^", "triangle-down": "v"},
    **{"cross": "P", "x": "X", "star": "*", "x-thin": "x"},
}

STYLE: Any = {
    "font.size": 8,
    "axes.edgecolor": "#b9c0c8",
    "axes.titlesize": 8,
    "axes.titlelocation": "left",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e7eb",
    "grid.linewidth": 0.6,
    "xtick.direction": "out",
    # The same bytes for the same figure, and letters that every reader of PDF can embed.
    "svg.hashsalt": "launchwise",
    "pdf.fonttype": 42,
}

FORMATS = ("svg", "pdf")


def save(figure: Figure, stem: Path, citation: str) -> list[Path]:
    """Write a figure in every format of :data:`FORMATS`.

    Parameters
    ----------
    stem
        Path without a suffix.
    citation
        Goes into the files' metadata beside the caption.

    Returns
    -------
    list of pathlib.Path
        The files.
    """
    found = []
    with matplotlib.rc_context(STYLE):
        sheet = drawn(figure)
        for kind in FORMATS:
            metadata = {
                "svg": {"Date": None, "Title": figure.caption, "Source": citation},
                "pdf": {"CreationDate": None, "Title": figure.caption, "Subject": citation},
            }[kind]
            found.append(stem.with_name(f"{stem.name}.{kind}"))
            with whole_file(found[-1]) as scratch:
                sheet.savefig(scratch, format=kind, metadata=metadata)
            # Both formats have the places that were found for the first.
            sheet.set_layout_engine("none")
    return found


def drawn(figure: Figure) -> Sheet:
    """The sheet.

    Raises
    ------
    ValueError
        When a trace is neither lines, markers nor a heat map.
    """
    count = len(figure.panels)
    columns = min(count, MOST_COLUMNS)
    rows = math.ceil(count / columns)
    legend_rows = math.ceil(len(figure.keys) / MOST_COLUMNS) if len(figure.keys) > 1 else 0
    legend = legend_rows * LEGEND_ROW_INCHES
    width = columns * max(figure.width, 300) / PIXELS_PER_INCH
    height = rows * (figure.height + 24) / PIXELS_PER_INCH + legend
    sheet = Sheet(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(sheet)
    axes = sheet.subplots(rows, columns, squeeze=False).ravel()
    for ax in axes[count:]:
        ax.remove()
    for ax, panel in zip(axes, figure.panels, strict=False):
        _draw_panel(sheet, ax, panel)
    if legend_rows:
        sheet.legend(
            handles=[_handle(key) for key in figure.keys],
            loc="outside upper left",
            ncols=MOST_COLUMNS,
            frameon=False,
        )
    return sheet


def _handle(key: Key) -> Line2D:
    label = printed_text(key.label)
    if key.shape in MARKERS:
        return Line2D([], [], color=key.colour, marker=MARKERS[key.shape], ls="", label=label)
    marker = MARKERS.get(key.marker, "")
    style = DASHES.get(key.shape, "-")
    return Line2D([], [], color=key.colour, ls=style, marker=marker, label=label)


def _draw_panel(sheet: Sheet, ax: Axes, panel: Panel) -> None:
    layout = panel.layout
    categories = {
        name: _categories(panel.data, name, layout[f"{name}axis"].get("type")) for name in "xy"
    }
    for trace in panel.data:
        if trace["type"] == "heatmap":
            _draw_heat(sheet, ax, trace)
        elif trace["type"] == "scatter":
            _draw_points(ax, trace, categories)
        else:
            raise ValueError(f"{panel.title}: no {trace['type']!r} on paper")
    for name in "xy":
        _set_axis(ax, name, layout[f"{name}axis"], categories[name])
    if panel.title:
        ax.set_title(printed_text(panel.title))


def _categories(traces: Sequence[Mapping[str, Any]], name: str, kind: str | None) -> list[str]:
    """Values of an axis of categories in order; empty where the axis has numbers."""
    values = [value for trace in traces for value in trace[name]]
    if kind != "category" and not any(isinstance(value, str) for value in values):
        return []
    return list(dict.fromkeys(str(value) for value in values))


def _places(values: Sequence[Any], categories: Sequence[str]) -> np.ndarray:
    if categories:
        return np.array([categories.index(str(value)) for value in values], dtype=float)
    return np.array([np.nan if value is None else value for value in values], dtype=float)


def _draw_points(ax: Axes, trace: Mapping[str, Any], categories: Mapping[str, list[str]]) -> None:
    x, y = (_places(trace[name], categories[name]) for name in "xy")
    line, marker = trace.get("line", {}), trace.get("marker", {})
    edge = marker.get("line", {})
    with_line, with_markers = ("lines" in trace["mode"]), ("markers" in trace["mode"])
    ax.plot(
        x,
        y,
        color=line.get("color", marker.get("color")),
        linewidth=line.get("width", 1.8) * POINTS_PER_PIXEL,
        linestyle=DASHES[line.get("dash", "solid")] if with_line else "",
        marker=MARKERS[marker.get("symbol", "circle")] if with_markers else "",
        markersize=marker.get("size", 6) * POINTS_PER_PIXEL,
        markeredgewidth=edge.get("width", 0) * POINTS_PER_PIXEL,
        markeredgecolor=edge.get("color", marker.get("color")),
        markerfacecolor=marker.get("color"),
        markevery=_markers_every(len(x), marker.get("maxdisplayed", 0)),
        alpha=marker.get("opacity", trace.get("opacity")),
    )


def _markers_every(points: int, most: int) -> int | None:
    """Step between points with a marker; None for a marker on each."""
    return math.ceil(points / most) if most else None


def _draw_heat(sheet: Sheet, ax: Axes, trace: Mapping[str, Any]) -> None:
    values = np.array(
        [[np.nan if value is None else value for value in row] for row in trace["z"]], dtype=float
    )
    scale = LinearSegmentedColormap.from_list("scale", [tuple(one) for one in trace["colorscale"]])
    low, high = trace["zmin"], trace["zmax"]
    # Vectors, which stay sharp, with the gaps between cells that the page has.
    image = ax.pcolormesh(
        values, cmap=scale, vmin=low, vmax=high, edgecolors="white", linewidth=0.6
    )
    sheet.colorbar(image, ax=ax, pad=0.02, fraction=0.05)
    for row, texts in enumerate(trace.get("text", ()) if "texttemplate" in trace else ()):
        for column, text in enumerate(texts):
            dark = values[row, column] > (low + high) / 2
            colour = "white" if dark else "#1d2733"
            at = (column + 0.5, row + 0.5)
            ax.text(*at, printed_text(text), ha="center", va="center", color=colour)
    ax.grid(visible=False)
    for set_ticks, names in ((ax.set_xticks, trace["x"]), (ax.set_yticks, trace["y"])):
        places = [place + 0.5 for place in range(len(names))]
        set_ticks(places, [printed_text(str(name)) for name in names])
    if sum(len(str(name)) for name in trace["x"]) > MOST_LETTERS:
        ax.tick_params(axis="x", rotation=90)


def _set_axis(ax: Axes, name: str, settings: Mapping[str, Any], categories: list[str]) -> None:
    axis = ax.xaxis if name == "x" else ax.yaxis
    limits = ax.set_xlim if name == "x" else ax.set_ylim
    axis.label.set_text(settings.get("title", {}).get("text", ""))
    is_log = settings.get("type") == "log"
    if is_log:
        (ax.set_xscale if name == "x" else ax.set_yscale)("log")
        axis.set_minor_locator(NullLocator())
        axis.set_minor_formatter(NullFormatter())
    if "tickvals" in settings:
        axis.set_ticks(settings["tickvals"], settings["ticktext"])
    elif "dtick" in settings:
        axis.set_major_locator(MultipleLocator(settings["dtick"]))
    elif categories and not axis.get_ticklabels(which="major")[0].get_text():
        axis.set_ticks(range(len(categories)), list(map(printed_text, categories)))
    if "range" in settings:
        low, high = settings["range"]
        limits(10**low, 10**high) if is_log else limits(low, high)
    if settings.get("autorange") == "reversed":
        axis.set_inverted(True)
