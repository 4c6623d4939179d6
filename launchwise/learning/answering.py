"""Answers of a study's product: what to launch for a problem on a GPU, how sure, and why."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from launchwise.base.robust import EQUAL
from launchwise.base.work import in_parallel
from launchwise.learning.answers import (
    MEASURED,
    NO_TIME,
    UNKNOWN_LINK,
    UNORDERED,
    Answer,
    Interval,
    Suggestion,
)
from launchwise.learning.conformal import limits_around, stretched, unlike_all
from launchwise.learning.features import Domain
from launchwise.learning.final import CALIBRATED, Final
from launchwise.learning.recommender import Ranking
from launchwise.learning.row_arrays import least_ms, records_of
from launchwise.learning.splits import Case, case_columns, key_of
from launchwise.tables.rows import ratio_limits, row_numbers
from launchwise.tables.times import PAIRS, SWEEP
from launchwise.workloads.parts import Value
from launchwise.workloads.space import baseline, feasible, gpu_facts, plain, used
from launchwise.workloads.spec import Spec

CASES_AT_ONCE = 64
"""Cases that the model is asked about at once: their features stay in the cache, and what is asked
together does not depend on the number of processes."""


def why_none(domain: Domain, case: Case) -> str | None:
    """Why no configuration may run a problem on a GPU; None where one may. The baseline is a
    candidate everywhere: a study's constraints do not apply to it. Where the workload's do not hold
    for it, and it is the only candidate, there is no answer."""
    spec, default = domain.spec, baseline(domain.spec)
    facts = gpu_facts(domain.profiles[case.gpu].model_dump())
    if feasible(spec, case.problem, default, facts) or len(domain.choices([case])) > 1:
        return None
    names = {**case.problem, **default, **facts}
    variant = spec.variants[str(default["variant"])]
    for text in (*spec.constraints, *variant.constraints):
        if not spec.formulas.value(text, names):
            return f"no configuration may run it: {text} does not hold"
    return "no configuration may run it: spec.yaml lists none"


def answers(
    final: Final,
    cases: list[Case],
    top: int = 1,
    least_gain: float | None = None,
    processes: int = 1,
    judged: list[pd.DataFrame] | None = None,
    among: pd.DataFrame | None = None,
) -> list[Answer]:
    """Answers for problems on GPUs, in order.

    A measured problem is answered by the configuration that counts as its fastest
    (:func:`launchwise.tables.rows.fastest_rows`), and the next fastest after it; any other by the
    fitted model. The usual choice is always among the candidates.

    ``cases``: GPUs of the product's domain, and problems of its workload.
    ``top``: suggestions per problem.
    ``least_gain``: gain over the usual choice that must be sure: the measured one, or the lower end
        of the 90 % interval. What does not reach it, or has no interval, is answered by the usual
        choice.
    ``processes``: the model is asked in so many processes at once; answers do not depend on it.
    ``judged``: takes every candidate that the model was asked about, with ``loss``: log time
        relative to the usual choice.
    ``among``: choices (:attr:`launchwise.learning.features.Domain.choice_columns`) that the model
        is asked about, beside the usual choice and the baseline; by default all candidates.
    """
    domain = final.domain
    # Asked twice, a problem's candidates would be there twice.
    choices = domain.choices({case.key: case for case in cases}.values())
    if among is not None:
        choices = choices[_among(choices, among, domain)].reset_index(drop=True)
    of_case = row_numbers(choices, case_columns(final.spec))
    kept = _kept(of_case, domain.is_usual(choices), domain.is_baseline(choices))
    defaults: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in records_of(choices[kept]):
        defaults.setdefault(key_of(row, final.spec), row)
    # What was measured needs no model.
    asked = np.array([key not in final.by_case for key in defaults], dtype=bool)[of_case]
    suggested: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    if asked.any():
        rows, losses = _asked(final, choices[asked], of_case[asked], top, least_gain, processes)
        for row in rows:
            suggested.setdefault(key_of(row, final.spec), []).append(row)
        if judged is not None:
            judged.append(choices[asked].assign(loss=losses))
    found = []
    for case in cases:
        default = used(plain(defaults[case.key], final.spec.tunable_columns), final.spec)
        if known := final.by_case.get(case.key):
            found.append(_of_measured(case, known, default, final.spec, top, least_gain))
        else:
            found.append(_of_model(case, suggested[case.key], default, final, least_gain))
    return found


def _asked(
    final: Final,
    choices: pd.DataFrame,
    of_case: np.ndarray,
    top: int,
    least_gain: float | None,
    processes: int,
) -> tuple[list[dict[str, Any]], np.ndarray]:
    """What :func:`_suggestions` gives, some cases at once: its rows, and the losses of all."""
    groups = of_case // CASES_AT_ONCE

    def of_group(group: int) -> tuple[list[dict[str, Any]], np.ndarray]:
        own = choices[groups == group].reset_index(drop=True)
        suggestions, losses = _suggestions(final, own, top, least_gain)
        return records_of(suggestions), losses

    # Loaded here once, not in each process.
    assert final.recommender
    numbers = np.unique(groups).tolist()
    rows, losses = [], np.full(len(choices), np.nan)
    for number, (some, own) in zip(numbers, in_parallel(of_group, numbers, processes), strict=True):
        rows += some
        losses[groups == number] = own
    return rows, losses


def _among(choices: pd.DataFrame, among: pd.DataFrame, domain: Domain) -> np.ndarray:
    """Rows with one of the choices, with the usual choice or the baseline: booleans, (rows,)."""
    columns = domain.choice_columns
    numbers = row_numbers(pd.concat([among[columns], choices[columns]], ignore_index=True), columns)
    found = np.isin(numbers[len(among) :], numbers[: len(among)])
    return found | domain.is_usual(choices) | domain.is_baseline(choices)


def _suggestions(
    final: Final, choices: pd.DataFrame, top: int, least_gain: float | None
) -> tuple[pd.DataFrame, np.ndarray]:
    """The first choices of each case by the fitted model, with what is expected of them; and the
    log time of every candidate relative to the usual choice, NaN where none is expected.

    ``choices``: every candidate of the cases.
    """
    domain = final.domain
    ranking = final.recommender.ranking(domain.keeping_features(choices))
    usual, baseline = domain.is_usual(choices), domain.is_baseline(choices)
    of_case = row_numbers(choices, case_columns(final.spec))
    kept = _kept(of_case, usual, baseline)
    taken = ranking.first(top)
    situations = final.known.situations(choices)
    gains = _gains(final, choices, ranking, usual, situations)
    unknown = np.zeros(len(choices), dtype=bool)
    shown = np.union1d(taken, np.flatnonzero(kept))
    unknown[shown] = domain.cost_model.copies_at_unknown_rate(choices.iloc[shown])
    gains = np.where(unknown[:, None], np.nan, gains)
    # Cards that were held out are relatives of each other: they say nothing of errors on others.
    unlike = choices["gpu"].isin(_described(domain)).to_numpy()
    doubted = np.zeros(len(choices), dtype=bool)
    if least_gain is not None:
        leading = taken[(ranking.rank[taken] == 1) & ~kept[taken]]
        doubted = np.isin(of_case, of_case[leading[~(gains[leading, 1] >= least_gain)]])
        taken = np.concatenate([taken[~doubted[taken]], np.flatnonzero(kept & doubted)])
    rows = choices.iloc[taken].reset_index(drop=True)
    # Trees and ratios extrapolate: what they say may be faster than any run can be.
    shortest = least_ms(rows, final.spec, domain.profiles)
    basis = situations[taken]
    untimed = unknown[taken] | (basis == "beyond")
    times = np.where(untimed, np.nan, np.maximum(ranking.predicted_ms[taken], shortest))
    limits = np.maximum(_limits(final, times, basis), shortest[:, None])
    limits[unlike[taken] | unlike_all(final.facts["gpus"], rows, domain.profiles)] = np.nan
    losses = (
        np.full(len(choices), np.nan) if ranking.gains is None else -np.log(ranking.gains[:, 0])
    )
    found = rows.assign(
        rank=np.where(doubted[taken], 1, ranking.rank[taken]),
        expected_ms=times,
        **{f"time_{place}": limits[:, place] for place in range(2)},
        **{f"gain_{place}": gains[taken][:, place] for place in range(3)},
        improvement=gains[taken][:, 0] / _of_case(of_case, baseline, gains[:, 0])[taken],
        doubted=doubted[taken],
        unknown_link=unknown[taken],
        basis=basis,
    )
    return found, losses


def _kept(cases: np.ndarray, usual: np.ndarray, baseline: np.ndarray) -> np.ndarray:
    """The usual choice of each case; where none is usual, the baseline: booleans, (rows,)."""
    return usual | (baseline & ~np.isin(cases, cases[usual]))


def _of_case(cases: np.ndarray, chosen: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The value of the chosen row of each row's case, shape (rows,); NaN without one.

    ``cases``: number of the case of every row.
    """
    found = np.full(int(cases.max(initial=-1)) + 1, np.nan)
    found[cases[chosen]] = values[chosen]
    return found[cases]


