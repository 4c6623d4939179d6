"""Tables I and IV of the paper, every row, with our optima beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from launchwise.experiment.published import Records
from launchwise.report import wording
from launchwise.report.blocks import MISSING, Block, Cell, Column, Fold, Table, Text, table
from launchwise.report.numbers import records

from .series import CHOICE, SIZE, SubsystemSeries

NAMES = {"float64": "table I", "float32": "table IV"}

OURS = [
    Column("streams", group="ours"),
    Column("m observed", "rows", group="ours"),
    Column("ties with", "m", number=False, group="ours"),
    Column("time", "ms", group="ours"),
    Column("m corrected", "rows", group="ours"),
    Column("time", "ms", group="ours"),
    Column("rank", group="ours"),
    Column("costs", "%", group="ours"),
]

THEIRS = {
    "row": Column("row", group="paper, RTX 2080 Ti"),
    "streams": Column("streams", group="paper, RTX 2080 Ti"),
    "m_observed": Column("m observed", "rows", group="paper, RTX 2080 Ti"),
    "m_observed_float64": Column("m in float64", "rows", group="paper, RTX 2080 Ti"),
    "time_observed_ms": Column("time", "ms", group="paper, RTX 2080 Ti"),
    "m_corrected": Column("m corrected", "rows", group="paper, RTX 2080 Ti"),
    "time_corrected_ms": Column("time", "ms", group="paper, RTX 2080 Ti"),
    "difference_ms": Column("difference", "ms", group="paper, RTX 2080 Ti"),
}
"""Columns of the published tables that are shown, in order, where a table has them."""


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
                    _lost(f"Rows of {NAMES[dtype]} without a size", lost),
                ],
            )


def _beside(caption: str, case: SubsystemSeries, theirs: Records) -> Table:
    known = {int(record["n"]): record for record in theirs if record["n"]}
    shown = {name: column for name, column in THEIRS.items() if theirs and name in theirs[0]}
    ours = _our_cells(case)
    rows = [
        [
            Cell(wording.count(size)),
            *ours.get(size, [Cell(MISSING)] * len(OURS)),
            *(_their_cell(known.get(size, {}).get(name, "")) for name in shown),
        ]
        for size in sorted({*ours, *known})
    ]
    return table(caption, [Column(SIZE, "rows"), *OURS, *shown.values()], rows)


def _our_cells(case: SubsystemSeries) -> dict[int, list[Cell]]:
    """Size -> cells of :data:`OURS`."""
    streams = case.optimum_rows.set_index(SIZE)["streams"]
    found = {}
    for record in records(case.corrected):
        size, observed = record[SIZE], record[f"observed_{CHOICE}"]
        others = [wording.count(m) for m in case.ties[size] if m != observed]
        texts = [
            wording.count(streams[size]),
            wording.count(observed),
            ", ".join(others) or MISSING,
            wording.number(record["observed_time_ms"], 4),
            wording.count(record[CHOICE]),
            wording.number(record["time_ms"], 4),
            wording.count(record["rank"]),
            wording.fixed(record["loss_percent"], 2),
        ]
        found[int(size)] = [Cell(text) for text in texts]
    return found


def _lost(caption: str, lost: Records) -> Table:
    shown = {name: column for name, column in THEIRS.items() if name in lost[0]}
    rows = [[_their_cell(record[name]) for name in shown] for record in lost]
    return table(caption, list(shown.values()), rows)


def _their_cell(text: str) -> Cell:
    """As printed; a time in full, an empty cell as a dash."""
    return Cell(text or MISSING, role="theirs")
