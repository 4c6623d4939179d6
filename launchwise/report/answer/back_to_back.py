"""Gains of launches that follow each other at once, beside those of launches alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from launchwise.base.robust import EQUAL
from launchwise.learning.merit import geometric_mean
from launchwise.report import wording
from launchwise.report.blocks import Block, Text
from launchwise.report.fields import field, grouped, table_of
from launchwise.report.study import StudyData
from launchwise.tables.measurements import with_role

NOTE = (
    "Back to back, launches follow each other for a few tenths of a second: the card may reach its "
    "power limit and lower its clocks, and L2 holds what the launch before left. The fastest is "
    "that of the sweep. Gains are geometric means over the same problems; energy is that of the "
    "rival divided by that of the fastest."
)

FIELDS = [
    field("GPU", "gpu"),
    field("fastest over", "over"),
    field("problems", "problems", wording.count),
    field("gain alone", "alone", wording.fixed),
    *grouped(
        "back to back",
        field("gain", "gain", wording.fixed),
        field("energy", "energy", wording.fixed, "ratio"),
        field("time of the fastest", "time", wording.fixed, "of that alone, median"),
        field("its power", "power_w", wording.count, "W, median"),
        field("faster alone, slower there", "turned", wording.count, "problems"),
    ),
]


def back_to_back(study: StudyData) -> list[Block]:
    """A row per GPU and rival that ran back to back beside the fastest; nothing without any."""
    rows = [row for gpu in study.pairs for row in _of_gpu(study, gpu)]
    if not rows:
        return []
    return [table_of("Launches back to back", FIELDS, rows), Text(NOTE, "note")]


def _of_gpu(study: StudyData, gpu: str) -> Iterator[dict[str, Any]]:
    pairs, columns = study.pairs[gpu], study.problem_columns
    ran = pairs[pairs["sustained_ms"].notna()]
    best = ran[with_role(ran, "best")]
    rivals = {
        over: ran[with_role(ran, role) & ~with_role(ran, "best")]
        for over, role in (("usual choice", "usual"), ("baseline", "baseline"))
    }
    peers = study.peers.get(gpu)
    if peers is not None:
        known = peers[peers["sustained_ms"].notna()]
        rivals |= {str(name): own for name, own in known.groupby("peer")}
    for over, own in rivals.items():
        both = best.merge(own, on=columns, suffixes=("", "_of_rival"))
        if len(both):
            yield {"gpu": gpu, "over": over, "problems": len(both), **_ratios(both)}


def _ratios(both: pd.DataFrame) -> dict[str, Any]:
    """Of the fastest and a rival, a row per problem."""
    alone = both["time_ms_of_rival"] / both["time_ms"]
    there = both["sustained_ms_of_rival"] / both["sustained_ms"]
    energy = (both["energy_j_of_rival"] / both["energy_j"]).dropna()
    return {
        "alone": geometric_mean(alone.to_numpy()),
        "gain": geometric_mean(there.to_numpy()),
        "energy": geometric_mean(energy.to_numpy()),
        "time": (both["sustained_ms"] / both["time_ms"]).median(),
        "power_w": (1e3 * both["energy_j"] / both["sustained_ms"]).median(),
        "turned": int(((alone > 1 + EQUAL) & (there < 1 - EQUAL)).sum()),
    }
