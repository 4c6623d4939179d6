"""Which problems to measure next: held-out quality against rows, by the order of measurement.

    python benchmarks/next_problems.py benchmarks/results/next_problems.json

On recorded sweeps, one GPU each: the training problems of a split are measured in the order of
``launchwise plan`` (in rounds of 1/36 of the rows, each knowing the rows before it), of the sweep
as it is measured today, of the largest gap, and of random draws (two for each pool). This is
repeated with five pools, each 80 % of the training problems, drawn: a few problems more or less
change answers by more than orders differ. After each share of the rows, the mean of LightGBM and
kNN answers the held-out problems. Qualities are relative to all rows of the pool, means over
pools. ``rows_to_98_percent`` is the smallest share of the rows from which the quality, as the mean
of three shares in a row, is 98 %; None where half of the rows are too few. ``expected`` is the time
over the best that the library expects of answers after some rows of the plan, beside that of the
learner's answers, %.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from harness.ablated import Material, material_of
from harness.command_line import arguments, write_result

from launchwise.learning.features import Domain
from launchwise.learning.kriging import Distances, Kriging, Landscapes, design
from launchwise.learning.recommenders import recommender_class
from launchwise.learning.splits import ALL, Case, Fold, among, case_codes, case_numbers, cases_in
from launchwise.learning.training_rows import clean
from launchwise.learning.truth import Truth
from launchwise.tables.learning import FOLDS

STUDIES = (
    ("acoustic_kernels", "h200"),
    ("acoustic_kernels", "h100"),
    ("acoustic_tile", "h200"),
    ("granger_time", "h200"),
    ("sentiment_inference", "h200"),
    ("tridiagonal_subsystem", "h200"),
    ("tridiagonal_subsystem", "h100"),
)
SPLIT = "interpolation"
PARTS = 36
POOLS = 5
KEPT = 0.8
ORDERS = 2  # random orders of each pool
SHARES = tuple(part / PARTS for part in range(1, PARTS // 2 + 1))
THIRD = 1 / 3
ENOUGH = 0.98
EXPECTED_AT = (0.1, 0.2, THIRD, 0.5)
IN_A_ROW = 3
LEARNERS = ("lightgbm", "knn")
SEED = 1


@dataclass
class Simulation:
    """A study on one GPU.

    ``pool``: problems that may be measured, in the order of the sweep.
    ``rows``: number of rows of each: int64, shape (pool,).
    ``training``: rows of all of them, with features.
    ``numbers``: number of each training row's problem: int64, shape (rows,).
    ``choices``: candidates of the held-out problems, with features.
    """

    domain: Domain
    pool: list[Case]
    rows: np.ndarray
    training: pd.DataFrame
    numbers: np.ndarray
    choices: pd.DataFrame
    truth: Truth
    landscapes: Landscapes
    _known: dict[tuple[int, ...], float] = field(default_factory=dict)

    @property
    def held_out(self) -> int:
        """Number of held-out problems."""
        return int(case_numbers(self.choices, self.domain.spec).max()) + 1

    def quality(self, places: Sequence[int]) -> float:
        """Mean share of the best of the answers to the held-out problems."""
        key = tuple(sorted(places))
        if key not in self._known:
            self._known[key] = self._quality(key)
        return self._known[key]

    def _quality(self, places: tuple[int, ...]) -> float:
        spec = self.domain.spec
        rows = self.training[np.isin(self.numbers, places)].reset_index(drop=True)
        cases = case_numbers(self.choices, spec)
        total = np.zeros(len(self.choices))
        for kind in LEARNERS:
            model = recommender_class(kind)(self.domain, seed=SEED).fit(rows)
            losses = np.log(model.judge(self.choices).predicted_ms)
            least = np.full(int(cases.max()) + 1, np.inf)
            np.minimum.at(least, cases, losses)
            total += losses - least[cases]
        order = np.lexsort((total, cases))
        first = order[np.flatnonzero(np.diff(cases[order], prepend=-1))]
        found = self.truth.beside(self.choices[spec.key_columns].iloc[first])
        return float((found["best_ms"] / found["time_ms"]).fillna(0.0).mean())

    def within(self, order: Sequence[int], share: float) -> list[int]:
        """The first problems of an order that have at most a share of the rows, one at least."""
        shares = np.cumsum(self.rows[list(order)]) / self.rows.sum()
        return list(order[: max(1, int(np.searchsorted(shares, share + 1e-9, "right")))])


def simulation(material: Material, gpu: str, seed: int | None = None) -> Simulation:
    """A study on one GPU: the training problems of :data:`SPLIT` are the pool, or :data:`KEPT` of
    them, drawn with a seed, in their order."""
    domain, spec = material.domain(), material.spec
    (fold,) = material.folds[SPLIT]
    pool = [case for case in fold.train if case.gpu == gpu]
    if seed is not None:
        kept = np.random.default_rng(seed).permutation(len(pool))[: math.ceil(KEPT * len(pool))]
        pool = [pool[place] for place in sorted(kept)]
    held = [case for case in fold.test if case.gpu == gpu]
    sweep = material.sweeps[gpu]
    rows = sweep[domain.is_candidate(sweep)] if material.study.train_on == "candidates" else sweep
    counted = rows[among(rows, pool, spec)]
    whole = Fold(SPLIT, ALL, tuple(pool), ())
    training = clean({gpu: rows}, [whole], spec, material.study.fences).training.drop(columns=FOLDS)
    training = domain.keeping_features(training.reset_index(drop=True))
    candidates = training[domain.is_candidate(training)].reset_index(drop=True)
    landscapes = Landscapes.of(candidates, domain)
    places = {case.key: place for place, case in enumerate(landscapes.cases)}
    return Simulation(
        domain=domain,
        pool=pool,
        rows=np.bincount(_places(counted, pool, domain), minlength=len(pool)),
        training=training,
        numbers=_places(training, pool, domain),
        choices=domain.keeping_features(domain.choices(held)),
        truth=Truth({gpu: sweep}, domain),
        landscapes=landscapes.only([places[case.key] for case in pool]),
    )


def _places(rows: pd.DataFrame, pool: Sequence[Case], domain: Domain) -> np.ndarray:
    """Place in the pool of each row's case: int64, shape (rows,)."""
    codes, keys = case_codes(rows, domain.spec)
    places = {case.key: place for place, case in enumerate(pool)}
    return np.array([places[key] for key in keys], dtype=np.int64)[codes]


