"""Laws of the sum and of the overhead: fit, coefficients, and prediction error."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from launchwise.experiment.published import Records
from launchwise.report import theme, wording
from launchwise.report.blocks import Block, Cell, Figure, Panel, Table, Text
from launchwise.report.fields import FROM_PAPER, decimals, field, grouped, table_of
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
from .stages import PAPER, TEMPLATE

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
    yield _metrics(fitted, published)
    yield _figure(study, fitted)


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


MODELS = {
    "sum": "sum",
    "overhead_small": "overhead, n up to 10^6",
    "overhead_big": "overhead, n above 10^6",
}
"""Names of models in the published table, and for people."""
SETS = {"train": "training", "test": "test"}
METRICS = {
    "r2": ("r_squared", "R²", "", decimals(5)),
    "mse": ("mse_ms2", "MSE", "ms²", wording.number),
    "rmse": ("rmse_ms", "RMSE", "ms", wording.number),
}
"""Metric to its column in the published table, its name, its unit, and how it is shown."""


def _metrics(
    fitted: Sequence[tuple[StreamSeries, FittedLaws]], published: Mapping[str, Records]
) -> Table:
    """R², MSE and RMSE of the published forms: the paper's where there are any, then ours."""
    tables = [(series.title, fit_table(laws)) for series, laws in fitted]
    rows: list[dict[str, Any]] = []
    for model, said in MODELS.items():
        theirs = {row["set"]: row for row in published.get("models", []) if row["model"] == model}
        if theirs:
            printed = {
                f"{part}_{name}": float(value) if value else None
                for part in SETS
                for name, (column, *_) in METRICS.items()
                for value in [theirs.get(part, {}).get(column)]
            }
            rows.append({"model": said, "on": PAPER, **printed, FROM_PAPER: True})
        for title, fits in tables:
            own = records(fits[fits["model"] == model])
            ours = {f"{fit['set']}_{name}": fit[name] for fit in own for name in METRICS}
            rows += [{"model": said, "on": title, **ours}] if ours else []
    fields = [field("model", "model"), field("fitted on", "on")]
    for part, group in SETS.items():
        for name, (_, title, unit, shown) in METRICS.items():
            fields += grouped(group, field(title, f"{part}_{name}", shown, unit))
    return table_of("Published forms of the laws: the paper's fit and ours", fields, rows)


def _figure(study: StudyData, fitted: Sequence[tuple[StreamSeries, FittedLaws]]) -> Figure:
    counts = sorted({int(count) for one, _ in fitted for count in one.rows[CHOICE] if count > 1})
    panels = []
    for series, laws in fitted:
        shown = series.rows["overhead_ms"].where(series.rows["overhead_ms"] > 0)
        every_size = sorted(series.rows[SIZE].unique())
        traces = []
        for place, count in enumerate(counts):
            own, title = series.rows[CHOICE] == count, f"{count} streams"
            style: dict[str, Any] = {"size": 5.5, "template": TEMPLATE}
            colour, sizes = theme.colour(place), series.rows.loc[own, SIZE]
            traces.append(theme.dots(sizes, shown[own], name=title, colour_=colour, **style))
            law = pd.Series(laws.overhead.law.predict(every_size, count))
            style = {"template": TEMPLATE, "markers": False, "place": place}
            traces.append(theme.line(every_size, law.where(law > 0), name=f"{title}, law", **style))
        x = theme.log_axis(f"{SIZE} (rows)", series.rows[SIZE])
        y = theme.log_axis("overhead (ms)", shown.dropna())
        panels.append(Panel(series.title, traces, theme.layout(x, y)))
    return Figure(
        id=f"{study.name}-overhead",
        caption=(
            "Overhead of streams: dots are measured, lines are the law that cross-validation "
            "chose. Overheads below 0 cannot be drawn on this axis; there runs vary by more than "
            "streams cost."
        ),
        alt=f"Dots and lines: milliseconds of overhead against {SIZE}, by number of streams.",
        panels=panels,
        keys=theme.keys(f"{count} streams" for count in counts),
    )
