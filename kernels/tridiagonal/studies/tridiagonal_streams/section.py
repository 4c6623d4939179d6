"""Sections of the streams study, and the paper's conclusions judged on our measurements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import pandas as pd

from launchwise.experiment.published import Records, facts_of
from launchwise.report import wording
from launchwise.report.blocks import Block, Bullets, Cell, Fold, Section, Text
from launchwise.report.fields import contradictions, of_texts, table_of
from launchwise.report.study import StudyData

from ...recommenders.stream_law.laws import PUBLISHED_OVERHEAD, PUBLISHED_SUM
from ..host_runs import JUDGED
from . import gains
from .fits import fit_blocks, fit_table, judged, optima_blocks, optima_table, published_optima
from .gains import CHOICE, FIELDS, SIZE, faster_sizes, gain_figure, largest_gain
from .series import StreamSeries, batch_blocks, series_of
from .stages import PAPER, stage_blocks, stage_table

HOLDS, PARTLY, FAILS = "holds", "holds in part", "does not hold"
UNKNOWN = "not measured well enough"
UNDECIDED = "undecided"
LEAST_R2 = {"sum": 0.99, "overhead_small": 0.9, "overhead_big": 0.9}
"""R² on test sizes from which a published form is said to fit."""


UNFITTED = Cell("–", detail=UNKNOWN)  # verdict on a claim that there are too few rows for


def of_all(good: int, count: int) -> str:
    """Verdict on a claim that holds at ``good`` of ``count`` sizes."""
    if not count:
        return UNKNOWN
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


def gain_claim(series: StreamSeries, gain: float) -> Cell:
    largest = largest_gain(series.gains)
    if largest is None:
        return UNFITTED
    text = f"{wording.fixed(largest['gain'], 2)}x at {SIZE} = {wording.count(largest[SIZE])}"
    return Cell(text, detail=HOLDS if largest["gain"] >= gain else FAILS)


def bound_claim(series: StreamSeries, sizes: Sequence[int], gain: float) -> Cell:
    """Whether overlap could give that gain at the paper's sizes: the bound alone, so T and sum."""
    stages = series.stages.set_index(SIZE)
    alone = series.compared[series.compared[CHOICE] == 1].set_index(SIZE)
    known = [size for size in sizes if size in stages.index and size in alone.index]
    # Stages are timed in runs of their own: where they take more than a run, nothing follows.
    timed = alone.loc[known]
    timed = timed[timed["sum_ms"] < timed["time_ms"]]
    if timed.empty:
        return UNFITTED
    times, sums, known = timed["time_ms"], timed["sum_ms"], list(timed.index)
    bound = (times / (times - sums)).max()
    share = (sums / times).max()
    # Stages were timed in runs of their own: shares of those, not of the time of another run.
    host = (stages.loc[known, "t2_h"] / stages.loc[known].sum(axis=1)).max()
    text = (
        f"overlap can give at most {wording.fixed(bound, 2)}x: {wording.percent(share)} % of the "
        "time can overlap, "
        f"{wording.percent(host, 0)} % of all stages is stage 2 on the host"
    )
    return Cell(text, detail=HOLDS if bound >= gain else FAILS)


def optimum_claim(series: StreamSeries, theirs: pd.DataFrame, streams: int) -> Cell:
    """Whether at the sizes for which the paper measured ``streams`` as best nothing is faster."""
    sizes = theirs.loc[theirs["theirs_measured"] == streams, SIZE]
    # Between the paper's sizes ours count, too.
    inside = series.gains[SIZE].between(sizes.min(), sizes.max()) & series.gains["well_measured"]
    tied = series.gains.loc[inside, "tied"]
    same = sum(streams in each for each in tied)
    alone = sum(each == (streams,) for each in tied)
    text = f"best or tied at {same} of {wording.plural(len(tied), 'size')}, alone at {alone}"
    return Cell(text, detail=of_all(same, len(tied)) if alone or not same else UNDECIDED)


