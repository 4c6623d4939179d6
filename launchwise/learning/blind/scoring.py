"""Contests of a blind test, and the score of its answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from launchwise.base.errors import UserError
from launchwise.learning import merit
from launchwise.learning.blind.answering import Frozen, problem_of, whole
from launchwise.learning.features import Domain
from launchwise.learning.intervals import resampled_means
from launchwise.learning.summary import LEAST_GAIN, quality, without_nan
from launchwise.workloads.metrics import MEASURED
from launchwise.workloads.parts import Value
from launchwise.workloads.spec import Spec


def score(frozen: Frozen, domain: Domain, sweep: pd.DataFrame, pairs: pd.DataFrame) -> pd.DataFrame:
    """Score of the answers: one row per problem.

    Returns the problem; ``is_usual`` whether the answer was the usual choice; ``status`` of the
    answer; ``fraction`` time of the fastest of the contest over that of the answer, in pairs;
    ``best_of_5`` and ``best_of_20``: time of the fastest of the sweep over the fastest of so many
    answers, by the sweep; ``gain``, ``gain_low``, ``gain_high`` over the usual choice and
    ``improvement`` over the baseline, in pairs; ``best_gain`` of the fastest over the usual choice;
    ``expected_ms`` and its interval, ``measured_ms``; ``expected_gain`` and its interval. An answer
    without a time has fraction, gain and improvement 0.
    """
    spec = domain.spec
    columns = [*spec.problem_columns, *spec.tunable_columns]
    measured = sweep[sweep["status"].isin(MEASURED)]
    times = dict(
        zip(measured[columns].itertuples(index=False, name=None), measured["time_ms"], strict=True)
    )
    candidates = measured[domain.is_candidate(measured)]
    least = candidates.groupby(spec.problem_columns)["time_ms"].min()
    by_problem = dict(list(pairs.groupby(spec.problem_columns, sort=False)))
    rows = []
    for answer in frozen.answers:
        problem = problem_of(answer, spec)
        key = tuple(problem.values())
        rows.append({**problem, **_scored(answer, key, by_problem.get(key), times, least, spec)})
    return pd.DataFrame(rows)


def _scored(
    answer: Mapping[str, Any],
    key: tuple[Value, ...],
    members: pd.DataFrame | None,
    times: Mapping[tuple[Value, ...], float],
    least: pd.Series[float],
    spec: Spec,
) -> dict[str, Any]:
    first = answer["suggestions"][0]
    found: dict[str, Any] = {
        "is_usual": bool(first["is_usual"]),
        "basis": answer["basis"],
        "status": "not measured",
        **dict.fromkeys(("fraction", "gain", "improvement", "best_of_5", "best_of_20"), 0.0),
        **dict.fromkeys(("gain_low", "gain_high", "best_gain", "measured_ms"), np.nan),
        **_expected(first, "expected_ms", "interval_ms", "expected_ms"),
        **_expected(first, "gain", "gain_interval", "expected_gain"),
    }
    best_ms = float(least.get(key, np.nan))
    listed = [
        times.get((*key, *whole(each["configuration"], spec).values()), np.inf)
        for each in answer["suggestions"]
    ]
    for count in (5, 20):
        found[f"best_of_{count}"] = float(best_ms / min(listed[:count]))
    if members is None:
        return found
    roles = members["roles"].str.split("+")
    own = members[[("recommended" in each) for each in roles]]
    ran = members[members["time_ms"].notna()]
    if own.empty:
        return found
    row = own.iloc[0]
    found["status"] = row["status"]
    if len(members) == 1:
        # Answer, usual choice and fastest are one and the same.
        return found | {"fraction": 1.0, "gain": 1.0, "improvement": 1.0, "best_gain": 1.0}
    if row["status"] != "ok" or ran.empty:
        return found
    return found | {
        "fraction": float(row["gain"] / ran["gain"].max()),
        "best_gain": float(ran["gain"].max()),
        "measured_ms": float(row["time_ms"]),
        **{name: float(row[name]) for name in ("gain", "gain_low", "gain_high", "improvement")},
    }


def _expected(
    suggestion: Mapping[str, Any], value: str, interval: str, name: str
) -> dict[str, float]:
    """An expectation and its interval as three columns; NaN where there is none."""
    low, high = suggestion[interval] or (np.nan, np.nan)
    known = suggestion[value]
    return {
        name: np.nan if known is None else float(known),
        f"{name}_low": float(low),
        f"{name}_high": float(high),
    }


def check_measured_after(frozen: Frozen, tables: Mapping[str, pd.DataFrame]) -> None:
    """Check that nothing was measured before the answers were written down.

    ``tables``: path to its rows, with ``measured_at``. Raises UserError when a row is older than
    the answers.
    """
    for path, table in tables.items():
        early = table.loc[table["measured_at"] < frozen.frozen_at, "measured_at"]
        if len(early):
            message = f"{early.iloc[0]} is before the answers were frozen ({frozen.frozen_at})"
            raise UserError(path, "measured_at", message)


def summarise(frozen: Frozen, rows: pd.DataFrame) -> dict[str, Any]:
    """Figures of a blind test.

    Returns what was asked and when; ``new_gpu``: whether the product had no row of the GPU;
    ``problems``; what :func:`launchwise.learning.summary.quality` gives; ``fraction_interval``, 95
    % (bootstrap over problems); ``improvement_geometric_mean`` over the baseline; ``slower``:
    harmed answers whose interval of the gain lies below 1 as well; ``times_covered`` of ``times``:
    expected times, and ``time_error_percent``, their median error. ``rows``: what :func:`score`
    gives.
    """
    low, high = (rows[f"expected_ms_{side}"] for side in ("low", "high"))
    timed = (low.notna() & rows["measured_ms"].notna()).to_numpy()
    inside = rows["measured_ms"].between(low, high).to_numpy()[timed]
    slower = (rows["gain"] < LEAST_GAIN) & ~(rows["gain_high"] >= 1)
    error = 100 * (rows["expected_ms"] / rows["measured_ms"] - 1).abs()
    names = {"expected_gain_low": "least_gain", "expected_gain_high": "most_gain"}
    asked = ("study", "workload", "gpu", "seed", "commit", "frozen_at", "digest")
    found = {
        **{name: getattr(frozen, name) for name in asked},
        "model": frozen.product.get("model", ""),
        "new_gpu": frozen.gpu not in frozen.product.get("gpus", {}),
        "problems": len(rows),
        **quality(rows.rename(columns=names)),
        "fraction_interval": _interval(frozen, rows),
        "improvement_geometric_mean": merit.geometric_mean(rows["improvement"].to_numpy()),
        "slower": int(slower.sum()),
        "times": len(inside),
        "times_covered": float(inside.mean()) if len(inside) else np.nan,
        "time_error_percent": float(error.median()),
    }
    return dict(without_nan(found))


def _interval(frozen: Frozen, rows: pd.DataFrame) -> list[float] | None:
    columns = list(frozen.answers[0]["problem"])
    table = rows[[*columns, "fraction"]].assign(model="answers", gpu=frozen.gpu)
    interval = resampled_means(table, columns, frozen.seed).interval("answers")
    return None if interval is None else list(interval)
