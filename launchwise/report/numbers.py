"""The numbers of the report, computed from tables and from nothing else."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from launchwise.base.vectors import Columns
from launchwise.learning.merit import geometric_mean
from launchwise.learning.rooflines import limits_ms
from launchwise.learning.row_arrays import arrays
from launchwise.report import wording
from launchwise.report.study import StudyData, remembered
from launchwise.tables.rows import fastest_rows, is_baseline, least_by, row_numbers
from launchwise.workloads.spec import Spec

DEFAULT_ERROR = 0.005
"""Relative standard error of a median that was measured once only."""


FIGURES = {
    "fraction": ("fraction_geometric_mean", 1),
    "fraction_p5": ("fraction_p5", 1),
    "worst": ("fraction_worst", 1),
    "improved": ("percent_improved", 0.01),
    "improved_runs": ("percent_runs_improved", 0.01),
    "coefficient": ("improvement_coefficient", 1),
    "gain": ("gain_geometric_mean", 1),
    "exact": ("accuracy", 1),
    "accuracy": ("accuracy_near_best", 1),
    "mape": ("mape_percent", 1),
    "spearman": ("spearman", 1),
}
"""Columns of :func:`scores_on`: what the evaluation calls each, and the factor to a share."""
INTERVALS = ("fraction_interval", "beside_best_model", "beside_best_heuristic")
"""Columns of :func:`scores_on` with intervals, by the evaluation's names."""


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


FIXED_LOSSES = ("value", "problems", "loss_percent", "worst_loss_percent")
"""Columns of :func:`fixed_losses`."""


def fixed_losses(fractions: pd.Series) -> pd.DataFrame:
    """Cost of one fixed value where another may be better.

    Parameters
    ----------
    fractions
        Best time of a problem over the least time with a value; the last level of the index is the
        value, the others are the problem.

    Returns
    -------
    DataFrame
        ``value``, ``problems`` that have it, ``loss_percent`` (geometric mean over them),
        ``worst_loss_percent``, by ascending value.
    """
    found = [
        (value, *fixed_loss(reached.to_numpy())) for value, reached in fractions.groupby(level=-1)
    ]
    return pd.DataFrame(found, columns=FIXED_LOSSES)


def fixed_loss(reached: np.ndarray) -> tuple[int, float, float]:
    """Problems, mean and worst loss of :func:`fixed_losses` for the fractions of one value."""
    mean, worst = geometric_mean(reached), float(reached.min())
    return len(reached), 100 * (1 / mean - 1), 100 * (1 / worst - 1)


@remembered
def cases_of(study: StudyData) -> np.ndarray:
    """Number of the GPU and problem of each row of :attr:`StudyData.measured`: int64."""
    return row_numbers(study.measured, ["gpu", *study.problem_columns])


@remembered
def winners(study: StudyData) -> pd.DataFrame:
    """One row a (GPU, problem): the best configuration and the baseline beside it.

    Returns
    -------
    DataFrame
        ``gpu``, problem, configuration columns; ``best_ms``, ``baseline_ms``; ``gain`` =
        baseline over best; ``noise`` = relative standard error of that ratio; ``rate`` in 1e9 items
        a second; ``limit_share`` = share of the measured copy bandwidth; ``bytes_ms`` and
        ``flop_ms``, what the problem's least bytes and its FLOP take at the GPU's measured
        ceilings (see :func:`launchwise.learning.rooflines.limits_ms`); ``configurations``; and
        ``configuration``, the name of the best one.
    """
    spec, measured = study.spec, study.measured
    key = ["gpu", *spec.problem_columns]
    cases = cases_of(study)
    rows = measured[[*key, *spec.tunable_columns, "time_ms", "relative_error"]].assign(_case=cases)
    fastest = fractions(study)["fraction"].to_numpy() == 1
    best = fastest_rows(rows[fastest], key, spec).sort_values(key, ignore_index=True)
    best["configurations"] = np.bincount(cases)[best.pop("_case")]
    best = best.rename(columns={"time_ms": "best_ms", "relative_error": "best_error"})
    start = rows.loc[is_baseline(rows, spec), [*key, "time_ms", "relative_error"]]
    start = start.rename(columns={"time_ms": "baseline_ms", "relative_error": "baseline_error"})
    found = best.merge(start, on=key, how="left", validate="one_to_one")
    found["gain"] = found["baseline_ms"] / found["best_ms"]
    errors = found[["best_error", "baseline_error"]].fillna(DEFAULT_ERROR)
    found["noise"] = np.hypot(errors["best_error"], errors["baseline_error"])
    columns = [*key, *spec.tunable_columns, "best_ms", "baseline_ms", "gain", "noise"]
    found = _with_work(found, study)[[*columns, *WORK, "configurations"]]
    return found.assign(configuration=configuration_names(found, spec))


