"""Sections of the sub-system study: optima, their trend, and transfer to other GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pandas as pd

from launchwise.experiment.published import Records, facts_of
from launchwise.learning.metrics import geometric_mean
from launchwise.report import theme, wording
from launchwise.report.blocks import Block, Bullets, Figure, Panel, Section, Text
from launchwise.report.study import StudyData

from ...learning.optima import corrections_by_rank
from ..neighbours import Learnt, neighbours_figure, neighbours_table
from .borrowed import borrowed
from .conclusions import conclusions
from .paper_tables import optima_tables
from .resources import resources
from .series import CHOICE, EDGE_GOAL, LEAST, SIZE, SubsystemSeries, cases

__all__ = ["cases", "sections"]

DRAWN = 6
"""Sizes whose times are drawn against m."""

ALIGNED_BYTES = 256
"""Alignment of cudaMalloc, bytes; equal parts of an array keep it if they are multiples of it."""

ITEMSIZE = {"float32": 4, "float64": 8}


def sections(study: StudyData, published: Mapping[str, Records]) -> list[Section]:
    """Sections of the study, in order; none where too little was measured."""
    every = cases(study)
    if not every:
        return []
    entries = learnt(every, published)
    return [
        Section(
            f"{study.name}-optima",
            "The best sub-system size",
            [
                *_lead(every, facts_of(published)),
                _times(study, every),
                _trend(study, every, published),
                *_alignment(every),
                *optima_tables(every, published),
            ],
        ),
        Section(f"{study.name}-heuristic", "A rule from it", list(_heuristic(study, entries))),
        *borrowed(study, every, published),
        resources(study, every, published),
        Section(
            f"{study.name}-conclusions",
            "The paper's conclusions, tested",
            [conclusions(study, every, entries, published)],
        ),
    ]


def _lead(every: list[SubsystemSeries], facts: Mapping[str, str]) -> Iterator[Block]:
    items = []
    for case in every:
        ranks = corrections_by_rank(case.corrected)
        moved = int(ranks.drop(1, errors="ignore").sum())
        worst = case.corrected["loss_percent"].max()
        small, large = case.corrected[CHOICE].iloc[0], case.corrected[CHOICE].iloc[-1]
        text = (
            f"the best {CHOICE} grows from {small} at the smallest system to {large} at the "
            f"largest. {moved} of {len(case.corrected)} sizes leave that trend; to follow it "
            f"costs at most {wording.fixed(worst, 2)} %. {_worth(case)} {_edges(case)}"
        )
        items.append((f"{case.title}:", text))
    if "speed_up_larger_m" in facts:
        text = f"a larger {CHOICE} is up to {facts['speed_up_larger_m']}x as fast."
        items.append(("Paper:", text))
    yield Bullets(items)


def _edges(case: SubsystemSeries) -> str:
    """Number of optima on the edge of the measured range, and of optima that tie."""
    smallest, largest = case.edges()
    sizes = len(case.observed)
    tied = sum(len(choices) > 1 for choices in case.ties.values())
    share = (smallest + largest) / sizes
    return (
        f"{smallest + largest} of {sizes} optima ({wording.percent(share, 0)} %, goal: at most "
        f"{wording.percent(EDGE_GOAL, 0)} %) lie on the edge of the measured range: {smallest} at "
        f"the smallest {CHOICE}, {largest} at the largest ({CHOICE} = {LEAST} is no edge: no "
        f"smaller one reduces a system). At {tied} sizes another {CHOICE} is as "
        "fast within the error of the times."
    )


def _worth(case: SubsystemSeries) -> str:
    """Largest speed-up of the best choice over the one that is best most often."""
    usual = case.observed[CHOICE].mode().iloc[0]
    with_it = case.rows[case.rows[CHOICE] == usual].groupby(SIZE)["time_ms"].min()
    gain = (with_it / case.rows.groupby(SIZE)["time_ms"].min()).dropna()
    where = gain.idxmax()
    return (
        f"Speed-up of the best over {CHOICE} = {wording.count(usual)}, which is best most often: "
        f"up to {wording.fixed(gain.max(), 2)}x, at {SIZE} = {wording.count(where)}."
    )


def _times(study: StudyData, every: list[SubsystemSeries]) -> Figure:
    """Time against m, by its best, for some sizes."""
    panels = []
    for case in every:
        sizes = sorted(case.rows[SIZE].unique())
        step = max(1, -(-len(sizes) // DRAWN))
        traces = []
        for place, size in enumerate(sizes[::-1][::step][::-1]):
            own = case.rows[case.rows[SIZE] == size].groupby(CHOICE)["time_ms"].min()
            traces.append(
                theme.line(
                    own.index,
                    own / own.min(),
                    name=f"{SIZE} = {wording.count(size)}",
                    place=place,
                    template=f"{CHOICE}=%{{x}}: %{{y:.3f}} times the best",
                )
            )
        x = theme.log_axis(f"{CHOICE} (rows)", case.rows[CHOICE])
        y = theme.log_axis("time / best time", [1.0, 4.0], autorange=False)
        panels.append(Panel(case.title, traces, theme.layout(x, y)))
    shown = [trace["name"] for trace in panels[0].data]
    return Figure(
        id=f"{study.name}-times",
        caption=(
            f"Time against {CHOICE}, relative to the best of the size: "
            "where a line is flat, the choice "
            "hardly matters. Beyond 4 times the best it is cut off."
        ),
        alt=f"Lines: time divided by the best time against {CHOICE}, one line per size.",
        panels=panels,
        keys=theme.keys(shown),
    )


def _trend(
    study: StudyData, every: list[SubsystemSeries], published: Mapping[str, Records]
) -> Figure:
    panels = []
    for case in every:
        lines = [("observed", case.observed), ("corrected", case.corrected)]
        theirs = _published_trend(published, case.dtype)
        if theirs is not None:
            lines.append(("paper, RTX 2080 Ti", theirs))
        traces = []
        for place, (name, optima) in enumerate(lines):
            traces.append(
                theme.line(
                    optima[SIZE],
                    optima[CHOICE],
                    name=name,
                    place=place,
                    template=f"{SIZE}=%{{x}}: {CHOICE}=%{{y}}",
                )
            )
        x = theme.log_axis(f"{SIZE} (rows)", case.rows[SIZE])
        y = theme.log_axis(f"best {CHOICE} (rows)", case.rows[CHOICE])
        panels.append(Panel(case.title, traces, theme.layout(x, y)))
    names = ["observed", "corrected", "paper, RTX 2080 Ti"]
    return Figure(
        id=f"{study.name}-trend",
        caption=(
            f"The best {CHOICE} for every size; corrected: the trend that never falls and loses "
            "least in all. Paper: the corrected optima whose size is known."
        ),
        alt=f"Lines: best {CHOICE} against {SIZE}, observed, corrected and published.",
        panels=panels,
        keys=theme.keys(names),
    )


def _published_trend(published: Mapping[str, Records], dtype: str) -> pd.DataFrame | None:
    known = [record for record in published.get(f"optima_{dtype}", []) if record.get("n")]
    if not known:
        return None
    return pd.DataFrame(
        {
            SIZE: [float(record["n"]) for record in known],
            CHOICE: [float(record["m_corrected"]) for record in known],
        }
    )


def _alignment(every: list[SubsystemSeries]) -> Iterator[Block]:
    """Effect of sub-systems aligned to memory segments, with several streams."""
    found = []
    for case in every:
        rows = case.rows[case.rows["streams"] > 1]
        whole = rows[CHOICE] * ITEMSIZE[case.dtype] % ALIGNED_BYTES == 0
        best = pd.DataFrame(
            {
                "aligned": rows[whole].groupby(SIZE)["time_ms"].min(),
                "others": rows[~whole].groupby(SIZE)["time_ms"].min(),
            }
        ).dropna()
        if best.empty:
            continue
        ratio = (best["others"] / best["aligned"]).to_numpy()
        text = (
            f"where streams cut the data, sub-systems of whole {ALIGNED_BYTES} bytes ({CHOICE} a "
            f"multiple of {ALIGNED_BYTES // ITEMSIZE[case.dtype]}) are the fastest at "
            f"{int((ratio > 1).sum())} of {len(ratio)} sizes; the best of them is "
            f"{wording.fixed(geometric_mean(ratio), 3)} times as fast as the best of the others."
        )
        found.append((f"{case.title}:", text))
    if found:
        yield Bullets(found)


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
            entries.append(Learnt(case.title, name, optima, case.rows, paper, SIZE, CHOICE))
    return entries


def _heuristic(study: StudyData, entries: list[Learnt]) -> Iterator[Block]:
    caption = f"Nearest neighbours in log({SIZE}), three quarters of the sizes to learn from"
    yield neighbours_table(caption, entries)
    yield Text(
        "Accuracy counts the very same choice; the time lost is the cost of a miss. With ten test "
        "sizes, one more or less of them moves the accuracy by 0.1.",
        "note",
    )
    rows = pd.concat([entry.rows for entry in entries])
    yield neighbours_figure(
        f"{study.name}-neighbours",
        f"Best {CHOICE} of every size and what the nearest neighbours predict for the test sizes "
        "(figures 2 and 6 of the paper).",
        entries,
        theme.log_axis(f"{SIZE} (rows)", rows[SIZE]),
        theme.log_axis(f"best {CHOICE} (rows)", rows[CHOICE]),
    )
