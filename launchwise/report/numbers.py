"""The numbers of the report, computed from tables and from nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from launchwise.base.vectors import Columns
from launchwise.learning.row_arrays import arrays, limits_ms
from launchwise.report import wording
from launchwise.report.study import StudyData, remembered
from launchwise.tables.measurements import fastest_of_sweep, with_role
from launchwise.tables.rows import (
    NAMED_BY,
    UNTOLD,
    fastest_rows,
    is_baseline,
    row_numbers,
    surest,
)
from launchwise.tables.times import PAIRS
from launchwise.workloads.spec import Spec


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as mappings from column to value."""
    names = [str(name) for name in table]
    columns = [_plain_values(column) for _, column in table.items()]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _plain_values(column: pd.Series) -> list[Any]:
    """Values as Python's own types; a column at once, as rows of mixed types are slow."""
    if column.dtype.kind in "iufb":
        return list(column.tolist())
    values = column.to_numpy(dtype=object)
    if isinstance(column.dtype, pd.StringDtype):
        return list(values)
    return [value.item() if isinstance(value, np.generic) else value for value in values]


STOPPED_EARLY = "slow"  # Status of rows that a sweep stopped after their first launch


def of_one_launch(rows: pd.DataFrame) -> pd.Series:
    """Whether each row's time is that of one launch, which ranks a configuration and proves
    nothing: bool. Rows that were stopped early; not those that were compared in pairs as well,
    round by round."""
    stopped = rows["status"] == STOPPED_EARLY
    return stopped & (rows["basis"] != PAIRS) if "basis" in rows else stopped


@remembered
def cases_of(study: StudyData) -> np.ndarray:
    """Number of the GPU and problem of each row of :attr:`StudyData.measured`: int64."""
    return row_numbers(study.measured, ["gpu", *study.problem_columns])


@remembered
def winners(study: StudyData) -> pd.DataFrame:
    """One row a (GPU, problem): the best configuration and the baseline beside it.

    Returns ``gpu``, problem, configuration columns; of the best and of the baseline time, standard
    error between visits and, if measured, joule of one run (``best_ms``, ``best_error``,
    ``best_energy_j``, ``baseline_ms`` and so on); ``surest_ms`` and ``surest_error`` of the one
    that is most surely fast (:func:`launchwise.tables.rows.surest`); ``alike``, how many cannot be
    told apart from the best, itself among them, the ``basis`` of its time, and whether the host's
    clock took it (``by_host``); ``gain`` = baseline over best; ``rate`` in 1e9 items a second;
    ``bytes_ms`` and ``flop_ms``, what the problem's least bytes and its FLOP take at the GPU's
    measured ceilings (see :func:`launchwise.learning.row_arrays.limits_ms`); ``configurations``;
    and ``configuration``, the name of the best one.
    """
    spec, measured = study.spec, study.measured
    key = ["gpu", *spec.problem_columns]
    cases = cases_of(study)
    of_row = {"time_ms": "ms", "error": "error", "energy_j": "energy_j"}
    of_row = {name: end for name, end in of_row.items() if name in measured}
    read = dict.fromkeys([*of_row, *(name for name in NAMED_BY if name in measured)])
    rows = measured[[*key, *spec.tunable_columns, *read, "by_host"]].assign(_case=cases)
    best = fastest_rows(rows, key, spec).sort_values(key, ignore_index=True)
    case = best.pop("_case").to_numpy()
    best["configurations"] = np.bincount(cases)[case]
    sure = rows.iloc[surest(rows, cases)[case]]
    best["surest_ms"], best["surest_error"] = sure["time_ms"].to_numpy(), sure["error"].to_numpy()
    best = best.rename(columns={name: f"best_{end}" for name, end in of_row.items()})
    start = rows.loc[is_baseline(rows, spec), [*key, *of_row]]
    start = start.rename(columns={name: f"baseline_{end}" for name, end in of_row.items()})
    found = best.merge(start, on=key, how="left", validate="one_to_one")
    found["gain"] = found["baseline_ms"] / found["best_ms"]
    own = [f"{name}_{end}" for name in ("best", "baseline") for end in of_row.values()]
    own += ["surest_ms", "surest_error"]
    columns = [*key, *spec.tunable_columns, *own, "alike", "basis", "by_host", "gain"]
    columns += ["rate", "bytes_ms", "flop_ms", "configurations"]
    found = _with_work(found, study)[columns]
    return found.assign(configuration=configuration_names(found, spec))


@remembered
def contests(study: StudyData, gpu: str) -> pd.DataFrame:
    """Row in pairs of the sweep's fastest of each problem, where the usual choice ran beside it,
    and so did what :func:`winners` names: a later sweep may have found that."""
    pairs, by = study.pairs[gpu], study.problem_columns
    ran, best = pairs[pairs["gain"].notna()], winners(study)
    named = best.loc[best["gpu"] == gpu, [*by, *study.spec.tunable_columns]]
    both = ran.loc[with_role(ran, "usual"), by].merge(ran.merge(named)[by])
    found = fastest_of_sweep(pairs)
    return found[found[by].merge(both, how="left", indicator=True)["_merge"].eq("both").to_numpy()]


