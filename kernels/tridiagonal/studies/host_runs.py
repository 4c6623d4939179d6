"""Rows of the paper's design (system in host memory, one thread per sub-system), and ties of times.

A row with status ``slow`` has the time of one launch, stopped early. It bounds how good a
configuration can be, but it is no loss, no gain and no optimum: what is compared are rows with
repeats.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from launchwise.base.robust import EQUAL
from launchwise.base.vectors import Columns
from launchwise.learning.row_arrays import arrays
from launchwise.learning.splits import asked_about
from launchwise.report.answer.tunables import LOSSES, fixed_loss
from launchwise.report.study_tables import StudyData
from launchwise.tables.rows import OF_ROUNDS, fastest_rows, ratio_limits, tied
from launchwise.tables.times import PAIRS
from launchwise.workloads.metrics import MEASURED
from launchwise.workloads.spec import Spec

from ..recommenders.stream_law.choice import repeated

VARIANTS = ("strided", "strided_scratch")
"""Variants with one thread per sub-system, from host memory in natural order."""

SOLVERS = {"host": "gtsv", "thomas": "Thomas"}
"""Who solves the innermost system on the host, without the partition method once more."""

THREADS = 256  # threads per block, as in the papers

LEVELS = ("m", "m1", "m2", "m3", "m4")
"""Tunables that hold the m of each level, the outermost first; 0 where the level is not there."""


READ = (
    *("status", "time_ms", "sweep_ms", "time_low_ms", "time_high_ms", "error", "basis"),
    *("card", "occupancy", "relative_error", "repeats", *OF_ROUNDS, "ratio_error"),
)
"""Columns of a sweep that the sections read beside keys and stages."""

JUDGED = (
    "Times are judged: those from pairs have the ratio that was measured in pairs, at the level of "
    "the sweep; those of the sweep are at the level of pairs where several studies compared a size."
)
"""What a page says beside judged times."""


ANY_VARIANT = (
    f"Rows of {' and '.join(VARIANTS)} with any m count, candidates of the study or not: the best "
    "may differ from an observed optimum and from an answer."
)
"""What a page says of :func:`host_runs` beside optima of candidates."""


def host_runs(
    study: StudyData,
    *,
    threads: int | None = None,
    every_size: bool = False,
    solver: str = "host",
    published_streams: bool = True,
) -> pd.DataFrame:
    """Rows with a time that follow the paper: stage 2 on the host, as many streams as published.

    Whatever the study's candidates are: rows with any m per level.

    ``threads``: threads per block; any number if None.
    ``every_size``: sizes that no split of the study names, too; of the other problem parameters
    only the combinations that the study asks about.
    ``solver``: of the interface system: ``host`` (gtsv) or ``thomas``.
    ``published_streams``: as many streams as published; any number if False.
    """
    parts = []
    kept = [*study.spec.key_columns, *study.spec.stage_columns, *READ]
    for table in (sweep.filter(items=kept) for sweep in study.sweeps.values()):
        follows = table["status"].isin(MEASURED) & table["variant"].isin(VARIANTS)
        follows &= (table["stage2"] == solver) & (table["last_m"] == 0) & (table["m"] > 0)
        if threads is not None:
            follows &= table["threads"] == threads
        rows = table[follows]
        if published_streams:
            columns = Columns(study.spec.derived, arrays(rows, study.spec))
            rows = rows[rows["streams"] == columns.value("published_streams")]
        asked = asked_about(study.settings, rows)
        parts.append(_of_same_kinds(study, rows, asked) if every_size else rows[asked])
    return pd.concat(parts, ignore_index=True)


def _of_same_kinds(study: StudyData, rows: pd.DataFrame, asked: np.ndarray) -> pd.DataFrame:
    """Rows that share all problem parameters but the size with a row asked about."""
    kinds = pd.MultiIndex.from_frame(rows[study.kinds])
    return rows[kinds.isin(kinds[asked])]


def fastest(rows: pd.DataFrame, columns: Sequence[str], spec: Spec) -> pd.DataFrame:
    """The fastest repeated row of each combination of ``columns``, sorted by them."""
    return fastest_rows(repeated(rows), columns, spec).sort_values(list(columns), ignore_index=True)


def least(rows: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """The repeated row of least time of each combination of ``columns``, sorted by them. Of rows
    that tie :func:`fastest` names the simplest, as an answer does, which may be slower."""
    first = repeated(rows).sort_values("time_ms", kind="stable").drop_duplicates(list(columns))
    return first.sort_values(list(columns), ignore_index=True)


def known_well(rows: pd.DataFrame, doubtful: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Rows of the combinations of ``columns`` of which no doubtful row is faster than all of them.
    Where one is, by more than :data:`launchwise.base.robust.EQUAL`, the fastest of the rows is not
    the best of its combination, and the time of the best is not known."""
    if doubtful.empty:
        return rows
    keys = list(columns)
    limit = doubtful.groupby(keys)["time_ms"].min().rename("_limit")
    known = rows.groupby(keys)["time_ms"].transform("min")
    limits = rows[keys].join(limit, on=keys)["_limit"]
    return rows[~(limits * (1 + EQUAL) < known)]


