"""Laws of the sum and of the overhead: fit, coefficients, and prediction error."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields as fields_of
from functools import partial
from typing import Any

import pandas as pd

from launchwise.experiment.published import Records, facts_of
from launchwise.report import theme, wording
from launchwise.report.blocks import Block, Cell, Figure, Panel, Table, Text
from launchwise.report.fields import FROM_PAPER, decimals, field, grouped, significant, table_of
from launchwise.report.numbers import records
from launchwise.report.study import StudyData

from ...recommenders.stream_law.choice import goodness_of_fit, held_out_scores
from ...recommenders.stream_law.laws import (
    OVERHEAD_LAWS,
    SUM_LAWS,
    CreationLaw,
    Law,
    LinearOverheadLaw,
    OverheadLaw,
    RelativeSumLaw,
    SmoothOverheadLaw,
    SumLaw,
)
from .gains import CHOICE, SIZE
from .series import FittedLaws, StreamSeries
from .stages import PAPER, TEMPLATE, creation_table

FORMS: dict[str, str] = {
    SumLaw.__name__: "slope·n + constant, errors in ms (published)",
    RelativeSumLaw.__name__: "slope·n + constant, errors relative to the sum",
    OverheadLaw.__name__: (
        "slope·n + streams·log10(s) + constant up to n = 10^6, "
        "(slope·n + streams)·log2(s^(4/3)) + constant above (published)"
    ),
    CreationLaw.__name__: "tau·s (Gómez-Luna, van Werkhoven)",
    LinearOverheadLaw.__name__: "per stream·(s - 1) + (share·n + constant)·(s - 1)/s",
    SmoothOverheadLaw.__name__: "(constant + scale·(n/10^6)^exponent)·log2(s)",
}
"""Formula of each law, n the rows of a system and s the number of streams."""

COEFFICIENTS: tuple[tuple[str, str, str, str], ...] = (
    ("slope", "ns / row", "sum", "sum_per_unknown_ms"),
    ("constant", "ms", "sum", "sum_constant_ms"),
    ("small_slope", "ns / row", "overhead, n up to 10^6", "overhead_small_per_unknown_ms"),
    ("small_streams", "ms", "overhead, n up to 10^6", "overhead_small_per_log10_streams_ms"),
    ("small_constant", "ms", "overhead, n up to 10^6", "overhead_small_constant_ms"),
    ("large_slope", "ns / row", "overhead, n above 10^6", "overhead_big_per_unknown_and_log2_ms"),
    ("large_streams", "ms", "overhead, n above 10^6", "overhead_big_per_log2_ms"),
    ("large_constant", "ms", "overhead, n above 10^6", "overhead_big_constant_ms"),
)
"""Field of the published law, unit, group of columns, and the published fact."""


def fit_table(laws: FittedLaws) -> pd.DataFrame:
    """The published forms on training and test sizes, in the rows of the paper's table.

    Returns a DataFrame: one row for each ``model`` (``sum``, ``overhead_small`` up to 10^6 rows,
    ``overhead_big`` above) and ``set`` (``train``, ``test``): ``r2``, ``mse`` (ms^2), ``rmse``
    (ms), ``relative``; ``observations``, how many. Empty where the forms cannot be fitted.
    """
    if laws.published is None:
        return pd.DataFrame(columns=["model", "set", "r2", "mse", "rmse", "relative"])
    sum_law, overhead_law = laws.published
    parts: dict[str, tuple[Law, Callable[[pd.DataFrame], pd.Series]]] = {
        "sum": (sum_law, lambda rows: rows[SIZE] > 0),
        "overhead_small": (overhead_law, lambda rows: rows[SIZE] <= overhead_law.border),
        "overhead_big": (overhead_law, lambda rows: rows[SIZE] > overhead_law.border),
    }
    found = []
    for model, (law, among) in parts.items():
        for name, rows in (("train", laws.train), ("test", laws.test)):
            used = law.observations(rows[among(rows)])
            fit = goodness_of_fit(law, used)
            found.append({"model": model, "set": name, "observations": len(used), **fit})
    return pd.DataFrame(found)


def fit_blocks(
    study: StudyData, every: Sequence[StreamSeries], published: Mapping[str, Records]
) -> Iterator[Block]:
    """Figures and tables of the laws; a note for series without laws."""
    fitted = [(series, series.laws) for series in every if series.laws]
    lacking = [series.title for series in every if not series.laws]
    if lacking:
        yield Text(
            f"No laws for {wording.listed(lacking)}: too few sizes have repeated times with "
            "several numbers of streams.",
            "note",
        )
    if not fitted:
        return
    yield Text(
        "The sum is the time of the stages that streams can overlap; the overhead is what streams "
        "add. Laws are fitted to three quarters of the sizes, shuffled as in the paper; the other "
        "sizes are the test. (The models below have test sizes of their own.) Rows of a single "
        "launch are left out.",
        "note",
    )
    yield _scores(fitted)
    shares = wording.listed(_noise(series) for series, _ in fitted)
    yield Text(
        "The overhead is the difference of two whole runs. At the largest size a variation of 1 % "
        f"of a run is {shares}.",
        "note",
    )
    yield _metrics(fitted, published)
    yield _coefficients(fitted, published)
    yield creation_table(every, published)
    yield Text(
        "A timed run creates no stream: the streams exist before it. So the fitted tau is no time "
        "of creation, but what each further stream costs a run (copies and launches in smaller "
        "parts).",
        "note",
    )
    yield _figure(study, fitted, "overhead", "the law that cross-validation chose", _chosen)
    if any(laws.published for _, laws in fitted):
        yield _figure(study, fitted, "overhead-published", "the published form fitted here", _form)


def _chosen(laws: FittedLaws) -> Law | None:
    return laws.overhead.law


def _form(laws: FittedLaws) -> Law | None:
    return laws.published[1] if laws.published else None


def _scores(fitted: Sequence[tuple[StreamSeries, FittedLaws]]) -> Table:
    rows = []
    for series, laws in fitted:
        for choice, candidates in ((laws.sum, SUM_LAWS), (laws.overhead, OVERHEAD_LAWS)):
            wins, target = type(choice.law).__name__, choice.law.target.removesuffix("_ms")
            scores = held_out_scores(choice, candidates, laws.train, laws.test)
            named = {"on": series.title, "wins": wins, "target": target}
            rows += [{**named, **record} for record in records(scores)]
    caption = "Candidate laws; bold: chosen, by the error on training sizes alone"
    return table_of(caption, SCORES, rows)


SCORES = [
    field("GPU and problems", "on"),
    field("law", lambda row: f"{row['target']}: {FORMS[row['law']]}"),
    *grouped(
        "training sizes, held out in turn",
        field(
            "error",
            lambda row: Cell(
                wording.percent(row["cross_validated"]), best=row["law"] == row["wins"]
            ),
            unit="% of sum",
            number=True,
        ),
    ),
    *grouped(
        "test sizes",
        field("error", "relative", wording.percent, "% of sum"),
        field("RMSE", "rmse", wording.number, "ms"),
        field("R²", "r2", decimals(4)),
    ),
]


def _noise(series: StreamSeries) -> str:
    """1 % of a run with one stream in % of the sum, at the largest size."""
    last = series.rows[series.rows[CHOICE] == 1].iloc[-1]
    return f"{wording.number(last['time_ms'] / last['sum_ms'], 2)} % of the sum ({series.title})"


MODELS = {
    "sum": "sum",
    "overhead_small": "overhead, n up to 10^6",
    "overhead_big": "overhead, n above 10^6",
}
"""Names of models in the published table, and for people."""
SETS = {"train": "training", "test": "test"}
THEIRS = ("r_squared", "mse_ms2", "rmse_ms")
"""Columns of the published table: as R², MSE and RMSE of ours."""


def _metrics(
    fitted: Sequence[tuple[StreamSeries, FittedLaws]], published: Mapping[str, Records]
) -> Table:
    """R², MSE and RMSE of the published forms: the paper's where there are any, then ours."""
    theirs = {
        (row["model"], row["set"]): [float(row[name]) if row.get(name) else None for name in THEIRS]
        for row in published.get("models", [])
    }
    tables = [(series.title, fit_table(laws)) for series, laws in fitted]
    rows: list[dict[str, Any]] = []
    for model, said in MODELS.items():
        printed = [theirs.get((model, name), [None] * len(THEIRS)) for name in SETS]
        if any(name == model for name, _ in theirs):
            rows.append({"model": said, "on": PAPER, "fits": printed, FROM_PAPER: True})
        for title, fits in tables:
            own = fits[fits["model"] == model].set_index("set")[["r2", "mse", "rmse"]]
            if len(own):
                found = own.loc[list(SETS)].to_numpy().tolist()
                rows.append({"model": said, "on": title, "fits": found})
    scores = (
        ("R²", "", decimals(5)),
        ("MSE", "ms²", wording.number),
        ("RMSE", "ms", wording.number),
    )
    fields = [field("model", "model"), field("fitted on", "on")]
    for part, group in enumerate(SETS.values()):
        for place, (name, unit, shown) in enumerate(scores):
            value = partial(_fit, part=part, place=place)
            fields += grouped(group, field(name, value, shown, unit))
    return table_of("Published forms of the laws: the paper's fit and ours", fields, rows)


