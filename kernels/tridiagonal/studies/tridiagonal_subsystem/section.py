"""What only the study of the sub-system size has: optima, their trend, and what transfers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pandas as pd

from launchwise.learning.metrics import geometric_mean
from launchwise.learning.optima import (
    corrected_optima,
    corrections_by_rank,
    observed_optima,
    transfer_losses,
    transfer_summary,
    with_a_choice,
)
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
from launchwise.report.numbers import records
from launchwise.report.published import Records, facts_of
from launchwise.report.study import StudyData

from ..neighbours import Learnt, neighbours_table

SIZE, CHOICE = "n", "m"
FEWEST = 4
"""Sizes below which there is no trend to speak of."""

DRAWN = 6
"""Sizes whose times are drawn against m."""

ALIGNED_BYTES = 256
"""What cudaMalloc aligns to: parts of an array begin there as well if each has a multiple of it."""

ITEMSIZE = {"float32": 4, "float64": 8}


@dataclass(frozen=True)
class SubsystemSeries(KindOnGpu):
    """Times of one GPU and one kind of problem: problems, m and streams with ``time_ms``."""

    dtype: str
    rows: pd.DataFrame
    observed: pd.DataFrame
    corrected: pd.DataFrame


def cases(study: StudyData) -> list[SubsystemSeries]:
    """The cases of a study that were measured for enough sizes, with their optima."""
    found = []
    columns = ["gpu", *study.problem_columns, CHOICE, "streams", "time_ms"]
    for gpu, measured in study.measured[columns].groupby("gpu", sort=True):
        for kind, part in kinds_of(study, measured):
            rows = with_a_choice(part, SIZE, CHOICE)
            if rows[SIZE].nunique() < FEWEST:
                continue
            optima = observed_optima(rows), corrected_optima(rows)
            found.append(SubsystemSeries(str(gpu), kind, str(rows["dtype"].iloc[0]), rows, *optima))
    return found


def sections(study: StudyData, published: Mapping[str, Records]) -> list[Section]:
    """Sections of the study, in order; none where too little was measured."""
    every = cases(study)
    if not every:
        return []
    return [
        Section(
            f"{study.name}-optima",
            "The best sub-system size",
            [
                *_lead(every, facts_of(published)),
                _times(study, every),
                _trend(study, every, published),
                *_alignment(every),
                *_tables(every),
            ],
        ),
        Section(f"{study.name}-heuristic", "A rule from it", list(_heuristic(every, published))),
        *_transfer(study, every),
    ]


def _lead(every: list[SubsystemSeries], facts: Mapping[str, str]) -> Iterator[Block]:
    found = []
    for case in every:
        ranks = corrections_by_rank(case.corrected)
        moved = int(ranks.drop(1, errors="ignore").sum())
        worst = case.corrected["loss_percent"].max()
        small, large = case.corrected[CHOICE].iloc[0], case.corrected[CHOICE].iloc[-1]
        most = case.rows[CHOICE].max()
        edge = ", the largest that was measured" if large == most else ""
        text = (
            f"the best {CHOICE} grows from {small} at the smallest system to {large} at the "
            f"largest{edge}. {moved} of {len(case.corrected)} sizes leave that trend; to follow it "
            f"costs at most {wording.fixed(worst, 2)} %. {_worth(case)}"
        )
        found.append((f"{case.title}:", text))
    if "speed_up_larger_m" in facts:
        text = f"a larger {CHOICE} is up to {facts['speed_up_larger_m']}x as fast."
        found.append(("Published:", text))
    yield Bullets(found)


def _worth(case: SubsystemSeries) -> str:
    """What the best choice gains on the one that is best most often, where it gains most."""
    usual = case.observed[CHOICE].mode().iloc[0]
    with_it = case.rows[case.rows[CHOICE] == usual].groupby(SIZE)["time_ms"].min()
    gain = (with_it / case.rows.groupby(SIZE)["time_ms"].min()).dropna()
    where = gain.idxmax()
    return (
        f"Against {CHOICE} = {wording.count(usual)}, which is best most often, the best is "
        f"up to {wording.fixed(gain.max(), 2)}x as fast, at {SIZE} = {wording.count(where)}."
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
        y = theme.log_axis("time by the best", [1.0, 4.0], autorange=False)
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
            lines.append(("published, RTX 2080 Ti", theirs))
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
    names = ["observed", "corrected", "published, RTX 2080 Ti"]
    return Figure(
        id=f"{study.name}-trend",
        caption=(
            f"The best {CHOICE} for every size; corrected: the trend that never falls and loses "
            "least in all. Published: the corrected optima whose size the table still has."
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


def _tables(every: list[SubsystemSeries]) -> Iterator[Block]:
    columns = [
        Column(SIZE, "rows"),
        Column(CHOICE, "rows", group="observed"),
        Column("time", "ms", group="observed"),
        Column(CHOICE, "rows", group="corrected"),
        Column("time", "ms", group="corrected"),
        Column("rank", group="corrected"),
        Column("costs", "%", group="corrected"),
    ]
    for case in every:
        rows = [
            [
                wording.count(record[SIZE]),
                wording.count(record[f"observed_{CHOICE}"]),
                wording.number(record["observed_time_ms"], 4),
                wording.count(record[CHOICE]),
                wording.number(record["time_ms"], 4),
                wording.count(record["rank"]),
                wording.fixed(record["loss_percent"], 2),
            ]
            for record in records(case.corrected)
        ]
        yield Fold(case.title, [table(f"Optima of {case.title}", columns, rows)])


def _heuristic(every: list[SubsystemSeries], published: Mapping[str, Records]) -> Iterator[Block]:
    facts = facts_of(published)
    entries = []
    for case in every:
        for name, optima in (("observed", case.observed), ("corrected", case.corrected)):
            paper = (
                facts.get(f"accuracy_{name}_{case.dtype}", "–"),
                facts.get(f"null_accuracy_{case.dtype}", "–"),
            )
            entries.append(Learnt(case.title, name, optima, case.rows, paper))
    caption = f"Nearest neighbours in log({SIZE}), three quarters of the sizes to learn from"
    yield neighbours_table(caption, entries, SIZE, CHOICE)
    yield Text(
        "Accuracy counts the very same choice; the time lost is the cost of a miss. With some "
        "ten test sizes, one more or less of them moves the accuracy by .1.",
        "note",
    )


def _transfer(study: StudyData, every: list[SubsystemSeries]) -> list[Section]:
    """What each GPU loses with the optima of each other one, by kind of problem."""
    blocks: list[Block] = []
    columns = [
        Column("optima of", number=False),
        Column("used on", number=False),
        Column("sizes"),
        Column("time lost", "% (mean)"),
        Column("time lost", "% (worst)"),
    ]
    for kind in dict.fromkeys(case.kind for case in every):
        own = [case for case in every if case.kind == kind]
        if len(own) < 2:
            continue
        rows = pd.concat([case.rows for case in own])
        optima = pd.concat([case.corrected.assign(gpu=case.gpu) for case in own])
        summary = transfer_summary(transfer_losses(rows, optima))
        cells = [
            [
                record["source"],
                record["target"],
                wording.count(record["sizes"]),
                wording.fixed(record["loss_percent"], 2),
                wording.fixed(record["worst_loss_percent"], 2),
            ]
            for record in records(summary)
        ]
        blocks.append(table(f"Somebody else's optima, {kind}", columns, cells))
    if not blocks:
        return []
    return [Section(f"{study.name}-borrowed", "Optima of one GPU on another", blocks)]
