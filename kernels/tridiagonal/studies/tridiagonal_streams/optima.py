"""Best and predicted number of streams of every size, the paper's and ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pandas as pd

from launchwise.experiment.published import Records, facts_of
from launchwise.report import wording
from launchwise.report.blocks import Block, Cell, Column, Fold, Row, Table, Text
from launchwise.report.numbers import records

from ...recommenders.stream_law.choice import compare_optima
from .gains import ABOVE, NOT_WELL, SIZE
from .series import FittedLaws, StreamSeries

LOSSES = {
    100_000: ("loss_1e5_ms", "time_1e5_measured_1_stream_ms"),
    500_000: ("loss_5e5_ms", "time_5e5_measured_8_streams_ms"),
}
"""Size to the published facts of its wrong prediction: time lost, and time of the best."""


def published_optima(published: Mapping[str, Records]) -> pd.DataFrame:
    """The paper's table of optima.

    Returns
    -------
    pandas.DataFrame
        ``n``, ``theirs_measured``, ``theirs_predicted`` (streams), ``theirs_lost_ms`` and
        ``theirs_lost_percent`` (0 where the prediction is right, NaN where no time is printed).
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
    columns = ["theirs_measured", "theirs_predicted", "theirs_lost_ms", "theirs_lost_percent"]
    return pd.DataFrame(rows, columns=[SIZE, *columns])


def optima_table(
    series: StreamSeries, laws: FittedLaws, published: Mapping[str, Records]
) -> pd.DataFrame:
    """Optima of every size that the paper or the series has.

    Returns
    -------
    pandas.DataFrame
        One row for each size, ascending: columns of :func:`published_optima`; those of
        ``compare_optima`` (``predicted_*`` by the chosen laws, ``baseline_*`` by creation alone);
        ``form_streams``, ``form_lost_ms`` and ``form_lost_percent`` by the published forms fitted
        here; ``part`` (``training``, ``held out``, empty where only the paper has the size);
        ``well_measured`` and ``above_bound`` as :func:`~gains.gain_table` has them. Measured optima
        and losses are NaN where a size is not measured well enough, losses also where the predicted
        number has no repeated time.
    """
    ours = compare_optima(series.rows, laws.sum.law, laws.overhead.law, laws.creation)
    if laws.published:
        form = compare_optima(series.rows, *laws.published, laws.creation)
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


def sentence(table: pd.DataFrame) -> str:
    """Result of the chosen laws on held-out sizes."""
    used = judged(table)
    if used.empty:
        return "no held-out size is measured well enough"
    right = int((used["predicted_streams"] == used["measured_streams"]).sum())
    lost = used["predicted_lost_percent"]
    said = f"{right} of {wording.plural(len(used), 'held-out size')} right"
    if lost.notna().any():
        said += f", at most {wording.fixed(lost.max(), 2)} % lost"
    if untimed := int(lost.isna().sum()):
        said += f", {untimed} of them with no repeated time of the predicted number"
    return said


def optima_blocks(
    optima: Mapping[str, pd.DataFrame], published: Mapping[str, Records]
) -> Iterator[Block]:
    """A table for each series with laws; that of the first is open.

    Parameters
    ----------
    optima
        Title of a series to its :func:`optima_table`.
    """
    theirs = published_optima(published)
    if not theirs.empty:
        differ = int((theirs["theirs_measured"] != theirs["theirs_predicted"]).sum())
        yield Text(
            f"Paper (RTX 2080 Ti): {len(theirs) - differ} of {len(theirs)} predictions right, at "
            f"most {wording.number(theirs['theirs_lost_ms'].max())} ms and "
            f"{wording.fixed(theirs['theirs_lost_percent'].max(), 2)} % lost; training sizes are "
            "among them.",
            "note",
        )
    for place, (title, table) in enumerate(optima.items()):
        text = f"{title}: {sentence(table)}"
        if place:
            yield Fold(text, [_table(title, table)])
        else:
            yield Text(f"{text}.")
            yield _table(title, table)


def _table(title: str, found: pd.DataFrame) -> Table:
    paper, chosen = "paper, RTX 2080 Ti", "chosen laws"
    form, alone = "published forms", "creation alone (Gómez-Luna)"
    columns = [
        Column(SIZE, "rows"),
        Column("measured", "streams", group=paper),
        Column("predicted", "streams", group=paper),
        Column("lost", "ms", group=paper),
        Column("lost", "%", group=paper),
        Column("size", number=False),
        Column("measured", "streams", group="here"),
        Column("time", "ms", group="here"),
        Column("predicted", "streams", group=chosen),
        Column("lost", "ms", group=chosen),
        Column("lost", "%", group=chosen),
        Column("predicted", "streams", group=form),
        Column("lost", "ms", group=form),
        Column("lost", "%", group=form),
        Column("predicted", "streams", group=alone),
        Column("lost", "%", group=alone),
    ]
    rows = []
    for record in records(found):
        theirs = [
            wording.count(record["theirs_measured"]),
            wording.count(record["theirs_predicted"]),
            wording.number(record["theirs_lost_ms"]),
            wording.fixed(record["theirs_lost_percent"], 2),
        ]
        remarks = {NOT_WELL: record["part"] and not record["well_measured"]}
        remarks[ABOVE] = record["above_bound"]
        part = Cell(record["part"], detail=", ".join(text for text in remarks if remarks[text]))
        here = [
            Cell(wording.count(record["measured_streams"])),
            Cell(wording.number(record["measured_ms"], 4)),
        ]
        for who in ("predicted", "form"):
            here += [
                Cell(wording.count(record[f"{who}_streams"])),
                Cell(wording.number(record[f"{who}_lost_ms"])),
                Cell(wording.fixed(record[f"{who}_lost_percent"], 2)),
            ]
        here += [
            Cell(wording.count(record["baseline_streams"])),
            Cell(wording.fixed(record["baseline_lost_percent"], 2)),
        ]
        beside = [Cell(text, role="theirs") for text in theirs]
        rows.append(Row([Cell(wording.count(record[SIZE])), *beside, part, *here]))
    caption = f"Best and predicted number of streams of every size, {title}"
    return Table(caption, columns, rows)
