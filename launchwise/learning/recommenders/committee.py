"""The answering method: simple rules, unless several models agree that another choice is faster.

Every member predicts the log time of a candidate relative to the usual choice of its case. Of the
usual choice and the choices of simple rules, the one of the least mean is the reference. The
candidate of the least mean of all is the answer if the mean of its differences to the reference,
and caution times their deviation, is below 0; else the reference is. Nothing is chosen by test
cases; a fit is that of members and rules.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from pydantic import ConfigDict, Field

from launchwise.base.typed import Strict
from launchwise.experiment.study import StudyName
from launchwise.learning.answers import Count
from launchwise.learning.baselines import BASELINES
from launchwise.learning.features import Domain
from launchwise.learning.recommender import FACTS_FILE, Hyperparameters, Judgement, Recommender
from launchwise.learning.recommenders import (
    COST_MODEL_WITH_TREES,
    MEMBERS,
    members_of,
    recommender_class,
)
from launchwise.learning.row_arrays import ranked
from launchwise.learning.splits import Case, case_numbers

LARGEST_LOSS = 3.0
"""Predicted log time relative to the usual choice above which more makes no difference."""


def caution_of(weight: float, problems: int) -> float:
    """Factor of the members' deviation: the fewer problems they learnt from, the larger it is.

    ``weight``: hyper-parameter of the answering method; ``problems``: distinct problems of the
    training rows, whatever their GPUs.
    """
    return weight / math.sqrt(max(problems, 1))


def consensus(
    losses: Mapping[str, np.ndarray],
    log_times: Sequence[np.ndarray],
    cases: np.ndarray,
    usual: np.ndarray,
    baseline: np.ndarray,
    contenders: np.ndarray,
    caution: np.ndarray,
) -> Judgement:
    """What members expect of every candidate of some cases: the answer of each case comes first,
    the others by the mean log time relative to the usual choice. Times are geometric means.

    ``losses``: member to its log times but for a constant of each case: float64, shape (rows,). One
        that says nothing of some row has no part.
    ``log_times``: logarithms of predicted times (ms), each of shape (rows,).
    ``cases``: number of each row's case, from 0 and none left out: int64, shape (rows,).
    ``usual``, ``baseline``: rows with the usual choice and the baseline of their case: booleans,
        shape (rows,).
    ``contenders``: rows of which one is the reference: booleans, shape (rows,); where a case has
        none, the usual choice is, else the baseline.
    ``caution``: factor of each case's deviation: float64, shape (cases,); infinite: the reference
        answers.
    """
    # Relative to the usual choice; without it to the baseline, else to any row.
    start = first_rows(cases, ~usual, ~baseline)
    relative = np.array(
        [each - each[start][cases] for each in losses.values() if np.isfinite(each).all()]
    ).reshape(-1, len(cases))
    if not len(relative):
        relative = np.where(usual, 0.0, LARGEST_LOSS)[None]
    relative = np.clip(relative, -LARGEST_LOSS, LARGEST_LOSS)
    centre = relative.mean(axis=0)
    reference = first_rows(cases, ~contenders, centre, ~usual, ~baseline)
    reference = np.where(contenders[reference], reference, start)
    fastest = first_rows(cases, centre, ~usual, ~baseline)
    apart = relative[:, fastest] - relative[:, reference]
    with np.errstate(invalid="ignore"):
        sure = apart.mean(axis=0) + caution * apart.std(axis=0) < 0
    answers = np.zeros(len(cases), dtype=bool)
    answers[np.where(sure & np.isfinite(caution), fastest, reference)] = True
    known = [each for each in log_times if np.isfinite(each).all()]
    times = np.exp(np.mean(known, axis=0)) if known else np.full(len(cases), np.nan)
    scores = np.column_stack([~answers, centre, ~usual, ~baseline]).astype(float)
    gains = np.column_stack([np.exp(np.where(usual, 0.0, -centre)), relative.std(axis=0)])
    return Judgement(scores, times, gains)


def first_rows(cases: np.ndarray, *criteria: np.ndarray) -> np.ndarray:
    """Row that comes first in each case, criterion by criterion the smallest, then in their order.
    int64, shape (cases,); ``cases`` and each criterion have shape (rows,)."""
    order, rank = ranked(cases, *criteria)
    return order[rank[order] == 1]


ANYWHERE = "best_on_average"
"""Rule that answers on a new GPU where all training rows are of one problem."""

CONTENDERS = (ANYWHERE, "nearest_size")  # Simple rules whose choices contend with the usual choice


@dataclass(frozen=True)
class Experience:
    """What a committee learnt from; a product stores it as JSON."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    problems: Count  # distinct problems, whatever their GPUs
    gpus: tuple[str, ...]

    @classmethod
    def of(cls, cases: Sequence[Case]) -> Experience:
        """From training cases."""
        problems = {case.key[1:] for case in cases}
        return cls(len(problems), tuple(sorted({case.gpu for case in cases})))


