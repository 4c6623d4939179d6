"""Speed-up of batches by streams."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from launchwise.learning.features import Domain
from launchwise.report import wording
from launchwise.report.blocks import Block, Text
from launchwise.report.fields import decimals, field, table_of
from launchwise.report.numbers import records
from launchwise.report.study import StudyData
from launchwise.workloads.metrics import MEASURED

from . import gains
from .gains import CHOICE, SIZE, gain_table, largest_gain
from .series import runs_of_one_design

HOST_STAGE = "t2_h_ms"  # column with the time of stage 2 on the host, which no stream overlaps
NAMES = ("gpu", "memory", "dtype", "batch", SIZE)


def batch_table(study: StudyData) -> pd.DataFrame:
    """Gains of batches, and of single systems of the same size or of about as many rows.

    Batches are no problems of the study, so they come from the sweeps.

    Returns a DataFrame: columns of :func:`~gains.gain_table` by GPU, memory, dtype, batch and n,
    with ``rows_in_all`` (n * batch), by which rows of one GPU and memory are ordered, and
    ``host_percent``, the share of stage 2 on the host in all stages with one stream. Empty where no
    batch was measured.
    """
    domain = Domain(
        study.spec, study.profiles, study.settings.candidates, study.settings.constraints
    )
    kept = []
    for rows in study.swept.values():
        used = rows[rows["status"].isin(MEASURED) & (rows["memory"] != "device")]
        for _, alike in used[domain.is_candidate(used)].groupby(list(NAMES[:-1]), sort=True):
            kept.append(runs_of_one_design(alike, study.spec))
    every = pd.concat(kept, ignore_index=True)
    found = gain_table(every, NAMES)
    alone = every[every[CHOICE] == 1].set_index(list(NAMES))
    # Stages were timed in a run of their own, so they need not fit into the time of another.
    host = alone[HOST_STAGE] / alone[study.spec.stage_columns].sum(axis=1)
    keys = pd.MultiIndex.from_frame(found[list(NAMES)])
    found["host_percent"] = 100 * host.reindex(keys).to_numpy()
    found["rows_in_all"] = found[SIZE] * found["batch"]
    same = ["gpu", "memory", "dtype"]
    chosen = set(found.index[found["batch"] > 1])
    for batch in records(found[found["batch"] > 1]):
        like = (found[same] == [batch[name] for name in same]).all(axis=1)
        sizes = found.loc[like & (found["batch"] == 1), SIZE]
        if len(sizes):
            away = np.log(sizes / batch["rows_in_all"]).abs()
            chosen |= {away.idxmin(), *sizes.index[sizes == batch[SIZE]]}
    found = found.loc[sorted(chosen)]
    return found.sort_values([*same, "rows_in_all", "batch"]).reset_index(drop=True)


def batch_blocks(study: StudyData) -> Iterator[Block]:
    """Batches beside single systems."""
    batches = batch_table(study)
    if not batches.empty:
        yield Text(_said(batches))
        yield table_of(
            "Batches, single systems of the same size, and single systems of about as many rows",
            FIELDS,
            batches,
        )


def _said(batches: pd.DataFrame) -> str:
    largest = {}
    several = batches["batch"] > 1
    for name, rows in (("batches", several), ("single systems", ~several)):
        most = largest_gain(batches[rows])
        largest[name] = wording.fixed(None if most is None else most["gain"], 2)
    share = batches.loc[several, "host_percent"]
    return (
        "A batch is solved as one system with no coupling between its parts, so stage 2 on the "
        f"host stays one step between stages 1 and 3: {wording.fixed(share.min(), 0)} to "
        f"{wording.fixed(share.max(), 0)} % of all stages, timed one after the other. Largest "
        f"speed-up of streams that overlap can explain: {largest['batches']}x for batches, "
        f"{largest['single systems']}x for the single systems beside them."
    )


FIELDS = [
    field("GPU and memory", lambda row: f"{row['gpu']}, {row['memory']}, {row['dtype']}"),
    gains.ROWS,
    field("batch", "batch", wording.count, "systems"),
    field("in all", "rows_in_all", wording.count, "rows"),
    gains.ONE_STREAM,
    field("stage 2 on the host", "host_percent", decimals(0), "%"),
    field("best streams", "best_streams", wording.count),
    gains.SPEED_UP,
    gains.ERROR,
    field("bound", "bound", decimals(3)),
    gains.REMARK,
]
