"""Rows to measure again, as settings to copy, and those of one launch among them.

A row of one launch ranks a configuration and proves nothing: pages leave such rows out where they
compare a paper's figures. What remains is listed: answers and choices that an evaluation looks up
among all rows of a sweep.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pandas as pd
import yaml

from launchwise.report import wording
from launchwise.report.blocks import Block, File
from launchwise.report.fields import field, table_of
from launchwise.report.study import StudyData, remembered
from launchwise.tables.rows import fastest_rows, is_baseline
from launchwise.tables.times import PAIRS
from launchwise.workloads.parts import Value

STOPPED_EARLY = "slow"  # Status of rows that a sweep stopped after their first launch
NEVER_STOPPED = 1e6  # `slow_factor` of a sweep that stops no row early


def of_one_launch(rows: pd.DataFrame) -> pd.Series:
    """Whether each row's time is that of one launch: bool. Rows that were stopped early; not those
    that were compared in pairs as well, round by round."""
    stopped = rows["status"] == STOPPED_EARLY
    return stopped & (rows["basis"] != PAIRS) if "basis" in rows else stopped


USES = ("fastest", "baseline", "chosen", "unverified")
"""Columns of :func:`used_rows` that say what a row is used for."""


@remembered
def used_rows(study: StudyData) -> pd.DataFrame:
    """Rows of one launch on which figures of a study's page rest. Returns columns of a row's key,
    and of bool what it is: the ``fastest`` of its problem; the ``baseline``; ``chosen`` by an
    evaluated method; of a variant that is ``unverified``."""
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
    settings: list[str] = []
    for study in studies:
        for gpu, rows in used_rows(study).groupby("gpu", sort=False):
            counts.append(
                {"study": study.name, "gpu": gpu, "rows": len(rows), **rows[list(USES)].sum()}
            )
            columns = [*study.problem_columns, *study.spec.tunable_columns]
            keys = list(rows[columns].itertuples(index=False, name=None))
            named = str(gpu), study.spec.workload, keys, columns
            again = anew_settings(*named, slow_factor=NEVER_STOPPED)
            settings.append(f"# {study.name} on {gpu}: {wording.plural(len(rows), 'row')}\n{again}")
    if not counts:
        return []
    title = "Rows of one launch, as settings that measure them again (YAML)"
    file = File("data/one_launch.yaml", title, "\n---\n".join(settings) + "\n")
    return [table_of("Figures that rest on one launch", COUNTS, counts), file]


COUNTS = [
    field("study", "study"),
    field("GPU", "gpu"),
    field("rows", "rows", wording.count, "of one launch"),
    field("fastest of a problem", "fastest", wording.count, "rows"),
    field("baseline", "baseline", wording.count, "rows"),
    field("chosen by a method", "chosen", wording.count, "rows"),
    field("of a variant without verification", "unverified", wording.count, "rows"),
]


def anew_settings(
    gpu: str,
    workload: str,
    keys: Collection[Sequence[Value]],
    columns: Sequence[str],
    **how: Any,
) -> str:
    """The settings that name rows of a sweep to measure again, as YAML. ``keys`` are values of each
    row, or of all rows of a problem, in the order of ``columns``; ``how`` are further keys of the
    sweep, such as ``slow_factor``."""
    entries = [dict(zip(columns, map(list, entry), strict=True)) for entry in _crossed(keys)]
    said: Mapping[str, Any] = {
        "gpus": {gpu: {"source": "live", "extend": True}},
        "sweeps": {workload: {**how, "anew": entries}},
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
