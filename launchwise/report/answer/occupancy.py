"""Counters of the fastest configurations: what keeps a card busy."""

from __future__ import annotations

import pandas as pd

from launchwise.experiment.study import Counters
from launchwise.report import wording
from launchwise.report.blocks import Block, Section, Table, Text
from launchwise.report.fields import Field, field, percents, table_of
from launchwise.report.study import StudyData
from launchwise.report.theme import kinds_of
from launchwise.workloads.metrics import COUNTERS


def occupancy(study: StudyData) -> Section | None:
    """The section; None where no counters were read, or the settings do not say by what."""
    asked = study.settings.counters
    if not study.counters or asked is None:
        return None
    by = asked.by
    largest = {
        gpu: outermost(counters, study.spec.key_columns) for gpu, counters in study.counters.items()
    }
    blocks: list[Block] = [
        Text(
            f"The fastest configuration of {_problems(asked)} and each value of "
            f"{wording.listed(by)}, run once more under Nsight Compute; of a kernel that runs at "
            "several levels, the largest launch.",
            "note",
        ),
        *(_table(study, gpu, rows, by) for gpu, rows in largest.items()),
    ]
    return Section(f"{study.name}-occupancy", "Occupancy", blocks)


def _problems(asked: Counters) -> str:
    if not asked.among:
        return "every problem"
    values = wording.listed(
        f"{name} = {wording.listed(map(str, each))}" for name, each in asked.among.items()
    )
    return f"problems with {values}"


def outermost(counters: pd.DataFrame, key: list[str]) -> pd.DataFrame:
    """Of each kernel of a run (columns ``key``) the launch with the largest grid. Kernels of one
    block are left out."""
    order = counters.sort_values("grid_blocks", kind="stable")
    found = order.groupby([*key, "kernel"], sort=False).last().reset_index()
    several = found.groupby("kernel")["grid_blocks"].transform("max") > 1
    return found[several]


SHOWN = {each.name: each.shown for each in COUNTERS if each.shown is not None}
"""Column of the counters to how the table shows it."""


def _table(study: StudyData, gpu: str, largest: pd.DataFrame, by: list[str]) -> Table:
    """Counters of each kernel on a GPU, by kind of problem and values of the tunables ``by``."""
    held = [name for name in SHOWN if name in largest and largest[name].notna().any()]
    names = [*by, "kernel"] if largest["kernel"].nunique() > 1 else by
    rows = [
        {"problem": kind, **dict(zip(names, values, strict=True)), **own[held].median()}
        for kind, own_kind in kinds_of(study, largest)
        for values, own in own_kind.groupby(names, sort=True)
    ]
    fields = [
        field("problem", "problem"),
        *(field(name, name) for name in names),
        *(_shown(name) for name in held),
    ]
    caption = f"{gpu}: median over sizes; throughput in percent of the card's peak"
    return table_of(caption, fields, rows)


def _shown(name: str) -> Field:
    how = SHOWN[name]
    shown = percents(0) if how.factor == 100 else wording.number
    return field(how.title, name, shown, how.unit)
