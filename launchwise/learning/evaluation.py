"""Evaluates models, baselines, random draws and the oracle on the unfiltered sweep, and sums up.

Nothing is dropped in silence. A recommendation that failed on the GPU, or that no sweep measured,
keeps its row with its status, no time, and improvement, gain and fraction 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from launchwise.base.errors import UserError
from launchwise.base.storage import write_sealed_json
from launchwise.experiment.load import Load
from launchwise.learning import merit
from launchwise.learning.answers import Offsets, Situation
from launchwise.learning.baselines import BASELINES
from launchwise.learning.conformal import Errors, table_of, with_limits
from launchwise.learning.curves import ALL_GPUS, learning_curves, reached
from launchwise.learning.features import Domain
from launchwise.learning.prediction_errors import errors_of_cases, prediction_errors
from launchwise.learning.splits import Fold, case_codes
from launchwise.learning.truth import EXPECTED, ORACLE, SHORT_LISTS, Learnt, Truth
from launchwise.tables.files import write_table
from launchwise.tables.learning import curves_schema, evaluation_schema
from launchwise.workloads import space
from launchwise.workloads.spec import Spec


def evaluate(
    study: str,
    learnt: Learnt,
    folds: list[Fold],
    truth: Truth,
    timed: pd.DataFrame,
    shares: pd.DataFrame,
    domain: Domain,
    random_draws: Iterable[int],
    answering: str,
) -> tuple[pd.DataFrame, Errors]:
    """Evaluation with one row per (model, split, fold, GPU, problem).

    Raises UserError when a model recommends for no case, or for other cases than the splits test.

    ``learnt``: what models and simple rules say of the test candidates.
    ``timed``: its predicted times beside what was measured (:meth:`Truth.timed`).
    ``shares``: what the first recommendations reach (:func:`launchwise.learning.curves.reached`).
    ``random_draws``: how many random measurements the random baselines may take.
    ``answering``: model whose expected gains have intervals.
    Returns a table as :func:`launchwise.tables.learning.evaluation_schema` declares it, and the
    errors of the answering model.
    """
    first = _first_choices(learnt, folds, truth, timed, shares, domain)
    others = [_of_fold(fold, truth, domain, random_draws) for fold in folds]
    table = pd.concat([first, *others], ignore_index=True).assign(study=study)
    ratio = table["time_ms"].to_numpy(dtype=float)
    table["improvement"] = np.nan_to_num(table["baseline_ms"].to_numpy(dtype=float) / ratio)
    oracle = table["role"] == ORACLE
    for name in SHORT_LISTS.values():
        table[name] = table[name].where(~oracle, 1.0)
    table["is_usual"] = domain.is_usual(table)
    table["gain"] = np.nan_to_num(table["usual_ms"].to_numpy(dtype=float) / ratio)
    table["fraction"] = np.nan_to_num(table["best_ms"].to_numpy(dtype=float) / ratio)
    answers = table["model"] == answering
    answered = table[answers].reset_index(drop=True)
    errors = Errors.of(answered, folds, domain)
    limits = ["least_gain", "most_gain"]
    table[limits] = np.nan
    table.loc[answers, limits] = with_limits(answered, errors)[limits].to_numpy()
    return table, errors


def _first_choices(
    learnt: Learnt,
    folds: list[Fold],
    truth: Truth,
    timed: pd.DataFrame,
    shares: pd.DataFrame,
    domain: Domain,
) -> pd.DataFrame:
    """Rows of models and simple rules; arguments and errors as of :func:`evaluate`."""
    first = pd.concat([learnt.recommended(each, 1) for each in learnt.said], ignore_index=True)
    _check_complete(first, folds, domain)
    keys = ["model", "split", "fold", "case"]
    short_lists = shares[[*keys, *SHORT_LISTS]].rename(columns=SHORT_LISTS)
    first = truth.beside(first).merge(short_lists, on=keys, how="left")
    first = first.merge(errors_of_cases(timed, learnt.predicting), on=keys, how="left")
    first["role"] = np.where(first["model"].isin(BASELINES), "baseline", "model")
    first["improved_runs"] = _improved_runs(first, domain)
    return first


def _improved_runs(table: pd.DataFrame, domain: Domain) -> list[float]:
    """Share of runs improved of each row; recommending the baseline itself improves none."""
    rows = zip(table["times_ms"], table["baseline_times"], domain.is_baseline(table), strict=True)
    return [
        0.0
        if same or not isinstance(times, np.ndarray | list) or not len(times)
        else merit.improved_runs(np.asarray(times), np.asarray(baseline))
        for times, baseline, same in rows
    ]


def _check_complete(first: pd.DataFrame, folds: list[Fold], domain: Domain) -> None:
    codes, keys = case_codes(first, domain.spec)
    for model, rows in first.assign(case=codes).groupby("model", sort=False):
        for fold in folds:
            mine = rows[(rows["split"] == fold.split) & (rows["fold"] == fold.fold)]
            found = {keys[case] for case in mine["case"]}
            wanted = {case.key for case in fold.test}
            if found != wanted:
                message = (
                    f"{model} recommends for {len(found & wanted)} of {len(wanted)} test problems "
                    f"and for {len(found - wanted)} others"
                )
                raise UserError("recommendations", f"{fold.split}.{fold.fold}", message)


def _of_fold(fold: Fold, truth: Truth, domain: Domain, random_draws: Iterable[int]) -> pd.DataFrame:
    """Oracle and random draws for every test case of a fold."""
    cases = truth.numbers(case.key for case in fold.test)
    if (cases < 0).any():
        lost = fold.test[int(cases.argmin())].key
        raise UserError(
            "evaluate", f"{fold.split}.{fold.fold}", f"no sweep holds test problem {lost}"
        )
    rows = table_of(fold.test)[["gpu", *domain.spec.problem_columns]]
    best = truth.best(cases)
    oracle = rows.assign(
        **{name: best[name] for name in domain.spec.tunable_columns}, model=ORACLE, role=ORACLE
    )
    oracle = truth.beside(oracle)
    oracle["improved_runs"] = _improved_runs(oracle, domain)
    pieces = [oracle]
    for draws in random_draws:
        # The table wants a configuration; of a mean over draws the baseline stands for none.
        random = truth.beside(rows.assign(**space.baseline(domain.spec)))
        pairs = np.array([truth.draws(case, draws) for case in cases])
        pieces.append(
            random.assign(
                model=f"random_{draws}",
                role="baseline",
                status=EXPECTED,
                basis="",
                time_ms=pairs[:, 0],
                improved_runs=pairs[:, 1],
            )
        )
    return pd.concat(pieces, ignore_index=True).assign(
        split=fold.split, fold=fold.fold, predicted_ms=np.nan
    )


def write_evaluation(
    study: str,
    learnt: Learnt,
    folds: list[Fold],
    truth: Truth,
    domain: Domain,
    random_draws: Sequence[int],
    answering: str,
    files: tuple[Path, Path, Path],
    processes: int,
    load: Load | None = None,
) -> Mapping[Situation, Offsets]:
    """Evaluate what models say of a study's test cases; intervals of its answers by situation.
    Writes ``files``: rows (:func:`evaluate`), curves, and a summary, with errors of predicted times
    that are counted in so many ``processes``. ``load``: by which its means count problems."""
    timed, shares = truth.timed(learnt.predicted_times), reached(learnt, truth)
    rows, errors = evaluate(
        study, learnt, folds, truth, timed, shares, domain, random_draws, answering
    )
    # The report draws curves of the first split.
    first = folds[0].split
    drawn = [fold for fold in folds if fold.split == first]
    known = shares[shares["split"] == first], learnt.of_split(first)
    curves = learning_curves(*known, drawn, truth, domain.spec, answering).assign(study=study)
    models = {"models": list(learnt.facts)}
    write_table(files[0], rows, evaluation_schema(domain.spec), models)
    write_table(files[1], curves, curves_schema(), models)
    summary = {
        "study": study,
        "random_draws": list(random_draws),
        "predictions": prediction_errors(timed, learnt.predicting, domain, processes),
        **summarise(rows, domain.spec, domain.near_best_percent, learnt.facts, load),
    }
    write_sealed_json(files[2], summary)
    return errors.by_situation()


WORTH_PERCENT = 5.0
"""A gain of the best configuration over the usual choice above this counts as missed, %."""

HARMFUL_BELOW = 1 / (1 + merit.HARM_PERCENT / 100)
"""Gain over the usual choice below which an answer does harm."""

INTERVAL_SEED = 0
HEURISTICS = tuple(BASELINES)  # Simple rules; of those that answer alike, the first is named


def summarise(
    table: pd.DataFrame,
    spec: Spec,
    near_best_percent: float,
    facts: Mapping[str, Mapping[str, Any]],
    load: Load | None = None,
) -> dict[str, Any]:
    """Metrics per split, GPU and model.

    Returns ``models`` (name to ``role``, ``title``, seconds) and ``splits``: split to GPU (and
    ``all``) to ``problems``, ``null_accuracy``, ``configurations_median`` and
    ``needle_index_median`` (measured ones, and those of them within 5 % of the best, of the median
    problem) and ``models``: name to figures (see :func:`figures` and :func:`_with_intervals`).
    Shares are 0..1, except where a name says percent. ``table``: what
    :func:`launchwise.learning.evaluation.evaluate` gives; ``facts``: model to what is known of it
    beside its results: ``title``, ``seconds_to_train``, ``seconds_to_recommend``; ``load``: see
    :meth:`launchwise.experiment.load.Load.weights`.
    """
    models: dict[str, Any] = {}
    for name, role in table[["model", "role"]].drop_duplicates().itertuples(index=False):
        models[name] = {"role": role, "title": title(name), **facts.get(name, {})}
    splits: dict[str, Any] = {}
    for split, rows in table.groupby("split", sort=False):
        parts = {ALL_GPUS: rows, **dict(iter(rows.groupby("gpu", sort=False)))}
        splits[str(split)] = {
            str(gpu): _part(_weighted(part, load), spec, near_best_percent)
            for gpu, part in parts.items()
        }
    return without_nan({"models": models, "splits": splits})


def title(model: str) -> str:
    """Title of a baseline in tables; models have their own."""
    if model in BASELINES:
        return str(getattr(BASELINES[model], "title", model))
    if model.startswith("random_"):
        return f"best of {model.removeprefix('random_')} random measurements, expected"
    return model


def _weighted(rows: pd.DataFrame, load: Load | None) -> pd.DataFrame:
    return rows if load is None else rows.assign(weight=load.weights(rows))


def _part(rows: pd.DataFrame, spec: Spec, near: float) -> dict[str, Any]:
    oracle = rows[rows["model"] == ORACLE]
    classes = list(zip(*(oracle[column] for column in spec.tunable_columns), strict=True))
    found = {str(model): figures(mine, near) for model, mine in rows.groupby("model", sort=False)}
    return {
        "problems": len(oracle),
        "null_accuracy": merit.null_accuracy(classes),
        "configurations_median": float(oracle["configurations"].median()),
        "needle_index_median": float(oracle["needle_index"].median()),
        "models": _with_intervals(found, rows, spec),
    }


def _with_intervals(
    found: dict[str, dict[str, Any]], rows: pd.DataFrame, spec: Spec
) -> dict[str, dict[str, Any]]:
    """Figures with what is sure of them.

    ``fraction_interval``: of the geometric mean. ``beside_best_model`` and
    ``beside_best_heuristic``: of its ratio to that of the best model and of the best heuristic
    (without random draws, which measure). Each is a pair, None where there are too few problems
    (see :mod:`launchwise.learning.merit`).
    """
    means = merit.resampled_means(rows, spec.problem_columns, INTERVAL_SEED)
    roles = dict(rows[["model", "role"]].drop_duplicates().itertuples(index=False, name=None))
    models = sorted(model for model, role in roles.items() if role == "model")
    heuristics = [name for name in HEURISTICS if name in roles]
    rivals = {"beside_best_model": models, "beside_best_heuristic": heuristics}
    for model, figured in found.items():
        figured["fraction_interval"] = means.interval(model)
        for key, names in rivals.items():
            # The first of the list where two are equal.
            best = max(names, key=lambda one: found[one]["fraction_geometric_mean"], default=None)
            figured[key] = None if best is None else means.ratio(model, best)
    return found


def figures(rows: pd.DataFrame, near_best_percent: float) -> dict[str, Any]:
    """Metrics of one model over some problems.

    Returns ``problems``, ``without_time`` (recommendations that failed or were never measured),
    ``percent_improved`` and ``percent_runs_improved``, ``improvement_coefficient``, what
    :func:`quality` gives, ``accuracy`` (the very best), ``accuracy_near_best``, ``mape_percent``
    and ``spearman`` (means over problems).
    """
    fraction = rows["fraction"].to_numpy(dtype=float)
    least = 1 / (1 + near_best_percent / 100)
    return {
        "problems": len(rows),
        "without_time": int(rows["time_ms"].isna().sum()),
        "percent_improved": merit.percent_improved(rows["improvement"].to_numpy()),
        "percent_runs_improved": float(100 * rows["improved_runs"].fillna(0).mean()),
        "improvement_coefficient": merit.improvement_coefficient(
            rows["baseline_ms"].to_numpy(), rows["time_ms"].to_numpy()
        ),
        **quality(rows.assign(best_gain=rows["usual_ms"] / rows["best_ms"])),
        "accuracy": float((fraction >= 1).mean()),
        "accuracy_near_best": float((fraction >= least - 1e-12).mean()),
        "mape_percent": float(rows["absolute_percentage_error"].mean()),
        "spearman": float(rows["spearman"].mean()),
    }


def quality(rows: pd.DataFrame) -> dict[str, Any]:
    """Figures of answers to problems, of test cases or of a blind test.

    Returns ``gain_geometric_mean`` (without a time it counts as 0), ``fraction_geometric_mean``,
    ``best_of_5`` and ``best_of_20`` (geometric means of what measuring so many recommendations
    reaches; NaN for random draws), ``fraction_p5``, ``fraction_worst``, ``harmed`` (problems whose
    answer is slower than the usual choice by more than
    :data:`launchwise.learning.merit.HARM_PERCENT`, or has no time), ``kept_usual`` (answered by the
    usual choice), ``missed`` (those of them where the best is faster by more than
    :data:`WORTH_PERCENT`), ``worthwhile`` (all such problems), ``intervals`` (answers with an
    interval of their gain) and ``covered`` (the share whose gain lies in it). ``rows``: one per
    answer: ``fraction``, ``best_of_5``, ``best_of_20``, ``gain``, ``is_usual``, ``best_gain`` (of
    the best over the usual choice), ``least_gain`` and ``most_gain``; maybe
    ``weight``, how much it counts in means.
    """
    columns = ("fraction", "gain", "best_gain", "least_gain", "most_gain")
    fraction, gain, best, low, high = (rows[name].to_numpy(dtype=float) for name in columns)
    weights = rows["weight"].to_numpy(dtype=float) if "weight" in rows else None

    def mean(name: str) -> float:
        return merit.geometric_mean(rows[name].to_numpy(), weights)

    usual, worth = rows["is_usual"].to_numpy(dtype=bool), best > 1 + WORTH_PERCENT / 100
    known = np.isfinite(low) & ~usual
    inside = ((gain >= low) & (gain <= high))[known]
    means = ("gain", "fraction")
    return {
        **{f"{name}_geometric_mean": mean(name) for name in means},
        **{name: mean(name) for name in SHORT_LISTS.values()},
        "fraction_p5": float(np.quantile(fraction, 0.05)),
        "fraction_worst": float(fraction.min()),
        "harmed": int((gain < HARMFUL_BELOW).sum()),
        "kept_usual": int(usual.sum()),
        "missed": int((usual & worth).sum()),
        "worthwhile": int(worth.sum()),
        "intervals": int(known.sum()),
        "covered": float(inside.mean()) if len(inside) else math.nan,
    }


def without_nan(value: Any) -> Any:
    """Replace NaN by None, because JSON has no NaN."""
    if isinstance(value, Mapping):
        return {str(key): without_nan(one) for key, one in value.items()}
    if isinstance(value, list):
        return [without_nan(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
