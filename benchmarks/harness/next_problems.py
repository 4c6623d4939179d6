"""A sweep measured problem by problem, in orders that differ, and what its rows are good for.

Problems of a recorded sweep are measured in an order; after each share of its rows, a quick learner
(the mean of LightGBM and kNN) answers the held-out problems of the study, which are never measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from harness.ablated import material_of
from launchwise.learning.features import Domain
from launchwise.learning.kriging import Distances, Kriging, Landscapes, design
from launchwise.learning.recommenders import recommender_class
from launchwise.learning.splits import ALL, Case, Fold, among, case_codes, case_numbers, cases_in
from launchwise.learning.training_rows import clean
from launchwise.learning.truth import Truth
from launchwise.tables.learning import FOLDS

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
    ``places``: number in ``numbers`` of each problem of the pool.
    """

    domain: Domain
    pool: list[Case]
    rows: np.ndarray
    training: pd.DataFrame
    numbers: np.ndarray
    choices: pd.DataFrame
    truth: Truth
    landscapes: Landscapes
    places: list[int]
    _known: dict[tuple[int, ...], float] = field(default_factory=dict)

    @property
    def held_out(self) -> int:
        """Number of held-out problems."""
        return int(case_numbers(self.choices, self.domain.spec).max()) + 1

    def quality(self, places: Sequence[int]) -> float:
        """Mean share of the best of the answers to the held-out problems."""
        key = tuple(sorted(self.places[place] for place in places))
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
            losses = model.losses(self.choices)
            least = np.full(int(cases.max()) + 1, np.inf)
            np.minimum.at(least, cases, losses)
            total += losses - least[cases]
        order = np.lexsort((total, cases))
        first = order[np.flatnonzero(np.diff(cases[order], prepend=-1))]
        found = self.truth.beside(self.choices[spec.key_columns].iloc[first])
        return float((found["best_ms"] / found["time_ms"]).fillna(0.0).mean())

    def reduced(self, share: float, seed: int) -> Simulation:
        """The same with a drawn share of the pool, in its order; qualities are shared."""
        count = int(np.ceil(share * len(self.pool)))
        kept = np.sort(np.random.default_rng(seed).permutation(len(self.pool))[:count]).tolist()
        return replace(
            self,
            pool=[self.pool[place] for place in kept],
            rows=self.rows[kept],
            landscapes=self.landscapes.only(kept),
            places=[self.places[place] for place in kept],
        )

    def within(self, order: Sequence[int], share: float) -> list[int]:
        """The first problems of an order that have at most a share of the rows, one at least."""
        shares = np.cumsum(self.rows[list(order)]) / self.rows.sum()
        return list(order[: max(1, int(np.searchsorted(shares, share + 1e-9, "right")))])


def simulation(study: str, gpu: str, split: str) -> Simulation:
    """A study's problem split on one GPU: its training problems are the pool."""
    material = material_of(study)
    domain, spec = material.domain(), material.spec
    (fold,) = material.folds[split]
    pool = [case for case in fold.train if case.gpu == gpu]
    held = [case for case in fold.test if case.gpu == gpu]
    sweep = material.sweeps[gpu]
    rows = sweep[domain.is_candidate(sweep)] if material.study.train_on == "candidates" else sweep
    counted = rows[among(rows, pool, spec)]
    whole = Fold(split, ALL, tuple(pool), ())
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
        places=list(range(len(pool))),
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


def drawn(one: Simulation, seed: int) -> list[int]:
    """Problems in random order."""
    return np.random.default_rng(seed).permutation(len(one.pool)).tolist()
