"""Where recorded data and results lie, and tables as rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

ROOT = Path(__file__).resolve().parents[2]
RECORDED = ROOT / "data" / "recorded"
RESULTS = ROOT / "benchmarks" / "results"
KERNELS = ROOT / "kernels"


def as_rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows with their index; NaN is None."""
    table = table.reset_index()
    rows = table.astype(object).where(table.notna(), None).to_dict("records")
    return [{str(key): value for key, value in row.items()} for row in rows]
