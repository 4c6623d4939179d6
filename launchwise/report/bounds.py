"""Bound of each kernel: throughputs in % of the card's peaks, from hardware counters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pandas as pd

from launchwise.report import wording
from launchwise.report.blocks import Cell, Column, Row, Table
from launchwise.workloads.metrics import COUNTERS

SHOWN = {each.name: each.shown for each in COUNTERS if each.shown is not None}
"""Column of the counters to how the table shows it."""

PEAKS = tuple(each.name for each in COUNTERS if each.bounds)
"""Columns of the counters that are shares of the card's peaks."""


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
    held = [name for name in SHOWN if name in largest and largest[name].notna().any()]
    if sum(name in PEAKS for name in held) < 2:
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
            *(Column(SHOWN[name].title, SHOWN[name].unit) for name in held),
            Column("bound by", number=False),
        ],
        rows=rows,
    )


def _row(kind: str, values: Iterable[object], medians: pd.Series) -> Row:
    shares = medians[[name for name in medians.index if name in PEAKS]]
    # A card may lack every counter of a kernel.
    nearest = str(shares.idxmax()) if shares.notna().any() else None
    return Row(
        [
            Cell(kind),
            *(Cell(str(value)) for value in values),
            *(
                Cell(_shown(str(name), value), best=name == nearest)
                for name, value in medians.items()
            ),
            Cell(wording.MISSING if nearest is None else SHOWN[nearest].title),
        ]
    )


def _shown(name: str, value: float) -> str:
    if name in PEAKS:
        return wording.percent(value, 0)
    return wording.number(SHOWN[name].factor * value)