def _fit(row: Mapping[str, Any], part: int, place: int) -> Any:
    return row["fits"][part][place]


def _coefficients(
    fitted: Sequence[tuple[StreamSeries, FittedLaws]], published: Mapping[str, Records]
) -> Table:
    """Coefficients of the published forms: the paper's, then ours; then those of chosen laws."""
    facts = facts_of(published)
    printed = {name: float(facts[fact]) for name, *_, fact in COEFFICIENTS if fact in facts}
    rows: list[dict[str, Any]] = []
    if printed:
        rows.append({"on": PAPER, "chosen": "–", FROM_PAPER: True, **printed})
    for series, laws in fitted:
        said = f"sum: {_said(laws.sum.law)}; overhead: {_said(laws.overhead.law)}"
        row: dict[str, Any] = {"on": series.title, "chosen": said}
        for law in laws.published or ():
            row |= vars(law)
        rows.append(row)
    fields = [field("fitted on", "on")]
    for name, unit, group, _ in COEFFICIENTS:
        value = partial(_in_unit, name=name, unit=unit)
        title = name.split("_")[-1]
        fields += grouped(group, field(title, value, significant(4), unit))
    fields.append(field("chosen laws", "chosen"))
    return table_of("Coefficients of the published forms, and of the chosen laws", fields, rows)