def _of_measured(
    case: Case,
    rows: list[dict[str, Any]],
    default: dict[str, Value],
    spec: Spec,
    top: int,
    least_gain: float | None,
) -> Answer:
    usual = next((row for row in rows if row["is_usual"]), None)
    baseline_row = next((row for row in rows if row["is_baseline"]), None)
    first, reference = rows[0], usual or baseline_row
    why, others = "the fastest of the measured configurations", int(first["alike"]) - 1
    unsure = float(first["unsure"])
    if first is usual and others:
        why = f"the usual choice: {others} measured ones cannot be told apart from it"
    elif others:
        why = f"one of {others + 1} measured configurations that cannot be told apart"
    shorter = 1 - min(row["time_ms"] for row in rows) / first["time_ms"]
    if others and shorter > EQUAL:
        why += f", of which one was measured {100 * shorter:.1f} % shorter"
    if unsure > 1:
        slower = f"{100 * (unsure - 1):.0f} % slower"
        why += f"; others, measured up to {slower}, are not known well enough to tell"
    if first["basis"] == SWEEP:
        why += "; its time rests on one row of the sweep"
    other = reference if reference is not first else None
    if other and least_gain and other["time_ms"] / first["time_ms"] < least_gain:
        first, others, unsure = other, 0, 1.0
        why = f"no measured configuration is {least_gain:g} times as fast as the usual choice"
    if first["blind"]:
        why += ", in a blind test of answers to this problem"
    listed = [first, *(row for row in rows if row is not first)][:top]
    suggestions = [
        _measured_one(rank, row, first, reference, baseline_row, default, spec)
        for rank, row in enumerate(listed, start=1)
    ]
    found = Answer(case.gpu, dict(case.problem), MEASURED, suggestions, default, why)
    return replace(found, blind=bool(first["blind"]), alike=others + 1, unsure=unsure)


