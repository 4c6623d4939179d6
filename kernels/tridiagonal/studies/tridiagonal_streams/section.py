"""Sections of the streams study, and the paper's conclusions judged on our measurements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from launchwise.experiment.published import Records, facts_of
from launchwise.report import wording
from launchwise.report.blocks import MISSING, Block, Cell, Fold, Section, Text
from launchwise.report.fields import (
    FROM_PAPER,
    contradictions,
    decimals,
    field,
    of_texts,
    percents,
    table_of,
)
from launchwise.report.study_tables import StudyData

from ...recommenders.stream_law.laws import PUBLISHED_OVERHEAD, PUBLISHED_SUM
from ..host_runs import JUDGED, shortened
from .fits import fit_blocks, judged, optima_blocks, optima_table, published_optima
from .gains import CHOICE, FIELDS, NOT_COMPARED, NOT_WELL, SIZE, gain_figure, largest_gain
from .series import StreamSeries, series_of
from .stages import PAPER, stage_blocks, stage_table

HOLDS, PARTLY, FAILS = "holds", "holds in part", "does not hold"
UNDECIDED = "undecided"
UNFITTED = Cell("–", detail=NOT_WELL)  # verdict on a claim that there are too few rows for


def of_all(good: int, count: int) -> str:
    """Verdict on a claim that holds at ``good`` of ``count`` sizes."""
    if not count:
        return NOT_WELL
    return HOLDS if good == count else PARTLY if good else FAILS


def published_shares(facts: Mapping[str, str]) -> dict[int, float]:
    """Share of the time with one stream that streams can overlap in the paper, by size. The paper
    prints no such times. With the printed gain g and what the printed laws save at most, S = max
    over s of (s - 1)/s * sum - overhead, T / (T - S) = g gives T, and the share is sum / T."""
    if "speed_up_streams" not in facts:
        return {}
    gain = float(facts["speed_up_streams"])
    streams = np.array([2.0**power for power in range(6)])
    found = {}
    for size in map(int, facts.get("speed_up_streams_at_n", "").split()):
        total = float(PUBLISHED_SUM.predict(size))
        saved = float(np.max((1 - 1 / streams) * total - PUBLISHED_OVERHEAD.predict(size, streams)))
        found[size] = total / (saved * gain / (gain - 1))
    return found


def overlap_at(series: StreamSeries, sizes: Sequence[int]) -> dict[str, float]:
    """Of the paper's sizes with the largest speed-up: largest ``share`` of the time with one stream
    that can overlap, and of all stages that stage 2 takes on the ``host``. Empty where no such size
    has times."""
    stages = series.stages.set_index(SIZE)
    alone = series.compared[series.compared[CHOICE] == 1].set_index(SIZE)
    timed = alone.loc[[n for n in sizes if n in stages.index and n in alone.index]]
    # Stages are timed in runs of their own: where they take more than a run, nothing follows.
    timed = timed[timed["sum_ms"] < timed["time_ms"]]
    if timed.empty:
        return {}
    # For the same reason these are shares of all stages, not of the time of another run.
    of_stages = stages.loc[timed.index, "t2_h"] / stages.loc[timed.index].sum(axis=1)
    return {"share": (timed["sum_ms"] / timed["time_ms"]).max(), "host": of_stages.max()}


def optimum_claim(series: StreamSeries, theirs: pd.DataFrame, streams: int) -> Cell:
    """Whether at the sizes for which the paper measured ``streams`` as best nothing is faster."""
    sizes = theirs.loc[theirs["theirs_measured"] == streams, SIZE]
    # Between the paper's sizes ours count, too.
    inside = series.gains.loc[series.gains[SIZE].between(sizes.min(), sizes.max()), "tied"]
    tied = [each for each in inside if each]
    same, alone = sum(streams in each for each in tied), tied.count((streams,))
    said = [f"{same} of {len(tied)}, alone at {alone}"] if tied else []
    if unknown := len(inside) - len(tied):
        said.append(f"{unknown} {NOT_COMPARED}")
    told = alone or same < len(tied) or not tied
    verdict = of_all(same, len(inside if same else tied)) if told else UNDECIDED
    return Cell(", ".join(said), detail=verdict)


def creation_claim(series: StreamSeries) -> Cell:
    """Whether sqrt(sum / tau), rounded to a whole number, exceeds every best number of streams."""
    stages = stage_table(series)
    most = series.gains.set_index(SIZE)["tied"].map(lambda tied: max(tied, default=np.nan))
    stages["measured_streams"] = stages[SIZE].map(most)
    known = stages[stages["measured_streams"].notna() & stages["optimum_fitted"].notna()]
    more = int((known["optimum_fitted"].round() > known["measured_streams"]).sum())
    created = known[known["optimum_created"].notna()]
    if created.empty:
        return Cell(f"{more} of {len(known)}", detail=of_all(more, len(known)))
    above = int((created["optimum_created"].round() > created["measured_streams"]).sum())
    text = f"fitted {more}, measured {above} of {len(known)}"
    return Cell(text, detail=of_all(above, len(created)))


def prediction_claim(optima: pd.DataFrame, most_percent: float) -> Cell:
    """Whether predictions on held-out sizes lose no more than the paper's."""
    asked = judged(optima)
    used = asked.dropna(subset="predicted_lost_percent")
    if used.empty:
        return UNFITTED
    lost = used["predicted_lost_percent"]
    pairs = zip(used["predicted_streams"], used["tied"], strict=True)
    right = np.array([streams in tied for streams, tied in pairs])
    most = wording.fixed(lost.max(), 2)
    text = f"{right.sum()} of {len(used)} right or tied, at most {most} % lost"
    unknown = len(asked) - len(used)
    text += f", {unknown} {NOT_COMPARED}" if unknown else ""
    within = PARTLY if unknown else HOLDS
    if lost.max() > most_percent:
        told = used["predicted_lost_percent"][~right].max() > most_percent
        within = FAILS if told else UNDECIDED
    return Cell(text, detail=within)