@remembered
def shown_problem(study: StudyData) -> dict[str, Any]:
    """The row of :func:`winners` that a study's page begins with.

    Of the problems that most GPUs measured, on the first whole card: of the middle size, where
    neither launch overhead nor the largest grids decide, the one with the most to win.
    """
    best = winners(study)
    best = best.assign(_gpus=best.groupby(study.problem_columns)["gpu"].transform("size"))
    own = best[best["gpu"] == study.whole[0]]
    own = own[own["_gpus"] == own["_gpus"].max()].sort_values(study.problem_columns, kind="stable")
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


WORK = ("rate", "limit_share", "bytes_ms", "flop_ms")
"""Columns of :func:`winners` that come from the problem's own work."""


def _with_work(found: pd.DataFrame, study: StudyData) -> pd.DataFrame:
    spec = study.spec
    problems = Columns(spec.derived, arrays(found, spec, spec.problem_columns))
    items = problems.value(spec.work.items).astype(float)
    limits = limits_ms(found, spec, study.profiles)
    found["bytes_ms"], found["flop_ms"] = limits["bytes"], limits["flop"]
    # 1e9 a second from counts and milliseconds: count / (ms * 1e-3) / 1e9.
    found["rate"] = items / found["best_ms"] / 1e6
    found["limit_share"] = found["bytes_ms"] / found["best_ms"]
    return found


@remembered
def fractions(study: StudyData) -> pd.DataFrame:
    """Every measured row with ``fraction`` = best time of its problem over its own time.

    Returns
    -------
    DataFrame
        ``gpu``, problem and configuration columns, ``time_ms``, ``fraction``; rows as in
        :attr:`StudyData.measured`.
    """
    key = ["gpu", *study.problem_columns]
    rows = study.measured[[*key, *study.spec.tunable_columns, "time_ms"]]
    cases, times = cases_of(study), rows["time_ms"].to_numpy()
    return rows.assign(fraction=least_by(cases, times)[cases] / times)


@remembered
def fractions_on(study: StudyData, gpu: str) -> pd.DataFrame:
    """Rows of :func:`fractions` of one GPU."""
    rows = fractions(study)
    return rows[rows["gpu"] == gpu]


@remembered
def single_best(study: StudyData, by: Sequence[str]) -> pd.DataFrame:
    """Best fixed configuration for all problems of a group.

    It has the highest geometric mean fraction of the best among the configurations that were
    measured on the most problems of the group (not every one is possible on every problem).

    Returns
    -------
    DataFrame
        ``by`` and configuration columns, ``problems``, ``fraction``, ``worst``, ``gain`` (mean of
        baseline time over its time: its mean speed-up).
    """
    spec = study.spec
    rows, cases = fractions(study), cases_of(study)
    untuned = is_baseline(rows, spec)
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
    return found.drop_duplicates(list(by)).reset_index(drop=True)