def _measured_one(
    rank: int,
    row: Mapping[str, Any],
    first: Mapping[str, Any],
    usual: Mapping[str, Any] | None,
    baseline_row: Mapping[str, Any] | None,
    default: dict[str, Value],
    spec: Spec,
) -> Suggestion:
    """A measured row as a suggestion beside the ``first`` one; ``usual`` and ``baseline_row`` are
    None without a time."""
    own = used(plain(row, spec.tunable_columns), spec)

    def over(other: Mapping[str, Any] | None) -> float | None:
        return None if other is None else float(other["time_ms"] / row["time_ms"])

    apart = _ratio(row, first, first["time_ms"])
    return Suggestion(
        rank=rank,
        configuration=own,
        expected_ms=float(row["time_ms"]),
        interval_ms=apart or _interval(row["time_low_ms"], row["time_high_ms"]),
        gain=over(usual),
        gain_interval=_ratio(usual, row),
        improvement=over(baseline_row),
        improvement_interval=_ratio(baseline_row, row),
        is_usual=own == default,
        paired=row["basis"] == PAIRS,
    )


def _ratio(
    row: Mapping[str, Any] | None, other: Mapping[str, Any], unit: float = 1
) -> Interval | None:
    """Limits of a row's time over another's, in ``unit``; None of itself, which has no error."""
    if row is None or row is other:
        return None
    names = ("time_ms", "error", "ratio_error")
    both = {name: np.array([row[name], other[name]]) for name in names}
    beside = np.array([one["is_usual"] or one["is_baseline"] for one in (row, other)])
    low, high = ratio_limits(both, np.array([1, 1]), beside)
    return float(unit * low[0]), float(unit * high[0])


