"""What the health page says of the run that wrote the report."""

from __future__ import annotations

from recomputing.comparing import Ledger
from recomputing.pages import ShownPage


def compare(page: ShownPage, seed: int, ledger: Ledger) -> None:
    """Compare the seed of the settings."""
    for each in page.tables_of("This run"):
        cells = {row[0].text: row[1] for row in each.rows}
        ledger.table(page.path, each.caption).said("seed", cells["seed of the settings"], seed)
