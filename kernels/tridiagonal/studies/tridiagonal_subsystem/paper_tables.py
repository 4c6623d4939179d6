"""Tables I and IV of the paper, every row, with our optima beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from launchwise.experiment.published import Records
from launchwise.report import wording
from launchwise.report.blocks import MISSING, Block, Fold, Table, Text
from launchwise.report.fields import (
    Field,
    beside,
    by_key,
    decimals,
    field,
    grouped,
    printed,
    significant,
    table_of,
)

from .series import CHOICE, SIZE, SIZES, SubsystemSeries

NAMES = {"float64": "table I", "float32": "table IV"}

PAPER = "paper, RTX 2080 Ti"
OURS = grouped(
    "ours",
    field("streams", "streams", wording.count),
    field("m observed", f"observed_{CHOICE}", wording.count, "rows"),
    field("ties with", "others", unit="m"),
    field("time", "observed_time_ms", significant(4), "ms"),
    field("m corrected", CHOICE, wording.count, "rows"),
    field("time", "time_ms", significant(4), "ms"),
    field("rank", "rank", wording.count),
    field("costs", "loss_percent", decimals(2), "%"),
)
THEIRS = {
    "row": ("row", ""),
    "streams": ("streams", ""),
    "m_observed": ("m observed", "rows"),
    "m_observed_float64": ("m in float64", "rows"),
    "time_observed_ms": ("time", "ms"),
    "m_corrected": ("m corrected", "rows"),
    "time_corrected_ms": ("time", "ms"),
    "difference_ms": ("difference", "ms"),
}
"""Columns of the published tables that are shown, in order, where a table has them."""


def _their_fields(theirs: Records) -> list[Field]:
    """As printed; a time in full, an empty cell as a dash."""
    shown = {name: column for name, column in THEIRS.items() if theirs and name in theirs[0]}
    made = (field(title, name, printed, unit) for name, (title, unit) in shown.items())
    return grouped(PAPER, *made, role="theirs")


def optima_tables(
    every: list[SubsystemSeries], published: Mapping[str, Records]
) -> Iterator[Block]:
    """A folded table per case, ours beside the paper's; rows of the paper without a size after."""
    for case in every:
        theirs = published.get(f"optima_{case.dtype}", [])
        caption = f"Optima of {case.title}"
        if theirs:
            caption += f", beside {NAMES[case.dtype]} of the paper"
        yield Fold(f"{case.title}: optima of every size", [_beside(caption, case, theirs)])
    for dtype in dict.fromkeys(case.dtype for case in every):
        lost = [record for record in published.get(f"optima_{dtype}", []) if not record["n"]]
        if lost:
            yield Fold(
                f"Paper, {dtype}: {len(lost)} rows without a size",
                [
                    Text(
                        f"The text of {NAMES[dtype]} lost its sizes. Sizes from 200\u202f000 rows "
                        "on follow from the streams and the order of rows; these do not. They are "
                        "in ascending order.",
                        "note",
                    ),
                    table_of(f"Rows of {NAMES[dtype]} without a size", _their_fields(lost), lost),
                ],
            )


def _beside(caption: str, case: SubsystemSeries, theirs: Records) -> Table:
    known = {int(record["n"]): record for record in theirs if record["n"]}
    streams = case.optimum_rows.set_index(SIZE)["streams"]
    ours = by_key(case.corrected, SIZE)
    for size, record in ours.items():
        others = [m for m in case.ties[size] if m != record[f"observed_{CHOICE}"]]
        record["others"] = ", ".join(map(wording.count, others)) or MISSING
        record["streams"] = streams[size]
    keys = sorted({*ours, *known})
    return beside(caption, SIZES, keys, (OURS, ours), (_their_fields(theirs), known))