def planned(one: Simulation, round_share: float, most: float) -> list[int]:
    """The library's choice, in rounds that each know the rows of those before.

    ``round_share``: share of the rows that a round may measure; one problem at least.
    ``most``: share of the rows at which it ends.
    """
    distances = Distances.over(one.pool)
    places = {case.key: place for place, case in enumerate(one.pool)}
    order: list[int] = []
    while one.rows[order].sum() < most * one.rows.sum():
        known = one.landscapes.only(order)
        model = Kriging.fitted(known, distances)
        rest = [place for place in range(len(one.pool)) if place not in order]
        costs = one.rows[rest].astype(float)
        budget = max(round_share * float(one.rows.sum()), float(costs.min()))
        cases = [one.pool[place] for place in rest]
        steps = design(model, known.cases, cases, one.pool, costs, budget).steps
        if not steps:
            break
        order += [places[step.case.key] for step in steps]
    return order


def expected(one: Simulation, places: Sequence[int]) -> float:
    """Time over the best that the library expects of answers to the held-out problems, %."""
    held = cases_in(one.choices, one.domain.spec)
    known = one.landscapes.only(places)
    model = Kriging.fitted(known, Distances.over(one.pool))
    deviations = np.sqrt(np.maximum(np.diag(model.posterior(known.cases, held)), 0))
    return float(100 * np.expm1(model.slope * deviations.mean()))


