"""Rows of the paper's design (system in host memory, one thread per sub-system), and ties of times.

A row with status ``slow`` has the time of one launch, stopped early. It bounds how good a
configuration can be, but it is no loss, no gain and no optimum: what is compared are rows with
repeats.

A disturbance of the host lasts from one repeat to all rows of a problem. If it ends within a row,
the row's repeats disagree. If it does not, the row takes longer than its neighbours do: the next
smaller and larger sub-systems at its size, the next smaller and larger sizes with its sub-system,
and the other variant with the same sub-systems. Both figures are held against Tukey's outer fence
over the rows of one GPU and one kind of problem.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from launchwise.base.robust import EQUAL, MIN_SAMPLE_SIZE, quartile_fences
from launchwise.base.vectors import Columns
from launchwise.experiment.method import Method, Repeats
from launchwise.learning.row_arrays import arrays
from launchwise.learning.splits import asked_about
from launchwise.report.answer.tunables import LOSSES, fixed_loss
from launchwise.report.blocks import Text
from launchwise.report.measure_again import anew_settings
from launchwise.report.study import StudyData
from launchwise.tables.rows import fastest_rows, indistinct
from launchwise.workloads.metrics import MEASURED
from launchwise.workloads.spec import Spec

VARIANTS = ("strided", "strided_scratch")
"""Variants with one thread per sub-system, from host memory in natural order."""

LEVELS = ("m", "m1", "m2", "m3", "m4")
"""Tunables that hold the m of each level, the outermost first; 0 where the level is not there."""


def host_runs(
    study: StudyData, *, threads: int | None = None, every_size: bool = False
) -> pd.DataFrame:
    """Rows with a time that follow the paper: stage 2 on the host, as many streams as published.

    Whatever the study's candidates are: rows with any m per level.

    ``threads``: threads per block; any number if None.
    ``every_size``: sizes that no split of the study names, too; of the other problem parameters
    only the combinations that the study asks about.
    """
    parts = []
    for table in study.sweeps.values():
        follows = table["status"].isin(MEASURED) & table["variant"].isin(VARIANTS)
        follows &= (table["stage2"] == "host") & (table["last_m"] == 0) & (table["m"] > 0)
        if threads is not None:
            follows &= table["threads"] == threads
        rows = table[follows]
        streams = Columns(study.spec.derived, arrays(rows, study.spec)).value("published_streams")
        rows = rows[rows["streams"] == streams]
        asked = asked_about(study.settings, rows)
        parts.append(_of_same_kinds(study, rows, asked) if every_size else rows[asked])
    return pd.concat(parts, ignore_index=True)


def by_both_variants(study: StudyData) -> pd.DataFrame:
    """Rows with a time that have the study's problems and candidates, but for the variant.
    Candidates leave out what slices did not measure; a statement on m compares the best of both
    variants where both have a time."""
    rows = study.timed[study.timed["variant"].isin(VARIANTS)]
    tunables = [name for name in study.spec.tunable_columns if name != "variant"]
    same = ["gpu", *study.problem_columns, *tunables]
    candidates = pd.MultiIndex.from_frame(study.measured[same])
    return rows[pd.MultiIndex.from_frame(rows[same]).isin(candidates)].reset_index(drop=True)


def _of_same_kinds(study: StudyData, rows: pd.DataFrame, asked: np.ndarray) -> pd.DataFrame:
    """Rows that share all problem parameters but the size with a row asked about."""
    kinds = pd.MultiIndex.from_frame(rows[study.kinds])
    return rows[kinds.isin(kinds[asked])]


def repeated(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows whose time is a median of repeats."""
    return rows[rows["status"] == "ok"]


