"""Stages that streams can overlap: times, sum, and the optimum of the earlier model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from launchwise.experiment.published import Records, facts_of
from launchwise.report import theme, wording
from launchwise.report.blocks import Block, Cell, Column, Figure, Fold, Key, Panel, table
from launchwise.report.numbers import records
from launchwise.report.study import StudyData

from ...recommenders.stream_law.choice import OVERLAPPED, SERIAL, overlapped_ms
from ...recommenders.stream_law.laws import PUBLISHED_SUM, CreationLaw, predicted_streams
from .gains import NOT_WELL, SIZE
from .series import StreamSeries

PAPER = "paper, RTX 2080 Ti"


def stage_table(series: StreamSeries) -> pd.DataFrame:
    """Overlapped stages of every size with the optima of streams.

    The optimum of Gómez-Luna and van Werkhoven is sqrt(sum / tau), a real number.

    Returns
    -------
    pandas.DataFrame
        One row for each size, ascending: ``n``; :data:`~choice.OVERLAPPED` and ``sum`` (ms);
        ``optimum_fitted`` (tau fitted to the overheads) and ``optimum_created`` (tau the measured
        time to create a stream); ``measured_streams`` (NaN where the size is not measured well
        enough); ``predicted_streams`` by the laws. NaN where there is no such tau or law.
    """
    found = series.stages[[SIZE, *OVERLAPPED]].copy()
    found["sum"] = overlapped_ms(found)
    laws = series.laws
    taus = {
        "fitted": laws.creation.tau if laws else None,
        "created": series.creation_ms,
    }
    for name, tau in taus.items():
        found[f"optimum_{name}"] = (
            np.nan if tau is None else [CreationLaw(tau).optimum(each) for each in found["sum"]]
        )
    best = series.gains.set_index(SIZE)["best_streams"]
    found["measured_streams"] = found[SIZE].map(best)
    found["predicted_streams"] = (
        [predicted_streams(n, laws.sum.law, laws.overhead.law) for n in found[SIZE]]
        if laws
        else np.nan
    )
    return found.reset_index(drop=True)


def published_stage_table(published: Mapping[str, Records]) -> pd.DataFrame:
    """The paper's table in the columns of :func:`stage_table`; empty where it is not there.

    Predictions are those of the paper's table of optima.
    """
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


COLUMNS = [
    Column(SIZE, "rows"),
    Column("measured on", number=False),
    *(Column(name.upper(), "ms") for name in OVERLAPPED),
    Column("sum", "ms"),
    Column("tau fitted", group="√(sum / tau)"),
    Column("tau measured", group="√(sum / tau)"),
    Column("measured", group="best streams"),
    Column("predicted", group="best streams"),
]


def _cells(record: Mapping[str, object], where: str, role: str = "") -> list[Cell]:
    measured = record["measured_streams"]
    texts = [
        wording.count(record[SIZE]),
        where,
        *(wording.number(record[name]) for name in (*OVERLAPPED, "sum")),
        wording.number(record["optimum_fitted"]),
        wording.number(record["optimum_created"]),
        wording.count(measured),
        wording.count(record["predicted_streams"]),
    ]
    cells = [Cell(text, role=role) for text in texts]
    if wording.is_missing(measured):
        cells[-2] = Cell(texts[-2], role=role, detail=NOT_WELL)
    return cells


def stage_blocks(
    study: StudyData, every: Sequence[StreamSeries], published: Mapping[str, Records]
) -> Iterator[Block]:
    """Tables and figures of the stages and of their sum."""
    paper = published_stage_table(published)
    tables = [(series, stage_table(series)) for series in every]
    if not paper.empty:
        yield _beside(study, tables, paper)
    yield _figure_of_stages(study, every)
    yield _figure_of_sums(study, tables, paper)
    for series, ours in tables:
        rows = [_cells(record, series.title) for record in records(ours)]
        caption = f"Overlapped stages and optima of every size, {series.title}"
        yield Fold(f"{series.title}: stages of every size", [table(caption, COLUMNS, rows)])


def _beside(
    study: StudyData, tables: Sequence[tuple[StreamSeries, pd.DataFrame]], paper: pd.DataFrame
) -> Block:
    """The paper's sizes, each with the paper's row and one of every whole GPU."""
    rows = []
    for record in records(paper):
        rows.append(_cells(record, PAPER, role="theirs"))
        for series, ours in tables:
            same = ours[ours[SIZE] == record[SIZE]]
            if series.gpu in study.whole:
                rows += [_cells(one, series.title) for one in records(same)]
    return table("Stage times without streams and optimum number of streams", COLUMNS, rows)


def _figure_of_stages(study: StudyData, every: Sequence[StreamSeries]) -> Figure:
    names = [*OVERLAPPED, *SERIAL]
    panels = []
    for series in every:
        traces = [
            theme.line(
                series.stages[SIZE],
                series.stages[name].where(series.stages[name] > 0),
                name=name,
                place=place,
                template=f"{SIZE}=%{{x}}: %{{y:.4g}} ms",
            )
            for place, name in enumerate(names)
        ]
        x = theme.log_axis(f"{SIZE} (rows)", series.stages[SIZE])
        y = theme.log_axis("ms", series.stages[names].to_numpy().ravel())
        panels.append(Panel(series.title, traces, theme.layout(x, y)))
    said = {name: study.spec.stages.get(name, name) for name in names}
    return Figure(
        id=f"{study.name}-stages",
        caption=(
            "Time of each stage without streams. Streams can overlap "
            f"{wording.listed(OVERLAPPED)}; they leave {wording.listed(SERIAL)} alone."
        ),
        alt=f"Lines: milliseconds of each stage against {SIZE}.",
        panels=panels,
        keys=theme.keys(f"{name}: {said[name]}" for name in names),
    )


def _figure_of_sums(
    study: StudyData, tables: Sequence[tuple[StreamSeries, pd.DataFrame]], paper: pd.DataFrame
) -> Figure:
    """Sum against size with the fitted lines, the paper's points and line beside them."""
    template = f"{SIZE}=%{{x}}: %{{y:.4g}} ms"
    panels = []
    for series, ours in tables:
        sizes, shown = ours[SIZE], [*ours["sum"]]
        traces = [
            theme.dots(
                sizes, ours["sum"], name="measured", colour_=theme.BLUE, size=6, template=template
            )
        ]
        if series.laws:
            fitted: list[tuple[str, str, str, np.ndarray]] = [
                ("chosen law", theme.BLUE, "solid", series.laws.sum.law.predict(sizes))
            ]
            if series.laws.published:
                line = series.laws.published[0].predict(sizes)
                fitted.append(("published form", theme.GREEN, "dash", line))
            for name, colour, dash, values in fitted:
                traces.append(_line(sizes, values, name, colour, dash, template))
        if not paper.empty:
            shown += [*paper["sum"]]
            traces.append(
                theme.dots(
                    paper[SIZE],
                    paper["sum"],
                    name=PAPER,
                    colour_=theme.ORANGE,
                    shape="square",
                    size=6,
                    template=template,
                )
            )
            values = PUBLISHED_SUM.predict(sizes)
            traces.append(_line(sizes, values, "paper's line", theme.ORANGE, "dot", template))
        x = theme.log_axis(f"{SIZE} (rows)", sizes)
        panels.append(Panel(series.title, traces, theme.layout(x, theme.log_axis("ms", shown))))
    return Figure(
        id=f"{study.name}-sum",
        caption=(
            "Sum of the stages that streams can overlap, measured and fitted. The chosen law and "
            "the published form are lines of slope and constant; they differ in whether errors "
            "count relative to the sum or in ms."
        ),
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


def _line(
    x: pd.Series, y: np.ndarray, name: str, colour: str, dash: str, template: str
) -> dict[str, object]:
    """A law as a line; what a logarithmic axis cannot show is left out."""
    values = pd.Series(y, index=x.index)
    return theme.line(
        x,
        values.where(values > 0),
        name=name,
        place=0,
        markers=False,
        colour_=colour,
        dash_=dash,
        template=template,
    )


def creation_table(every: Sequence[StreamSeries], published: Mapping[str, Records]) -> Block:
    """tau of every series: fitted to overheads, and as the measured creation of a stream."""
    columns = [
        Column("GPU and problems", number=False),
        Column("fitted to overheads", "ms", group="tau"),
        Column("creation of a stream", "ms", group="tau"),
        Column("fitted / creation"),
    ]
    rows: list[list[str]] = []
    theirs = facts_of(published).get("stream_creation_rtx2080ti_ms")
    if theirs:
        rows.append([PAPER, "–", wording.number(float(theirs), 4), "–"])
    for series in every:
        fitted = series.laws.creation.tau if series.laws else None
        ratio = fitted / series.creation_ms if fitted and series.creation_ms else None
        rows.append(
            [
                series.title,
                wording.number(fitted, 4),
                wording.number(series.creation_ms, 4),
                wording.number(ratio),
            ]
        )
    return table("tau, the overhead per stream of the earlier model", columns, rows)