def largest_gap(one: Simulation) -> list[int]:
    """Each problem the farthest from those before it, from the corner that is farthest from all."""
    apart = Distances.over(one.pool).between(one.pool, one.pool).sum(axis=0)
    order = [int(apart.max(axis=1).argmax())]
    while len(order) < len(one.pool):
        nearest = apart[:, order].min(axis=1)
        nearest[order] = -1
        order.append(int(nearest.argmax()))
    return order


def curve(one: Simulation, order: Sequence[int], shares: Sequence[float]) -> list[float]:
    """Quality after each share of the rows, relative to all rows."""
    full = one.quality(range(len(one.pool)))
    return [one.quality(one.within(order, share)) / full for share in shares]


def rows_to_enough(qualities: Sequence[float], shares: Sequence[float]) -> float | None:
    """Smallest share of the rows that is enough, the mean of three in a row."""
    for place in range(len(shares) - IN_A_ROW + 1):
        if np.mean(qualities[place : place + IN_A_ROW]) >= ENOUGH:
            return shares[place]
    return None


def figures(curves: Sequence[Sequence[float]], shares: Sequence[float]) -> dict[str, Any]:
    """Figures of one way to order, over pools."""
    mean = np.mean(curves, axis=0)
    return {
        "rows_to_98_percent": rows_to_enough(mean.tolist(), shares),
        "mean_to_a_third": float(mean[np.array(shares) <= THIRD + 1e-9].mean()),
        "qualities": mean.tolist(),
    }


def compared(study: str, gpu: str, shares: Sequence[float], pools: int) -> dict[str, Any]:
    """A study on a GPU, measured in every order."""
    material = material_of(study)
    one = simulation(material, gpu)
    curves: dict[str, list[list[float]]] = {}
    parts = [simulation(material, gpu, seed) for seed in range(pools)]
    for seed, part in enumerate(parts):
        orders = {
            "plan": [planned(part, 1 / PARTS, shares[-1])],
            "sweep": [list(range(len(part.pool)))],
            "largest_gap": [largest_gap(part)],
            "random": [
                np.random.default_rng(number).permutation(len(part.pool)).tolist()
                for number in range(ORDERS * seed, ORDERS * (seed + 1))
            ],
        }
        if part is parts[0]:
            first = orders["plan"][0]
        for name, each in orders.items():
            curves.setdefault(name, []).extend(curve(part, order, shares) for order in each)
    part = parts[0]
    return {
        **{"study": study, "gpu": gpu, "problems": len(one.pool), "held_out": one.held_out},
        **{"rows": int(one.rows.sum()), "quality": one.quality(range(len(one.pool)))},
        "orders": {name: figures(each, shares) for name, each in curves.items()},
        "expected": [
            {
                "share": share,
                "expected_percent": expected(part, places),
                "measured_percent": 100 * (1 / part.quality(places) - 1),
            }
            for share in EXPECTED_AT
            for places in [part.within(first, share)]
        ],
    }


def main() -> None:
    """Simulate all and write the file."""
    given = arguments(__doc__).parse_args()
    studies = [("tridiagonal_recursion", "h200")] if given.smallest else STUDIES
    shares, pools = (SHARES[11:], 1) if given.smallest else (SHARES, POOLS)
    results = []
    for study, gpu in studies:
        results.append(compared(study, gpu, shares, pools))
        print(study, gpu, results[-1]["orders"], flush=True)
    means = {
        name: float(np.mean([one["orders"][name]["mean_to_a_third"] for one in results]))
        for name in results[0]["orders"]
    }
    facts = {"learners": LEARNERS, "pools": pools, "kept": KEPT, "shares": shares, "split": SPLIT}
    write_result(given.output, {**facts, "mean_to_a_third": means, "studies": results})


if __name__ == "__main__":
    main()
