"""Bound of each kernel: throughputs in % of the card's peaks, from hardware counters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pandas as pd

from launchwise.report import wording
from launchwise.report.blocks import Cell, Column, Row, Table

PEAKS = {
    "dram_throughput": "memory",
    "l2_throughput": "L2",
    "l1_throughput": "L1, shared memory",
    "sm_throughput": "pipelines of SMs",
}
"""Column of the counters to what its peak is of."""


def bounds(
    title: str, largest: pd.DataFrame, by: list[str], kinds: Iterable[tuple[str, pd.DataFrame]]
) -> Iterator[Table]:
    """Table of one GPU; none where its counters hold no peaks but that of memory.

    Parameters
    ----------
    largest
        Counters, of each kernel of a run the launch that counts.
    by
        Tunables whose combinations of values are compared.
    kinds
        (title, rows of ``largest``) of every kind of problem.
    """
    held = [column for column in PEAKS if column in largest and largest[column].notna().any()]
    if len(held) < 2:
        return
    names = [*by, "kernel"] if largest["kernel"].nunique() > 1 else by
    rows = [
        _row(kind, values, own[held].median())
        for kind, own_kind in kinds
        for values, own in own_kind.groupby(names, sort=True)
    ]
    yield Table(
        caption=(
            f"{title}: throughput of the fastest configuration in percent of the card's peak, "
            "median over sizes. What is nearest to its peak bounds the kernel; where nothing comes "
            "near, warps wait for one another or for latencies."
        ),
        columns=[
            Column("problem", number=False),
            *(Column(name, number=False) for name in names),
            *(Column(PEAKS[column], "%") for column in held),
            Column("bound by", number=False),
        ],
        rows=rows,
    )


def _row(kind: str, values: Iterable[object], shares: pd.Series) -> Row:
    # A card may lack every counter of a kernel.
    nearest = shares.idxmax() if shares.notna().any() else None
    return Row(
        [
            Cell(kind),
            *(Cell(str(value)) for value in values),
            *(
                Cell(wording.percent(share, 0), best=column == nearest)
                for column, share in shares.items()
            ),
            Cell(wording.MISSING if nearest is None else PEAKS[str(nearest)]),
        ]
    )
