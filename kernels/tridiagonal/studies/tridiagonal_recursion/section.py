"""What only the study of recursive partition methods has: how deep to go, and by which sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pandas as pd

from launchwise.learning.optima import corrected_optima, observed_optima
from launchwise.learning.series import choices_in
from launchwise.report import theme, wording
from launchwise.report.blocks import (
    Block,
    Bullets,
    Column,
    Figure,
    Fold,
    Panel,
    Section,
    Text,
    table,
)
from launchwise.report.figures import KindOnGpu, kinds_of
from launchwise.report.numbers import fixed_losses, records
from launchwise.report.published import Records, facts_of
from launchwise.report.study import StudyData
from launchwise.tables.rows import fastest_rows

from ..neighbours import Learnt, neighbours_table

SIZE, CHOICE = "n", "depth"
FEWEST = 4
"""Sizes below which there is no trend to speak of."""

GAIN = 1.01
"""Speed-up that is more than the noise of measuring."""

EVERY_M = ("m", "m1", "m2", "m3", "m4")
LEVELS = {"m": "outermost level", "m1": "first recursion", "m2": "second recursion"}
"""Sizes of sub-systems whose fixed values are tried."""


@dataclass(frozen=True)
class RecursionSeries(KindOnGpu):
    """Everything measured of one GPU and one kind of problem, with a column ``depth``.

    ``best`` has the fastest row of every size and depth.
    """

    rows: pd.DataFrame
    best: pd.DataFrame

    def times(self) -> pd.DataFrame:
        """Least time (ms) of each size (index) at each depth (columns)."""
        return self.best.pivot(index=SIZE, columns=CHOICE, values="time_ms")

    def speed_up(self) -> pd.DataFrame:
        """Time without recursion by the least time at each depth: sizes by depths."""
        times = self.times()
        return times.rdiv(times[0], axis=0)


def cases(study: StudyData) -> list[RecursionSeries]:
    """The cases that were measured with and without recursion for enough sizes."""
    found = []
    for gpu, measured in study.measured.groupby("gpu", sort=True):
        for kind, part in kinds_of(study, measured):
            rows = part.assign(**{CHOICE: choices_in(part, CHOICE, study.spec)})
            depths = rows.groupby(SIZE)[CHOICE]
            both = (depths.min() == 0) & (depths.max() > 0)
            if both.sum() < FEWEST:
                continue
            rows = rows[rows[SIZE].isin(both.index[both])]
            best = fastest_rows(rows, [SIZE, CHOICE], study.spec)
            found.append(RecursionSeries(str(gpu), kind, rows, best))
    return found


def sections(study: StudyData, published: Mapping[str, Records]) -> list[Section]:
    """Sections of the study, in order; none where too little was measured."""
    every = cases(study)
    if not every:
        return []
    facts = facts_of(published)
    return [
        Section(
            f"{study.name}-worth",
            "Speed-up of recursion",
            [_lead(every, facts), _figure(study, every), *_tables(study, every)],
        ),
        Section(f"{study.name}-rules", "Rules from it", list(_rules(every, facts))),
    ]


def _lead(every: list[RecursionSeries], facts: Mapping[str, str]) -> Bullets:
    found = []
    for case in every:
        gain = case.speed_up()
        most = gain.max(axis=1)
        pays = [wording.count(size) for size in most.index[most > GAIN]]
        idle = [wording.count(depth) for depth in gain.columns[(gain <= GAIN).all()] if depth]
        where = f"at {SIZE} = {wording.listed(pays)}" if pays else "nowhere"
        text = f"recursion gains more than 1 % {where}"
        text += f"; the best speed-up is {wording.fixed(most.max(), 2)} times"
        if idle:
            text += f"; {wording.listed(idle)} recursions never gain as much"
        found.append((f"{case.title}:", f"{text}."))
    if "speed_up_recursion" in facts:
        text = (
            f"{facts['speed_up_recursion']} times at most, with up to "
            f"{facts.get('recursions_that_pay_most', '–')} recursions."
        )
        found.append(("Published:", text))
    return Bullets(found)


def _figure(study: StudyData, every: list[RecursionSeries]) -> Figure:
    panels = []
    for case in every:
        gain = case.speed_up()
        traces = [
            theme.line(
                gain.index,
                gain[depth],
                name=_named(depth),
                place=int(depth) - 1,
                template=f"{SIZE}=%{{x}}: %{{y:.3f}} times as fast",
            )
            for depth in gain.columns
            if depth
        ]
        x = theme.log_axis(f"{SIZE} (rows)", gain.index)
        panels.append(Panel(case.title, traces, theme.layout(x, theme.axis("speed-up"))))
    shown = sorted({trace["name"] for panel in panels for trace in panel.data})
    return Figure(
        id=f"{study.name}-speed-up",
        caption=(
            "Time without recursion / least time with it: above 1 recursion pays. Each "
            "point has the fastest sizes of sub-systems that were measured."
        ),
        alt=f"Lines: speed-up against {SIZE}, one line per number of recursions.",
        panels=panels,
        keys=theme.keys(shown),
    )


def _named(depth: int | str) -> str:
    return wording.plural(int(depth), "recursion", "recursions")


def _tables(study: StudyData, every: list[RecursionSeries]) -> Iterator[Block]:
    columns = [
        Column(SIZE, "rows"),
        Column("no recursion", "ms"),
        Column("recursions", group="best"),
        Column("m of each level", "rows", number=False, group="best"),
        Column("time", "ms", group="best"),
        Column("speed-up", "times", group="best"),
    ]
    for case in every:
        alone = case.times()[0]
        fastest = fastest_rows(case.best, [SIZE], study.spec).sort_values(SIZE)
        rows = [
            [
                wording.count(record[SIZE]),
                wording.number(alone[record[SIZE]], 4),
                wording.count(record[CHOICE]),
                ", ".join(str(record[name]) for name in EVERY_M if record[name]),
                wording.number(record["time_ms"], 4),
                wording.fixed(alone[record[SIZE]] / record["time_ms"], 3),
            ]
            for record in records(fastest)
        ]
        yield Fold(case.title, [table(f"Best depth of {case.title}", columns, rows)])


def _rules(every: list[RecursionSeries], facts: Mapping[str, str]) -> Iterator[Block]:
    names = ("accuracy_recursions_a5000", "null_accuracy_recursions_a5000")
    paper = (facts.get(names[0], "–"), facts.get(names[1], "–"))
    entries = []
    for case in every:
        for name, optima_of in (("observed", observed_optima), ("corrected", corrected_optima)):
            optima = optima_of(case.best, SIZE, CHOICE)
            entries.append(Learnt(case.title, name, optima, case.best, paper, SIZE, CHOICE))
    caption = "Number of recursions by the nearest sizes, three quarters of them to learn from"
    yield neighbours_table(caption, entries)
    yield from _fixed_sizes(every, facts)


def fixed_size_losses(case: RecursionSeries, level: str) -> pd.DataFrame:
    """What one m of a level at every size costs, against the fastest recursive one with that level.

    See :func:`launchwise.report.numbers.fixed_losses`: the value is m, problems are sizes.
    """
    recursive = case.rows[case.rows[CHOICE] > 0]
    times = recursive[recursive[level] > 0].groupby([SIZE, level])["time_ms"].min()
    return fixed_losses(times.groupby(level=SIZE).transform("min") / times)


def _fixed_sizes(every: list[RecursionSeries], facts: Mapping[str, str]) -> Iterator[Block]:
    columns = [
        Column("level", number=False),
        Column("m", "rows"),
        Column("sizes"),
        Column("time lost", "% (mean)"),
        Column("time lost", "% (worst)"),
    ]
    for case in every:
        rows = [
            [
                title,
                wording.count(record["value"]),
                wording.count(record["problems"]),
                wording.fixed(record["loss_percent"], 2),
                wording.fixed(record["worst_loss_percent"], 2),
            ]
            for level, title in LEVELS.items()
            for record in records(fixed_size_losses(case, level))
        ]
        yield table(f"One m for a level at every size, with recursion, {case.title}", columns, rows)
    if "second_level_m_fixed" in facts:
        agree = facts.get("second_level_cases_that_agree", "–")
        yield Text(
            f"The paper fixes m = {facts['second_level_m_fixed']} for the first recursion, the "
            f"best in {agree} of {facts.get('second_level_cases', '–')} cases.",
            "note",
        )
