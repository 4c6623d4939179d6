"""The numbers of the report, of sweeps and of models, computed from tables and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from launchwise.base.vectors import Columns
from launchwise.learning.evaluation import HEURISTICS
from launchwise.learning.recommenders import COMMITTEE
from launchwise.learning.row_arrays import arrays, limits_ms
from launchwise.report import wording
from launchwise.report.study_tables import StudyData, remembered
from launchwise.tables.measurements import fastest_of_sweep, with_role
from launchwise.tables.rows import (
    NAMED_BY,
    UNTOLD,
    fastest_rows,
    is_baseline,
    least_by,
    ratio_limits,
    row_numbers,
    surest,
)
from launchwise.tables.times import PAIRS
from launchwise.tables.visits import whole_errors
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
    error between visits, level included, and, if measured, joule of one run (``best_ms``,
    ``best_error``, ``best_energy_j``, ``baseline_ms``, ...); ``surest_ms``, ``surest_error`` of the
    :func:`launchwise.tables.rows.surest`; ``alike``, how many cannot be told apart from the best,
    itself among them, the ``basis`` of its time, and whether the host's clock took it
    (``by_host``); ``gain`` = baseline over best; ``rate`` in 1e9 items a second;
    ``bytes_ms`` and ``flop_ms``, what the problem's least bytes and its FLOP take at the GPU's
    measured ceilings (see :func:`launchwise.learning.row_arrays.limits_ms`); ``configurations``;
    and ``configuration``, the name of the best one.
    """
    spec, measured = study.spec, study.measured
    key = ["gpu", *spec.problem_columns]
    cases = cases_of(study)
    measured = measured.assign(whole=whole_errors(measured))
    of_row = {"time_ms": "ms", "whole": "error", "energy_j": "energy_j"}
    of_row = {name: end for name, end in of_row.items() if name in measured}
    read = dict.fromkeys([*of_row, *(name for name in NAMED_BY if name in measured)])
    rows = measured[[*key, *spec.tunable_columns, *read, "by_host"]].assign(_case=cases)
    best = fastest_rows(rows, key, spec).sort_values(key, ignore_index=True)
    case = best.pop("_case").to_numpy()
    best["configurations"] = np.bincount(cases)[case]
    sure = rows.iloc[surest(rows, cases)[case]]
    best["surest_ms"], best["surest_error"] = sure["time_ms"].to_numpy(), sure["whole"].to_numpy()
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
    """Time of each problem's fastest, as :func:`winners` names it, over each row's, at most 1:
    what is lost over it, as the least of all times has the luck of its error. float64, shape
    (rows,)."""
    key = ["gpu", *study.problem_columns]
    best_ms = rows[key].merge(winners(study)[[*key, "best_ms"]], how="left")["best_ms"].to_numpy()
    return np.asarray(np.minimum(best_ms / rows["time_ms"].to_numpy(), 1.0))


@remembered
def fractions(study: StudyData) -> pd.DataFrame:
    """Every measured row with ``fraction``, "of the best": the least time of its problem over its
    own, as in the evaluation; and ``at_most``, upper limit (95 %) of the time of what
    :func:`winners` names over its own, 1 where not ``leveled``: not of the device's clock, nor of
    pairs. Rows that tell nothing (:data:`launchwise.tables.rows.UNTOLD`) are left out: what they
    lose is unknown. Returns ``gpu``, problem and configuration columns, ``is_usual``, ``time_ms``
    and these; the index is that of :attr:`StudyData.measured`."""
    rows, cases = study.measured, cases_of(study)
    columns = ["gpu", *study.problem_columns, *study.spec.tunable_columns]
    named = rows[columns].reset_index().merge(winners(study)[columns])["index"].to_numpy()
    place = np.zeros(cases.max(initial=-1) + 1, dtype=np.int64)
    place[cases[named]] = named
    beside = rows["is_usual"].to_numpy() | is_baseline(rows, study.spec)
    low, _ = ratio_limits(rows, place[cases], beside)
    told = ~(rows["error"] >= UNTOLD)
    times = rows["time_ms"].where(told)
    best_ms = least_by(cases, times.fillna(np.inf).to_numpy())[cases]
    # A host times at several levels: what was measured twice, the fastest, lay at the lowest.
    leveled = ~rows["by_host"] | (rows["basis"] == PAIRS)
    found = rows[[*columns, "is_usual", "time_ms"]].assign(
        fraction=best_ms / times, at_most=np.where(leveled, 1 / low, 1.0), leveled=leveled
    )
    return found[told]


