"""Speed-up of streams over one stream, held against the most that overlap can give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from launchwise.report import theme, wording
from launchwise.report.blocks import MISSING, Figure, Key, Panel
from launchwise.report.fields import decimals, field, grouped, lines, significant
from launchwise.report.numbers import records
from launchwise.report.study_tables import StudyData
from launchwise.tables.rows import ratio_limits, tied
from launchwise.tables.times import PAIRS, by_sweep

from ...recommenders.stream_law.choice import REPEATED, STAGES, repeated

SIZE, CHOICE = "n", "streams"


def of_one_kind(runs: pd.DataFrame) -> pd.DataFrame:
    """Runs to compare with one stream: of sizes whose one stream was in pairs those in pairs.

    Pairs compare one stream with a few other numbers, in turns, so that what keeps the host busy
    meets all of them alike; a ratio of a time of pairs and one of the sweep tells of the host.

    ``runs``: judged times with ``streams``; one row for each size and number of streams.
    Returns a DataFrame: the kept rows. Of pairs ``status`` is ``ok``, as they have repeats.
    """
    paired = runs["basis"] == PAIRS
    in_turns = runs[SIZE].isin(runs.loc[(runs[CHOICE] == 1) & paired, SIZE])
    # Where one stream was in no pair, all times are those of the sweep.
    swept = by_sweep(runs[~in_turns])
    return pd.concat([swept, runs[in_turns & paired].assign(status=REPEATED)])


BOUND_DRAWN = 1.5  # largest bound that is drawn: at small sizes it lies far above every gain
NOT_WELL = "not measured well enough"
"""Words for a size whose time with one stream, or shortest time, is of a single launch."""


NOT_COMPARED = "not compared"  # words for a size of which another number may be the fastest

GAIN_COLUMNS = (
    *("alone_ms", "sum_ms", "best_streams", "best_ms"),
    *("saved_ms", "gain", "gain_low", "gain_error", "bound"),
)
"""Columns of :func:`gain_table` that a size has only if it is measured well enough."""

ABOVE = "above its bound"  # words for a speed-up that overlap cannot explain


def gain_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Best number of streams of every size and its speed-up over one stream.

    Rows of a single launch (``slow``) give no gain: they only say whether a size was measured well
    enough. Times that are compared are of one kind (:func:`of_one_kind`). Overlap can hide
    the ``sum`` of the stages that streams can overlap and nothing else, so no number of streams
    gains more than T / (T - sum), T the time with one stream.

    ``runs``: judged times with ``streams`` and ``status``, the times of the stages
    (:data:`~choice.STAGES`, ms) of runs with one stream; one row for each size and number of
    streams. Returns a DataFrame: one row for each size with several numbers of streams, ascending:
    ``rows`` and ``single_launches`` (how many); ``well_measured``; ``alone_ms`` (one stream) and
    ``sum_ms``; ``best_streams``, ``best_ms``, ``gain``, ``gain_low`` (lower limit of its 95 %
    interval) and ``gain_error`` (half of it, relative); these nine are NaN where the size is not
    well measured. ``tied``: numbers of streams that may be the fastest
    (:func:`launchwise.tables.rows.tied`), ascending; none where others may be, by judged times,
    that were in no pairs or launched once: ``open``. ``basis`` of the times. ``bound`` is NaN where
    the stages, timed one after the other, take no less than a run; ``above_bound``: so is all of
    the interval.
    """
    found = []
    alike = dict(iter(of_one_kind(runs).groupby(SIZE)))
    for size, rows in runs.groupby(SIZE, sort=True):
        if rows[CHOICE].nunique() < 2:
            continue
        single = int((rows["status"] != REPEATED).sum())
        counts = {SIZE: size, "rows": len(rows), "single_launches": single}
        found.append({**counts, **_gain(alike[size], rows)})
    names = ("rows", "single_launches", "well_measured", *GAIN_COLUMNS, "above_bound")
    return pd.DataFrame(found, columns=[SIZE, *names, "tied", "open", "basis"])


def _gain(rows: pd.DataFrame, judged: pd.DataFrame) -> dict[str, object]:
    read = [CHOICE, "status", "time_ms", "error", "basis", "ratio_error", *STAGES]
    ordered = records(rows.sort_values(CHOICE).filter(items=read))
    timed = [row for row in ordered if row["status"] == REPEATED]
    alone = next((row for row in timed if row[CHOICE] == 1), None)
    shortest = min(ordered, key=lambda row: float(row["time_ms"]))
    near, others = _ties(rows, judged)
    if alone is None or shortest["status"] != REPEATED or (others and len(timed) == 1):
        unknown = {"tied": (), "open": others, "basis": MISSING}
        return {"well_measured": False, "above_bound": False, **unknown}
    alone_ms, best_ms = alone["time_ms"], shortest["time_ms"]
    sum_ms = sum(alone[name] for name in STAGES)
    low = high = 1.0
    if shortest is not alone:
        both = pd.DataFrame([alone, shortest])
        limits = ratio_limits(both, np.array([1, 1]), np.array([True, False]))
        low, high = (float(each[0]) for each in limits)
    bound = alone_ms / (alone_ms - sum_ms) if sum_ms < alone_ms else float("nan")
    return {
        "well_measured": True,
        "alone_ms": alone_ms,
        "sum_ms": sum_ms,
        "best_streams": shortest[CHOICE],
        "best_ms": best_ms,
        "saved_ms": alone_ms - best_ms,
        "gain": alone_ms / best_ms,
        "gain_low": low,
        "gain_error": np.log(high / low) / 2,
        "bound": bound,
        "above_bound": low > bound,
        **{"tied": near, "open": others, "basis": shortest["basis"]},
    }