def ties(best: pd.DataFrame, size: str, choice: str) -> dict[int, list[int]]:
    """Choices per size that may be the fastest.

    ``best``: one row per size and choice, with ``time_ms`` and ``error`` between visits.
    Returns a dictionary: size -> ascending choices, see :func:`launchwise.tables.rows.tied`.
    """
    sizes = best.groupby(size, sort=True)
    near = best[tied(best, sizes.ngroup().to_numpy())]
    return {int(str(value)): sorted(map(int, own[choice])) for value, own in near.groupby(size)}


def levelled(best: pd.DataFrame, size: str) -> pd.DataFrame:
    """``best`` with times by which choices that tie with the fastest of a size cost nothing."""
    sizes = best.groupby(size, sort=True)
    near = tied(best, sizes.ngroup().to_numpy())
    return best.assign(time_ms=best["time_ms"].mask(near, sizes["time_ms"].transform("min")))


APART = "on another card or host"  # words for two rows that are not :func:`alike`


def alike(rows: pd.DataFrame, others: pd.DataFrame) -> np.ndarray:
    """Whether the ratio of each two times tells of configurations alone: both ran in pairs, or on
    one card, and so on one host. bool, shape (rows,); both have ``card`` and ``basis``."""
    one, other = (own["basis"].eq(PAIRS).to_numpy() for own in (rows, others))
    return np.asarray((rows["card"].array == others["card"].array) | (one & other), dtype=bool)


def slower(best: pd.DataFrame, size: str) -> pd.Series:
    """Whether each row is slower beyond error than that of least time of its size: the interval of
    their ratio (:func:`launchwise.tables.rows.ratio_limits`) lies above 1."""
    sizes = best.reset_index(drop=True).groupby(size)
    low, _ = ratio_limits(best, sizes["time_ms"].transform("idxmin").to_numpy())
    return pd.Series(low > 1, best.index)


def fixed_losses(fractions: pd.Series) -> pd.DataFrame:
    """Cost of one value at every problem.

    ``fractions``: best time of a problem over the least time with a value; the last level of the
    index is the value.
    Returns a DataFrame: ``value`` and :data:`launchwise.report.answer.tunables.LOSSES`, by
    ascending value.
    """
    found = [
        (value, *fixed_loss(reached.to_numpy())) for value, reached in fractions.groupby(level=-1)
    ]
    return pd.DataFrame(found, columns=["value", *LOSSES])


@dataclass(frozen=True)
class KindOnGpu:
    """A case of a study: one GPU and one kind of problem."""

    gpu: str
    kind: str

    @property
    def title(self) -> str:
        return f"{self.gpu}, {self.kind}"


def shortened(every: Sequence[KindOnGpu]) -> tuple[str, dict[str, str]]:
    """What the titles of all cases have in common, and each title to its rest: the GPU, and what
    tells it from others."""
    parts = {case.title: case.title.split(", ") for case in every}
    first = next(iter(parts.values()))[1:]
    common = [part for part in first if all(part in own for own in parts.values())]
    rest = {
        title: ", ".join(part for part in own if part not in common) for title, own in parts.items()
    }
    return ", ".join(common), rest