MOST_FIXED = 4  # Most configurations of a set


@remembered
def fixed_sets(study: StudyData) -> pd.DataFrame:
    """A few fixed configurations of every GPU, the fastest of which each problem takes: each one
    gains most in the mean beside those before, the first over the most problems. A GPU with a
    single configuration, which was compared with none, has no row.

    Returns a row per GPU and number of configurations: ``gpu``, ``count``, columns of the one that
    is added, ``sure``, problems with a sure time, ``of`` all; over the ``problems`` of the first
    ``fraction`` (of the best, geometric mean), ``worst`` and ``at``, where that is, of
    ``leveled`` times."""
    found, lacking, every = [], -1e3, fractions(study)
    keys = study.spec.tunable_columns, study.problem_columns
    for gpu in study.gpus:
        own = study.candidates(every[every["gpu"] == gpu]).reset_index(drop=True)
        numbers, problems = (row_numbers(own, names, ordered=True) for names in keys)
        logs = np.full((numbers.max(initial=-1) + 1, problems.max(initial=-1) + 1), lacking)
        logs[numbers, problems], told = np.log(own["fraction"]), np.zeros(logs.shape, dtype=bool)
        told[numbers, problems] = own["leveled"]
        known = np.zeros(logs.shape[1], dtype=bool)
        held = shared = np.full(logs.shape[1], lacking)
        for count in range(1, MOST_FIXED + 1 if len(logs) > 1 else 1):
            added = int(np.maximum(logs, held).mean(axis=1).argmax())
            if (logs[added] <= held).all():
                break
            known = np.where(logs[added] > held, told[added], known)
            held = np.maximum(held, logs[added])
            sure = held > lacking
            # Of more problems the mean would be another one: sets are compared over those of all.
            shared = sure if count == 1 else shared
            place = int(np.where(shared & known, held, np.inf).argmin())
            at = own.iloc[int((problems == place).argmax())].to_dict()
            least = np.exp(held[place]), wording.problem(at, study.problem_columns)
            least = least if (shared & known)[place] else (np.nan, "")
            found.append({
                **{"gpu": gpu, "count": count, "sure": int(sure.sum()), "of": len(sure)},
                **own.iloc[int((numbers == added).argmax())][study.spec.tunable_columns],
                **{"problems": int(shared.sum()), "fraction": np.exp(held[shared].mean())},
                **dict(zip(("worst", "at"), least, strict=True)),
            })  # fmt: skip
    return pd.DataFrame(found, columns=None if found else ["gpu", "count", *keys[0]])


ALL_GPUS = "all"  # Name of all GPUs together in the evaluation


@remembered
def splits_evaluated(study: StudyData) -> list[str]:
    """Splits that the evaluation has rows of, in the order of the settings."""
    present = set(study.evaluation["split"].unique())
    return [split for split in study.settings.splits if split in present]


def first_split(study: StudyData) -> str:
    """The split of the headline figures: the first of the settings that was evaluated."""
    return next(iter(splits_evaluated(study)), "")


def first_split_is_transfer(study: StudyData) -> bool:
    """Whether the first split leaves GPUs out of training, not problems."""
    asked = study.settings.splits.get(first_split(study))
    return asked is not None and asked.kind == "leave_one_gpu_out"


def answering(study: StudyData) -> str | None:
    """Name of the model that answers users; None in a study without one."""
    kinds = {name: model.get("kind") for name, model in study.models.items()}
    return next((name for name, kind in kinds.items() if kind == COMMITTEE), None)


