"""A committee of recommenders that is chosen, and made cautious, by held-out training cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from pydantic import BaseModel

from launchwise.base.errors import UserError, unknown
from launchwise.base.typed import Strict, validated
from launchwise.learning.baselines import BASELINES
from launchwise.learning.choosing.held_out import UNIT, judged, losses_of, together
from launchwise.learning.choosing.plans import (
    CAUTIONS,
    HeldOut,
    Plan,
    agreed,
    centre_and_spread,
    chosen_plan,
)
from launchwise.learning.choosing.situations import (
    SITUATIONS,
    Folds,
    Known,
    Situation,
    drawn,
    held_together,
    new_parameters,
    validation_folds,
)
from launchwise.learning.features import Domain
from launchwise.learning.fits import Fits
from launchwise.learning.recommender import FACTS_FILE, Judgement, Recommender, Tried
from launchwise.learning.recommenders import (
    MEMBERS,
    members_of,
    recommender_class,
    split_parameters,
)
from launchwise.learning.splits import Case, case_numbers
from launchwise.learning.stored import read_recommender_facts

FALLBACK = "best_on_average"
"""Member that answers where no training case could be held out, but for new GPUs: all answer
these."""


class CommitteeState(Strict):
    """State of a committee as JSON (see :mod:`launchwise.learning.stored`)."""

    plans: dict[Situation, Plan]
    known: Known
    cards: dict[str, str]


class CommitteeRecommender(Recommender):
    """Answers by the mean of its members, or of the best, chosen on held-out training cases.

    For each situation (see :mod:`launchwise.learning.choosing.situations`) training cases are held
    out as it would have them, every member is fitted to the rest, and a plan is chosen (see
    :mod:`launchwise.learning.choosing.plans`). Then the members are fitted to all rows. Nothing but
    training rows decides. If no configuration is expected to beat the usual choice, the usual
    choice is the answer.

    A committee that is fitted to all that a study measured need not hold out again what folds of
    the study left out: it takes over their plans (see :meth:`inherit`).

    ``members`` names kinds of recommenders and heuristics, with commas between them; ``folds`` is
    the number of folds of problems, ``most_rows`` how many rows members are validated on. A
    hyper-parameter of a member is ``<member>.<name>``: ``xgboost.rounds``.
    """

    defaults: ClassVar[dict[str, Any]] = {
        "members": ", ".join(MEMBERS),
        "folds": 3,
        "most_rows": 24_000,
        "seed": 0,
    }

    allowed: ClassVar[dict[str, Any]] = {"folds": [(2, None)], "most_rows": [(1, None)]}

    stored: ClassVar[type[BaseModel]] = CommitteeState

    shareable = False

    def __init__(self, domain: Domain, **parameters: Any) -> None:
        super().__init__(domain, **parameters)
        self._fits = Fits()
        self._names = list(dict.fromkeys([*members_of(self.parameters), FALLBACK]))
        self._expected: Sequence[Case] = ()
        self._tried: Sequence[Tried] = ()

    @classmethod
    def check_parameters(cls, parameters: Mapping[str, Any], where: str | Path, key: str) -> None:
        """As :meth:`Recommender.check_parameters`; members check theirs when they are made."""
        own, of_members = split_parameters(parameters)
        super().check_parameters(own, where, key)
        members = members_of(own)
        for member, theirs in of_members.items():
            if member not in members:
                name = f"{key}.{member}.{next(iter(theirs))}"
                raise UserError(where, name, unknown("member", member, members))

    def inherit(self, tried: Sequence[Tried]) -> None:
        """Take plans for known GPUs from these committees, and for new ones from what they say.

        A committee that was fitted without some GPUs, and is asked about them now, is all that
        leaving them out again would show.
        """
        self._tried = tried

    def share(self, fits: Fits) -> None:
        """Take fits to all rows from here; those of a validation fold are of no use to others."""
        self._fits = fits

    def expect(self, cases: Sequence[Case]) -> None:
        """Validate only for the situations of these cases."""
        self._expected = cases

    def _made(
        self, where: str | Path = "config.yaml", key: str = "models.parameters.members"
    ) -> dict[str, Recommender]:
        """Members, not fitted; ``where`` and ``key`` name them in messages."""
        found: dict[str, Recommender] = {}
        _, of_members = split_parameters(self.parameters)
        for name in self._names:
            kind = BASELINES.get(name) or recommender_class(
                name, key, self.domain.spec.folder, where
            )
            if issubclass(kind, CommitteeRecommender):
                raise UserError(where, key, "a committee is no member of a committee")
            seeded = {"seed": self.parameters["seed"]} if "seed" in kind.defaults else {}
            found[name] = kind(self.domain, **{**seeded, **of_members.get(name, {})})
        return found

    def fit(self, measurements: pd.DataFrame) -> Self:
        """Choose a plan for every situation, then fit the members (see :meth:`Recommender.fit`).

        Raises
        ------
        UserError
            When there are no rows, or a member does not exist.
        """
        if measurements.empty:
            raise UserError("training rows", "", "there are none")
        spec = self.domain.spec
        self._known = Known.of(measurements, spec)
        self._cards = {gpu: self.domain.profiles[gpu].card_model for gpu in self._known.gpus}
        most, seed = self.parameters["most_rows"], self.parameters["seed"]
        wanted = self._wanted()
        # What leaves out a slice tells less of a card than what the one card of the rows tells.
        self._plans = {} if self._only_card else self._inherited(wanted)
        few = self.domain.keeping_features(drawn(measurements, spec, most, seed))
        # "within" comes last: where too few cases could be held out otherwise, it stands for them.
        for situation in reversed(SITUATIONS):
            stands_in = situation == "within" and not wanted <= self._plans.keys()
            if situation in self._plans or not (situation in wanted or stands_in):
                continue
            new = new_parameters(few, (case.problem for case in self._expected), spec)
            count, cards = self.parameters["folds"], self._cards
            folds = validation_folds(few, spec, situation, count, seed, new, cards)
            held = self._held_out(few, folds, held_together(few, spec, situation, new, cards))
            if held is not None:
                self._plans[situation] = self._chosen(held, situation)
        self._members = {
            name: self._fits.fit(member, measurements)[0] for name, member in self._made().items()
        }
        return self

    def _chosen(self, held: HeldOut, situation: str) -> Plan:
        members = [name for name in self._names if name in held.losses]
        return chosen_plan(held, members, FALLBACK if situation == "new_gpu" else None)

    def _wanted(self) -> set[str]:
        """Situations to choose plans for; all of them if none are given."""
        if not self._expected:
            return set(SITUATIONS)
        cases = [{"gpu": case.gpu, **case.problem} for case in self._expected]
        return set(self._known.situations(pd.DataFrame(cases)))

    def _inherited(self, wanted: set[str]) -> dict[str, Plan]:
        """Plans by situation that :meth:`inherit` gave: of several the one of most cases."""
        found: dict[str, Plan] = {}
        parts = []
        for one in self._tried:
            path = one.folder / FACTS_FILE
            state = validated(CommitteeState, read_recommender_facts(path).state, path)
            for situation, plan in state.plans.items():
                known = found.get(situation)
                if situation in wanted - {"new_gpu"} and (not known or plan.cases > known.cases):
                    found[situation] = plan
            if "new_gpu" in wanted:
                parts.append(self._asked_of(one, state.known))
        held = together(parts, self._names)
        return found if held is None else {**found, "new_gpu": self._chosen(held, "new_gpu")}

    def _asked_of(self, tried: Tried, known: Known) -> pd.DataFrame:
        """Predictions (:func:`judged`) for GPUs that a committee was fitted without; maybe none."""
        rows = tried.rows[~tried.rows["gpu"].isin(known.gpus)].reset_index(drop=True)
        if rows.empty:
            return pd.DataFrame()
        spec, most = self.domain.spec, self.parameters["most_rows"]
        rows = drawn(rows, spec, most // len(self._tried), self.parameters["seed"])
        rows = self.domain.keeping_features(rows.assign(**{UNIT: self._card_numbers(rows)}))
        fitted = type(self).load(tried.folder, self.domain)
        return judged(fitted._members, rows, case_numbers(rows, spec), self.domain)

    def _card_numbers(self, rows: pd.DataFrame) -> np.ndarray:
        """Number of each row's card, the same in all tables: int64, shape (rows,)."""
        cards = sorted({one.card_model for one in self.domain.profiles.values()})
        places = {gpu: cards.index(one.card_model) for gpu, one in self.domain.profiles.items()}
        return rows["gpu"].map(places).to_numpy(dtype=np.int64)

    def _held_out(self, rows: pd.DataFrame, folds: Folds, units: np.ndarray) -> HeldOut | None:
        """Candidates of held-out cases whose usual choice has a time; None without any."""
        if not folds:
            return None
        rows = rows.assign(**{UNIT: units})
        return together([self._of_fold(rows, *fold) for fold in folds], self._names)

    def _of_fold(self, rows: pd.DataFrame, train: np.ndarray, held: np.ndarray) -> pd.DataFrame:
        """Predictions (:func:`judged`) of members that were fitted to the other rows of a fold."""
        learnt = rows.iloc[train].reset_index(drop=True)
        asked = rows.iloc[held].reset_index(drop=True)
        members = self._made()
        for member in members.values():
            member.fit(learnt)
        numbers = case_numbers(rows, self.domain.spec)[held]
        return judged(members, asked, numbers, self.domain)

    def judge(self, rows: pd.DataFrame) -> Judgement:
        """Score by the plan of each case's situation; the usual choice comes first in ties."""
        rows = self.domain.keeping_features(rows)
        usual = self.domain.is_usual(rows)
        losses, log_times = losses_of(self._members, rows, usual, self.domain)
        situations = self._known.situations(rows)
        scores, gains = np.zeros(len(rows)), np.full((len(rows), 3), np.nan)
        times = np.full(len(rows), np.nan)
        for situation in dict.fromkeys(situations):
            mine = situations == situation
            plan, known = self._plan(situation, losses, mine)
            centre, spread = centre_and_spread(
                {name: each[mine] for name, each in losses.items() if name in known}, plan.members
            )
            scores[mine] = centre + plan.caution * spread
            gains[mine] = plan.gains(centre, spread, usual[mine])
            timer = plan.timer or next(iter(log_times), None)
            if timer in log_times:
                times[mine] = np.exp(log_times[timer][mine])
            if situation == "beyond":
                # Held-out cases do not measure the error at another distance.
                gains[mine, 1:] = np.nan
        gains[self._unlike_all(rows), 1:] = np.nan
        criteria = np.column_stack([scores, ~usual, ~self.domain.is_baseline(rows)])
        return Judgement(criteria.astype(float), times, gains)

    def _plan(
        self, situation: str, losses: Mapping[str, np.ndarray], mine: np.ndarray
    ) -> tuple[Plan, set[str]]:
        """Plan of a situation, and members that have losses of its rows."""
        known = {name for name, each in losses.items() if np.isfinite(each[mine]).all()}
        if self._plans:
            return self._plan_of(situation), known
        if situation == "new_gpu":
            return agreed(name for name in self._names if name in known), known
        return self._plan_of(situation), {FALLBACK}

    def time_interval(self, rows: pd.DataFrame, times_ms: np.ndarray) -> np.ndarray:
        """Interval of the time of recommended rows: float64, ms, shape (rows, 2); NaN without.

        Parameters
        ----------
        rows
            First recommendations.
        times_ms
            Their predicted times, shape (rows,).
        """
        situations = self._known.situations(rows)
        limits = [self._plan_of(each).time_offsets or (np.nan, np.nan) for each in situations]
        found = times_ms[:, None] * np.exp(np.array(limits, dtype=float).reshape(-1, 2))
        found[self._unlike_all(rows)] = np.nan
        return found

    def _unlike_all(self, rows: pd.DataFrame) -> np.ndarray:
        """Rows of another card than the one that all training rows are of: booleans, (rows,).

        Leaving out slices of a card measures the error on a slice, not on another card.
        """
        only = self._only_card
        if only is None:
            return np.zeros(len(rows), dtype=bool)
        profiles = self.domain.profiles
        strange = [gpu for gpu, one in profiles.items() if one.card_model != only]
        return rows["gpu"].isin(strange).to_numpy()

    @property
    def _only_card(self) -> str | None:
        """Model of the card that all training rows are of; None where they are of several."""
        cards = {*self._cards.values()}
        return cards.pop() if len(cards) == 1 else None

    def _plan_of(self, situation: str) -> Plan:
        fallback = Plan((FALLBACK,), CAUTIONS[0])
        return self._plans.get(situation) or self._plans.get("within") or fallback

    def summary(self) -> dict[str, Any]:
        """Plans by situation."""
        return {"features": [], "features_dropped": [], "plans": self.state()["plans"]}

    def state(self) -> dict[str, Any]:
        """Plans and the training rows' domain, as JSON values."""
        content: dict[str, Any] = {"plans": self._plans, "known": self._known, "cards": self._cards}
        return CommitteeState.model_construct(**content).model_dump(mode="json")

    def restore(self, state: dict[str, Any]) -> None:
        """Restore from the result of :meth:`state`."""
        self._plans = {name: Plan(**plan) for name, plan in state["plans"].items()}
        if strange := {n for plan in self._plans.values() for n in plan.members} - {*self._names}:
            raise ValueError(f"plans name {min(strange)!r}, which is no member")
        self._known = Known(**state["known"])
        columns = self.domain.spec.problem_columns
        if strange := {*self._known.ranges, *self._known.values} - {*columns}:
            raise ValueError(f"known has {min(strange)!r}, which is no problem parameter")
        self._cards = dict(state["cards"])

    def save_model(self, folder: Path) -> None:
        """Write every member into a folder of its own."""
        for name, member in self._members.items():
            self._fits.save(member, folder / name)

    def load_model(self, folder: Path) -> None:
        """Read what :meth:`save_model` wrote."""
        made = self._made(folder / FACTS_FILE, "parameters.members")
        kinds = {name: type(member) for name, member in made.items()}
        self._members = {
            name: kind.load(folder / name, self.domain, self._loaded)
            for name, kind in kinds.items()
        }
