"""Best and predicted number of streams of every size, the paper's and ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from launchwise.experiment.published import Records, facts_of
from launchwise.report import wording
from launchwise.report.blocks import Block, Cell, Fold
from launchwise.report.fields import THEIRS, Field, decimals, field, grouped, significant, table_of

from ...recommenders.stream_law.choice import compare_optima
from .gains import ABOVE, NOT_WELL, ROWS, SIZE
from .series import FittedLaws, StreamSeries

LOSSES = {
    100_000: ("loss_1e5_ms", "time_1e5_measured_1_stream_ms"),
    500_000: ("loss_5e5_ms", "time_5e5_measured_8_streams_ms"),
}
"""Size to the published facts of its wrong prediction: time lost, and time of the best."""


def published_optima(published: Mapping[str, Records]) -> pd.DataFrame:
    """The paper's table of optima.

    Returns a DataFrame: ``n``, ``theirs_measured``, ``theirs_streams`` (predicted),
    ``theirs_lost_ms`` and ``theirs_lost_percent`` (0 where the prediction is right, NaN where no
    time is printed).
    """
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
    alone); ``form_streams``, ``form_lost_ms`` and ``form_lost_percent`` by the published forms
    fitted here; ``part`` (``training``, ``held out``, empty where only the paper has the size);
    ``well_measured`` and ``above_bound`` as :func:`~gains.gain_table` has them. Measured optima and
    losses are NaN where a size is not measured well enough, losses also where the predicted number
    has no repeated time.
    """
    ours = compare_optima(series.compared, laws.sum.law, laws.overhead.law, laws.creation)
    if laws.published:
        form = compare_optima(series.compared, *laws.published, laws.creation)
        for name in ("streams", "lost_ms", "lost_percent"):
            ours[f"form_{name}"] = form[f"predicted_{name}"]
    else:
        ours = ours.assign(form_streams=float("nan"), form_lost_ms=float("nan"))
        ours["form_lost_percent"] = float("nan")
    gains = series.gains.set_index(SIZE)
    for name in ("well_measured", "above_bound"):
        ours[name] = ours[SIZE].map(gains[name]).eq(True)
    for name in map(str, ours.columns):
        if name.startswith("measured_") or "_lost_" in name:
            ours[name] = ours[name].astype(float).where(ours["well_measured"])
    held_out = ours[SIZE].isin(laws.held_out)
    ours["part"] = held_out.map({True: "held out", False: "training"})
    found = published_optima(published).merge(ours, on=SIZE, how="outer")
    found["part"] = found["part"].fillna("")
    for name in ("well_measured", "above_bound"):
        found[name] = found[name].eq(True)
    return found.sort_values(SIZE).reset_index(drop=True)


def judged(table: pd.DataFrame) -> pd.DataFrame:
    """Held-out sizes of :func:`optima_table` that are measured well enough."""
    return table[(table["part"] == "held out") & table["well_measured"]]


def optima_blocks(optima: Mapping[str, pd.DataFrame]) -> Iterator[Block]:
    """A table for each series with laws; that of the first is open.

    ``optima``: title of a series to its :func:`optima_table`.
    """
    for place, (title, found) in enumerate(optima.items()):
        caption = f"Best and predicted number of streams of every size, {title}"
        made = table_of(caption, FIELDS, found)
        yield Fold(f"{title}: optima of every size", [made]) if place else made


def _part(record: Mapping[str, Any]) -> Cell:
    """Training or held out, and what is to be known of its times."""
    remarks = {NOT_WELL: record["part"] and not record["well_measured"]}
    remarks[ABOVE] = record["above_bound"]
    return Cell(record["part"], detail=", ".join(text for text in remarks if remarks[text]))


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
        field("measured", "measured_streams", wording.count, "streams"),
        field("time", "measured_ms", significant(4), "ms"),
    ),
    *grouped("chosen laws", *_choice("predicted")),
    *grouped("published forms", *_choice("form")),
    *grouped(
        "creation alone (Gómez-Luna)",
        field("predicted", "baseline_streams", wording.count, "streams"),
        field("lost", "baseline_lost_percent", decimals(2), "%"),
    ),
]
