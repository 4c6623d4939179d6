"""Occupancy at the best m, and cost of other numbers of threads per block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from launchwise.experiment.published import Records, facts_of
from launchwise.gpus.profile import GpuProfile
from launchwise.learning.row_arrays import arrays
from launchwise.learning.vectors import Columns
from launchwise.report import theme, wording
from launchwise.report.blocks import MISSING, Block, Bullets, Column, Figure, Panel, Section, table
from launchwise.report.figures import kinds_of
from launchwise.report.numbers import fixed_losses, records
from launchwise.report.study import StudyData

from ..host_runs import host_runs, repeated
from .series import CHOICE, SIZE, SubsystemSeries

KEPT_IN_SHARED = "strided"
"""Variant whose stage 3 keeps m words per thread in shared memory."""

SHARES = {
    "stage_1": "stage 1, theoretical",
    "stage_3": "stage 3, limit by shared memory",
    "launched": "threads launched / threads that the GPU holds",
}


def optimum_occupancy(study: StudyData, case: SubsystemSeries) -> pd.DataFrame:
    """Occupancy of each size at its observed optimum.

    Returns
    -------
    pandas.DataFrame
        ``n``, ``m``, and shares (0..1): ``stage_1`` (theoretical, as measured with the row; NaN if
        it was not), ``stage_3`` (what shared memory leaves room for; NaN where the variant keeps
        nothing there), ``launched`` (threads of a grid over those that fill every SM, at most 1).
    """
    rows, profile = case.optimum_rows, study.profiles[case.gpu]
    columns = Columns(study.spec.derived, arrays(rows, study.spec))
    full = profile.sms * profile.max_threads_per_sm
    return pd.DataFrame(
        {
            SIZE: rows[SIZE],
            CHOICE: rows[CHOICE],
            "stage_1": rows["occupancy"].astype(float),
            "stage_3": np.where(
                rows["variant"] == KEPT_IN_SHARED,
                _shared_limit(columns.value("kept_bytes"), rows["threads"], profile),
                np.nan,
            ),
            "launched": np.minimum(1, columns.value("subsystems") / full),
        }
    )


def _shared_limit(kept: np.ndarray, threads: pd.Series, profile: GpuProfile) -> np.ndarray:
    """Share of an SM's threads in as many blocks as its shared memory holds."""
    blocks = profile.shared_per_sm_bytes // np.maximum(kept, 1)
    share = blocks * threads.to_numpy() / profile.max_threads_per_sm
    return np.asarray(np.minimum(1, share), dtype=float)


def resources(
    study: StudyData, every: Sequence[SubsystemSeries], published: Mapping[str, Records]
) -> Section:
    """Occupancy at the optimum, and threads per block where more than one number was measured."""
    facts = facts_of(published)
    found = {case.title: optimum_occupancy(study, case) for case in every}
    blocks: list[Block] = [
        Bullets([*_occupancy_items(found, facts), *_block_items(study, facts)]),
        _figure(study, found),
        *_block_tables(study),
    ]
    return Section(f"{study.name}-resources", "Occupancy and threads per block", blocks)


def _occupancy_items(
    found: Mapping[str, pd.DataFrame], facts: Mapping[str, str]
) -> list[tuple[str, str]]:
    items = []
    for title, shares in found.items():
        timed = shares["stage_1"].dropna()
        if timed.empty:
            continue
        filled = shares[shares["launched"] >= 1]
        text = (
            f"at the best m, registers leave stage 1 room for {_range(timed)} % of the threads of "
            f"an SM"
        )
        if shares["stage_3"].notna().any():
            text += f", shared memory leaves stage 3 room for {_range(shares['stage_3'])} %"
        text += (
            f"; {SIZE} = {wording.count(filled[SIZE].min())} is the smallest size with enough "
            "sub-systems to fill every SM."
            if len(filled)
            else "; no size has enough sub-systems to fill every SM."
        )
        items.append((f"{title}:", text))
    if "theoretical_occupancy_percent" in facts:
        text = f"{facts['theoretical_occupancy_percent']} % in theory for both stages (figure 1)."
        items.append(("Paper:", text))
    return items


