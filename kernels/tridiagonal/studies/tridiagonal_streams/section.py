"""What only the study of CUDA streams has: what overlaps, what it costs, and laws that choose."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields

import pandas as pd

from launchwise.base.errors import UserError
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

from ...recommenders.stream_law.choice import (
    OVERLAPPED,
    SERIAL,
    choose_law,
    compare_optima,
    goodness_of_fit,
    overhead_rows,
    runs_that_differ_in_streams,
    split_rows,
)
from ...recommenders.stream_law.laws import (
    OVERHEAD_LAWS,
    PUBLISHED_OVERHEAD,
    PUBLISHED_SUM,
    SUM_LAWS,
    CreationLaw,
    Law,
)

SIZE, CHOICE = "n", "streams"
FEWEST = 8
"""Sizes below which no law can be split into training and test."""


@dataclass(frozen=True)
class StreamSeries(KindOnGpu):
    """Runs of one GPU and one kind of problem, and the laws fitted to three quarters of them.

    ``rows`` are those of ``overhead_rows``; ``stages`` the
    stage times without streams, ms.
    """

    stages: pd.DataFrame
    rows: pd.DataFrame
    train: pd.DataFrame
    test: pd.DataFrame
    sum_law: Law
    overhead_law: Law
    creation: CreationLaw


def cases(study: StudyData) -> list[StreamSeries]:
    """The cases that were measured for enough sizes and numbers of streams."""
    found = []
    for gpu, measured in study.measured.groupby("gpu", sort=True):
        for kind, rows in kinds_of(study, measured):
            made = _case(study, str(gpu), kind, rows)
            if made is not None:
                found.append(made)
    return found


def _case(study: StudyData, gpu: str, kind: str, rows: pd.DataFrame) -> StreamSeries | None:
    """None where there is too little, or no law can be fitted to it."""
    runs = runs_that_differ_in_streams(rows, SIZE, study.spec)
    stages = runs.loc[runs[CHOICE] == 1, [SIZE, *(f"{name}_ms" for name in (*OVERLAPPED, *SERIAL))]]
    stages = stages.rename(columns=lambda name: name.removesuffix("_ms")).sort_values(SIZE)
    if stages[SIZE].nunique() < FEWEST or runs[CHOICE].nunique() < 2:
        return None
    measured = overhead_rows(stages, runs)
    train, test = split_rows(measured)
    try:
        laws = [choose_law(train, candidates).law for candidates in (SUM_LAWS, OVERHEAD_LAWS)]
        creation = CreationLaw.fit(train)
    except UserError:
        return None
    return StreamSeries(gpu, kind, stages, measured, train, test, laws[0], laws[1], creation)


def sections(study: StudyData, published: Mapping[str, Records]) -> list[Section]:
    """Sections of the study, in order; none where too little was measured."""
    every = cases(study)
    if not every:
        return []
    return [
        Section(
            f"{study.name}-gain",
            "Speed-up of streams",
            [
                Bullets(_lead(every, facts_of(published))),
                _gains(study, every),
                _stages(study, every),
            ],
        ),
        Section(f"{study.name}-laws", "Laws that choose", list(_laws(study, every, published))),
    ]


def _lead(every: list[StreamSeries], facts: Mapping[str, str]) -> list[tuple[str, str]]:
    found = []
    for case in every:
        alone = case.rows[case.rows[CHOICE] == 1].set_index(SIZE)["time_ms"]
        best = case.rows.groupby(SIZE)["time_ms"].min()
        gain = alone / best
        where = gain.idxmax()
        text = (
            f"speed-up of up to {wording.fixed(gain.max(), 2)}x over one stream, at {SIZE} = "
            f"{wording.count(where)}; {wording.fixed(gain.iloc[-1], 2)}x at the largest size."
        )
        found.append((f"{case.title}:", text))
    if "speed_up_streams" in facts:
        sizes = facts.get("speed_up_streams_at_n", "").split()
        at = f", at {SIZE} = {wording.listed(map(wording.count, map(int, sizes)))}" if sizes else ""
        found.append(("Published:", f"up to {facts['speed_up_streams']} times{at}."))
    return found


def _gains(study: StudyData, every: list[StreamSeries]) -> Figure:
    counts = sorted({int(count) for case in every for count in case.rows[CHOICE] if count > 1})
    panels = []
    for case in every:
        alone = case.rows[case.rows[CHOICE] == 1].set_index(SIZE)["time_ms"]
        traces = []
        for place, count in enumerate(counts):
            own = case.rows[case.rows[CHOICE] == count].set_index(SIZE)["time_ms"]
            gain = (alone / own).dropna()
            traces.append(
                theme.line(
                    gain.index,
                    gain,
                    name=f"{count} streams",
                    place=place,
                    template=f"{SIZE}=%{{x}}: %{{y:.3f}} times as fast as one stream",
                )
            )
        x = theme.log_axis(f"{SIZE} (rows)", case.rows[SIZE])
        panels.append(Panel(case.title, traces, theme.layout(x, theme.axis("times one stream"))))
    return Figure(
        id=f"{study.name}-gain-figure",
        caption="Speed-up over one stream: below 1, streams cost more than they hide.",
        alt=f"Lines: speed-up over one stream against {SIZE}, one line per number of streams.",
        panels=panels,
        keys=theme.keys(f"{count} streams" for count in counts),
    )


def _stages(study: StudyData, every: list[StreamSeries]) -> Figure:
    names = [*OVERLAPPED, *SERIAL]
    panels = []
    for case in every:
        traces = [
            theme.line(
                case.stages[SIZE],
                case.stages[name].where(case.stages[name] > 0),
                name=name,
                place=place,
                template=f"{SIZE}=%{{x}}: %{{y:.4g}} ms",
            )
            for place, name in enumerate(names)
        ]
        x = theme.log_axis(f"{SIZE} (rows)", case.stages[SIZE])
        y = theme.log_axis("ms", case.stages[names].to_numpy().ravel())
        panels.append(Panel(case.title, traces, theme.layout(x, y)))
    said = {name: study.spec.stages.get(name, name) for name in names}
    return Figure(
        id=f"{study.name}-stages",
        caption=(
            "Time of each stage without streams. Streams can overlap "
            f"{wording.listed(OVERLAPPED)}; the rest they leave alone."
        ),
        alt=f"Lines: milliseconds of each stage against {SIZE}.",
        panels=panels,
        keys=theme.keys(f"{name}: {said[name]}" for name in names),
    )


def _overheads(study: StudyData, every: list[StreamSeries]) -> Figure:
    """The surface overhead(n, streams), one line per number of streams."""
    counts = sorted({int(count) for case in every for count in case.rows[CHOICE] if count > 1})
    panels = []
    for case in every:
        traces = []
        shown = case.rows["overhead_ms"].where(case.rows["overhead_ms"] > 0)
        for place, count in enumerate(counts):
            own = case.rows[CHOICE] == count
            sizes = case.rows.loc[own, SIZE]
            name, colour = f"{count} streams", theme.colour(place)
            template = f"{SIZE}=%{{x}}: %{{y:.4g}} ms"
            law = pd.Series(case.overhead_law.predict(sizes, count))
            traces += [
                theme.dots(
                    sizes, shown[own], name=name, colour_=colour, size=5.5, template=template
                ),
                theme.line(
                    sizes,
                    law.where(law > 0),
                    name=f"{name}, law",
                    place=place,
                    template=template,
                    markers=False,
                ),
            ]
        x = theme.log_axis(f"{SIZE} (rows)", case.rows[SIZE])
        panels.append(
            Panel(case.title, traces, theme.layout(x, theme.log_axis("ms", shown.dropna())))
        )
    return Figure(
        id=f"{study.name}-overhead",
        caption=(
            "What streams add to what they cannot hide: dots are measured, lines the law that was "
            "chosen. Overheads below 0 are the noise of measuring and not drawn."
        ),
        alt=f"Dots and lines: milliseconds of overhead against {SIZE}, by number of streams.",
        panels=panels,
        keys=theme.keys(f"{count} streams" for count in counts),
    )


def _laws(
    study: StudyData, every: list[StreamSeries], published: Mapping[str, Records]
) -> Iterator[Block]:
    yield _overheads(study, every)
    yield _fits(every, published)
    yield Text(
        "Fitted to three quarters of the sizes, chosen among several forms by cross-validation on "
        "those alone. The sum is what streams can overlap, the overhead what they add.",
        "note",
    )
    for case in every:
        found = compare_optima(case.rows, case.sum_law, case.overhead_law, case.creation)
        unseen = set(case.test[SIZE])
        summary = _summary(found[found[SIZE].isin(unseen)])
        yield Fold(f"{case.title}: {summary}", [_optima(case, found, unseen)])
    paper = published.get("optima", [])
    if paper:
        differ = sum(row["streams_measured"] != row["streams_predicted"] for row in paper)
        text = f"Published (RTX 2080 Ti): {differ} of {len(paper)} predictions miss the optimum."
        yield Text(text, "note")


def _summary(found: pd.DataFrame) -> str:
    """How the laws do on sizes that they have not seen."""
    right = int((found["predicted_streams"] == found["measured_streams"]).sum())
    lost = found["predicted_lost_percent"].max()
    return f"{right} of {len(found)} unseen sizes right, at most {wording.fixed(lost, 2)} % lost"


def _fits(every: list[StreamSeries], published: Mapping[str, Records]) -> Block:
    columns = [
        Column("GPU and problems", number=False),
        Column("law", number=False),
        Column("R²", group="training"),
        Column("RMSE", "ms", group="training"),
        Column("R²", group="test"),
        Column("RMSE", "ms", group="test"),
    ]
    rows = []
    for case in every:
        for law in (case.sum_law, case.overhead_law, case.creation):
            cells = [case.title, _said(law)]
            for part in (case.train, case.test):
                fit = goodness_of_fit(law, part)
                cells += [wording.fixed(fit["r2"], 4), wording.number(fit["rmse"], 3)]
            rows.append(cells)
    for law in (PUBLISHED_SUM, PUBLISHED_OVERHEAD):
        name = "sum" if law is PUBLISHED_SUM else "overhead_small"
        records_of = [row for row in published.get("models", []) if row["model"] == name]
        if not records_of:
            continue
        said = {record["set"]: record for record in records_of}
        cells = ["published, RTX 2080 Ti", _said(law)]
        for side in ("train", "test"):
            of_part: dict[str, str] = said.get(side, {})
            r2, rmse = of_part.get("r_squared"), of_part.get("rmse_ms")
            cells += [wording.fixed(float(r2), 4) if r2 else "–"]
            cells += [wording.number(float(rmse), 3) if rmse else "–"]
        rows.append(cells)
    return table("Laws and how well they fit (the published overhead: N up to 1e6)", columns, rows)


def _said(law: Law) -> str:
    """Its form and coefficients."""
    values = ((field.name, getattr(law, field.name)) for field in fields(law))  # type: ignore[arg-type]
    named = ", ".join(f"{name.replace('_', ' ')} {value:.4g}" for name, value in values)
    return f"{type(law).__name__.removesuffix('Law')}: {named}"


def _optima(case: StreamSeries, found: pd.DataFrame, unseen: set[int]) -> Block:
    columns = [
        Column(SIZE, "rows"),
        Column("seen", number=False),
        Column("streams", group="measured"),
        Column("time", "ms", group="measured"),
        Column("streams", group="law"),
        Column("lost", "ms", group="law"),
        Column("lost", "%", group="law"),
        Column("streams", group="creation alone (Gómez-Luna)"),
        Column("lost", "%", group="creation alone (Gómez-Luna)"),
    ]
    rows = [
        [
            wording.count(record[SIZE]),
            "unseen" if record[SIZE] in unseen else "training",
            wording.count(record["measured_streams"]),
            wording.number(record["measured_ms"], 4),
            wording.count(record["predicted_streams"]),
            wording.number(record["predicted_lost_ms"], 3),
            wording.fixed(record["predicted_lost_percent"], 2),
            wording.count(record["baseline_streams"]),
            wording.fixed(record["baseline_lost_percent"], 2),
        ]
        for record in records(found)
    ]
    return table(f"Streams for each size, {case.title}", columns, rows)
