"""What figures share: colours, axes, layout, kinds of problems (plotly data, no plotly import).

Colours are those of Okabe and Ito, which people with any common colour blindness can tell apart;
where a colour means something, a dash or a marker says the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from launchwise.report import wording
from launchwise.report.blocks import Key
from launchwise.report.study_tables import StudyData

BLUE, ORANGE, GREEN, PINK = "#0072B2", "#D55E00", "#009E73", "#CC79A7"

SKY, AMBER, GREY, INK = "#56B4E9", "#E69F00", "#8a8f98", "#1d2733"

BROWN, VIOLET = "#7a4a1e", "#5d3a9b"

CYCLE = (BLUE, ORANGE, GREEN, PINK, AMBER, SKY, INK, GREY, BROWN, VIOLET)

DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")

SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "circle-open", "triangle-down")
"""Of plotly; a cross turned or a star cannot be told from a cross at this size."""

GRID = "#e4e7eb"


def colour(place: int) -> str:
    """Colour of the ``place``-th series."""
    return CYCLE[place % len(CYCLE)]


def dash(place: int) -> str:
    """Line style of the ``place``-th series."""
    return DASHES[place % len(DASHES)]


def symbol(place: int) -> str:
    """Marker of the ``place``-th series."""
    return SYMBOLS[place % len(SYMBOLS)]


def axis(title: str, **options: Any) -> dict[str, Any]:
    """An axis with a title that carries its unit; nothing zooms, so that pages scroll on phones."""
    return {
        "title": {"text": title, "font": {"size": 12}, "standoff": 6},
        "gridcolor": GRID,
        "linecolor": "#b9c0c8",
        "showline": True,
        "zeroline": False,
        "fixedrange": True,
        "automargin": True,
        "ticks": "outside",
        "ticklen": 3,
        "tickcolor": "#b9c0c8",
        **options,
    }


def log_axis(title: str, values: Iterable[float], **options: Any) -> dict[str, Any]:
    """A logarithmic axis over ``values`` with few labels, none of them in powers of ten."""
    found = np.asarray(list(values), dtype=float)
    found = found[np.isfinite(found) & (found > 0)]
    if not len(found):
        return axis(title, type="log", **options)
    low, high = np.log10(found.min()), np.log10(found.max())
    pad = max(0.03 * (high - low), 0.02)
    ticks = _ticks(low - pad, high + pad)
    return axis(
        title,
        type="log",
        range=[round(low - pad, 4), round(high + pad, 4)],
        tickvals=[float(f"{tick:.6g}") for tick in ticks],
        ticktext=[short(tick) for tick in ticks],
        **options,
    )


def keys(names: Iterable[str], *, markers: bool = False) -> list[Key]:
    """Legend of lines that were drawn in this order (see :func:`line`)."""
    return [
        Key(name, colour(place), dash(place), symbol(place) if markers else "")
        for place, name in enumerate(names)
    ]


def short(tick: float) -> str:
    """A label that stays short: 10k, 1M, 1G from ten thousand on."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if tick >= size:
            return f"{tick / (1e3 if letter == 'k' else size):.6g}{letter}"
    return f"{tick:.6g}"


