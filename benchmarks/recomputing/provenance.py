"""The tables of provenance on the health page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from recomputing.comparing import Cells, Figure, Ledger
from recomputing.pages import Record, ShownPage
from recomputing.sweeps import Sweep

ORIGINS = {
    "commit": ("commit", 12),
    "driver": ("driver", 40),
    "CUDA toolkit": ("toolkit", 40),
    "back-end": ("backend", 40),
    "card, hash of its UUID": ("card", 8),
}
"""Title to a column of rows, and how much of its values is shown."""


def compare(page: ShownPage, known: Sequence[Sweep], seed: int, ledger: Ledger) -> None:
    """Compare sweeps and extensions; ``seed`` is that of the settings."""
    for each in page.tables_of("This run"):
        cells = {row[0].text: row[1] for row in each.rows}
        ledger.table(page.path, each.caption).said("seed", cells["seed of the settings"], seed)
    wanted = {(one.workload, one.gpu): partial(_origin, one) for one in known}
    ledger.beside(page, "Origin of the sweeps", ["sweep", "GPU"], wanted)
    _extensions(page, known, ledger)


def _origin(one: Sweep, _: Record) -> Cells:
    """What the rows say of where they come from."""
    days = sorted({day for day in one.rows["measured_at"].str[:10].unique() if day})
    origins = {
        name: ", ".join(sorted({str(value)[:digits] for value in one.rows[column].unique()}))
        for name, (column, digits) in ORIGINS.items()
    }
    said = " to ".join(dict.fromkeys((days[0], days[-1]))) if days else "–"
    return {"rows": len(one.rows), "measured on (UTC)": said, **origins}


def _extensions(page: ShownPage, known: Sequence[Sweep], ledger: Ledger) -> None:
    """What later visits added, card by card, and how rows compare that were measured again."""
    every = [row for one in sorted(known, key=lambda one: one.workload) for row in _joined(one)]
    caption = "Extensions of the sweeps"
    shown = [row for each in page.tables_of(caption) for row in each.rows]
    if not shown and not every:
        return
    table = ledger.table(page.path, caption)
    table.same("rows", len(shown), len(every))
    for row, wanted in zip(shown, every, strict=False):
        for cell, one in zip(row, wanted, strict=True):
            table.said(", ".join(map(str, wanted[:4])), cell, one)


def _joined(one: Sweep) -> Iterator[list[str | Figure]]:
    for entry in one.facts.get("joined", []):
        for card, found in entry["cards"].items():
            ratios = [found[f"{name}_ratio"] for name in ("median", "lowest", "highest")]
            words = [one.workload, one.gpu, card[:8], entry["first_measured_at"][:10]]
            yield [*words, entry["rows"], found["anchors"], *ratios]
