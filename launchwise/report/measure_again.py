"""Rows to measure again, as settings to copy, and rows of one launch.

A row of one launch ranks a configuration and proves nothing: pages leave such rows out where they
compare a paper's figures.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pandas as pd
import yaml

from launchwise.tables.times import PAIRS
from launchwise.workloads.parts import Value

STOPPED_EARLY = "slow"  # Status of rows that a sweep stopped after their first launch


def of_one_launch(rows: pd.DataFrame) -> pd.Series:
    """Whether each row's time is that of one launch: bool. Rows that were stopped early; not those
    that were compared in pairs as well, round by round."""
    stopped = rows["status"] == STOPPED_EARLY
    return stopped & (rows["basis"] != PAIRS) if "basis" in rows else stopped


def anew_settings(
    gpu: str,
    workload: str,
    keys: Collection[Sequence[Value]],
    columns: Sequence[str],
) -> str:
    """The settings that name rows of a sweep to measure again, as YAML. ``keys`` are values of each
    row, or of all rows of a problem, in the order of ``columns``."""
    entries = [dict(zip(columns, map(list, entry), strict=True)) for entry in _crossed(keys)]
    said: Mapping[str, Any] = {
        "gpus": {gpu: {"source": "live", "extend": True}},
        "sweeps": {workload: {"anew": entries}},
    }
    return yaml.safe_dump(said, sort_keys=False, default_flow_style=None, width=100).rstrip()


Crossed = tuple[tuple[Value, ...], ...]
"""Values of each column: their products are the rows that an entry names."""


def _crossed(keys: Collection[Sequence[Value]]) -> list[Crossed]:
    """Few entries that name the rows of ``keys`` and no others. Entries that differ in one column
    alone become one, column by column, those first in which most rows differ."""
    entries: list[Crossed] = sorted({tuple((value,) for value in key) for key in keys}, key=_order)
    if not entries:
        return []
    distinct = [len({entry[place] for entry in entries}) for place in range(len(entries[0]))]
    for place in sorted(range(len(distinct)), key=lambda place: -distinct[place]):
        groups: dict[Crossed, list[Value]] = {}
        for entry in entries:
            groups.setdefault((*entry[:place], *entry[place + 1 :]), []).extend(entry[place])
        entries = [
            (*rest[:place], tuple(sorted(values, key=_typed)), *rest[place:])
            for rest, values in groups.items()
        ]
    return sorted(entries, key=_order)


def _order(entry: Crossed) -> list[Any]:
    return [[_typed(value) for value in values] for values in entry]


def _typed(value: Value) -> tuple[bool, Any]:
    return isinstance(value, str), value