@remembered
def scores_on(study: StudyData, split: str, part: str) -> pd.DataFrame:
    """The evaluation's figures of one split on one GPU, or on ``all`` of them.

    Returns
    -------
    DataFrame
        One row a model, sorted from the best fraction of the best: ``model``, ``role``,
        ``problems``, ``unmeasured`` (recommendations without a time, which count as fraction 0),
        ``harmed`` (problems slower than what is usual), the intervals of :data:`INTERVALS` (pairs;
        None where there are too few problems), and the columns of :data:`FIGURES`, shares as 0..1.
        Empty when nothing was evaluated.
    """
    given = study.facts.get("splits", {}).get(split, {}).get(part, {}).get("models", {})
    known = study.facts.get("models", {})
    found = []
    for model, figures in given.items():
        row = {
            "model": model,
            "role": known.get(model, {}).get("role", "model"),
            "problems": figures["problems"],
            "unmeasured": figures["without_time"],
            "harmed": figures["harmed"],
            **{name: figures[name] for name in INTERVALS},
        }
        for column, (name, factor) in FIGURES.items():
            value = figures[name]
            row[column] = float("nan") if value is None else factor * value
        found.append(row)
    # The oracle first where a model is just as good, then by name: the same order every time.
    found.sort(key=lambda row: (row["role"] != "oracle", row["model"]))
    found.sort(key=lambda row: np.inf if np.isnan(row["fraction"]) else -row["fraction"])
    columns = ["model", "role", "problems", "unmeasured", "harmed", *INTERVALS, *FIGURES]
    return pd.DataFrame(found, columns=columns)


def null_accuracy(study: StudyData, split: str, part: str) -> float:
    """Share of the test problems that the most frequent best configuration is the best of."""
    found = study.facts.get("splits", {}).get(split, {}).get(part, {}).get("null_accuracy")
    return float("nan") if found is None else float(found)


def best_model(table: pd.DataFrame) -> str | None:
    """First model (no baseline, no oracle) of :func:`scores_on`."""
    models = table[(table["role"] == "model") & table["fraction"].notna()]
    return None if models.empty else str(models["model"].iloc[0])


def transfer(study: StudyData) -> pd.DataFrame:
    """Loss from using GPU ``source``'s best configuration on GPU ``target``.

    Returns
    -------
    DataFrame
        One row an ordered pair: ``source``, ``target``, ``problems`` that both measured, ``loss``
        (geometric mean of time over best, minus 1), ``worst`` loss, ``impossible`` (problems where
        the target has no time for that configuration).
    """
    best, rows = winners(study), fractions(study)
    problem, everything = study.problem_columns, study.spec.key_columns[1:]
    problems = _by_gpu(best, row_numbers(best, problem))
    both = row_numbers(pd.concat([best[everything], rows[everything]]), everything)
    chosen = _by_gpu(best, both[: len(best)])
    tried = _by_gpu(rows, both[len(best) :])
    reached = _by_gpu(rows, rows["fraction"].to_numpy())
    found = []
    for source, target in itertools.permutations(study.gpus, 2):
        common = np.isin(problems[source], problems[target])
        places = pd.Index(tried[target]).get_indexer(chosen[source][common])
        fraction = reached[target][places[places >= 0]]
        found.append(
            {
                "source": source,
                "target": target,
                "problems": int(common.sum()),
                "impossible": int((places < 0).sum()),
                "loss": 1 / geometric_mean(fraction) - 1 if len(fraction) else np.nan,
                "worst": float(1 / fraction.min() - 1) if len(fraction) else np.nan,
            }
        )
    return pd.DataFrame(found)


def _by_gpu(table: pd.DataFrame, values: np.ndarray) -> dict[str, np.ndarray]:
    """GPU to the values of its rows, in their order; none where it has no row."""
    places = table.groupby("gpu").indices
    return defaultdict(lambda: values[:0], {str(gpu): values[at] for gpu, at in places.items()})


def statuses(study: StudyData) -> pd.DataFrame:
    """Rows a GPU and status, those of variants that are not verified among them."""
    named = ["gpu", "status"]
    rows = pd.concat([study.rows[named], study.unverified[named]], ignore_index=True)
    return rows.groupby(named).size().unstack(fill_value=0)
