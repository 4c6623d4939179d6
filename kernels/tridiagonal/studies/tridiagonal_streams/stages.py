"""Stages that streams can overlap: times, sum, and the optimum of the earlier model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from launchwise.experiment.published import Records
from launchwise.report import theme, wording
from launchwise.report.blocks import Block, Figure, Key, Panel, Text
from launchwise.report.fields import THEIRS, Field, beside, by_key, field, grouped
from launchwise.report.study_tables import StudyData

from ...recommenders.stream_law.choice import OVERLAPPED, overlapped_ms
from ...recommenders.stream_law.laws import PUBLISHED_SUM, CreationLaw, Law, predicted_streams
from .gains import NOT_COMPARED, SIZE
from .series import BY_THOMAS, StreamSeries

PAPER = "paper, RTX 2080 Ti"
TEMPLATE = f"{SIZE}=%{{x}}: %{{y:.4g}} ms"  # words for a point of a time


def stage_table(series: StreamSeries) -> pd.DataFrame:
    """Overlapped stages of every size with the optima of streams.

    The optimum of Gómez-Luna and van Werkhoven is sqrt(sum / tau), a real number.

    Returns a DataFrame: one row for each size, ascending: ``n``; :data:`~choice.OVERLAPPED` and
    ``sum`` (ms); ``optimum_fitted`` (tau fitted to the overheads) and ``optimum_created`` (tau the
    measured time to create a stream); ``measured_streams`` (NaN where not all that may be the
    fastest were compared); ``predicted_streams`` by the laws. NaN without such a tau or law.
    """
    found = series.stages[[SIZE, *OVERLAPPED]].copy()
    found["sum"] = overlapped_ms(found)
    laws = series.laws
    taus = {"fitted": laws.creation.tau if laws else None, "created": series.creation_ms}
    for name, tau in taus.items():
        found[f"optimum_{name}"] = (
            np.nan if tau is None else [CreationLaw(tau).optimum(each) for each in found["sum"]]
        )
    known = series.gains[series.gains["tied"].map(bool)].set_index(SIZE)
    found["measured_streams"] = found[SIZE].map(known["best_streams"])
    found["predicted_streams"] = (
        [predicted_streams(n, laws.sum.law, laws.overhead.law) for n in found[SIZE]]
        if laws
        else np.nan
    )
    return found.reset_index(drop=True)


def published_stage_table(published: Mapping[str, Records]) -> pd.DataFrame:
    """The paper's table in the columns of :func:`stage_table`; empty where it is not there.
    Predictions are those of the paper's table of optima."""
    predicted = {
        int(row["n"]): float(row["streams_predicted"]) for row in published.get("optima", [])
    }
    rows = [
        {
            SIZE: int(row["n"]),
            **{name: float(row[f"{name}_ms"]) for name in OVERLAPPED},
            "sum": float(row["sum_ms"]),
            "optimum_fitted": np.nan,
            "optimum_created": float(row["streams_gomez_luna"]),
            "measured_streams": float(row["streams_measured"]),
            "predicted_streams": predicted.get(int(row["n"]), np.nan),
        }
        for row in published.get("stages", [])
    ]
    return pd.DataFrame(rows)


def _unknown(record: Mapping[str, Any]) -> str:
    return NOT_COMPARED if wording.is_missing(record["measured_streams"]) else ""


def _fields(title: str, role: str = "") -> list[Field]:
    return grouped(
        title,
        *(field(name.upper(), name, wording.number, "ms") for name in OVERLAPPED),
        field("sum", "sum", wording.number, "ms"),
        field("√(sum / tau)", "optimum_created", wording.number),
        field("best", "measured_streams", wording.count, "streams", detail=_unknown),
        field("predicted", "predicted_streams", wording.count, "streams"),
        role=role,
    )


