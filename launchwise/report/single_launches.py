"""Rows whose time is that of one launch: they rank a configuration and prove nothing.

Pages leave such rows out where they compare a paper's figures. What remains is listed here: answers
and choices that an evaluation looks up among all rows of a sweep.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from launchwise.report import wording
from launchwise.report.anew import anew_settings
from launchwise.report.blocks import Block, Fold, Text
from launchwise.report.fields import field, table_of
from launchwise.report.study import StudyData, remembered
from launchwise.tables.rows import fastest_rows, is_baseline
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


def settings_to_repeat(gpu: str, spec: Spec, rows: pd.DataFrame) -> Text:
    """The settings that measure rows of one launch again, none of them stopped early.

    Parameters
    ----------
    rows
        Rows of one GPU's sweep, with the columns of their keys.
    """
    columns = [*spec.problem_columns, *spec.tunable_columns]
    keys = list(rows[columns].itertuples(index=False, name=None))
    return Text(anew_settings(gpu, spec.workload, keys, columns, slow_factor=NEVER_STOPPED), "code")


USES = ("fastest", "baseline", "chosen", "unverified")
"""Columns of :func:`used_rows` that say what a row is used for."""


@remembered
def used_rows(study: StudyData) -> pd.DataFrame:
    """Rows of one launch on which figures of a study's page rest.

    Returns
    -------
    pandas.DataFrame
        Columns of a row's key, and of bool what it is: the ``fastest`` of its problem; the
        ``baseline``; ``chosen`` by an evaluated method; of a variant that is ``unverified``.
    """
    once = study.measured[of_one_launch(study.measured)]
    key = ["gpu", *study.problem_columns, *study.spec.tunable_columns]
    best = fastest_rows(study.measured, ["gpu", *study.problem_columns], study.spec)
    tried = study.evaluation
    parts = {
        "fastest": best[of_one_launch(best)],
        "baseline": once[is_baseline(once, study.spec)],
        "chosen": tried[of_one_launch(tried)] if len(tried) else tried,
        "unverified": study.unverified[_timed_once(study.unverified)],
    }
    found = pd.concat(
        [rows.reindex(columns=key).assign(**{name: True}) for name, rows in parts.items()]
    )
    marks = found.reindex(columns=[*key, *USES])
    return marks.groupby(key, as_index=False, sort=True)[list(USES)].any()


def _timed_once(rows: pd.DataFrame) -> pd.Series:
    """Rows without a verdict, which have no status of their own for one launch."""
    repeats = rows["repeats"] if "repeats" in rows else pd.Series(0, index=rows.index)
    return repeats == 1


def listed(studies: Sequence[StudyData]) -> list[Block]:
    """How many such rows each study and GPU has, and the settings; nothing where there is none."""
    counts: list[dict[str, Any]] = []
    settings: list[Block] = []
    for study in studies:
        for gpu, rows in used_rows(study).groupby("gpu", sort=False):
            count = wording.plural(len(rows), "row")
            counts.append(
                {"study": study.name, "gpu": gpu, "rows": len(rows), **rows[list(USES)].sum()}
            )
            settings.append(Text(f"{study.name} on {gpu}: {count}", "label"))
            settings.append(settings_to_repeat(str(gpu), study.spec, rows))
    if not counts:
        return []
    title = "Rows of one launch, as settings that measure them again"
    return [table_of("Figures that rest on one launch", COUNTS, counts), Fold(title, settings)]


COUNTS = [
    field("study", "study"),
    field("GPU", "gpu"),
    field("rows", "rows", wording.count, "of one launch"),
    field("fastest of a problem", "fastest", wording.count, "rows"),
    field("baseline", "baseline", wording.count, "rows"),
    field("chosen by a method", "chosen", wording.count, "rows"),
    field("of a variant without verification", "unverified", wording.count, "rows"),
]
