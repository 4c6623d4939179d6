"""Laws of the sum and of the overhead: fit, prediction error, and the streams that they predict."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from launchwise.experiment.published import Records, facts_of
from launchwise.report import theme, wording
from launchwise.report.blocks import MISSING, Block, Bullets, Cell, Figure, Fold, Panel, Text
from launchwise.report.fields import (
    FROM_PAPER,
    THEIRS,
    Field,
    decimals,
    field,
    grouped,
    significant,
    table_of,
)
from launchwise.report.numbers import records
from launchwise.report.study_tables import StudyData

from ...recommenders.stream_law.choice import compare_optima, goodness_of_fit
from ...recommenders.stream_law.laws import (
    CreationLaw,
    Law,
    LinearOverheadLaw,
    OverheadLaw,
    SmoothOverheadLaw,
    SumLaw,
)
from .gains import CHOICE, ROWS, SIZE, remark, said_ties
from .series import FittedLaws, StreamSeries
from .stages import PAPER, TEMPLATE

FORMS = {
    SumLaw.__name__: "slope·n + constant",
    OverheadLaw.__name__: (
        "slope·n + streams·log₁₀ s + constant up to n = 10⁶, "
        "(slope·n + streams)·4/3·log₂ s + constant above"
    ),
    CreationLaw.__name__: "tau·s",
    LinearOverheadLaw.__name__: "per stream·(s - 1) + (share·n + constant)·(s - 1)/s",
    SmoothOverheadLaw.__name__: "(constant + scale·(n/10⁶)^exponent)·log₂ s",
}
"""Formula of each law, n the rows of a system and s the number of streams."""
NUMBERS = {name: f"({number})" for number, name in enumerate(FORMS, 1)}


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
    study: StudyData,
    every: Sequence[StreamSeries],
    names: Mapping[str, str],
    published: Mapping[str, Records],
) -> Iterator[Block]:
    """A table and a figure of the laws; a note for series without laws."""
    fitted = [(series, series.laws) for series in every if series.laws]
    lacking = [names[series.title] for series in every if not series.laws]
    if lacking:
        yield Text(
            f"No laws for {wording.listed(lacking)}: too few sizes have repeated times with "
            "several numbers of streams.",
            "note",
        )
    if not fitted:
        return
    told = [row for row in published.get("models", []) if row["set"] == "test"]
    rows: list[dict[str, Any]] = []
    if told:
        printed_ones = {row["model"]: float(row["r_squared"]) for row in told}
        printed_ones |= {f"{row['model']}_rmse": float(row["rmse_ms"] or "nan") for row in told}
        rows.append({"on": PAPER, **NOT_FITTED, **printed_ones, FROM_PAPER: True})
    rows += [{"on": names[series.title], **_fit(laws)} for series, laws in fitted]
    yield table_of("Laws on test sizes, which no law was fitted to", FITS, rows)
    yield Fold("Formulas of the laws", [Bullets(list(_forms(fitted))), Text(METHOD, "note")])
    yield _figure(study, fitted, names)


METHOD = (
    "Three quarters of the sizes, shuffled, are for training. The chosen law of the overhead has "
    "the least cross-validated error on them."
)
NOT_FITTED = dict.fromkeys(("law", "cross_validated", "relative"))


def _fit(laws: FittedLaws) -> dict[str, Any]:
    fits = fit_table(laws)
    tested = [row for row in records(fits) if row["set"] == "test"]
    fitted = {row["model"]: row["r2"] for row in tested}
    fitted |= {f"{row['model']}_rmse": row["rmse"] for row in tested}
    name = type(laws.overhead.law).__name__
    return {
        **dict.fromkeys(f"{name}{end}" for name in MODELS for end in ("", "_rmse")),
        **fitted,
        "law": NUMBERS[name],
        "cross_validated": laws.overhead.scores[name],
        "relative": goodness_of_fit(laws.overhead.law, laws.test)["relative"],
    }


def _r2(value: float | None) -> str:
    return wording.fixed(value, 5 if value is not None and value > 0.9 else 2)


MODELS = {"sum": "sum", "overhead_small": "overhead to n = 10⁶", "overhead_big": "above"}
FITS = [
    field("fitted on", "on"),
    *grouped(
        "R² of published forms",
        # Only near 1 do its last digits tell laws apart.
        *(field(title, name, _r2) for name, title in MODELS.items()),
    ),
    *grouped(
        "RMSE of them, ms",
        *(field(title, f"{name}_rmse", significant(3)) for name, title in MODELS.items()),
    ),
    *grouped(
        "chosen law of the overhead",
        field("law", "law", lambda number: number or MISSING),
        field("training error", "cross_validated", wording.percent, "% of sum"),
        field("test error", "relative", wording.percent, "% of sum"),
    ),
]


def _forms(fitted: Sequence[tuple[StreamSeries, FittedLaws]]) -> Iterator[tuple[str, str]]:
    """Formulas of the published forms and of the chosen laws."""
    yield "Published, sum:", FORMS[SumLaw.__name__]
    yield "Published, overhead:", FORMS[OverheadLaw.__name__]
    for name in dict.fromkeys(type(laws.overhead.law).__name__ for _, laws in fitted):
        yield f"{NUMBERS[name]}:", FORMS[name]


def _figure(
    study: StudyData, fitted: Sequence[tuple[StreamSeries, FittedLaws]], names: Mapping[str, str]
) -> Figure:
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
        panels.append(Panel(names[series.title], traces, theme.layout(x, y)))
    return Figure(
        id=f"{study.name}-overhead",
        caption=(
            "Overhead of streams, measured (dots) and by the chosen law; those below 0 are not "
            "drawn."
        ),
        alt=f"Dots and lines: milliseconds of overhead against {SIZE}, by number of streams.",
        panels=panels,
        keys=theme.keys(f"{count} streams" for count in counts),
    )


LOSSES = {
    100_000: ("loss_1e5_ms", "time_1e5_measured_1_stream_ms"),
    500_000: ("loss_5e5_ms", "time_5e5_measured_8_streams_ms"),
}
"""Size to the published facts of its wrong prediction: time lost, and time of the best."""


def published_optima(published: Mapping[str, Records]) -> pd.DataFrame:
    """The paper's table of optima. Returns a DataFrame: ``n``, ``theirs_measured``,
    ``theirs_streams`` (predicted), ``theirs_lost_ms`` and ``theirs_lost_percent`` (0 where the
    prediction is right, NaN where no time is printed)."""
    facts = facts_of(published)
    rows = []
    for record in published.get("optima", []):
        size = int(record[SIZE])
        measured, predicted = int(record["streams_measured"]), int(record["streams_predicted"])
        lost = percent = 0.0
        if measured != predicted:
            loss, best = (float(facts.get(name, "nan")) for name in LOSSES.get(size, ("", "")))
            lost, percent = loss, 100 * loss / best
        rows.append((size, measured, predicted, lost, percent))
    columns = ["theirs_measured", "theirs_streams", "theirs_lost_ms", "theirs_lost_percent"]
    return pd.DataFrame(rows, columns=[SIZE, *columns])


def optima_table(
    series: StreamSeries, laws: FittedLaws, published: Mapping[str, Records]
) -> pd.DataFrame:
    """Optima of every size that the paper or the series has.

    Returns a DataFrame: one row for each size, ascending: columns of :func:`published_optima`;
    those of ``compare_optima`` (``predicted_*`` by the chosen laws, ``baseline_*`` by creation
    alone); ``part`` (``training``, ``held out``, empty where only the paper has the size);
    ``well_measured``, ``above_bound``, ``tied`` and ``open`` as :func:`~gains.gain_table` has them.
    Measured optima and losses are NaN where nothing ties, losses also where the predicted number
    has no time to compare.
    """
    ours = compare_optima(series.compared, laws.sum.law, laws.overhead.law, laws.creation)
    gains = series.gains.set_index(SIZE)
    for name in ("well_measured", "above_bound"):
        ours[name] = ours[SIZE].map(gains[name]).eq(True)
    for name in ("tied", "open"):
        ours[name] = ours[SIZE].map(gains[name])
    for name in map(str, ours.columns):
        if name.startswith("measured_") or "_lost_" in name:
            ours[name] = ours[name].astype(float).where(ours["tied"].map(bool))
    held_out = ours[SIZE].isin(laws.held_out)
    ours["part"] = held_out.map({True: "held out", False: "training"})
    found = published_optima(published).merge(ours, on=SIZE, how="outer")
    found["part"] = found["part"].fillna("")
    for name in ("well_measured", "above_bound"):
        found[name] = found[name].eq(True)
    return found.sort_values(SIZE).reset_index(drop=True)


def judged(table: pd.DataFrame) -> pd.DataFrame:
    """Held-out sizes of :func:`optima_table`."""
    return table[table["part"] == "held out"]


def optima_blocks(optima: Mapping[str, pd.DataFrame], names: Mapping[str, str]) -> Iterator[Block]:
    """A folded table for the first series with laws.

    ``optima``: title of a series to its :func:`optima_table`.
    """
    for title, found in list(optima.items())[:1]:
        caption = f"Best and predicted number of streams, {names[title]}"
        yield Fold(f"Every size, {names[title]}", [table_of(caption, FIELDS, found)])


def _part(record: Mapping[str, Any]) -> Cell:
    """Training or held out, and what is to be known of its times."""
    return Cell(record["part"], detail=remark(record) if record["part"] else "")


def _choice(who: str) -> list[Field]:
    return [
        field("predicted", f"{who}_streams", wording.count, "streams"),
        field("lost", f"{who}_lost_ms", wording.number, "ms"),
        field("lost", f"{who}_lost_percent", decimals(2), "%"),
    ]


FIELDS = [
    ROWS,
    *grouped(
        "paper, RTX 2080 Ti",
        field("measured", "theirs_measured", wording.count, "streams"),
        *_choice("theirs"),
        role=THEIRS,
    ),
    field("size", _part),
    *grouped(
        "here",
        field("shortest", "measured_streams", wording.count, "streams"),
        field(
            "tie",
            lambda row: "" if wording.is_missing(row["measured_ms"]) else said_ties(row["tied"]),
        ),
        field("time", "measured_ms", significant(4), "ms"),
    ),
    *grouped("chosen laws", *_choice("predicted")),
    *grouped(
        "creation alone (Gómez-Luna)",
        field("predicted", "baseline_streams", wording.count, "streams"),
        field("lost", "baseline_lost_percent", decimals(2), "%"),
    ),
]