def _ties(rows: pd.DataFrame, judged: pd.DataFrame) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Numbers of streams that tie, none where others may be faster; and these others."""
    timed = rows[rows["status"] == REPEATED]
    every = pd.concat([rows, judged[~judged[CHOICE].isin(rows[CHOICE])]])
    near, may = (
        {int(one) for one in own.loc[tied(own, np.zeros(len(own), dtype=np.int64)), CHOICE]}
        for own in (timed, every)
    )
    others = may - {*timed[CHOICE]}
    return () if others else tuple(sorted(near)), tuple(sorted(others))


def largest_gain(gains: pd.DataFrame) -> pd.Series | None:
    """The row of :func:`gain_table` with the largest gain that is no larger than its bound. None
    where no size is measured well enough."""
    explained = gains[gains["well_measured"] & ~(gains["gain"] > gains["bound"])]
    return None if explained.empty else explained.iloc[int(explained["gain"].argmax())]


def gain_figure(
    study: StudyData, series: Sequence[tuple[str, pd.DataFrame, pd.DataFrame]]
) -> Figure:
    """Speed-up of each number of streams and its bound.

    ``series``: title, runs and :func:`gain_table` of each GPU and kind of problem.
    """
    counts = sorted({int(count) for _, runs, _ in series for count in runs[CHOICE] if count > 1})
    panels = []
    for title, runs, gains in series:
        well = gains[gains["well_measured"]].set_index(SIZE)
        timed = repeated(of_one_kind(runs))
        times = timed[timed[SIZE].isin(well.index)].set_index([SIZE, CHOICE])["time_ms"]
        faster = well["alone_ms"].to_numpy()[:, None] / times.unstack().reindex(
            well.index, columns=counts
        )
        gain = {f"{one} streams": faster[one].dropna() for one in counts}
        bound = well["bound"].where(well["bound"] <= BOUND_DRAWN)
        said = f"bound T / (T - sum)<br>{SIZE}=%{{x}}: at most %{{y:.3f}} times as fast"
        drawn = theme.rule(bound.index, bound, "dot", said)
        traces = [*lines(gain, f"{SIZE}=%{{x}}: %{{y:.3f}} times as fast as one stream"), drawn]
        x = theme.log_axis(f"{SIZE} (rows)", runs[SIZE])
        panels.append(Panel(title, traces, theme.layout(x, theme.axis("speed-up over one stream"))))
    keys = theme.keys(f"{count} streams" for count in counts)
    return Figure(
        id=f"{study.name}-gain-figure",
        caption=(
            f"Speed-up over one stream, without single launches; dotted: what overlap can give, up "
            f"to {BOUND_DRAWN}."
        ),
        alt=f"Lines: speed-up over one stream against {SIZE}, one line per number of streams.",
        panels=panels,
        keys=[*keys, Key("bound", theme.INK, "dot")],
    )


def remark(record: Mapping[str, Any]) -> str:
    others = f"{said_ties(record['open'])} {NOT_COMPARED}" if record["open"] else ""
    unknown = "" if record["well_measured"] or others else NOT_WELL
    return ", ".join(filter(None, (unknown, ABOVE if record["above_bound"] else "", others)))


def said_ties(tied: Sequence[int]) -> str:
    return ", ".join(map(wording.count, tied)) or MISSING


ROWS = field(SIZE, SIZE, wording.count, "rows")
FIELDS = [
    ROWS,
    field("one stream", "alone_ms", significant(4), "ms"),
    field("can overlap", "sum_ms", wording.number, "ms"),
    *grouped(
        "shortest compared time",
        field("streams", "best_streams", wording.count),
        field("tie", "tied", said_ties, "streams"),
        field("time", "best_ms", significant(4), "ms"),
        field("from", "basis"),
        field("saved", "saved_ms", wording.number, "ms"),
        field("speed-up", "gain", decimals(3)),
        field("± (95 %)", "gain_error", wording.percent, "%"),
    ),
    field("bound T / (T - sum)", "bound", decimals(3)),
    field("remark", remark),
]
"""Every size with its gain and bound."""
