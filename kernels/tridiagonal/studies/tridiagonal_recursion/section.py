"""Sections of the recursion study: best number of recursions per size, and m per level."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from launchwise.experiment.published import Records, facts_of
from launchwise.report import theme, wording
from launchwise.report.blocks import (
    MISSING,
    Block,
    Bullets,
    Cell,
    Column,
    Figure,
    Fold,
    Panel,
    Section,
    Table,
    table,
)
from launchwise.report.fields import table_of
from launchwise.report.numbers import records
from launchwise.report.study import StudyData

from ...learning.optima import corrected_optima, observed_optima
from ..host_runs import LEVELS
from ..neighbours import FIELDS, Learnt, neighbours_figure
from .conclusions import conclusions
from .rule import by_rule, said_levels
from .series import CHOICE, SIZE, RecursionSeries, cases, fixed_size_losses, spread_percent
from .stages import stages

__all__ = ["cases", "fixed_size_losses", "sections"]

GAIN = 1.01
"""Least speed-up that counts as a gain of recursion, besides exceeding the errors of times."""

FIXED_M = 10
"""m of the first recursion in the paper's rule, where its table does not say."""

VARIED = {"m": "outermost level", "m1": "first recursion", "m2": "second recursion"}
"""Levels whose fixed values are tried."""


def sections(study: StudyData, published: Mapping[str, Records]) -> list[Section]:
    """Sections of the study, in order; none where too little was measured."""
    every = cases(study)
    if not every:
        return []
    facts = facts_of(published)
    entries = learnt(every, facts)
    fixed = int(facts.get("second_level_m_fixed", FIXED_M))
    return [
        Section(
            f"{study.name}-worth",
            "Speed-up of recursion",
            [
                _lead(every, facts),
                _figure(study, every),
                *_intervals(every, published),
                *_tables(every),
            ],
        ),
        *stages(study, every),
        Section(f"{study.name}-rules", "Rules from it", list(_rules(study, every, entries, facts))),
        *by_rule(study, every, fixed),
        Section(
            f"{study.name}-conclusions",
            "The paper's conclusions, tested",
            [conclusions(every, entries, facts, fixed)],
        ),
    ]


def _lead(every: Sequence[RecursionSeries], facts: Mapping[str, str]) -> Bullets:
    items = []
    most_published = int(facts.get("recursions_that_pay_most", 0))
    for case in every:
        gain = case.speed_up()
        most = gain.max(axis=1)
        pays = [size for size in most.index if most[size] > GAIN and 0 not in case.ties[int(size)]]
        idle = [wording.count(depth) for depth in gain.columns[(gain <= GAIN).all()] if depth]
        where = f"at {SIZE} = {wording.listed(map(wording.count, pays))}" if pays else "nowhere"
        text = f"recursion gains more than 1 % beyond error {where}"
        text += f"; the best speed-up is {wording.fixed(most.max(), 2)}x"
        if idle:
            text += f"; {wording.listed(idle)} recursions never gain as much"
        items.append((f"{case.title}:", f"{text}. {_deepest(case, most_published)}".strip()))
    if "speed_up_recursion" in facts:
        text = f"{facts['speed_up_recursion']}x at most, with up to {most_published} recursions."
        items.append(("Paper:", text))
    return Bullets(items)


def _deepest(case: RecursionSeries, most: int) -> str:
    """Sizes where more recursions than in the paper are fastest, and whether they tie."""
    depths = case.overall.set_index(SIZE)[CHOICE]
    deep = [int(size) for size in depths.index[depths > most]] if most else []
    if not deep:
        return ""
    tied = [size for size in deep if min(case.ties[size]) <= most]
    return (
        f"More than {most} recursions are the fastest at {len(deep)} of "
        f"{wording.plural(len(depths), 'size')}; at {len(tied)} of these they tie with fewer "
        "within the error of the times."
    )


def _figure(study: StudyData, every: Sequence[RecursionSeries]) -> Figure:
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
            "Time without recursion / least time with it (figure 4 of the paper): above 1, "
            "recursion pays. Each point has the fastest m per level that was measured."
        ),
        alt=f"Lines: speed-up against {SIZE}, one line per number of recursions.",
        panels=panels,
        keys=theme.keys(shown),
    )


def _named(depth: int | str) -> str:
    return wording.plural(int(depth), "recursion", "recursions")


def _intervals(
    every: Sequence[RecursionSeries], published: Mapping[str, Records]
) -> Iterator[Table]:
    """Table II: sizes by their best number of recursions; the fewest of those that tie."""
    theirs = {int(row["recursions"]): row for row in published.get("depths", [])}
    columns = [
        Column("recursions"),
        Column("fastest at n", "rows", number=False, group="ours"),
        Column("fewest that tie with the fastest, at n", "rows", number=False, group="ours"),
        Column("best at n", "rows", number=False, group="paper, table II"),
    ]
    for case in every:
        depths = case.overall.set_index(SIZE)[CHOICE]
        fewest = {size: min(tied) for size, tied in case.ties.items()}
        rows = []
        for depth in sorted({*map(int, case.times().columns), *theirs}):
            alone = [int(size) for size in depths.index[depths == depth]]
            tied = [size for size, least in fewest.items() if least == depth]
            cells = [Cell(wording.count(depth)), Cell(_sizes(alone)), Cell(_sizes(tied))]
            rows.append([*cells, Cell(_their_interval(theirs.get(depth, {})), role="theirs")])
        yield table(f"Best number of recursions, {case.title}", columns, rows)


