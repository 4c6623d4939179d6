"""Builds complete rows from events of a measuring process, and a table from rows.

pandas is loaded for the table alone: the supervisor of a sweep starts without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from launchwise.base.errors import UserError
from launchwise.base.provenance import now
from launchwise.workloads.metrics import SWEEP, TIMED
from launchwise.workloads.spec import Spec

if TYPE_CHECKING:
    import pandas as pd

ONE_WAY = ("driver", "toolkit", "backend")
"""Columns that are the same in all rows of a sweep."""

NEUTRAL: dict[str, Any] = {
    # JSON has no NaN.
    each.name: {"real": None, "times": []}.get(each.kind, each.absent)
    for each in SWEEP
    if each.made == "row"
}
"""Neutral values for columns without a result."""


def check_one_way(table: pd.DataFrame, where: str | Path) -> None:
    """Reject a sweep whose rows differ in driver, toolkit or back-end.

    Another version shifts times by 2 to 3 %, which would look like a difference between
    configurations.

    Raises UserError, naming the column and what it holds.
    """
    for name in ONE_WAY:
        values = sorted(set(table[name]))
        if len(values) > 1:
            message = (
                f"differs between rows of one sweep ({', '.join(values)}): "
                "measure all rows with the same one"
            )
            raise UserError(where, name, message)


def make_row(
    labels: Mapping[str, str], names: Mapping[str, Any], found: Mapping[str, Any]
) -> dict[str, Any]:
    """Complete row: labels, names, results, and neutral values for columns without a result."""
    return {**labels, **names, **NEUTRAL, "measured_at": now(), **found}


def rows_to_table(
    rows: list[dict[str, Any]],
    notes: list[dict[str, Any]],
    spec: Spec,
) -> pd.DataFrame:
    """Journal rows as a table of measurements.

    ``rows``, ``notes``: of a journal. Of the notes, ``control`` holds the drift of the reference
    kernel around a row, ``energy`` the energy per launch.

    Returns
    -------
    pandas.DataFrame
        As :func:`launchwise.tables.measurements.measurement_schema` declares it, sorted by key.
    """
    import pandas as pd

    from launchwise.tables.measurements import measurement_schema
    from launchwise.tables.rows import of_formulas, of_repeats

    schema = measurement_schema(spec)
    if not rows:
        return schema.empty()  # Other shards may have done everything.
    columns = list(schema.columns)
    # A journal may be older than a metric.
    table = pd.DataFrame([{**NEUTRAL, **row} for row in rows], columns=columns)
    real = [name for name in columns if name in NEUTRAL and NEUTRAL[name] is None]
    real += [*spec.stage_columns, *spec.findings]
    table[real] = table[real].astype(float)
    table = table.assign(**of_repeats(table["times_ms"].tolist()))
    table["times_ms"] = table["times_ms"].map(lambda times: np.asarray(times, dtype=float))
    table.loc[~table["status"].isin(TIMED), "time_ms"] = np.nan
    keys = list(zip(*(table[name] for name in spec.key_columns), strict=True))
    table["control_ratio"] = pd.Series(keys).map(_control_ratios(notes)).astype(float)
    table["energy_j"] = pd.Series(keys).map(_energies(notes, spec)).astype(float)
    table = table.assign(**of_formulas(table, spec))
    return table.sort_values(spec.key_columns, ignore_index=True)


def _control_ratios(notes: list[dict[str, Any]]) -> dict[tuple[Any, ...], float]:
    """Key of a row to reference time after the row / first reference time on that card."""
    return {
        tuple(names): float(note["ratio"])
        for note in notes
        if note["note"] == "control"
        for names in note["rows"]
    }


def _energies(notes: list[dict[str, Any]], spec: Spec) -> dict[tuple[Any, ...], float]:
    return {
        tuple(note["names"][name] for name in spec.key_columns): float(note["energy_j"])
        for note in notes
        if note["note"] == "energy"
    }
