"""Occupancy at the best m, and cost of other numbers of threads per block."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from launchwise.base.vectors import Columns
from launchwise.gpus.profile import GpuProfile
from launchwise.learning.row_arrays import arrays
from launchwise.report import theme, wording
from launchwise.report.blocks import MISSING, Block, Figure, Fold, Panel
from launchwise.report.fields import decimals, field, lines, table_of
from launchwise.report.study_tables import StudyData
from launchwise.report.theme import kinds_of

from ..host_runs import alike, fixed_losses, host_runs, repeated
from .series import CHOICE, SIZE, SubsystemSeries

KEPT_IN_SHARED = "strided"  # variant whose stage 3 keeps m words per thread in shared memory

SHARES = {
    "stage_1": "stage 1, theoretical",
    "stage_3": "stage 3, limit by shared memory",
    "launched": "threads launched, of all",
}


def optimum_occupancy(study: StudyData, case: SubsystemSeries) -> pd.DataFrame:
    """Occupancy of each size at its observed optimum. Returns a DataFrame: ``n``, ``m``, and shares
    (0..1): ``stage_1`` (theoretical, as measured with the row; NaN if it was not), ``stage_3``
    (what shared memory leaves room for; NaN where the variant keeps nothing there), ``launched``
    (threads of a grid over those that fill every SM, at most 1)."""
    rows, profile = case.optimum_rows, study.profiles[case.gpu]
    columns = Columns(study.spec.derived, arrays(rows, study.spec))
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
            "launched": _launched(columns, profile),
        }
    )


def chosen_by_occupancy(study: StudyData, case: SubsystemSeries) -> pd.DataFrame:
    """What the m of the highest occupancy loses at each size.

    Occupancy is the share of the GPU's threads that stage 1 can have at work: what its registers
    leave room for, and no more than the threads of its grid. Of several m with the highest, the
    fastest is taken.

    Returns a DataFrame: ``n``, ``m``, ``occupancy`` (0..1) and ``loss_percent`` against the fastest
    m: 0 where they tie. Sizes have a row where the occupancy of all is known, and both times are
    :func:`~host_runs.alike`.
    """
    columns = Columns(study.spec.derived, arrays(case.levelled, study.spec))
    share = np.minimum(case.levelled["occupancy"], _launched(columns, study.profiles[case.gpu]))
    rows = case.levelled.assign(occupancy=share)
    most = rows.groupby(SIZE)["occupancy"].transform(lambda own: own.max(skipna=False))
    highest = rows[rows["occupancy"] == most]
    first = highest.sort_values("time_ms").drop_duplicates(SIZE).sort_values(SIZE)
    best = case.optimum_rows.set_index(SIZE).loc[first[SIZE]]
    lost = 100 * (first["time_ms"] / best["time_ms"].to_numpy() - 1)
    found = first[[SIZE, CHOICE, "occupancy"]].assign(loss_percent=lost)
    return found[alike(first, best)].reset_index(drop=True)


def _launched(columns: Columns, profile: GpuProfile) -> np.ndarray:
    """Threads of a grid over those that fill every SM, at most 1: float64, shape (rows,)."""
    full = profile.sms * profile.max_threads_per_sm
    return np.asarray(np.minimum(1, columns.value("subsystems") / full), dtype=float)


def _shared_limit(kept: np.ndarray, threads: pd.Series, profile: GpuProfile) -> np.ndarray:
    """Share of an SM's threads in as many blocks as its shared memory holds."""
    blocks = profile.shared_per_sm_bytes // np.maximum(kept, 1)
    share = blocks * threads.to_numpy() / profile.max_threads_per_sm
    return np.asarray(np.minimum(1, share), dtype=float)


def resources(
    study: StudyData,
    names: Mapping[str, str],
    found: Mapping[str, pd.DataFrame],
    facts: Mapping[str, str],
) -> list[Block]:
    """Occupancy at the optimum, and threads per block where more than one number was measured.

    ``found``: title of a case to its :func:`optimum_occupancy`.
    """
    tables: list[Block] = []
    for title, losses in block_losses(study).items():
        caption = f"One number of threads per block, {names.get(title, title)}"
        tables.append(Fold(caption, [table_of(caption, LOSSES, losses)]))
    return [_figure(study, names, found, facts), *tables]


def _figure(
    study: StudyData,
    names: Mapping[str, str],
    found: Mapping[str, pd.DataFrame],
    facts: Mapping[str, str],
) -> Figure:
    panels = []
    for title, shares in found.items():
        percent = 100 * shares.set_index(SIZE)
        drawn = {label: percent[name] for name, label in SHARES.items()}
        traces = lines(drawn, f"{SIZE}=%{{x}}: %{{y:.0f}} %")
        x = theme.log_axis(f"{SIZE} (rows)", shares[SIZE])
        y = theme.axis("share of threads (%)", range=[0, 105])
        panels.append(Panel(names[title], traces, theme.layout(x, y)))
    theirs = facts.get("theoretical_occupancy_percent", MISSING)
    caption = f"Occupancy at the best {CHOICE} (figure 1 of the paper: {theirs} % for both stages)."
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
    """Cost of one number of threads per block at every size, by GPU and kind of problem. Sizes
    count where one (variant, m) has two numbers of threads or more on one card: between visits the
    host takes longer by more than threads do. Of several cards that with most numbers counts. Times
    per size and number are the least over those; see :func:`fixed_losses`."""
    runs = repeated(host_runs(study))
    runs = runs[runs["m1"] == 0]
    problem = ["gpu", *study.problem_columns]
    runs = runs[
        runs.groupby([*problem, "variant", CHOICE, "card"])["threads"].transform("nunique") > 1
    ]
    tried = runs.groupby([*problem, "card"])["threads"].nunique().sort_values(kind="stable")
    runs = runs.merge(tried.groupby(level=problem).tail(1).index.to_frame(index=False))
    found = {}
    for gpu, rows in runs.groupby("gpu", sort=True):
        for kind, part in kinds_of(study, rows):
            times = part.groupby([SIZE, "threads"])["time_ms"].min()
            reached = times.groupby(level=SIZE).transform("min") / times
            found[f"{gpu}, {kind}"] = fixed_losses(reached)
    return found


LOSSES = [
    field("threads per block", "value", wording.count),
    field("time lost", "loss_percent", decimals(2), "% (geometric mean)"),
    field("time lost", "worst_loss_percent", decimals(2), "% (worst)"),
]
