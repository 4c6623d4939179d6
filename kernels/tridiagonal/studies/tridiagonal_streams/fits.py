"""Laws of the sum and of the overhead: fit, coefficients, and prediction error."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields

import pandas as pd

from launchwise.experiment.published import Records, facts_of
from launchwise.report import theme, wording
from launchwise.report.blocks import Block, Cell, Column, Figure, Panel, Row, Table, Text
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
from .stages import PAPER, creation_table

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

    Returns
    -------
    pandas.DataFrame
        One row for each ``model`` (``sum``, ``overhead_small`` up to 10^6 rows, ``overhead_big``
        above) and ``set`` (``train``, ``test``): ``r2``, ``mse`` (ms^2), ``rmse`` (ms),
        ``relative``; ``observations``, how many. Empty where the forms cannot be fitted.
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
    """Every candidate law by its error on held-out sizes."""
    columns = [
        Column("GPU and problems", number=False),
        Column("law", number=False),
        Column("error", "% of sum", group="training sizes, held out in turn"),
        Column("error", "% of sum", group="test sizes"),
        Column("RMSE", "ms", group="test sizes"),
        Column("R²", group="test sizes"),
    ]
    rows = []
    for series, laws in fitted:
        for choice, candidates in ((laws.sum, SUM_LAWS), (laws.overhead, OVERHEAD_LAWS)):
            scores = held_out_scores(choice, candidates, laws.train, laws.test)
            target = choice.law.target.removesuffix("_ms")
            for record in records(scores):
                wins = record["law"] == type(choice.law).__name__
                rows.append(
                    Row(
                        [
                            Cell(series.title),
                            Cell(f"{target}: {FORMS[record['law']]}"),
                            Cell(wording.percent(record["cross_validated"]), best=wins),
                            Cell(wording.percent(record["relative"])),
                            Cell(wording.number(record["rmse"])),
                            Cell(wording.fixed(record["r2"], 4)),
                        ]
                    )
                )
    caption = "Candidate laws; bold: chosen, by the error on training sizes alone"
    return Table(caption, columns, rows)


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


def _metrics(
    fitted: Sequence[tuple[StreamSeries, FittedLaws]], published: Mapping[str, Records]
) -> Table:
    """R², MSE and RMSE of the published forms: the paper's where there are any, then ours."""
    columns = [
        Column("model", number=False),
        Column("fitted on", number=False),
        *(
            Column(name, unit, group=group)
            for group in ("training", "test")
            for name, unit in (("R²", ""), ("MSE", "ms²"), ("RMSE", "ms"))
        ),
    ]
    theirs = {(row["model"], row["set"]): row for row in published.get("models", [])}
    tables = [(series, fit_table(laws)) for series, laws in fitted]
    rows = []
    for model, said in MODELS.items():
        if any(name == model for name, _ in theirs):
            cells = [Cell(said), Cell(PAPER, role="theirs")]
            for name in ("train", "test"):
                row = theirs.get((model, name), {})
                for key, texts in (("r_squared", _r2), ("mse_ms2", _ms), ("rmse_ms", _ms)):
                    value = float(row[key]) if row.get(key) else None
                    cells.append(Cell(texts(value), role="theirs"))
            rows.append(Row(cells))
        for series, fits in tables:
            if fits.empty:
                continue
            mine = {fit["set"]: fit for fit in records(fits) if fit["model"] == model}
            cells = [Cell(said), Cell(series.title)]
            for name in ("train", "test"):
                fit = mine[name]
                cells += [Cell(_r2(fit["r2"])), Cell(_ms(fit["mse"])), Cell(_ms(fit["rmse"]))]
            rows.append(Row(cells))
    return Table("Published forms of the laws: the paper's fit and ours", columns, rows)


def _r2(value: float | None) -> str:
    return wording.fixed(value, 5)


def _ms(value: float | None) -> str:
    return wording.number(value)


def _coefficients(
    fitted: Sequence[tuple[StreamSeries, FittedLaws]], published: Mapping[str, Records]
) -> Table:
    """Coefficients of the published forms: the paper's, then ours; then those of chosen laws."""
    columns = [
        Column("fitted on", number=False),
        *(Column(name.split("_")[-1], unit, group=group) for name, unit, group, _ in COEFFICIENTS),
        Column("chosen laws", number=False),
    ]
    facts = facts_of(published)
    theirs = [
        _in_unit(float(facts[fact]) if fact in facts else None, unit)
        for _, unit, _, fact in COEFFICIENTS
    ]
    texts = [PAPER, *(wording.number(value, 4) for value in theirs), "–"]
    rows = []
    if any(value is not None for value in theirs):
        rows.append(Row([Cell(text, role="theirs") for text in texts]))
    for series, laws in fitted:
        values: dict[str, float] = {}
        for law in laws.published or ():
            values |= vars(law)
        ours = [
            wording.number(_in_unit(values.get(name), unit), 4) for name, unit, *_ in COEFFICIENTS
        ]
        said = f"sum: {_said(laws.sum.law)}; overhead: {_said(laws.overhead.law)}"
        rows.append(Row([Cell(text) for text in (series.title, *ours, said)]))
    return Table("Coefficients of the published forms, and of the chosen laws", columns, rows)


def _in_unit(value: float | None, unit: str) -> float | None:
    """A coefficient in ms, or ms / row, in the unit of its column."""
    return value if value is None or unit == "ms" else 1e6 * value


def _said(law: Law) -> str:
    """Its coefficients."""
    values = ((field.name, getattr(law, field.name)) for field in fields(law))  # type: ignore[arg-type]
    return ", ".join(f"{name.replace('_', ' ')} {value:.4g}" for name, value in values)


def _figure(
    study: StudyData,
    fitted: Sequence[tuple[StreamSeries, FittedLaws]],
    name: str,
    by: str,
    law_of: Callable[[FittedLaws], Law | None],
) -> Figure:
    """The surface overhead(n, streams), one line per number of streams."""
    counts = sorted({int(count) for one, _ in fitted for count in one.rows[CHOICE] if count > 1})
    panels = []
    for series, laws in fitted:
        law = law_of(laws)
        traces = []
        shown = series.rows["overhead_ms"].where(series.rows["overhead_ms"] > 0)
        every_size = sorted(series.rows[SIZE].unique())
        for place, count in enumerate(counts):
            own = series.rows[CHOICE] == count
            title, colour = f"{count} streams", theme.colour(place)
            template = f"{SIZE}=%{{x}}: %{{y:.4g}} ms"
            traces.append(
                theme.dots(
                    series.rows.loc[own, SIZE],
                    shown[own],
                    name=title,
                    colour_=colour,
                    size=5.5,
                    template=template,
                )
            )
            if law is None:
                continue
            drawn = pd.Series(law.predict(every_size, count))
            traces.append(
                theme.line(
                    every_size,
                    drawn.where(drawn > 0),
                    name=f"{title}, law",
                    place=place,
                    template=template,
                    markers=False,
                )
            )
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
