"""Sections of the sub-system study: optima, their trend, and transfer to other GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pandas as pd

from launchwise.experiment.published import Records, facts_of
from launchwise.report import theme, wording
from launchwise.report.blocks import MISSING, Block, Figure, Fold, Panel, Section, Table, Text
from launchwise.report.fields import (
    Field,
    beside,
    by_key,
    contradictions,
    field,
    grouped,
    lines,
    printed,
    significant,
    table_of,
)
from launchwise.report.study_tables import StudyData

from ..host_runs import JUDGED, shortened
from ..neighbours import Learnt, fields
from .borrowed import borrowed
from .conclusions import conclusions
from .resources import optimum_occupancy, resources
from .series import CHOICE, SIZE, SIZES, SubsystemSeries, cases
from .solvers import by_solver, solver_tables

__all__ = ["cases", "sections"]

DRAWN = 4  # sizes whose times are drawn against m


def sections(study: StudyData, published: Mapping[str, Records]) -> list[Section]:
    every = cases(study)
    if not every:
        return []
    found = {case.title: optimum_occupancy(study, case) for case in every}
    solvers = by_solver(study)
    kind, names = shortened(every)
    optima = [
        _times(study, every, names, facts_of(published)),
        _trend(study, every, names, published),
        *solver_tables(solvers, names),
        *optima_tables([case for case in every if case.gpu == every[0].gpu], names, published),
    ]
    caption = f"{CHOICE} by the nearest size, {kind}; time lost: of a miss, in pairs"
    tested = conclusions(study, every, names, solvers, published)
    parts: dict[str, tuple[str, list[Block]]] = {
        "optima": ("The best sub-system size", optima),
        "heuristic": (
            "The nearest size",
            [table_of(caption, fields(names), learnt(every, published))],
        ),
        "borrowed": ("Optima used elsewhere", borrowed(study, every, published)),
        "resources": (
            "Occupancy and threads per block",
            resources(study, names, found, facts_of(published)),
        ),
        "conclusions": ("The paper's conclusions, tested", [tested, *contradictions(published)]),
    }
    return [Section(f"{study.name}-{end}", *part) for end, part in parts.items() if part[1]]


def _times(
    study: StudyData,
    every: list[SubsystemSeries],
    names: Mapping[str, str],
    facts: Mapping[str, str],
) -> Figure:
    panels = []
    counts = [count for case in every for count in case.best.groupby(SIZE)[CHOICE].nunique()]
    ends = wording.span(counts, 0)
    theirs = [facts.get(f"sub_system_sizes_tested_{end}", "") for end in ("least", "most")]
    paper = f" (paper: {' to '.join(theirs)})" if all(theirs) else ""
    for case in every:
        sizes = sorted(case.rows[SIZE].unique())
        step = max(1, -(-len(sizes) // DRAWN))
        least = case.best.pivot(index=CHOICE, columns=SIZE, values="time_ms")
        drawn = {
            f"{SIZE} = {wording.count(size)}": (least[size] / least[size].min()).dropna()
            for size in sizes[::-1][::step][::-1]
        }
        traces = lines(drawn, f"{CHOICE}=%{{x}}: %{{y:.3f}} times the best")
        x = theme.log_axis(f"{CHOICE} (rows)", case.rows[CHOICE])
        y = theme.log_axis("time / best time", [1.0, 4.0], autorange=False)
        panels.append(Panel(names[case.title], traces, theme.layout(x, y)))
    shown = [trace["name"] for trace in panels[0].data]
    return Figure(
        id=f"{study.name}-times",
        caption=(
            f"Time against {CHOICE}, relative to the best of the size, up to 4 times; {ends} "
            f"{CHOICE} have a time per size{paper}."
        ),
        alt=f"Lines: time divided by the best time against {CHOICE}, one line per size.",
        panels=panels,
        keys=theme.keys(shown),
    )


def _trend(
    study: StudyData,
    every: list[SubsystemSeries],
    names: Mapping[str, str],
    published: Mapping[str, Records],
) -> Figure:
    panels = []
    for case in every:
        known = [one for one in published.get(f"optima_{case.dtype}", []) if one.get("n")]
        theirs = {float(one["n"]): float(one["m_corrected"]) for one in known}
        drawn = {
            "observed": case.observed.set_index(SIZE)[CHOICE],
            "corrected": case.corrected.set_index(SIZE)[CHOICE],
            **({PAPER: pd.Series(theirs)} if theirs else {}),
        }
        traces = lines(drawn, f"{SIZE}=%{{x}}: {CHOICE}=%{{y}}")
        x = theme.log_axis(f"{SIZE} (rows)", case.rows[SIZE])
        y = theme.log_axis(f"best {CHOICE} (rows)", case.rows[CHOICE])
        panels.append(Panel(names[case.title], traces, theme.layout(x, y)))
    return Figure(
        id=f"{study.name}-trend",
        caption=(
            f"The best {CHOICE} of every size; corrected: the trend that never falls and loses "
            "least."
        ),
        alt=f"Lines: best {CHOICE} against {SIZE}, observed, corrected and published.",
        panels=panels,
        keys=theme.keys(["observed", "corrected", PAPER]),
    )


def learnt(every: list[SubsystemSeries], published: Mapping[str, Records]) -> list[Learnt]:
    """Optima to learn from: corrected and observed ones of every case."""
    facts = facts_of(published)
    entries = []
    for case in every:
        for name, optima in (("corrected", case.corrected), ("observed", case.observed)):
            paper = (
                facts.get(f"accuracy_{name}_{case.dtype}", "–"),
                facts.get(f"null_accuracy_{case.dtype}", "–"),
            )
            entries.append(Learnt(case.title, name, optima, case.told, paper, SIZE, CHOICE))
    return entries


NAMES = {"float64": "table I", "float32": "table IV"}

PAPER = "paper, RTX 2080 Ti"
OURS = grouped(
    "ours",
    field("streams", "streams", wording.count),
    field("m observed", "best_m", wording.count, "rows"),
    field("ties with", "others", unit="m"),
    field("time", "best_ms", significant(4), "ms"),
    field("time from", "basis"),
    field("m corrected", CHOICE, wording.count, "rows"),
    field("time", "time_ms", significant(4), "ms"),
    field("rank", "rank", wording.count),
    field(
        "costs", lambda row: row["state"] or wording.fixed(row["loss_percent"], 2), str, "%", True
    ),
)
THEIRS = {
    "row": ("row", ""),
    "streams": ("streams", ""),
    "m_observed": ("m observed", "rows"),
    "m_observed_float64": ("m in float64", "rows"),
    "time_observed_ms": ("time", "ms"),
    "m_corrected": ("m corrected", "rows"),
    "time_corrected_ms": ("time", "ms"),
    "difference_ms": ("difference", "ms"),
}
"""Columns of the published tables that are shown, in order, where a table has them."""


def _their_fields(theirs: Records) -> list[Field]:
    shown = {name: column for name, column in THEIRS.items() if theirs and name in theirs[0]}
    made = (field(title, name, printed, unit) for name, (title, unit) in shown.items())
    return grouped(PAPER, *made, role="theirs")


def optima_tables(
    every: list[SubsystemSeries], names: Mapping[str, str], published: Mapping[str, Records]
) -> Iterator[Block]:
    """A folded table per case, ours beside the paper's rows that have a size."""
    for case in every:
        theirs = published.get(f"optima_{case.dtype}", [])
        caption = f"Optima of {case.title}"
        if theirs:
            caption += f", beside {NAMES[case.dtype]} of the paper"
        blocks = [_beside(caption, case, theirs), Text(JUDGED, "note")]
        yield Fold(f"{names[case.title]}: optima of every size", blocks)


def _beside(caption: str, case: SubsystemSeries, theirs: Records) -> Table:
    known = {int(record["n"]): record for record in theirs if record["n"]}
    optima = case.optimum_rows.set_index(SIZE)
    ours = by_key(case.corrected, SIZE)
    for size, record in ours.items():
        others = [m for m in case.ties[size] if m != record["best_m"]]
        record["others"] = ", ".join(map(wording.count, others)) or MISSING
        record |= {name: optima.loc[size, name] for name in ("streams", "basis")}
    keys = sorted({*ours, *known})
    return beside(caption, SIZES, keys, (OURS, ours), (_their_fields(theirs), known))