FORMULAS = (
    "T = T₁ᴴ²ᴰ + T₁ᶜᵒᵐᵖ + T₁ᴰ²ᴴ + T₂ᴴ + T₃ᴴ²ᴰ + T₃ᶜᵒᵐᵖ + T₃ᴰ²ᴴ\n"
    "sum = T₁ᶜᵒᵐᵖ + T₁ᴰ²ᴴ + T₃ᴴ²ᴰ + T₃ᶜᵒᵐᵖ\n"
    "T(s) = T₁ᴴ²ᴰ + sum / s + T₂ᴴ + T₃ᴰ²ᴴ + overhead(s)\n"
    "overhead(s) = T(s) - T + (s - 1) / s · sum"
)
"""Time without streams, and with s of them."""


def stage_blocks(
    study: StudyData,
    every: Sequence[StreamSeries],
    names: Mapping[str, str],
    published: Mapping[str, Records],
) -> Iterator[Block]:
    """The model, the paper's table beside ours of its stage 2 if there is such, and the sums."""
    paper = published_stage_table(published)
    tables = [(series, stage_table(series)) for series in every]
    yield Text(FORMULAS, "code")
    if not paper.empty:
        series, ours = next((one for one in tables if BY_THOMAS in one[0].kind), tables[0])
        theirs = by_key(paper, SIZE)
        yield beside(
            "Stage times without streams, and the optimum number of streams",
            field(SIZE, lambda size: size, wording.count, "rows"),
            theirs,
            (_fields(PAPER, THEIRS), theirs),
            (_fields(names[series.title]), by_key(ours, SIZE)),
        )
    yield _figure_of_sums(study, tables, names, paper)


def _figure_of_sums(
    study: StudyData,
    tables: Sequence[tuple[StreamSeries, pd.DataFrame]],
    names: Mapping[str, str],
    paper: pd.DataFrame,
) -> Figure:
    panels = []
    for series, ours in tables:
        sizes, shown = ours[SIZE], [*ours["sum"]]
        traces = [_dots(ours, "measured", theme.BLUE, "circle")]
        if series.laws:
            chosen = series.laws.sum.law
            traces.append(_line(sizes, chosen, "chosen law", theme.BLUE, "solid"))
            if series.laws.published:
                form = series.laws.published[0]
                traces.append(_line(sizes, form, "published form", theme.GREEN, "dash"))
        if not paper.empty:
            shown += [*paper["sum"]]
            traces.append(_dots(paper, PAPER, theme.ORANGE, "square"))
            traces.append(_line(sizes, PUBLISHED_SUM, "paper's line", theme.ORANGE, "dot"))
        x = theme.log_axis(f"{SIZE} (rows)", sizes)
        y = theme.log_axis("ms", shown)
        panels.append(Panel(names[series.title], traces, theme.layout(x, y)))
    return Figure(
        id=f"{study.name}-sum",
        caption="Sum of the stages that streams can overlap.",
        alt=f"Dots and lines: milliseconds of the sum against {SIZE}, ours and the paper's.",
        panels=panels,
        keys=[
            Key("measured", theme.BLUE, "circle"),
            Key("chosen law", theme.BLUE),
            Key("published form, fitted here", theme.GREEN, "dash"),
            Key("paper's stage table", theme.ORANGE, "square"),
            Key("paper's line", theme.ORANGE, "dot"),
        ],
    )


def _dots(table: pd.DataFrame, name: str, colour: str, shape: str) -> dict[str, Any]:
    style: dict[str, Any] = {"name": name, "colour_": colour, "shape": shape, "size": 6}
    return theme.dots(table[SIZE], table["sum"], template=TEMPLATE, **style)


def _line(sizes: pd.Series, law: Law, name: str, colour: str, dash: str) -> dict[str, Any]:
    """A law as a line; what a logarithmic axis cannot show is left out."""
    values = pd.Series(law.predict(sizes), index=sizes.index)
    drawn = theme.rule(sizes, values.where(values > 0), dash, f"{name}<br>{TEMPLATE}", colour)
    return {**drawn, "name": name}