def creation_claim(series: StreamSeries) -> Cell:
    """Whether sqrt(sum / tau), rounded to a whole number, exceeds every best number of streams."""
    stages = stage_table(series)
    most = series.gains.set_index(SIZE)["tied"].map(lambda tied: max(tied, default=np.nan))
    stages["measured_streams"] = stages[SIZE].map(most)
    known = stages[stages["measured_streams"].notna() & stages["optimum_fitted"].notna()]
    more = int((known["optimum_fitted"].round() > known["measured_streams"]).sum())
    text = f"{more} of {wording.plural(len(known), 'size')} with the fitted tau"
    created = known[known["optimum_created"].notna()]
    if len(created):
        above = int((created["optimum_created"].round() > created["measured_streams"]).sum())
        text += f", {above} of {len(created)} with the measured creation"
        return Cell(text, detail=of_all(above, len(created)))
    return Cell(text, detail=of_all(more, len(known)))


def prediction_claim(optima: pd.DataFrame, most_percent: float) -> Cell:
    """Whether predictions on held-out sizes lose no more than the paper's."""
    used = judged(optima)
    lost = used["predicted_lost_percent"].dropna()
    if lost.empty:
        return UNFITTED
    pairs = zip(used["predicted_streams"], used["tied"], strict=True)
    right = sum(streams in tied for streams, tied in pairs)
    text = f"{right} of {len(used)} right, at most {wording.fixed(lost.max(), 2)} % lost (held out)"
    unknown = len(used) - len(lost)
    text += f", {unknown} without a time to compare" if unknown else ""
    within = PARTLY if unknown else HOLDS
    return Cell(text, detail=within if lost.max() <= most_percent else FAILS)


def fit_claim(series: StreamSeries, model: str) -> Cell:
    if series.laws is None:
        return UNFITTED
    fits = fit_table(series.laws)
    rows = fits[(fits["model"] == model) & (fits["set"] == "test")]
    if rows.empty or not np.isfinite(rows["r2"].iloc[0]):
        return UNFITTED
    r2 = float(rows["r2"].iloc[0])
    return Cell(f"R² {wording.fixed(r2, 5)}", detail=HOLDS if r2 >= LEAST_R2[model] else FAILS)


FIT_CLAIMS = {
    "sum": "The overlapped time is linear in n",
    "overhead_small": "The published overhead form fits up to n = 10^6",
    "overhead_big": "The published overhead form fits above n = 10^6",
}


def conclusion_blocks(
    study: StudyData,
    every: Sequence[StreamSeries],
    optima: Mapping[str, pd.DataFrame],
    published: Mapping[str, Records],
) -> Iterator[Block]:
    """The answer, and a table of claims with one column for each series on a whole GPU.

    ``optima``: title of each series with laws to its :func:`~fits.optima_table`.
    """
    used = [series for series in every if series.gpu in study.whole]
    facts, theirs = facts_of(published), published_optima(published)
    if not used or "speed_up_streams" not in facts or theirs.empty:
        return
    yield _answer(used, facts)
    titles = ["claim", PAPER, *(series.title for series in used)]
    claims = [
        (claim, paper, *map(judge, used))
        for claim, paper, judge in _claims(optima, facts, theirs, published)
    ]
    yield of_texts("Claims of the paper on our measurements", titles, claims)


