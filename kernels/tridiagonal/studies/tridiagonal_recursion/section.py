"""Sections of the recursion study: best number of recursions per size, and m per level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from launchwise.experiment.published import Records, facts_of
from launchwise.report import theme, wording
from launchwise.report.blocks import MISSING, Block, Figure, Panel, Section, Table, Text
from launchwise.report.fields import THEIRS, Part, beside, field, grouped, lines, table_of
from launchwise.report.study_tables import StudyData

from ...learning.optima import corrected_optima
from ..host_runs import levelled, shortened
from ..neighbours import Learnt, fields
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
    kind, names = shortened(every)
    entries = learnt(every, facts)
    fixed = int(facts.get("second_level_m_fixed", FIXED_M))
    worth = [
        _figure(study, every, names),
        _intervals(every, names, published),
        Text(" ".join([DESIGN, *conditions(every, names)]), "note"),
        *gain_tables(every),
    ]
    nearest = f"Number of recursions by the nearest size, {kind}"
    parts: dict[str, tuple[str, list[Block]]] = {
        "worth": ("Speed-up of recursion", worth),
        "stages": ("Stage times by number of recursions", stages(every)),
        "rules": ("The nearest size", [table_of(nearest, fields(names), entries)]),
        "conclusions": (
            "The paper's conclusions, tested",
            [conclusions(every, names, facts, fixed)],
        ),
    }
    return [Section(f"{study.name}-{end}", *part) for end, part in parts.items() if part[1]]


DESIGN = (
    "Answers of this study keep the paper's design: gtsv and the published number of streams. "
    "Where the fastest of all rows is faster, the study of times from host memory answers better."
)


def _figure(study: StudyData, every: Sequence[RecursionSeries], names: Mapping[str, str]) -> Figure:
    panels = []
    for case in every:
        gain = case.speed_up()
        drawn = {_named(depth): gain[depth] for depth in gain.columns if depth}
        traces = lines(drawn, f"{SIZE}=%{{x}}: %{{y:.3f}} times as fast")
        x = theme.log_axis(f"{SIZE} (rows)", gain.index)
        panels.append(Panel(names[case.title], traces, theme.layout(x, theme.axis("speed-up"))))
    shown = sorted({trace["name"] for panel in panels for trace in panel.data})
    return Figure(
        id=f"{study.name}-speed-up",
        caption=(
            "Time without recursion / least time with it, of the sweep, by gtsv and the published "
            "streams, with the fastest m per level (figure 4 of the paper has times)."
        ),
        alt=f"Lines: speed-up against {SIZE}, one line per number of recursions.",
        panels=panels,
        keys=theme.keys(shown),
    )


def _named(depth: int | str) -> str:
    return wording.plural(int(depth), "recursion", "recursions")


def _intervals(
    every: Sequence[RecursionSeries], names: Mapping[str, str], published: Mapping[str, Records]
) -> Table:
    """Table II: sizes by the number of recursions of their least time, and the fewest that tie."""
    theirs = {
        int(row["recursions"]): {"theirs": _their_interval(row)}
        for row in published.get("depths", [])
    }
    printed = field("best at n", "theirs", unit="rows")
    parts: list[Part] = [(grouped("paper, table II", printed, role=THEIRS), theirs)]
    keys = sorted({*theirs, *(int(depth) for case in every for depth in case.best[CHOICE])})
    for case in every:
        depths = case.comparable.least
        fewest = {size: min(tied) for size, tied in case.comparable.ties.items()}
        known = {
            depth: {
                "alone": int((depths == depth).sum()),
                "tied": [size for size, least in fewest.items() if least == depth],
            }
            for depth in keys
        }
        ours = (
            field("least time", "alone", wording.count, "sizes"),
            field(
                "fewest that tie with the fastest",
                lambda row: len(row["tied"]),
                wording.count,
                "sizes",
                detail=lambda row: _ends(row["tied"]),
            ),
        )
        parts.append((grouped(f"ours, {names[case.title]}", *ours), known))
    corner = field("recursions", lambda depth: depth, wording.count)
    return beside(
        "Best number of recursions: number of sizes, and their ends", corner, keys, *parts
    )


def _ends(sizes: Sequence[int]) -> str:
    """The smallest and the largest size, rows."""
    ends = sorted({*sizes[:1], *sizes[-1:]})
    return " to ".join(map(wording.count, ends))


def _their_interval(record: Mapping[str, str]) -> str:
    """An interval of table II, as far as the text still has it."""
    if record["best_somewhere"] == "no":
        return "nowhere"
    limits = [record["n_from"], record["n_to"]]
    return f"{limits[0]} to {limits[1]}" if all(limits) else "somewhere (sizes lost)"


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
