"""Sections of the recursion study: best number of recursions per size, and m per level."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from launchwise.experiment.published import Records, facts_of
from launchwise.report import theme, wording
from launchwise.report.blocks import MISSING, Block, Figure, Panel, Section, Table, Text
from launchwise.report.fields import (
    THEIRS,
    beside,
    field,
    grouped,
    lines,
    table_of,
)
from launchwise.report.study import StudyData

from ...learning.optima import corrected_optima
from ..host_runs import levelled
from ..neighbours import FIELDS, Learnt, neighbours_figure
from .conclusions import conclusions
from .gains import gain_tables
from .series import CHOICE, FEWEST, SIZE, RecursionSeries, cases, conditions, stages

__all__ = ["cases", "sections"]

FIXED_M = 10  # m of the first recursion in the paper's rule, where its table does not say


def sections(study: StudyData, published: Mapping[str, Records]) -> list[Section]:
    every = cases(study)
    if not every:
        return []
    facts = facts_of(published)
    entries = learnt(every, facts)
    fixed = int(facts.get("second_level_m_fixed", FIXED_M))
    worth = [
        _figure(study, every),
        *_intervals(every, published),
        Text(DESIGN, "note"),
        *gain_tables(every),
    ]
    parts: dict[str, tuple[str, list[Block]]] = {
        f"{study.name}-conclusions": (
            "The paper's conclusions, tested",
            [conclusions(every, entries, facts, fixed), *conditions(every)],
        ),
        f"{study.name}-worth": ("Speed-up of recursion", worth),
        f"{study.name}-stages": ("Stage times by number of recursions", stages(every)),
        f"{study.name}-rules": ("Rules from it", list(_rules(study, every, entries))),
    }
    return [Section(name, *part) for name, part in parts.items() if part[1]]


DESIGN = (
    "Answers of this study keep the paper's design: gtsv and the published number of streams. "
    "Where the fastest of all rows is faster, the study of everything at once answers better."
)


def _figure(study: StudyData, every: Sequence[RecursionSeries]) -> Figure:
    panels = []
    for case in every:
        gain = case.speed_up()
        drawn = {_named(depth): gain[depth] for depth in gain.columns if depth}
        traces = lines(drawn, f"{SIZE}=%{{x}}: %{{y:.3f}} times as fast")
        x = theme.log_axis(f"{SIZE} (rows)", gain.index)
        panels.append(Panel(case.title, traces, theme.layout(x, theme.axis("speed-up"))))
    shown = sorted({trace["name"] for panel in panels for trace in panel.data})
    return Figure(
        id=f"{study.name}-speed-up",
        caption=(
            "Time without recursion / least time with it by gtsv and the published streams (figure "
            "4 of the paper has times), of the sweep, with the fastest m per level: above 1, "
            "recursion pays in this design. Sizes whose times are not compared have no point."
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
    """Table II: sizes by the number of recursions of their least time, and the fewest that tie."""
    theirs = {
        int(row["recursions"]): {"theirs": _their_interval(row)}
        for row in published.get("depths", [])
    }
    ours = [field("least time at n", "alone", unit="rows")]
    ours.append(field("fewest that tie with the fastest, at n", "tied", unit="rows"))
    printed = field("best at n", "theirs", unit="rows")
    for case in every:
        alike = case.comparable
        depths = alike.least
        fewest = {size: min(tied) for size, tied in alike.ties.items()}
        keys = sorted({*map(int, case.best[CHOICE].unique()), *theirs})
        known = {
            depth: {
                "alone": _sizes(depths.index[depths == depth]),
                "tied": _sizes(size for size, least in fewest.items() if least == depth),
            }
            for depth in keys
        }
        yield beside(
            f"Best number of recursions, {case.title}",
            field("recursions", lambda depth: depth, wording.count),
            keys,
            (grouped("ours", *ours), known),
            (grouped("paper, table II", printed, role=THEIRS), theirs),
        )


def _sizes(sizes: Iterable[int]) -> str:
    return ", ".join(map(wording.count, sizes)) or "nowhere"


def _their_interval(record: Mapping[str, str]) -> str:
    """An interval of table II, as far as the text still has it."""
    if record["best_somewhere"] == "no":
        return "nowhere"
    limits = [record["n_from"], record["n_to"]]
    return f"{limits[0]} to {limits[1]}" if all(limits) else "somewhere (sizes lost in the text)"


def learnt(every: Sequence[RecursionSeries], facts: Mapping[str, str]) -> list[Learnt]:
    """Numbers of recursions to learn from: corrected and observed ones of every case."""
    names = ("accuracy_recursions_a5000", "null_accuracy_recursions_a5000")
    paper = (facts.get(names[0], MISSING), facts.get(names[1], MISSING))
    found = []
    for case in (each.comparable for each in every):
        # Numbers of recursions that tie cost nothing.
        best = levelled(case.best, SIZE)
        if best[SIZE].nunique() >= FEWEST:
            optima = {"corrected": corrected_optima(best, SIZE, CHOICE), "observed": case.overall}
            for name, table in optima.items():
                found.append(Learnt(case.title, name, table, best, paper, SIZE, CHOICE))
    return found


def _rules(
    study: StudyData, every: Sequence[RecursionSeries], entries: Sequence[Learnt]
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
