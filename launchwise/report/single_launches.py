"""Rows whose time is that of one launch: they rank a configuration and prove nothing."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from launchwise.report.anew import anew_settings
from launchwise.report.blocks import Fold, Text
from launchwise.tables.times import PAIRS
from launchwise.workloads.spec import Spec

STOPPED_EARLY = "slow"
"""Status of rows that a sweep stopped after their first launch."""

NEVER_STOPPED = 1e6
"""``slow_factor`` of a sweep that stops no row early."""


def of_one_launch(rows: pd.DataFrame) -> pd.Series:
    """Whether each row's time is that of one launch: bool.

    Rows that were stopped early; not those that were compared in pairs as well, round by round.
    """
    stopped = rows["status"] == STOPPED_EARLY
    return stopped & (rows["basis"] != PAIRS) if "basis" in rows else stopped


def to_repeat(gpu: str, spec: Spec, rows: pd.DataFrame, along: str, title: str) -> Fold:
    """The settings that measure rows of one launch again, none of them stopped early.

    Parameters
    ----------
    rows
        Rows of one GPU's sweep, with the columns of their keys.
    along
        Of these columns the one in which most rows differ.
    """
    columns: Sequence[str] = spec.key_columns
    keys = list(rows[columns].itertuples(index=False, name=None))
    said = anew_settings(gpu, spec.workload, keys, columns, along, slow_factor=NEVER_STOPPED)
    return Fold(title, [Text(said, "code")])