def one_launch(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows with the time of one launch, stopped early."""
    return rows[rows["status"] == "slow"]


def fastest(rows: pd.DataFrame, columns: Sequence[str], spec: Spec) -> pd.DataFrame:
    """The fastest repeated row of each combination of ``columns``, sorted by them."""
    return fastest_rows(repeated(rows), columns, spec).sort_values(list(columns), ignore_index=True)


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
    """Choices per size that cannot be told apart from the fastest.

    ``best``: one row per size and choice, with ``time_ms`` and ``error`` between visits.
    Returns a dictionary: size -> ascending choices, see :func:`launchwise.tables.rows.indistinct`.
    """
    sizes = best.groupby(size, sort=True)
    near = best[indistinct(best, sizes.ngroup().to_numpy())]
    return {int(str(value)): sorted(map(int, own[choice])) for value, own in near.groupby(size)}


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


def settings_again(gpu: str, spec: Spec, rows: pd.DataFrame) -> Text:
    """Settings that measure rows of a GPU again."""
    columns = [*spec.problem_columns, *spec.tunable_columns]
    keys = list(rows[columns].itertuples(index=False, name=None))
    return Text(anew_settings(gpu, spec.workload, keys, columns), "code")


OUTER = 3.0  # interquartile ranges beyond the third quartile: Tukey's outer fence

LEAST_ERROR = float(Repeats().coarse)
"""Relative error that a sweep asks of rows that are not near the best: no smaller one disagrees."""

LEAST_EXCESS = float(np.log1p(Method.model_fields["disturbed"].default))
"""Logarithm of the excess above which a sweep measures a row again: no smaller one counts."""

DISAGREE, APART = "repeats disagree", "longer than its neighbours"


def disturbance(rows: pd.DataFrame) -> pd.Series:
    """Why each row counts as disturbed; empty where it does not.

    ``rows``: rows with repeats of one GPU and one kind of problem: ``variant``, ``time_ms``,
    ``n``, ``m`` and ``relative_error``, each combination of variant, n and m once or, of its
    fastest row, counted once.
    Returns a Series: str, by the index of ``rows``.
    """
    found = pd.Series("", index=rows.index)
    found[repeats_disagree(rows)] = DISAGREE
    excess = excess_over_neighbours(rows)
    found[(excess > _fence(excess, LEAST_EXCESS)) & (found == "")] = APART
    return found


def undisturbed(timed: pd.DataFrame) -> pd.DataFrame:
    """Rows with repeats that nothing disturbed, of sizes and choices whose best row is one.

    ``timed``: rows with a time of one GPU and one kind of problem, those of one launch, too.
    """
    every = repeated(timed)
    rows = every[disturbance(every) == ""]
    return known_well(rows, timed.drop(rows.index), ["n", "m"])


def repeats_disagree(rows: pd.DataFrame) -> pd.Series:
    """Whether the repeats of each row disagree: bool, by the index of ``rows``.

    ``rows``: rows with repeats of one GPU and one kind of problem: ``relative_error``.
    """
    errors = rows["relative_error"]
    return errors > _fence(errors, LEAST_ERROR)


def excess_over_neighbours(rows: pd.DataFrame) -> pd.Series:
    """Logarithm of each row's time over what its neighbours let expect.

    Three kinds of neighbours each give an expectation: two of the other sub-system sizes and two of
    the other sizes by interpolation of logarithms, other variants by their mean logarithm. The
    excess is the second largest over the kinds that a row has, so that two must agree.

    Returns a Series: float64, by the index of ``rows``; NaN where a row has fewer than two kinds of
    neighbours.
    """
    fastest = rows.sort_values("time_ms").drop_duplicates(["variant", "n", "m"])
    logs = np.log(fastest["time_ms"])
    by_kind = pd.DataFrame(
        {
            "choices": logs - _between(fastest, logs, "m", ["variant", "n"]),
            "sizes": logs - _between(fastest, logs, "n", ["variant", "m"]),
            "variants": logs - _of_others(fastest, logs, ["n", "m"]),
        }
    )
    ordered = np.sort(-by_kind.to_numpy(), axis=1)  # NaN comes last.
    return pd.Series(-ordered[:, 1], index=by_kind.index).reindex(rows.index)


def _between(rows: pd.DataFrame, logs: pd.Series, along: str, same: Sequence[str]) -> pd.Series:
    """Interpolated between the nearest rows on both sides that differ in ``along`` alone."""
    ordered = rows.assign(_x=np.log(rows[along]), _y=logs).sort_values([*same, along])
    groups = ordered.groupby(list(same))
    before, after = groups[["_x", "_y"]].shift(1), groups[["_x", "_y"]].shift(-1)
    share = (ordered["_x"] - before["_x"]) / (after["_x"] - before["_x"])
    return before["_y"] + share * (after["_y"] - before["_y"])


def _of_others(rows: pd.DataFrame, logs: pd.Series, same: Sequence[str]) -> pd.Series:
    """Mean over the other rows of each group; NaN where there is none."""
    groups = logs.groupby([rows[name] for name in same])
    others = groups.transform("size") - 1
    return (groups.transform("sum") - logs) / others.where(others > 0)


def _fence(values: pd.Series, least: float) -> float:
    """Tukey's outer fence, no lower than ``least``; none for a sample without quartiles."""
    known = values[np.isfinite(values)]
    if len(known) < MIN_SAMPLE_SIZE:
        return float("inf")
    return max(least, quartile_fences(known.to_numpy(), OUTER)[1])
