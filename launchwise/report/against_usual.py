"""Columns and cells that tables of answers share: answers relative to the usual choice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from launchwise.report import wording
from launchwise.report.blocks import Column

_GROUP = "relative to the usual choice"
COLUMNS = (
    Column("speed-up", "× usual", group=_GROUP),
    Column("slower", "problems", group=_GROUP),
    Column("kept", "problems", group=_GROUP),
    Column("missed", "of improvable", group=_GROUP),
)


def cells(got: Mapping[str, Any]) -> list[str]:
    """A row's cells for :data:`COLUMNS`, from the figures of a model on one split or GPU."""
    return [
        wording.fixed(got["gain_geometric_mean"], 2),
        wording.count(got["harmed"]),
        wording.count(got["kept_usual"]),
        f"{got['missed']} of {got['worthwhile']}",
    ]


def covered(share: float | None) -> str:
    """Share of intervals that hold what was measured; a dash without any."""
    return "–" if share is None else wording.percent(share, 0)
