"""Explorer that starts from other GPUs' rows of the same workload.

:mod:`launchwise.search.transfer_search` chooses among the candidates of this module.

This runs in the measuring process, hence the late import of NumPy and SciPy.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from launchwise.experiment.method import STATED_PERCENT
from launchwise.measuring.explore import Axis, RandomDraws, Told
from launchwise.workloads.sampling import LISTABLE, Key
from launchwise.workloads.space import Configuration, Problem
from launchwise.workloads.spec import Spec

if TYPE_CHECKING:
    import numpy as np

SAMPLED_CANDIDATES = 5_000
"""Most candidates drawn from the space: all feasible configurations where there are no more."""

CANDIDATES_FROM_ELSEWHERE = 10_000
"""Most candidates taken from other GPUs: those that were fastest there."""

CENTRES = 5
NEIGHBOURS_EVERY = 10
"""Interval in rows, and number of fastest rows whose neighbours then join a sample."""


class TransferExplorer(RandomDraws):
    """Gaussian process over candidates whose prior is other GPUs' rows.

    The candidates are the feasible configurations of the problem. Where there are more than
    :data:`SAMPLED_CANDIDATES`, they are a random sample, what other GPUs measured and is feasible
    here, and the neighbours of the fastest rows. When all are measured, random draws follow.

    Parameters
    ----------
    spec, problem, gpu_facts, budget, seed, guesses, known
        See :class:`RandomDraws`.
    prior
        For each other GPU its configurations and times of this problem or of one that is near (see
        :mod:`launchwise.measuring.priors`). Without any the process starts from nothing.
    stop_below_percent
        The search ends once the chance that a candidate is left that is faster than the best by
        more than this, in percent, is at most a tenth; None: not before the budget.
    """

    def __init__(
        self,
        spec: Spec,
        problem: Problem,
        gpu_facts: Mapping[str, Any] | None,
        budget: int,
        seed: int,
        guesses: Iterable[Configuration] = (),
        known: Iterable[Told] = (),
        prior: Iterable[Iterable[Told]] = (),
        stop_below_percent: float | None = None,
    ) -> None:
        self._prior = prior
        self._stop_below_percent = stop_below_percent
        super().__init__(spec, problem, gpu_facts, budget, seed, guesses, known)

    def _prepare(self) -> None:
        from launchwise.search.transfer_search import TransferSearch

        every = [self._losses_of(measured) for measured in self._prior]
        self._losses = [losses for losses in every if losses]
        # A state of its own: the sample must be the same whatever is told.
        state = random.Random(f"{self._seed}")
        sampled = self._draws.sample(state, SAMPLED_CANDIDATES)
        # Of candidates that are as promising the first is taken: any of them must be able to be it.
        state.shuffle(sampled)
        self._is_sample = self._draws.size > LISTABLE or len(sampled) == SAMPLED_CANDIDATES
        first = [each for each in self._first if self._draws.feasible(each)]
        candidates = self._new_among([*sampled, *self._from_elsewhere(), *first], {})
        self._places = {key: place for place, key in enumerate(candidates)}
        self._candidates = list(candidates.values())
        self._times: list[tuple[float, int]] = []
        self._search = TransferSearch(*self._described(candidates)) if candidates else None

    def _losses_of(self, measured: Iterable[Told]) -> dict[Key, float]:
        """Losses of one other GPU's configurations that are feasible here."""
        from launchwise.search.candidates import losses_of

        return losses_of(
            {
                self._draws.key(configuration): time_ms
                for configuration, time_ms in measured
                if self._draws.spans(configuration) and self._draws.feasible(configuration)
            }
        )

    def _from_elsewhere(self) -> list[Configuration]:
        from launchwise.search.candidates import fastest_elsewhere

        keys = fastest_elsewhere(self._losses, CANDIDATES_FROM_ELSEWHERE)
        return [dict(zip(self._spec.tunable_columns, key, strict=True)) for key in keys]

    def _new_among(
        self, configurations: Iterable[Configuration], known: Mapping[Key, Any]
    ) -> dict[Key, Configuration]:
        """Those that are not ``known``, each once, by their keys."""
        found = {self._draws.key(each): each for each in configurations}
        return {key: each for key, each in found.items() if key not in known}

    def _described(self, candidates: Mapping[Key, Configuration]) -> tuple[np.ndarray, np.ndarray]:
        from launchwise.search.candidates import described, texts_of

        return described(list(candidates), texts_of(self._spec), self._losses)

    def _drawn(self) -> Configuration | None:
        if self._is_sure():
            return None
        if self._search is not None:
            try:
                return self._candidates[self._search.propose()]
            except StopIteration:
                pass
        return super()._drawn()

    def conclusion(self) -> dict[str, float]:
        """``within_percent``; ``chance_left``, that something faster by more than it is left.

        And ``started_from``: of how many GPUs, and problems on this one, rows were known.
        """
        within = STATED_PERCENT if self._stop_below_percent is None else self._stop_below_percent
        if self._search is None:
            return {}
        return {
            "within_percent": within,
            "chance_left": self._search.chance_left(within / 100),
            "started_from": len(self._losses),
        }

    def _is_sure(self) -> bool:
        from launchwise.search.transfer_search import SURE

        if self._stop_below_percent is None or self._search is None:
            return False
        if not self._search.has_looked_around():
            return False
        return self.conclusion().get("chance_left", 1.0) <= SURE

    def _learn(self, configuration: Configuration, time_ms: float | None) -> None:
        if self._search is None:
            return
        if self._draws.key(configuration) not in self._places:
            if not self._search.learns(time_ms):
                return
            # A row of another strategy, or of an infeasible baseline.
            self._add([configuration])
        place = self._places[self._draws.key(configuration)]
        self._search.tell(place, time_ms)
        if time_ms is not None:
            self._times.append((time_ms, place))
        if self._is_sample and len(self._told) % NEIGHBOURS_EVERY == 0:
            fastest = [self._candidates[place] for _, place in sorted(self._times)[:CENTRES]]
            self._add([near for each in fastest for near in self._neighbours(each)])

    def _add(self, configurations: Iterable[Configuration]) -> None:
        new = self._new_among(configurations, self._places)
        if new and self._search is not None:
            self._search.extend(*self._described(new))
            self._places |= {key: place for place, key in enumerate(new, len(self._places))}
            self._candidates += new.values()

    def _neighbours(self, configuration: Configuration) -> Iterator[Configuration]:
        """Feasible configurations of the same variant that differ in one tunable, by one step."""
        if not self._draws.spans(configuration):
            return
        for name in self._draws.used(str(configuration["variant"])):
            for value in Axis(self._spec.tunables[name].values).near(configuration[name]):
                found = {**configuration, name: value}
                if self._draws.feasible(found):
                    yield found