def _claims(
    optima: Mapping[str, pd.DataFrame],
    facts: Mapping[str, str],
    theirs: pd.DataFrame,
    published: Mapping[str, Records],
) -> Iterator[tuple[str, str, Callable[[StreamSeries], str | Cell]]]:
    """A claim, the paper's figure, and what a series says of it."""
    gain, shares = float(facts["speed_up_streams"]), published_shares(facts)
    at = f"{SIZE} = {wording.listed(wording.count(size) for size in shares)}"
    paper = f"{facts['speed_up_streams']}x at {at}"
    yield "Largest speed-up of streams", paper, partial(gain_claim, gain=gain)
    if shares:
        yield (
            f"Speed-up that overlap can give at {at}",
            f"about {wording.percent(max(shares.values()), 0)} % of the time can overlap (from its "
            "laws and its speed-up)",
            partial(bound_claim, sizes=list(shares), gain=gain),
        )
    for streams in (1, int(facts.get("most_streams", "32"))):
        sizes = theirs.loc[theirs["theirs_measured"] == streams, SIZE]
        number = "1 stream is" if streams == 1 else f"{streams} streams are"
        ends = f"{wording.count(sizes.min())} to {wording.count(sizes.max())}"
        judge = partial(optimum_claim, theirs=theirs, streams=streams)
        yield f"{number} best for {SIZE} = {ends}", wording.plural(len(sizes), "size"), judge
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
    yield "√(sum / tau) asks for more streams than are best", said, creation_claim
    for row in published.get("models", []):
        if row["set"] == "test":
            least = LEAST_R2[row["model"]]
            yield (
                f"{FIT_CLAIMS[row['model']]} (R² of at least {least} on test sizes)",
                f"R² {wording.fixed(float(row['r_squared']), 5)}",
                partial(fit_claim, model=row["model"]),
            )


def _answer(used: Sequence[StreamSeries], facts: Mapping[str, str]) -> Text:
    found = [largest_gain(series.gains) for series in used]
    largest = max((float(one["gain"]) for one in found if one is not None), default=float("nan"))
    paper = f"The paper gains up to {facts['speed_up_streams']}x from streams."
    if np.isnan(largest):
        return Text(f"{paper} Our sizes are {UNKNOWN} to say whether we do.", "lead")
    if largest >= float(facts["speed_up_streams"]):
        return Text(f"{paper} We reach that: up to {wording.fixed(largest, 2)}x.", "lead")
    faster = sum(len(faster_sizes(series.gains)) for series in used)
    sizes = sum(int(series.gains["well_measured"].sum()) for series in used)
    above = sum(int((series.gains["gain"] > series.gains["bound"]).sum()) for series in used)
    beyond = sum(int(series.gains["above_bound"].sum()) for series in used)
    ours = (
        f"Our largest speed-up that overlap can explain is {wording.fixed(largest, 2)}x; "
        f"{faster} of {wording.count(sizes)} exceed their errors."
    )
    if above:
        ours += (
            f" Not counted: {wording.plural(above, 'speed-up')} above what overlap can give, "
            f"{beyond} of them beyond error."
        )
    return Text(f"{paper} {ours}", "lead")


def sections(study: StudyData, published: Mapping[str, Records]) -> list[Section]:
    every = [series for series in series_of(study) if len(series.gains)]
    if not every:
        return []
    optima = {
        series.title: optima_table(series, series.laws, published)
        for series in every
        if series.laws
    }
    parts: dict[str, tuple[str, Iterable[Block]]] = {
        f"{study.name}-conclusion": (
            "The paper's conclusion on our measurements",
            [*conclusion_blocks(study, every, optima, published), *contradictions(published)],
        ),
        f"{study.name}-gain": ("Speed-up of streams", _gain(study, every)),
        f"{study.name}-overlap": (
            "Stages that streams can overlap",
            stage_blocks(study, every, published),
        ),
        f"{study.name}-laws": (
            "Laws of the sum and of the overhead",
            fit_blocks(study, every),
        ),
        f"{study.name}-optima": ("Best and predicted number of streams", optima_blocks(optima)),
        f"{study.name}-batches": ("Batches", batch_blocks(study)),
    }
    made = ((name, title, list(blocks)) for name, (title, blocks) in parts.items())
    return [Section(name, title, blocks) for name, title, blocks in made if blocks]


def _gain(study: StudyData, every: list[StreamSeries]) -> Iterator[Block]:
    yield Bullets([(f"{series.title}:", gains.sentence(series.gains)) for series in every])
    yield gain_figure(study, [(one.title, one.runs, one.gains) for one in every])
    one = every[0]
    made = table_of(f"Speed-up and bound, {one.title}", FIELDS, one.gains)
    yield Fold(f"{one.title}: speed-up and bound of every size", [made, Text(NOTE, "note")])


NOTE = (
    f"{JUDGED} Tie: numbers of streams that the errors of their times do not tell apart from the "
    "fastest. Other GPUs and problems: the lookup."
)