def _range(shares: pd.Series) -> str:
    least, most = (wording.percent(value, 0) for value in (shares.min(), shares.max()))
    return least if least == most else f"{least} to {most}"


def _figure(study: StudyData, found: Mapping[str, pd.DataFrame]) -> Figure:
    panels = []
    for title, shares in found.items():
        traces = [
            theme.line(
                shares[SIZE],
                100 * shares[name],
                name=label,
                place=place,
                template=f"{SIZE}=%{{x}}: %{{y:.0f}} %",
            )
            for place, (name, label) in enumerate(SHARES.items())
        ]
        x = theme.log_axis(f"{SIZE} (rows)", shares[SIZE])
        y = theme.axis("share of threads (%)", range=[0, 105])
        panels.append(Panel(title, traces, theme.layout(x, y)))
    caption = (
        f"Occupancy at the best {CHOICE} of every size (figure 1 of the paper). The share of "
        "threads launched bounds what can be achieved at small sizes."
    )
    if not study.counters:
        caption += " Achieved occupancy was not counted for this design."
    return Figure(
        id=f"{study.name}-resources-figure",
        caption=caption,
        alt=f"Lines: occupancy of stages 1 and 3 and threads launched, against {SIZE}.",
        panels=panels,
        keys=theme.keys(SHARES.values()),
    )


def block_losses(study: StudyData) -> dict[str, pd.DataFrame]:
    """Cost of one number of threads per block at every size, by GPU and kind of problem.

    Sizes count where one (variant, m) has two numbers of threads or more. Times per size and
    number are the least over those; see :func:`launchwise.report.numbers.fixed_losses`.
    """
    runs = repeated(host_runs(study))
    runs = runs[runs["m1"] == 0]
    same = ["gpu", *study.problem_columns, "variant", CHOICE]
    runs = runs[runs.groupby(same)["threads"].transform("nunique") > 1]
    found = {}
    for gpu, rows in runs.groupby("gpu", sort=True):
        for kind, part in kinds_of(study, rows):
            times = part.groupby([SIZE, "threads"])["time_ms"].min()
            reached = times.groupby(level=SIZE).transform("min") / times
            found[f"{gpu}, {kind}"] = fixed_losses(reached)
    return found


def _block_items(study: StudyData, facts: Mapping[str, str]) -> list[tuple[str, str]]:
    losses = block_losses(study)
    items = [
        (f"{title}, threads per block:", f"{_best_blocks(table_)}.")
        for title, table_ in losses.items()
    ]
    if not items:
        used = sorted(set(host_runs(study)["threads"]))
        numbers = wording.listed(map(wording.count, used))
        items.append(("Threads per block:", f"only {numbers} was measured from host memory."))
    if "threads_per_block" in facts:
        a5000 = facts.get("threads_per_block_fastest_a5000", MISSING)
        text = (
            f"{facts['threads_per_block']} on the RTX 2080 Ti; {a5000} on the RTX A5000 with a "
            "negligible difference."
        )
        items.append(("Paper, fastest threads per block:", text))
    return items


def _best_blocks(losses: pd.DataFrame) -> str:
    """The number with the least mean loss, and the loss of the paper's 256."""
    best = losses.iloc[int(losses["loss_percent"].argmin())]
    text = (
        f"{wording.count(best['value'])} lose least, {wording.fixed(best['loss_percent'], 2)} % in "
        f"the mean over {wording.plural(int(best['problems']), 'size')}"
    )
    own = losses[losses["value"] == 256]
    if len(own) and best["value"] != 256:
        text += f"; 256 lose {wording.fixed(own['loss_percent'].iloc[0], 2)} %"
    return text


def _block_tables(study: StudyData) -> list[Block]:
    columns = [
        Column("threads per block"),
        Column("sizes"),
        Column("time lost", "% (mean)"),
        Column("time lost", "% (worst)"),
    ]
    return [
        table(
            f"One number of threads per block at every size, {title}",
            columns,
            [
                [
                    wording.count(record["value"]),
                    wording.count(record["problems"]),
                    wording.fixed(record["loss_percent"], 2),
                    wording.fixed(record["worst_loss_percent"], 2),
                ]
                for record in records(losses)
            ],
        )
        for title, losses in block_losses(study).items()
    ]