TICK_STEPS: tuple[tuple[float, ...], ...] = (
    (1,),
    (1, 3),
    (1, 2, 5),
    (1, 1.5, 2, 3, 5, 7),
    (1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 9),
)


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers between two powers of ten, from the coarsest steps that give four of them."""
    found: list[float] = []
    for steps in TICK_STEPS:
        found = [
            step * 10.0**power
            for power in range(int(np.floor(low)), int(np.ceil(high)) + 1)
            for step in steps
            if low <= np.log10(step * 10.0**power) <= high
        ]
        if len(found) >= 4:
            break
    return found


def layout(x: dict[str, Any], y: dict[str, Any], **options: Any) -> dict[str, Any]:
    """Layout of one panel; ``templates/page.js`` holds what all panels share."""
    return {"xaxis": x, "yaxis": y, **options}


def rounded(values: Iterable[Any], digits: int = 4) -> list[float | None]:
    """Numbers to ``digits`` significant digits, missing ones as None (JSON has no NaN). Whole
    numbers stay as they are: of a size or of a row every digit counts."""
    listed = list(values)
    if all(isinstance(value, int | np.integer) for value in listed):
        return [int(value) for value in listed]
    if any(isinstance(value, str) for value in listed):
        # Categories of an axis stay as they are.
        return listed
    numbers = np.asarray(listed, dtype=float)
    known = np.isfinite(numbers)
    return [
        float(f"{value:.{digits}g}") if finite else None
        for value, finite in zip(numbers.tolist(), known.tolist(), strict=True)
    ]


def line(
    x: Iterable[float],
    y: Iterable[float],
    *,
    name: str,
    place: int,
    hover: Sequence[str] | None = None,
    template: str = "%{x}: %{y}",
    markers: bool = True,
) -> dict[str, Any]:
    """A line with markers; ``hover`` holds one text a point, ``template`` may use %{text}."""
    trace: dict[str, Any] = {
        "type": "scatter",
        "mode": "lines+markers" if markers else "lines",
        "x": rounded(x),
        "y": rounded(y),
        "name": name,
        "line": {"color": colour(place), "width": 1.8, "dash": dash(place)},
        "marker": {"size": 5.5, "symbol": symbol(place), "color": colour(place)},
        "hovertemplate": f"{name}<br>{template}<extra></extra>",
    }
    if hover is not None:
        trace["text"] = list(hover)
    return trace


def rule(
    x: Iterable[float], y: Iterable[float], dash_: str, template: str = "", colour_: str = INK
) -> dict[str, Any]:
    """A thin line without points; without a template the pointer finds nothing on it."""
    said = {"hovertemplate": f"{template}<extra></extra>"} if template else {"hoverinfo": "skip"}
    line_ = {"color": colour_, "width": 1, "dash": dash_}
    drawn = {"x": rounded(x), "y": rounded(y), "line": line_}
    return {"type": "scatter", "mode": "lines", **drawn, **said}


def dots(
    x: Iterable[float],
    y: Iterable[float],
    *,
    name: str,
    colour_: str,
    shape: str = "circle",
    size: float = 4,
    opacity: float = 0.6,
    hover: Sequence[str] | None = None,
    template: str = "%{x}: %{y}",
) -> dict[str, Any]:
    """A scatter of markers; without a name the text at a point has none."""
    trace: dict[str, Any] = {
        "type": "scatter",
        "mode": "markers",
        "x": rounded(x),
        "y": rounded(y),
        "name": name,
        "marker": {"size": size, "color": colour_, "symbol": shape, "opacity": opacity},
        "hovertemplate": f"{name and f'{name}<br>'}{template}<extra></extra>",
    }
    if hover is not None:
        trace["text"] = list(hover)
    return trace


def thinned(count: int, limit: int) -> np.ndarray:
    """Positions of at most ``limit`` of ``count`` things, evenly spread, the same at every call."""
    if count <= limit:
        return np.arange(count)
    return np.unique(np.linspace(0, count - 1, limit).round().astype(int))


def kinds_of(study: StudyData, table: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """(title, rows) of every kind of problem (all parameters but the size), in order."""
    if not study.kinds:
        yield "", table
        return
    for values, rows in table.groupby(study.kinds, sort=True):
        named = dict(zip(study.kinds, values, strict=True))
        yield wording.problem(named, study.kinds), rows


def row_of(
    study: StudyData, rows: pd.DataFrame, gpu: str, *, sized: bool = False
) -> dict[str, Any]:
    """What a trace says of the rows behind its points, all of one kind of problem, for the script.

    ``sized``: they are one problem; else the size of each is the point's place on the axis.
    """
    first = rows.iloc[0]
    problem = [
        str(first[name]) if sized or name != study.size else None for name in study.problem_columns
    ]
    return {"gpu": gpu, "problem": problem}


def size_layout(study: StudyData, table: pd.DataFrame) -> dict[str, Any]:
    """Axis of problem sizes: logarithmic where they span two decades, categories where texts."""
    size = study.spec.problem[study.size]
    title = wording.with_unit(study.size, size.unit)
    if size.type == "category":
        return axis(title, type="category")
    # By the sizes of the whole study: panels beside each other have one kind of axis.
    every = study.rows[study.size].astype(float)
    if len(every) and every.min() > 0 and every.max() / every.min() > 100:
        return log_axis(title, table[study.size].astype(float))
    return axis(title)


def has_sizes(study: StudyData, table: pd.DataFrame) -> bool:
    """Whether a plot against size would show more than a point."""
    return bool(table[study.size].nunique() > 1)


def slug(name: str) -> str:
    """A name as part of an id: letters and digits alone."""
    return "".join(letter if letter.isalnum() else "-" for letter in name)