def _of_model(
    case: Case,
    rows: list[dict[str, Any]],
    default: dict[str, Value],
    final: Final,
    least_gain: float | None,
) -> Answer:
    suggestions = [_expected_one(row, default, final.spec) for row in rows]
    basis = str(rows[0]["basis"])
    why = "the fastest that the models agree on"
    if rows[0]["doubted"]:
        why = f"no gain of {least_gain:g} and more is sure"
    elif suggestions[0].is_usual:
        why = "nothing is expected to beat the usual choice by more than the models disagree"
    if basis == "beyond":
        why += f"; {NO_TIME}"
    elif rows[0]["unknown_link"]:
        why += f"; {UNKNOWN_LINK}"
    times = [one.expected_ms for one in suggestions if one.expected_ms is not None]
    if times != sorted(times):
        why += f"; {UNORDERED}"
    return Answer(case.gpu, dict(case.problem), basis, suggestions, default, why)


def _expected_one(row: Mapping[str, Any], default: dict[str, Value], spec: Spec) -> Suggestion:
    own = used(plain(row, spec.tunable_columns), spec)
    return Suggestion(
        rank=int(row["rank"]),
        configuration=own,
        expected_ms=_number(row["expected_ms"]),
        interval_ms=_interval(row["time_0"], row["time_1"]),
        gain=_number(row["gain_0"]),
        gain_interval=_interval(row["gain_1"], row["gain_2"]),
        improvement=_number(row["improvement"]),
        # Where nothing is usual, the baseline is.
        is_usual=own == default,
    )


def _described(domain: Domain) -> list[str]:
    return [gpu for gpu, one in domain.profiles.items() if one.source == "described"]


def _gains(
    final: Final, rows: pd.DataFrame, ranking: Ranking, usual: np.ndarray, situations: np.ndarray
) -> np.ndarray:
    """Expected gains and their limits: float64, shape (rows, 3); NaN where none is expected."""
    if ranking.gains is None:
        return np.full((len(rows), 3), np.nan)
    expected, spread = ranking.gains.T
    limits = _limits(final, expected, situations, spread)
    limits[usual] = 1.0
    # Held-out cases do not measure the error at another distance, or on another card.
    unknown = (situations == "beyond") | rows["gpu"].isin(_described(final.domain)).to_numpy()
    unknown |= unlike_all(final.facts["gpus"], rows, final.domain.profiles)
    limits[unknown] = np.nan
    return np.column_stack([expected, limits])


def _limits(
    final: Final, values: np.ndarray, situations: np.ndarray, spread: np.ndarray | None = None
) -> np.ndarray:
    """Limits (:func:`limits_around`) that hold what blind tests measured."""
    limits = limits_around(values, situations, final.intervals, spread)
    known = final.facts["time_intervals" if spread is None else "gain_intervals"]
    if known is None:
        return limits
    return stretched(limits, np.where(situations == CALIBRATED, known["stretch"], 1.0))


def _number(value: Any) -> float | None:
    return float(value) if math.isfinite(value) else None


def _interval(low: Any, high: Any) -> Interval | None:
    return (float(low), float(high)) if math.isfinite(low) and math.isfinite(high) else None
