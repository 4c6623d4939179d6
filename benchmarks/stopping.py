"""How sure a search may be of what it found: its chances, held against cards that were kept apart.

    python benchmarks/stopping.py benchmarks/results/stopping.json

Every recorded and public sweep is searched in simulation, each card in turn, with the other cards
of its vendor as prior and without any, in several orders of the candidates. After every measurement
two things are noted: what the process says of the candidates that are left, and whether one of them
is faster than the best by more than 2 %. A logistic regression of the second on the first gives the
``coefficients`` of :mod:`launchwise.search.transfer_search`; each card of a workload has the same
weight.

``held_out`` says how they would have done: the coefficients are fitted anew without a workload, and
each of its searches ends once the chance is at most a tenth. ``right`` is the share of searches
that were within 2 % by then, ``measured`` the median number of measurements. No GPU is needed.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
from harness import searches
from harness.command_line import arguments, write_result
from sklearn.linear_model import LogisticRegression

from launchwise.base.work import in_parallel, usable_cores
from launchwise.experiment.method import STATED_PERCENT
from launchwise.search.transfer_search import LEAST_MEASURED, SURE, least_measured, terms

WITHIN = STATED_PERCENT / 100
LONGEST = 300  # measurements after which a search ends whatever it says

SEEDS = 3
OWN = {"acoustic": 60, "granger": 20, "sentiment": 30, "tridiagonal": 40}
"""Workloads of the project, and of how many problems both cards are searched by turns."""

CAUTION = 0.6  # added to the log odds: where a search ends is where they happened to be small


@dataclass(frozen=True)
class Case:
    """A sweep to search: times in ms of all candidates on each card. inf where it failed, NaN where
    it was not measured, which is nowhere so on ``gpu``."""

    workload: str
    gpu: str
    times: pd.DataFrame
    seed: int


@dataclass(frozen=True)
class Trace:
    """What a search said after each measurement, and what was true.

    ``said``: terms of the log odds: float64, shape (measurements, terms).
    ``left``: whether something faster by more than :data:`WITHIN` was left: bool, (measurements,).
    ``candidates``: how many there were.
    ``whole``: whether the search came to the end of them.
    """

    workload: str
    gpu: str
    with_others: bool
    said: np.ndarray
    left: np.ndarray
    candidates: int
    whole: bool


def cases(smallest: bool) -> Iterator[Case]:
    """Every sweep that is searched."""
    for workload in () if smallest else searches.WORKLOADS:
        _, table = searches.public(workload)
        for gpu in table:
            yield from (Case(workload, str(gpu), table, seed) for seed in range(SEEDS))
    for workload, count in ({"granger": 2, "tridiagonal": 2} if smallest else OWN).items():
        problems = list(searches.recorded(workload).values())
        order = np.random.default_rng(1).permutation(len(problems))
        for place, number in enumerate(order[:count]):
            yield Case(workload, searches.CARDS[place % 2], problems[number], place)


def searched(case: Case, with_others: bool) -> Trace | None:
    """A search of the case in an order of its own; None where nothing has a time."""
    table = case.times.sample(frac=1.0, random_state=case.seed)
    own = table[case.gpu].to_numpy(dtype=float)
    others = searches.others_of(case.gpu, table) if with_others else []
    search = searches.search_of(table.index, [table[each] for each in others], case.gpu)
    longest = min(LONGEST, len(own) - 1)
    fastest, best = own.min(), np.inf
    said, left = [], []
    for time_ms in islice(searches.measured(search, own), longest):
        best = min(best, time_ms or np.inf)
        if np.isfinite(best) and len(search.tried) >= LEAST_MEASURED:
            said.append(terms(search.evidence(WITHIN)))
            left.append(bool(fastest < best * (1 - WITHIN)))
    if not said:
        return None
    about = case.workload, case.gpu, with_others
    return Trace(*about, np.array(said), np.array(left), len(own), longest == len(own) - 1)


def fitted(traces: Sequence[Trace]) -> np.ndarray:
    """Coefficients of the terms; each card of a workload weighs the same: float64, (terms,)."""
    cards = [(each.workload, each.gpu) for each in traces]
    weights = np.concatenate(
        [
            np.full(len(each.left), 1 / len(each.left) / cards.count(card))
            for each, card in zip(traces, cards, strict=True)
        ]
    )
    model = LogisticRegression(C=1e3, fit_intercept=False, max_iter=10_000)
    said = np.concatenate([each.said for each in traces])
    model.fit(said, np.concatenate([each.left for each in traces]), weights / weights.mean())
    return np.asarray(model.coef_[0] + np.array([CAUTION, 0.0, 0.0, 0.0]))


def ended(trace: Trace, coefficients: np.ndarray) -> tuple[int, bool] | None:
    """After how many measurements the search ends, and whether it is right; None if it does not."""
    small = 1 / (1 + np.exp(-trace.said @ coefficients)) <= SURE
    small[: least_measured(trace.candidates) - LEAST_MEASURED] = False
    if small.any():
        place = int(np.argmax(small))
        return place + LEAST_MEASURED, not trace.left[place]
    return (len(small) + LEAST_MEASURED, True) if trace.whole else None


def judged(traces: Sequence[Trace], coefficients: np.ndarray) -> dict[str, Any]:
    """How the searches of one kind end."""
    ends = [ended(each, coefficients) for each in traces]
    done = [each for each in ends if each is not None]
    return {
        "searches": len(ends),
        "ended": len(done),
        "right": statistics.mean(each[1] for each in done) if done else None,
        "measured": statistics.median(each[0] for each in done) if done else None,
    }


def by_kind(traces: Sequence[Trace], coefficients: np.ndarray) -> dict[str, Any]:
    """The same for each card, with and without others."""
    found: dict[str, Any] = {}
    for with_others in (True, False):
        for gpu in sorted({each.gpu for each in traces}):
            part = [each for each in traces if (each.gpu, each.with_others) == (gpu, with_others)]
            found.setdefault("with_others" if with_others else "alone", {})[gpu] = judged(
                part, coefficients
            )
    return found


def main() -> None:
    """Search everything, fit, judge, write."""
    asked = arguments(__doc__).parse_args()
    jobs = [(case, flag) for case in cases(asked.smallest) for flag in (True, False)]
    found = in_parallel(lambda job: searched(*job), jobs, usable_cores())
    traces = [trace for trace in found if trace is not None]
    workloads = sorted({each.workload for each in traces})
    held_out, ends = {}, []
    for workload in workloads:
        inside = [each for each in traces if each.workload == workload]
        without = fitted([each for each in traces if each.workload != workload])
        held_out[workload] = by_kind(inside, without)
        ends += [(each.with_others, ended(each, without)) for each in inside]
    right = {
        name: statistics.mean(end[1] for known, end in ends if end is not None and known == flag)
        for name, flag in (("with_others", True), ("alone", False))
    }
    coefficients = fitted(traces)
    write_result(
        asked.output,
        {
            "within": WITHIN,
            "chance": SURE,
            "coefficients": [round(float(each), 4) for each in coefficients],
            "right_held_out": right,
            "held_out": held_out,
        },
    )


if __name__ == "__main__":
    main()