def conclusion_blocks(
    every: Sequence[StreamSeries],
    names: Mapping[str, str],
    optima: Mapping[str, pd.DataFrame],
    published: Mapping[str, Records],
) -> Iterator[Block]:
    """A table of claims with one column for each series.

    ``optima``: title of each series with laws to its :func:`~fits.optima_table`.
    """
    facts, theirs = facts_of(published), published_optima(published)
    if theirs.empty:
        return
    titles = ["claim", PAPER, *(names[series.title] for series in every)]
    claims = [
        (claim, paper, *map(judge, every))
        for claim, paper, judge in _claims(optima, facts, theirs, published)
    ]
    yield of_texts("Claims of the paper: sizes, held-out ones of predictions", titles, claims)


def _claims(
    optima: Mapping[str, pd.DataFrame],
    facts: Mapping[str, str],
    theirs: pd.DataFrame,
    published: Mapping[str, Records],
) -> Iterator[tuple[str, str, Callable[[StreamSeries], str | Cell]]]:
    """A claim, the paper's figure, and what a series says of it."""
    for streams in (1, int(facts.get("most_streams", "32"))):
        sizes = theirs.loc[theirs["theirs_measured"] == streams, SIZE]
        number = "1 stream is" if streams == 1 else f"{streams} streams are"
        ends = f"{wording.count(sizes.min())} to {wording.count(sizes.max())}"
        judge = partial(optimum_claim, theirs=theirs, streams=streams)
        yield (
            f"{number} best or tied for {SIZE} = {ends}",
            wording.plural(len(sizes), "size"),
            judge,
        )
    right = int((theirs["theirs_measured"] == theirs["theirs_streams"]).sum())
    most = float(theirs["theirs_lost_percent"].max())
    yield (
        "Laws of sum and overhead predict the best number of streams",
        f"{right} of {len(theirs)} right, at most {wording.fixed(most, 2)} % lost",
        lambda one: prediction_claim(optima[one.title], most) if one.laws else UNFITTED,
    )
    table = published.get("stages", [])
    more = sum(float(row["streams_gomez_luna"]) > float(row["streams_measured"]) for row in table)
    said = f"{more} of {wording.plural(len(table), 'size')}"
    yield "√(sum / tau), tau per stream fitted or measured, asks for more", said, creation_claim


