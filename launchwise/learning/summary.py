"""Summarises an evaluation: figures of every model, per split and GPU, and how sure they are."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from launchwise.learning import merit
from launchwise.learning.baselines import BASELINES
from launchwise.learning.merit import resampled_means
from launchwise.learning.truth import ORACLE, SHORT_LISTS
from launchwise.workloads.spec import Spec

ALL_GPUS = "all"
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
) -> dict[str, Any]:
    """Metrics per split, GPU and model.

    Returns ``models`` (name to ``role``, ``title``, seconds) and ``splits``: split to GPU (and
    ``all``) to ``problems``, ``null_accuracy``, ``configurations_median`` and
    ``needle_index_median`` (measured ones, and those of them within 5 % of the best, of the median
    problem) and ``models``: name to figures (see :func:`figures` and :func:`_with_intervals`).
    Shares are 0..1, except where a name says percent. ``table``: what
    :func:`launchwise.learning.evaluation.evaluate` gives; ``facts``: model to what is known of it
    beside its results: ``title``, ``seconds_to_train``, ``seconds_to_recommend``.
    """
    models: dict[str, Any] = {}
    for name, role in table[["model", "role"]].drop_duplicates().itertuples(index=False):
        models[name] = {"role": role, "title": title(name), **facts.get(name, {})}
    splits: dict[str, Any] = {}
    for split, rows in table.groupby("split", sort=False):
        parts = {ALL_GPUS: rows, **dict(iter(rows.groupby("gpu", sort=False)))}
        splits[str(split)] = {
            str(gpu): _part(part, spec, near_best_percent) for gpu, part in parts.items()
        }
    return without_nan({"models": models, "splits": splits})


def title(model: str) -> str:
    """Title of a baseline in tables; models have their own."""
    if model in BASELINES:
        return str(getattr(BASELINES[model], "title", model))
    if model.startswith("random_"):
        return f"best of {model.removeprefix('random_')} random measurements, expected"
    return model


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
    means = resampled_means(rows, spec.problem_columns, INTERVAL_SEED)
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
    the best over the usual choice), ``least_gain`` and ``most_gain``.
    """
    columns = ("fraction", "gain", "best_gain", "least_gain", "most_gain")
    fraction, gain, best, low, high = (rows[name].to_numpy(dtype=float) for name in columns)
    usual, worth = rows["is_usual"].to_numpy(dtype=bool), best > 1 + WORTH_PERCENT / 100
    known = np.isfinite(low) & ~usual
    inside = ((gain >= low) & (gain <= high))[known]
    means = ("gain", "fraction")
    return {
        **{f"{name}_geometric_mean": merit.geometric_mean(rows[name].to_numpy()) for name in means},
        **{name: merit.geometric_mean(rows[name].to_numpy()) for name in SHORT_LISTS.values()},
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