def _in_unit(row: Mapping[str, Any], name: str, unit: str) -> float | None:
    value = row.get(name)
    return value if value is None or unit == "ms" else 1e6 * value


def _said(law: Law) -> str:
    values = ((one.name, getattr(law, one.name)) for one in fields_of(law))  # type: ignore[arg-type]
    return ", ".join(f"{name.replace('_', ' ')} {value:.4g}" for name, value in values)


def _figure(
    study: StudyData,
    fitted: Sequence[tuple[StreamSeries, FittedLaws]],
    name: str,
    by: str,
    law_of: Callable[[FittedLaws], Law | None],
) -> Figure:
    counts = sorted({int(count) for one, _ in fitted for count in one.rows[CHOICE] if count > 1})
    panels = []
    for series, laws in fitted:
        law = law_of(laws)
        traces = []
        shown = series.rows["overhead_ms"].where(series.rows["overhead_ms"] > 0)
        every_size = sorted(series.rows[SIZE].unique())
        for place, count in enumerate(counts):
            own, title = series.rows[CHOICE] == count, f"{count} streams"
            sizes, colour = series.rows.loc[own, SIZE], theme.colour(place)
            style: dict[str, Any] = {
                "name": title,
                "colour_": colour,
                "size": 5.5,
                "template": TEMPLATE,
            }
            traces.append(theme.dots(sizes, shown[own], **style))
            if law is not None:
                drawn = pd.Series(law.predict(every_size, count))
                style = {"name": f"{title}, law", "template": TEMPLATE, "markers": False}
                drawn = drawn.where(drawn > 0)
                traces.append(theme.line(every_size, drawn, place=place, **style))
        x = theme.log_axis(f"{SIZE} (rows)", series.rows[SIZE])
        y = theme.log_axis("overhead (ms)", shown.dropna())
        panels.append(Panel(series.title, traces, theme.layout(x, y)))
    return Figure(
        id=f"{study.name}-{name}",
        caption=(
            f"Overhead of streams: dots are measured, lines are {by}. Overheads below 0 cannot be "
            "drawn on this axis; there runs vary by more than streams cost."
        ),
        alt=f"Dots and lines: milliseconds of overhead against {SIZE}, by number of streams.",
        panels=panels,
        keys=theme.keys(f"{count} streams" for count in counts),
    )
