"""What tuning is worth for the study's load, and what simpler choices cost over size."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from launchwise.base.names import assigned
from launchwise.exporting.worth import measuring_s, worth
from launchwise.learning.answers import BASES
from launchwise.report import numbers, theme, wording
from launchwise.report.answer.rule import rule_of
from launchwise.report.blocks import (
    MISSING,
    Block,
    Cell,
    Figure,
    File,
    Fold,
    Panel,
    Section,
    Table,
    Text,
)
from launchwise.report.fields import (
    Field,
    decimals,
    field,
    grouped,
    percents,
    significant,
    table_of,
)
from launchwise.report.numbers import configuration_names, fixed_sets, fractions, over_named
from launchwise.report.study_tables import CONFIGURATIONS, StudyData, remembered
from launchwise.report.theme import has_sizes, kinds_of, size_layout
from launchwise.tables.rows import is_baseline

REAL = 0.1  # Time lost above which another choice pays
MAX_KINDS = 12  # Kinds of problems that are listed, those in which most is lost
MOST_OPEN = 2  # Kinds of problems that stand open, and GPUs; the others are in a fold

Lines = list[tuple[str, pd.DataFrame]]
"""Choices in the order of the legend: name, and rows with problem columns and ``fraction``."""


@remembered
def choices(study: StudyData, gpu: str) -> Lines:
    """What each choice reaches of the named fastest on a GPU, without those that have no row."""
    own = fractions(study)
    own = own[own["gpu"] == gpu]
    sets = fixed_sets(study)
    one = sets.loc[(sets["gpu"] == gpu) & (sets["count"] == 1), study.spec.tunable_columns]
    usual = own[own["is_usual"]]
    found = [("usual choice", usual)]
    if usual.empty:
        found = [("baseline", own[is_baseline(own, study.spec)])]
    found.append(("one fixed configuration", own.merge(one, on=study.spec.tunable_columns)))
    if ranges := rule_of(study, gpu):
        found.append(("rule", pd.concat([each.rows for each in ranges])))
    split = numbers.first_split(study)
    name = numbers.leader(study, split, gpu)
    if name is not None:
        rows = study.evaluated(split, gpu, name)
        unseen = "unseen GPU" if numbers.first_split_is_transfer(study) else "unseen sizes"
        found.append((f"{study.title(name)}, {unseen}", rows))
    lines = []
    for title, rows in found:
        rows = rows.assign(fraction=over_named(study, rows)).dropna(subset="fraction")
        # Of rows that lose as much, the first names the problem.
        lines.append((title, rows.sort_values(study.problem_columns, ignore_index=True)))
    return [line for line in lines if len(line[1])]


def cost(study: StudyData) -> Section:
    """The kinds of problems in which the first choice loses most stand first, some of them drawn on
    some GPUs; others that have several sizes in a fold."""
    known = [one for gpu in study.whole for one in _kinds(study, gpu).items()]
    known.sort(key=lambda one: one[1]["fraction"].min())
    every = list(dict.fromkeys(kind for kind, _ in known))
    sizes = {kind for kind, rows in known if has_sizes(study, rows)}
    sized = [kind for kind in every if kind in sizes][:MAX_KINDS]
    shown = [(gpu, kind) for kind in sized[:MOST_OPEN] for gpu in study.whole[:MOST_OPEN]]
    others = [(gpu, kind) for gpu in study.whole for kind in sized if (gpu, kind) not in shown]
    found: list[Block] = [_table(study, sized, len(every))]
    sets = fixed_sets(study)
    sets = sets.assign(added=configuration_names(sets, study.spec))
    if len(sets := sets[sets["gpu"].isin(study.whole)]):
        found.append(table_of(SETS, FIXED, sets))
    path = CONFIGURATIONS.format(study=study.name)
    found += [File(path, "A few fixed configurations of every GPU (CSV)"), *_drawn(study, shown)]
    if more := _drawn(study, others, "-others"):
        found.append(Fold("Other problems and GPUs", more))
    return Section(f"{study.name}-cost", "Cost of simpler choices", found)


SETS = (
    "A few fixed configurations, the fastest of which each problem takes; means over the problems "
    "at which the first has a sure time; least: of times by the host's clock those in pairs alone"
)

FIXED = [
    field("GPU", "gpu"),
    field("configurations", "count", wording.count, "count"),
    field("the last added", "added"),
    field("sure times", lambda row: f"{row['sure']} of {row['of']}", unit="problems", number=True),
    field("of the best", "fraction", percents(1), "%, geometric mean"),
    field("least", "worst", percents(1), "%", detail=lambda row: row["at"] and f"at {row['at']}"),
]


@remembered
def _by_kind(study: StudyData, gpu: str) -> list[tuple[str, dict[str, pd.DataFrame]]]:
    """Choices in the order of the legend: name, and its rows by kind of problems."""
    return [(name, dict(kinds_of(study, rows))) for name, rows in choices(study, gpu)]


def _kinds(study: StudyData, gpu: str) -> dict[str, pd.DataFrame]:
    """Rows of the first choice by kind of problems."""
    return next((of for _, of in _by_kind(study, gpu)), {})


def _table(study: StudyData, kinds: Sequence[str], count: int) -> Table:
    """Time that the first choice loses, over all problems and per kind: some of ``count``."""
    firsts = {gpu: lines[0] for gpu in study.whole if (lines := choices(study, gpu))}
    known = {gpu: {**_kinds(study, gpu), "": rows} for gpu, (_, rows) in firsts.items()}
    known = {gpu: known.get(gpu, {}) for gpu in study.whole}
    name = next((name for name, _ in firsts.values()), "")
    fields = [field("problems", lambda kind: kind or "all")]
    for gpu in study.whole:
        fields += grouped(gpu, *_losses(study, known[gpu]))
    caption = f"Time that the {name} loses over the fastest"
    if count > len(kinds):
        caption += f"; of {count} kinds of problems"
        caption += f" the {len(kinds)} with several sizes where it loses most" if kinds else ""
    return table_of(caption, fields, kinds if count == 1 and kinds else ["", *kinds])


def _losses(study: StudyData, known: dict[str, pd.DataFrame]) -> list[Field]:
    def mean(rows: pd.DataFrame) -> Cell:
        return Cell(wording.percent(1 / study.mean(rows) - 1, 0))

    def most(rows: pd.DataFrame) -> Cell:
        row = rows.iloc[int(rows["fraction"].argmin())]
        places = [name for name in study.problem_columns if rows[name].nunique() > 1]
        lost = wording.percent(1 / row["fraction"] - 1, 0)
        return Cell(lost, detail=f"at {wording.problem(row.to_dict(), places)}" if places else "")

    def begins(rows: pd.DataFrame) -> Cell:
        """The size from which on every measured one loses much beyond error."""
        surely = 1 / rows.groupby(study.size)["at_most"].max().sort_index() - 1
        little = np.flatnonzero(~(surely > REAL).to_numpy())
        if (much := surely.iloc[little.max(initial=-1) + 1 :]).empty:
            return Cell(MISSING)
        return Cell(wording.value(much.index[0]), detail=f"all {wording.plural(len(much), 'size')}")

    def of(kind: str, cell: Callable[[pd.DataFrame], Cell]) -> Cell:
        return cell(known[kind]) if kind in known else Cell(MISSING)

    much = f"surely above {100 * REAL:g} %"
    return [
        field(title, partial(of, cell=cell), unit=unit, number=True)
        for title, cell, unit in (
            ("mean", mean, "%, geometric"),
            ("most", most, "%"),
            (much, begins, f"at every {study.size} ≥"),
        )
    ]


def _drawn(study: StudyData, shown: Sequence[tuple[str, str]], end: str = "") -> list[Figure]:
    """A panel per GPU and kind of problems, if there are several sizes."""
    lines = {gpu: choices(study, gpu) for gpu, _ in shown}
    every = pd.concat([rows for of in lines.values() for _, rows in of] or [pd.DataFrame()])
    if every.empty or not has_sizes(study, every):
        return []
    names = list(dict.fromkeys(name for of in lines.values() for name, _ in of))
    panels, x = [], size_layout(study, every)
    for gpu, kind in shown:
        traces = []
        for name, of in _by_kind(study, gpu):
            if kind not in of:
                continue
            own = of[kind].sort_values(study.size)
            lost = 100 * (1 / own["fraction"] - 1)
            template = f"{study.size}=%{{x}}: %{{y:.1f}} % of time lost"
            look: dict[str, Any] = {"place": names.index(name), "template": template}
            traces.append(theme.line(own[study.size], lost, name=name, **look))
        y = theme.axis("time lost (%)", rangemode="tozero")
        title = ": ".join(filter(None, (gpu, kind)))
        if traces:
            panels.append(Panel(title, traces, theme.layout(x, y)))
    figure = Figure(
        id=f"{study.name}-choices{end}",
        caption="Time lost over the fastest configuration of each problem.",
        alt=f"Lines: time lost in percent against {study.size}, one line per choice.",
        panels=panels,
        keys=theme.keys(names),
    )
    return [figure]


MOST = 20  # Problems that the table shows, those of most time

FIELDS = [
    field("problem", lambda one: assigned(one.answer.problem)),
    field("time", "share", percents(1), "% of the load"),
    field("launches", "launches", wording.count),
    field("one takes", "time_ms", significant(3), "ms"),
    field("gain", "gain", decimals(2)),
    field("interval", "limits", lambda limits: wording.interval(limits, 2), number=True),
    field("basis", lambda one: BASES[one.answer.basis]),
]


def section(study: StudyData) -> Section | None:
    """The first whole GPU stands open; None where the study has no load."""
    if study.load is None or study.table is None:
        return None
    found: list[Block] = [*_of_gpu(study, study.whole[0])]
    if others := [block for gpu in study.whole[1:] for block in _of_gpu(study, gpu)]:
        found.append(Fold("Other GPUs", others))
    return Section(f"{study.name}-load", "Worth for the load", found)


def _of_gpu(study: StudyData, gpu: str) -> Iterator[Block]:
    assert study.load is not None
    assert study.table is not None
    known, place = study.load.counts, study.table.number(gpu)
    found = worth(study.table, gpu, known, measuring_s(study.sweeps[gpu]["measured_at"].tolist()))
    if place is None or not found.lines:
        return
    yield Text(f"{gpu}: {'. '.join(wording.worth_of_load(found))}.")
    yield table_of(f"{gpu}: problems of the load", FIELDS, found.lines[:MOST])