def sections(study: StudyData, published: Mapping[str, Records]) -> list[Section]:
    every = [series for series in series_of(study) if len(series.gains)]
    if not every:
        return []
    kind, names = shortened(every)
    optima = {
        series.title: optima_table(series, series.laws, published)
        for series in every
        if series.laws
    }
    tested = [*conclusion_blocks(every, names, optima, published), *contradictions(published)]
    parts: dict[str, tuple[str, Iterable[Block]]] = {
        "gain": ("Speed-up of streams", _gain(study, every, kind, names, facts_of(published))),
        "overlap": (
            "Stages that streams can overlap",
            stage_blocks(study, every, names, published),
        ),
        "laws": ("Laws of the sum and of the overhead", fit_blocks(study, every, names, published)),
        "optima": ("Best and predicted number of streams", optima_blocks(optima, names)),
        "conclusion": ("The paper's conclusions, tested", tested),
    }
    made = ((f"{study.name}-{end}", title, list(blocks)) for end, (title, blocks) in parts.items())
    return [Section(name, title, blocks) for name, title, blocks in made if blocks]


def _gain(
    study: StudyData,
    every: list[StreamSeries],
    kind: str,
    names: Mapping[str, str],
    facts: Mapping[str, str],
) -> Iterator[Block]:
    shares = published_shares(facts)
    rows: list[dict[str, Any]] = []
    if shares:
        paper = {"on": PAPER, "gain": float(facts["speed_up_streams"]), FROM_PAPER: True}
        rows.append({**NO_GAIN, **paper, SIZE: max(shares), "share": max(shares.values())})
    rows += [
        {**NO_GAIN, "on": names[series.title], **_summary(series), **overlap_at(series, [*shares])}
        for series in every
    ]
    yield table_of(f"Largest speed-up of streams that overlap can explain, {kind}", GAINS, rows)
    at = wording.listed(map(wording.count, shares)) or MISSING
    yield Text(
        "Bound: T / (T - sum). Beyond it, and faster beyond error: the speed-up's 95 % interval "
        "lies above it, and above 1. Can overlap, and "
        f"stage 2 of all stages: the most of n = {at}; the paper's share follows from its laws.",
        "note",
    )
    yield gain_figure(study, [(names[one.title], one.runs, one.gains) for one in every])
    one = every[0]
    caption = f"Speed-up and bound, {names[one.title]}"
    made = [table_of(caption, FIELDS, one.gains), Text(NOTE, "note")]
    yield Fold(f"Every size, {names[one.title]}", made)


def _summary(series: StreamSeries) -> dict[str, Any]:
    """Largest speed-up that overlap can explain, and how many there are of which kind."""
    well = series.gains[series.gains["well_measured"]]
    above = well[well["gain"] > well["bound"]]
    most = largest_gain(series.gains)
    counts = {
        "sizes": len(well),
        "faster": int((series.gains["gain_low"] > 1).sum()),
        "above": f"{len(above)}, {int(above['above_bound'].sum())} beyond",
    }
    return counts if most is None else {**most[["gain", "gain_error", SIZE, "bound"]], **counts}


GAINS = [
    field("measured on", "on"),
    field("speed-up", "gain", decimals(2), "×"),
    field("± (95 %)", "gain_error", wording.percent, "%"),
    field("at n", SIZE, wording.count, "rows"),
    field("bound", "bound", decimals(2), "×"),
    field("well measured", "sizes", wording.count, "sizes"),
    field("faster beyond error", "faster", wording.count, "sizes"),
    field("above their bound", "above", unit="sizes", number=True),
    field("can overlap", "share", wording.percent, "% of T"),
    field("stage 2", "host", percents(0), "%"),
]
NO_GAIN = dict.fromkeys(str(one.value) for one in GAINS) | {"above": MISSING}


NOTE = (
    f"{JUDGED} Tie: streams that errors of times of one kind (pairs, or sweep) do not tell from "
    "the fastest, and that did not lose every round to it. Not compared: numbers without such a "
    "time, which may be the fastest by judged ones; no optimum is known. Other GPUs: the lookup."
)
