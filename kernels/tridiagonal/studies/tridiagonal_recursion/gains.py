"""Speed-up of recursion, held against the best without it that the rows have.

The paper's design has gtsv and one number of streams per size. Without recursion another number of
streams, or the Thomas algorithm, may be faster, and then a part of the speed-up is theirs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from launchwise.base.robust import FASTER, SLOWER, UNDECIDED
from launchwise.report import wording
from launchwise.report.blocks import MISSING, Block, Fold, Text
from launchwise.report.fields import decimals, field, grouped, significant, table_of
from launchwise.report.numbers import records
from launchwise.tables.rows import ratio_limits

from ..host_runs import ANY_VARIANT, APART, SOLVERS, alike
from .series import CHOICE, SIZE, RecursionSeries, said_levels


def by_cause(case: RecursionSeries) -> pd.DataFrame:
    """Judged times with and without recursion at the sizes that are compared.

    Returns a DataFrame: ``n``; of ``flat`` (no recursion) and ``deep``, by gtsv with the published
    streams, ``<which>_ms``; of the fastest with any number of streams (without recursion also by
    Thomas), ``best_<which>_ms``, ``_streams``, ``_solver`` and ``<which>_levels``; ``designed`` and
    ``gain``, the speed-up of recursion in the paper's design and over the best without it;
    ``verdict`` on the latter: 95 %. Without other streams or Thomas at several m nothing beside the
    design was tried: no ``gain``, and an empty verdict; nor is there one ``on another card``.
    """
    design, free = case.comparable.rows, case.others
    free = free[free[SIZE].isin(design[SIZE].unique())]
    deep = (free[CHOICE] > 0) & (free["stage2"] == "host")
    found = pd.DataFrame(index=pd.Index(sorted(design[SIZE].unique()), name=SIZE))
    fastest = []
    for which, own, best in (
        ("flat", design[CHOICE] == 0, free[CHOICE] == 0),
        ("deep", design[CHOICE] > 0, deep),
    ):
        found[f"{which}_ms"] = design[own].groupby(SIZE)["time_ms"].min()
        least = free[best].sort_values("time_ms").drop_duplicates(SIZE).set_index(SIZE)
        fastest.append(least.reindex(found.index))
        for name, column in (("ms", "time_ms"), ("streams", "streams")):
            found[f"best_{which}_{name}"] = least[column]
        found[f"best_{which}_solver"] = least["stage2"].map(SOLVERS)
        found[f"{which}_levels"] = pd.Series(list(map(said_levels, records(least))), least.index)
    found["designed"] = found["flat_ms"] / found["deep_ms"]
    found["gain"] = found["best_flat_ms"] / found["best_deep_ms"]
    low, high = ratio_limits(pd.concat(fastest), np.tile(np.arange(len(found)) + len(found), 2))
    streams = design.drop_duplicates(SIZE).set_index(SIZE)["streams"]
    beside = free[(free[CHOICE] == 0) & (free["m"] > 0)]
    beside = beside[(beside["stage2"] != "host") | (beside["streams"] != beside[SIZE].map(streams))]
    tried = beside.groupby(SIZE)["m"].nunique().reindex(found.index, fill_value=0)
    near, some = alike(*fastest), (tried > 1).to_numpy()
    found["gain"] = found["gain"].where(some & near)
    told = [~some, ~near, low[: len(found)] > 1, high[: len(found)] < 1]
    found["verdict"] = np.select(told, ["", APART, FASTER, SLOWER], UNDECIDED)
    return found.dropna(subset=["designed"]).reset_index()


def gain_tables(every: Sequence[RecursionSeries]) -> Iterator[Block]:
    for case in every:
        tied = case.ties
        rows = records(by_cause(case))
        for row in rows:
            row["tied"] = ", ".join(map(wording.count, tied[row[SIZE]])) or MISSING
        table = table_of(f"Speed-up of recursion by cause, {case.title}", FIELDS, rows)
        yield Fold(case.title, [table, Text(ANY_VARIANT, "note")])


def _how(which: str) -> Any:
    def said(row: Mapping[str, Any]) -> str:
        streams = wording.plural(int(row[f"best_{which}_streams"]), "stream")
        return f"{row[f'best_{which}_solver']}, {streams}, m = {row[f'{which}_levels']}"

    return said


FIELDS = [
    field(SIZE, SIZE, wording.count, "rows"),
    *grouped(
        "gtsv, published streams",
        field("no recursion", "flat_ms", significant(4), "ms"),
        field("recursion", "deep_ms", significant(4), "ms"),
        field("recursions", "tied", unit="that tie"),
        field("speed-up", "designed", decimals(2), "times"),
    ),
    *grouped(
        "fastest of all rows",
        field("no recursion", "best_flat_ms", significant(4), "ms", detail=_how("flat")),
        field("recursion", "best_deep_ms", significant(4), "ms", detail=_how("deep")),
        field("speed-up", "gain", decimals(2), "times"),
        field("recursion is", "verdict"),
    ),
]