class CommitteeState(Strict):
    """State of a committee as JSON: each member and its kind, and what it learnt from."""

    kinds: dict[StudyName, str]
    experience: Experience


class CommitteeRecommender(Recommender):
    """Answers by the consensus (:func:`consensus`) of other methods of a study. ``members`` names
    models of the study and simple rules, with commas between them; ``caution`` is the weight of the
    members' deviation where there is one training problem (:func:`caution_of`)."""

    class Parameters(Hyperparameters):
        members: str = ", ".join(MEMBERS)
        caution: float = Field(6.0, ge=0)

    Fitted = CommitteeState

    def __init__(self, domain: Domain, **parameters: Any) -> None:
        super().__init__(domain, **parameters)
        self._members: dict[str, Recommender] = {}
        self._kinds: dict[str, str] = {}
        self._rules = {name: BASELINES[name](domain) for name in CONTENDERS}

    def of(self, members: Mapping[str, Recommender], kinds: Mapping[str, str]) -> Self:
        """Take these members, fitted or not; ``kinds`` has that of each, of a rule its name."""
        self._members, self._kinds = dict(members), dict(kinds)
        return self

    @property
    def members(self) -> Sequence[Recommender]:
        return [*self._members.values()]

    def fit(self, measurements: pd.DataFrame) -> Self:
        """Fit every member and every rule (see :meth:`Recommender.fit`)."""
        for one in (*self._members.values(), *self._rules.values()):
            one.fit(measurements)
        problems = measurements[self.domain.spec.problem_columns].drop_duplicates()
        gpus = tuple(sorted(map(str, measurements["gpu"].unique())))
        self.fitted = CommitteeState(kinds=self._kinds, experience=Experience(len(problems), gpus))
        return self

    def judge(self, rows: pd.DataFrame) -> Judgement:
        """Score by consensus, the answer first; the usual choice comes first in ties."""
        rows = self.domain.keeping_features(rows)
        found = {name: member.judge(rows) for name, member in self._members.items()}
        times = {name: each.predicted_ms for name, each in found.items()}
        losses = {
            name: np.log(times[name]) if each.losses is None else each.losses
            for name, each in found.items()
        }
        chosen = {name: rule.ranking(rows).rank == 1 for name, rule in self._rules.items()}
        weight = self.parameters["caution"]
        return judged(losses, times, chosen, rows, self.domain, self.fitted.experience, weight)

    def summary(self) -> dict[str, Any]:
        return {
            "features": [],
            "members": list(self._members),
            "caution": self.parameters["caution"],
        }

    def save_model(self, folder: Path) -> None:
        """Write every member, and every rule that is none, into a folder of its own."""
        for name, one in {**self._rules, **self._members}.items():
            one.save(folder / name)

    def load_model(self, folder: Path) -> None:
        """Read the members from the folders that :meth:`save_model` wrote."""
        kinds, found = self.fitted.kinds, dict[str, Recommender]()
        asked = "state.kinds", self.domain.spec.folder, folder / FACTS_FILE
        for name, kind in ({name: name for name in CONTENDERS} | kinds).items():
            own = BASELINES.get(kind) or recommender_class(kind, *asked)
            found[name] = own.load(folder / name, self.domain)
        # JSON sorts its keys.
        order = [name for name in members_of(self.parameters, MEMBERS) if name in kinds]
        self.of({name: found[name] for name in order}, kinds)
        self._rules = {name: found[name] for name in CONTENDERS}


def judged(
    losses: Mapping[str, np.ndarray],
    times_ms: Mapping[str, np.ndarray],
    chosen: Mapping[str, np.ndarray],
    rows: pd.DataFrame,
    domain: Domain,
    experience: Experience,
    weight: float,
) -> Judgement:
    """Judgement of candidates by what members and simple rules say of them.

    ``losses``, ``times_ms``: member to log times but for a constant of each case, and to predicted
    times, NaN where it predicts none: float64, shape (rows,); ``chosen``: each of
    :data:`CONTENDERS` to its first choices: booleans, shape (rows,); ``weight``: see
    :func:`caution_of`.
    """
    usual, baseline = domain.is_usual(rows), domain.is_baseline(rows)
    # The cost model's times are the nearest.
    timers = [COST_MODEL_WITH_TREES] if COST_MODEL_WITH_TREES in times_ms else list(times_ms)
    with np.errstate(invalid="ignore"):
        logs = [np.log(times_ms[name]) for name in timers]
    cases = case_numbers(rows, domain.spec)
    contenders = usual | np.any([chosen[name] for name in CONTENDERS], axis=0)
    caution = np.full(int(cases.max(initial=-1)) + 1, caution_of(weight, experience.problems))
    if experience.problems < 2:
        # Nothing tells members how sizes differ: cards of other makes would be left to chance.
        new = ~rows["gpu"].isin(experience.gpus).to_numpy()
        contenders = np.where(new, chosen[ANYWHERE], contenders)
        caution[cases[new]] = np.inf
    return consensus(losses, logs, cases, usual, baseline, contenders, caution)
