"""Configurations for simulations, the best of the recorded H200 for each type and order.

    python -m kernels.acoustic.simulation.recorded

Of each kernel that simulations use, the configurations that take the least time over all recorded
grids (geometric mean relative to the best of each grid), the best kernel first; the last one needs
the least shared memory, for GPUs that have less.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from launchwise.base.places import shipped
from launchwise.base.storage import write_json
from launchwise.tables.files import read_table
from launchwise.tables.measurements import measurement_schema
from launchwise.workloads.spec import load_spec

from .problem import FILE

VARIANTS = ("stream_tensor", "stream")
COLUMNS = ("tile_x", "tile_y", "stages", "blocks_per_sm", "z_chunks")
LISTED = 4


def ranked(rows: pd.DataFrame) -> pd.DataFrame:
    """Configurations that every grid measured, with their mean loss and shared memory."""
    best = rows.groupby("n")["time_ms"].transform("min")
    rows = rows.assign(loss=np.log(rows["time_ms"] / best))
    groups = rows.groupby(["variant", *COLUMNS])
    found = groups.agg(
        loss=("loss", "mean"), grids=("n", "nunique"), shared=("shared_bytes", "max")
    )
    return found[found["grids"] == rows["n"].nunique()].reset_index()


def listed(table: pd.DataFrame) -> list[dict[str, Any]]:
    order = table.groupby("variant")["loss"].min().sort_values().index
    chosen = [
        table[table["variant"] == variant].sort_values("loss", kind="stable").head(LISTED)
        for variant in order
    ]
    chosen.append(table[table["variant"] == "stream"].sort_values(["shared", "loss"]).head(1))
    rows = pd.concat(chosen).drop_duplicates()
    return [
        {"variant": str(row["variant"]), **{name: int(row[name]) for name in COLUMNS}}
        for row in rows.to_dict("records")
    ]


def choices() -> dict[str, list[dict[str, Any]]]:
    spec = load_spec(shipped("kernels/acoustic"))
    path = shipped("data/recorded/h200/acoustic.parquet")
    rows = read_table(path, measurement_schema(spec))
    rows = rows[rows["variant"].isin(VARIANTS) & (rows["status"] == "ok")]
    # Rows at multiples of 16 bytes, as arrays of a simulation have them.
    itemsize = rows["dtype"].map({"float32": 4, "float64": 8})
    rows = rows[(rows["row_padding"] == 1) | (rows["n"] * itemsize % 16 == 0)]
    return {
        f"{dtype} {order}": listed(ranked(part))
        for (dtype, order), part in rows.groupby(["dtype", "order"])
    }


if __name__ == "__main__":
    write_json(FILE, choices())