def _sizes(sizes: Iterable[int]) -> str:
    return ", ".join(map(wording.count, sizes)) or "nowhere"


def _their_interval(record: Mapping[str, str]) -> str:
    """An interval of table II, as far as the text still has it."""
    if not record:
        return MISSING
    if record["best_somewhere"] == "no":
        return "nowhere"
    limits = [record["n_from"], record["n_to"]]
    return f"{limits[0]} to {limits[1]}" if all(limits) else "somewhere (sizes lost in the text)"


def _tables(every: Sequence[RecursionSeries]) -> Iterator[Block]:
    columns = [
        Column(SIZE, "rows"),
        Column("no recursion", "ms"),
        Column("recursions", group="best"),
        Column("tie with", "recursions", number=False, group="best"),
        Column("m of each level", "rows", number=False, group="best"),
        Column("time", "ms", group="best"),
        Column("speed-up", "times", group="best"),
    ]
    for case in every:
        alone = case.times()[0]
        rows = [
            [
                wording.count(record[SIZE]),
                wording.number(alone[record[SIZE]], 4),
                wording.count(record[CHOICE]),
                _others(case.ties[record[SIZE]], record[CHOICE]),
                said_levels([record[name] for name in LEVELS]),
                wording.number(record["time_ms"], 4),
                wording.fixed(alone[record[SIZE]] / record["time_ms"], 3),
            ]
            for record in records(case.overall)
        ]
        yield Fold(case.title, [table(f"Best depth of {case.title}", columns, rows)])


def _others(tied: Sequence[int], best: int) -> str:
    return ", ".join(wording.count(depth) for depth in tied if depth != best) or MISSING


def learnt(every: Sequence[RecursionSeries], facts: Mapping[str, str]) -> list[Learnt]:
    """Numbers of recursions to learn from: corrected and observed ones of every case."""
    names = ("accuracy_recursions_a5000", "null_accuracy_recursions_a5000")
    paper = (facts.get(names[0], MISSING), facts.get(names[1], MISSING))
    return [
        Learnt(case.title, name, optima_of(case.best, SIZE, CHOICE), case.best, paper, SIZE, CHOICE)
        for case in every
        for name, optima_of in (("corrected", corrected_optima), ("observed", observed_optima))
    ]


def _rules(
    study: StudyData,
    every: Sequence[RecursionSeries],
    entries: Sequence[Learnt],
    facts: Mapping[str, str],
) -> Iterator[Block]:
    caption = "Number of recursions by the nearest sizes, three quarters of them to learn from"
    yield table_of(caption, FIELDS, entries)
    sizes = [size for case in every for size in case.best[SIZE]]
    yield neighbours_figure(
        f"{study.name}-neighbours",
        "Best number of recursions of every size and what the nearest neighbours predict for the "
        "test sizes (figure 5 of the paper).",
        entries,
        theme.log_axis(f"{SIZE} (rows)", sizes),
        theme.axis("recursions", dtick=1),
    )
    yield from _fixed_sizes(every, facts)


def _fixed_sizes(every: Sequence[RecursionSeries], facts: Mapping[str, str]) -> Iterator[Block]:
    columns = [
        Column("level", number=False),
        Column("m", "rows"),
        Column("sizes"),
        Column("best or tied", "sizes"),
        Column("time lost", "% (mean)"),
        Column("time lost", "% (worst)"),
    ]
    for case in every:
        rows = [
            [
                title,
                wording.count(record["value"]),
                wording.count(record["problems"]),
                wording.count(record["best_at"]),
                wording.fixed(record["loss_percent"], 2),
                wording.fixed(record["worst_loss_percent"], 2),
            ]
            for level, title in VARIED.items()
            for record in records(fixed_size_losses(case, level))
        ]
        yield table(f"One m for a level at every size, with recursion, {case.title}", columns, rows)
    if "second_level_m_fixed" in facts:
        yield from _fixed_m1(every, facts)


def _fixed_m1(every: Sequence[RecursionSeries], facts: Mapping[str, str]) -> Iterator[Block]:
    """The paper's remark on a fixed m of the first recursion, and the spread over its choices."""
    tried = [int(m) for m in facts.get("second_level_m_tried", "").split()]
    items = []
    for case in every:
        spread = spread_percent(case, "m1", tried)
        used = sorted(set(case.rows["m1"]) & set(tried))
        if len(spread):
            text = (
                f"among m = {wording.listed(map(wording.count, used))} of the first recursion, the "
                f"worst takes up to {wording.fixed(spread.max(), 2)} % longer than the best, "
                f"{wording.fixed(spread.median(), 2)} % in the median of "
                f"{wording.plural(len(spread), 'size')}."
            )
            items.append((f"{case.title}:", text))
    agree = facts.get("second_level_cases_that_agree", MISSING)
    text = (
        f"m = {facts['second_level_m_fixed']} is fixed for the first recursion, the best in "
        f"{agree} of {facts.get('second_level_cases', MISSING)} cases; among "
        f"{wording.listed(map(str, tried))} the difference is called negligible (its percentage is "
        "lost in the text)."
    )
    yield Bullets([*items, ("Paper:", text)])
