"""Answers for cards that nobody measured, from few others: what each recommender predicts of them.

A *trial* leaves one model of card out, fits every recommender to one problem on the others, and
asks for that problem on the card that was left out. This is what an import of sweeps is: one
problem, a few cards. Public sweeps are such as they are; of recorded ones each problem is taken
alone, and its GPUs are a card and its slices, of which the whole card is left out at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.ablated import Material, material_of
from launchwise.importing.studies import MEMBERS
from launchwise.learning.choosing.held_out import losses_of
from launchwise.learning.choosing.plans import HeldOut, Plan, centre_and_spread, first_rows
from launchwise.learning.clean import clean
from launchwise.learning.evaluate import Truth
from launchwise.learning.features import Domain
from launchwise.learning.recommenders.committee import CommitteeRecommender
from launchwise.learning.splits import Case, Fold, case_numbers, cases_in
from launchwise.tables.folds import rows_of_fold
from launchwise.workloads.space import Problem
from launchwise.workloads.statuses import MEASURED


class Recording(CommitteeRecommender):
    """A committee that keeps what it was validated on."""

    validated: HeldOut | None = None

    def _chosen(self, held: HeldOut, situation: str) -> Plan:
        if situation == "new_gpu":
            self.validated = held
        return super()._chosen(held, situation)


@dataclass(frozen=True)
class Trial:
    """One problem on a card that was left out.

    Attributes
    ----------
    card
        First GPU of the card that was left out.
    gpus
        Number of GPUs that were learnt from.
    validated
        What recommenders predict of each of these when it is left out, too; None of one alone.
    asked
        What they predict of the card: times of configurations that failed there are infinite.
    """

    study: str
    workload: str
    card: str
    gpus: int
    validated: HeldOut | None
    asked: HeldOut

    def shares(self, plan: Plan) -> np.ndarray:
        """Best time / time of the answer, 0 where it failed: shape (cases,)."""
        rows = self._answers(plan)
        return self.asked.by_case(self.asked.times_ms) / self.asked.times_ms[rows]

    def over_usual(self, plan: Plan) -> np.ndarray:
        """Time of the answer / time of the usual choice: shape (cases,)."""
        usual = np.where(self.asked.usual, self.asked.times_ms, np.inf)
        return self.asked.times_ms[self._answers(plan)] / self.asked.by_case(usual)

    def _answers(self, plan: Plan) -> np.ndarray:
        centre, spread = centre_and_spread(self.asked.losses, plan.members)
        score = centre + plan.caution * spread
        return first_rows(self.asked.cases, score, ~self.asked.usual)


def trials(study: str, most_problems: int, seed: int) -> Iterator[Trial]:
    """Trials of a study: every card left out of up to ``most_problems`` problems, drawn."""
    material = material_of(study)
    domain, truth = material.domain(), Truth(material.sweeps, material.domain())
    for fold in folds(material, most_problems, seed):
        yield trial(study, fold, material, domain, truth, seed)


def folds(material: Material, most_problems: int, seed: int) -> list[Fold]:
    """Drawn problems of those that most GPUs measured, and on each every card left out once."""
    cards = {gpu: profile.card_model for gpu, profile in material.profiles.items()}
    measured: dict[tuple[Any, ...], list[str]] = {}
    for gpu, rows in material.sweeps.items():
        for case in cases_in(rows[rows["status"].isin(MEASURED)], material.spec):
            measured.setdefault(tuple(case.problem.items()), []).append(gpu)
    most = max(map(len, measured.values()))
    shared = [problem for problem, gpus in measured.items() if len(gpus) == most]
    drawn = np.random.default_rng(seed).permutation(len(shared))[:most_problems]
    return [
        _without(dict(shared[place]), card, measured[shared[place]], cards)
        for place in sorted(drawn)
        for card in dict.fromkeys(cards[gpu] for gpu in measured[shared[place]])
    ]


def _without(problem: Problem, card: str, gpus: Sequence[str], cards: dict[str, str]) -> Fold:
    """A problem, learnt on all GPUs but those of a card and asked on them."""
    train = tuple(Case(gpu, problem) for gpu in gpus if cards[gpu] != card)
    test = tuple(Case(gpu, problem) for gpu in gpus if cards[gpu] == card)
    return Fold("unseen", test[0].gpu, train, test)


def trial(
    study: str, fold: Fold, material: Material, domain: Domain, truth: Truth, seed: int
) -> Trial:
    """Fit all recommenders to the training cases, and ask for the test cases."""
    sweeps = material.sweeps
    if material.study.train_on == "candidates":
        sweeps = {gpu: rows[domain.is_candidate(rows)] for gpu, rows in sweeps.items()}
    training = clean(sweeps, [fold], material.spec, material.study.fences).training
    rows = domain.keeping_features(rows_of_fold(training, fold.split, fold.fold))
    model = Recording(domain, seed=seed, members=", ".join(MEMBERS))
    model.expect(fold.test)
    model.fit(rows)
    choices = domain.keeping_features(domain.choices(fold.test))
    usual = domain.is_usual(choices)
    losses, _ = losses_of(model._members, choices, usual, domain)
    times = truth.beside(choices[material.spec.key_columns])["time_ms"].to_numpy(dtype=float)
    asked = HeldOut(
        cases=case_numbers(choices, material.spec),
        losses=losses,
        times_ms=np.where(np.isfinite(times), times, np.inf),
        usual=usual,
    )
    workload = material.study.workload.partition("_")[0]
    return Trial(study, workload, fold.fold, len(fold.train), model.validated, asked)