def leader(study: StudyData, split: str, gpu: str) -> str | None:
    """Name of the answering model; without one, of the best of the test. None when no model was
    evaluated there."""
    scores = scores_on(study, split, gpu)
    name = answering(study)
    return name if name in set(scores["model"]) else best_model(scores)


def score_of(study: StudyData, split: str, gpu: str, model: str) -> dict[str, Any]:
    """Row of :func:`scores_on` of one model."""
    return next(row for row in records(scores_on(study, split, gpu)) if row["model"] == model)


def best_rule(study: StudyData, split: str, gpu: str) -> dict[str, Any] | None:
    """Row of :func:`scores_on` of the strongest rule without learning, named after the test. Of
    equal ones the first in the order of the report: of one GPU, the nearest is itself."""
    got = {row["model"]: row for row in records(scores_on(study, split, gpu))}
    rules = [got[name] for name in HEURISTICS if name in got]
    return max(rules, key=lambda row: row["fraction"], default=None)


def is_tied(ratio: tuple[float, float] | None) -> bool:
    """Whether an interval of a ratio holds 1; without an interval nothing is known to differ."""
    return ratio is None or ratio[0] <= 1 <= ratio[1]


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


@remembered
def scores_on(study: StudyData, split: str, part: str) -> pd.DataFrame:
    """The evaluation's figures of one split on one GPU, or on ``all`` of them.

    Returns one row a model, sorted from the best fraction of the best: ``model``, ``role``,
    ``problems``, ``unmeasured`` (recommendations without a time, which count as fraction 0),
    ``harmed`` (problems slower than what is usual), ``least_gain`` over it where there is a time,
    the intervals of :data:`INTERVALS` (pairs; None where there are too few problems), and the
    columns of :data:`FIGURES`, shares as 0..1. Empty when nothing was evaluated.
    """
    given = study.facts.get("splits", {}).get(split, {}).get(part, {}).get("models", {})
    known = study.facts.get("models", {})
    rows = study.evaluation
    on = (rows["gpu"] == part) | (part == ALL_GPUS)
    least = rows[on & (rows["split"] == split) & (rows["gain"] > 0)].groupby("model")["gain"].min()
    found = []
    for model, figures in given.items():
        row = {
            "model": model,
            "role": known.get(model, {}).get("role", "model"),
            "problems": figures["problems"],
            "unmeasured": figures["without_time"],
            "harmed": figures["harmed"],
            "least_gain": least.get(model, np.nan),
            **{name: figures[name] for name in INTERVALS},
        }
        for column, (name, factor) in FIGURES.items():
            value = figures[name]
            row[column] = float("nan") if value is None else factor * value
        found.append(row)
    # The oracle first where a model is just as good, then by name: the same order every time.
    found.sort(key=lambda row: (row["role"] != "oracle", row["model"]))
    found.sort(key=lambda row: np.inf if np.isnan(row["fraction"]) else -row["fraction"])
    columns = ["model", "role", "problems", "unmeasured", "harmed", "least_gain"]
    columns += [*INTERVALS, *FIGURES]
    return pd.DataFrame(found, columns=columns)


def null_accuracy(study: StudyData, split: str, part: str) -> float:
    """Share of the test problems that the most frequent best configuration is the best of."""
    found = study.facts.get("splits", {}).get(split, {}).get(part, {}).get("null_accuracy")
    return float("nan") if found is None else float(found)


def best_model(table: pd.DataFrame) -> str | None:
    """First model (no baseline, no oracle) of :func:`scores_on`."""
    models = table[(table["role"] == "model") & table["fraction"].notna()]
    return None if models.empty else str(models["model"].iloc[0])


def only_tested(studies: Sequence[StudyData]) -> list[str]:
    """GPUs that blind tests alone have measured, in order."""
    swept = {gpu for study in studies for gpu in study.gpus}
    tested = dict.fromkeys(gpu for study in studies for gpu in study.blind)
    return [gpu for gpu in tested if gpu not in swept]