@remembered
def shown_problem(study: StudyData) -> dict[str, Any]:
    """The row of :func:`winners` that every page begins with. Of the problems that most GPUs
    measured, on the first whole card: of the middle size, where neither launch overhead nor the
    largest grids decide, the one with the most to win; if there is one, where a launch does one
    run, as that of a reader's kernel does."""
    best = winners(study)
    best = best.assign(_gpus=best.groupby(study.problem_columns)["gpu"].transform("size"))
    own = best[best["gpu"] == study.whole[0]]
    own = own[own["_gpus"] == own["_gpus"].max()].sort_values(study.problem_columns, kind="stable")
    single = own[[not study.spec.several_runs([name]) for name in own["variant"]]]
    own = single if len(single) else own
    sizes = sorted(own[study.size].unique())
    middle = own[own[study.size] == sizes[len(sizes) // 2]].drop(columns="_gpus")
    return records(middle.sort_values("gain", ascending=False, kind="stable"))[0]


def configuration_names(table: pd.DataFrame, spec: Spec) -> list[str]:
    """:func:`launchwise.report.wording.configuration` of each row; of equal ones once."""
    numbers = row_numbers(table, spec.tunable_columns)
    first = np.unique(numbers, return_index=True)[1]
    rows = records(table[spec.tunable_columns].iloc[first])
    names = list(map(wording.namer(spec), rows))
    return [names[number] for number in numbers]


def _with_work(found: pd.DataFrame, study: StudyData) -> pd.DataFrame:
    spec = study.spec
    problems = Columns(spec.derived, arrays(found, spec, spec.problem_columns))
    items = problems.value(spec.work.items).astype(float)
    limits = limits_ms(found, spec, study.profiles)
    found["bytes_ms"], found["flop_ms"] = limits["bytes"], limits["flop"]
    # 1e9 a second from counts and milliseconds: count / (ms * 1e-3) / 1e9.
    found["rate"] = items / found["best_ms"] / 1e6
    return found


def over_named(study: StudyData, rows: pd.DataFrame) -> np.ndarray:
    """Time of each problem's fastest, as :func:`winners` names it, over each row's, at most 1: the
    least of all times has the luck of its error. float64, shape (rows,)."""
    key = ["gpu", *study.problem_columns]
    best_ms = rows[key].merge(winners(study)[[*key, "best_ms"]], how="left")["best_ms"].to_numpy()
    return np.asarray(np.minimum(best_ms / rows["time_ms"].to_numpy(), 1.0))


@remembered
def fractions(study: StudyData) -> pd.DataFrame:
    """Every measured row with ``fraction``, :func:`over_named`, but for those that tell nothing
    (:data:`launchwise.tables.rows.UNTOLD`): what they lose is unknown. Returns ``gpu``, problem and
    configuration columns, ``is_usual``, ``time_ms``, ``fraction``; the index is that of
    :attr:`StudyData.measured`."""
    columns = ["gpu", *study.problem_columns, *study.spec.tunable_columns, "is_usual", "time_ms"]
    rows = study.measured.loc[~(study.measured["error"] >= UNTOLD), columns]
    return rows.assign(fraction=over_named(study, rows))


@remembered
def single_best(study: StudyData, by: Sequence[str]) -> pd.DataFrame:
    """Best fixed configuration for all problems of a group.

    It has the highest geometric mean fraction of the best among the configurations that were
    measured on the most problems of the group (not every one is possible on every problem). Where
    that is a single configuration, it was compared with none, and the group has no row. Returns
    ``by`` and configuration columns, ``problems``, ``fraction``, ``worst``, ``gain`` (mean of
    baseline time over its time: its mean speed-up).
    """
    spec = study.spec
    rows = fractions(study)
    cases, untuned = cases_of(study)[rows.index], is_baseline(rows, spec)
    baseline_ms = np.full(cases.max(initial=-1) + 1, np.nan)
    baseline_ms[cases[untuned]] = rows["time_ms"].to_numpy()[untuned]
    names = [*by, *spec.tunable_columns]
    groups = row_numbers(rows, names)
    values = pd.DataFrame(
        {
            "fraction": rows["fraction"],
            "log_fraction": np.log(rows["fraction"]),
            "gain": baseline_ms[cases] / rows["time_ms"],
        }
    ).groupby(groups, sort=True)
    found = rows[names].iloc[np.unique(groups, return_index=True)[1]].copy()
    found["problems"] = values.size().to_numpy()
    found["fraction"] = np.exp(values["log_fraction"].mean().to_numpy())
    found["worst"] = values["fraction"].min().to_numpy()
    found["gain"] = values["gain"].mean().to_numpy()
    found = found.sort_values(
        [*by, "problems", "fraction", *spec.tunable_columns],
        ascending=[True] * len(by) + [False, False] + [True] * len(spec.tunable_columns),
        kind="stable",
    )
    rivals = found.groupby([*by, "problems"])["worst"].transform("size")
    best = ~found.duplicated(list(by)) & (rivals > 1)
    return found[best].reset_index(drop=True)
