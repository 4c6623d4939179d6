"""Explorers: choose the next configuration in a space too large to measure all of it.

An explorer proposes one configuration at a time and receives its outcome. The space is never listed
(see :mod:`sampling`). Proposals depend only on the seed and on the earlier outcomes, in order: a
killed sweep that replays its journal continues as if it had not stopped.

This runs in the measuring process, hence the late imports of NumPy and SciPy.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from launchwise.experiment.method import STATED_PERCENT
from launchwise.workloads.parts import Value
from launchwise.workloads.sampling import LISTABLE, Draws, Key
from launchwise.workloads.space import Configuration, Problem, baseline, whole
from launchwise.workloads.spec import Spec

Told = tuple[Configuration, float | None]
"""A configuration and its time in ms; None if it failed, was wrong or timed out."""


@dataclass
class RandomDraws:
    """Configurations drawn at random, each feasible one as likely as any other. The baseline is
    proposed first, then the guesses, then what was drawn. Variants that are not verified are never
    proposed: the budget is there to find the best, which they cannot be."""

    spec: Spec
    problem: Problem
    # Facts of the GPU (see GPU_NAMES); None: limits that any GPU may have.
    gpu_facts: Mapping[str, Any] | None
    budget: int  # rows of this problem in all, failed and known ones counted
    seed: int  # the same seed and the same outcomes give the same proposals
    # Configurations to measure, best first. Those that the spec does not have or that the
    # constraints refuse are left out.
    guesses: Iterable[Configuration] = ()
    # Earlier outcomes: the rows of a journal, in order. Those of variants that are not verified
    # come from a sweep of everything and do not count.
    known: Iterable[Told] = ()
    # For each other GPU what is known of it, its configurations and times of this problem or of one
    # that is near (see launchwise.measuring.earlier_rows): TransferExplorer begins with them.
    prior: Iterable[tuple[Mapping[str, Any], Iterable[Told]]] = ()
    gpu: Mapping[str, Any] = field(default_factory=dict)  # what is known of this one
    # It ends once the chance that a candidate is left that is faster than the best by more than
    # this, in percent, is at most a tenth; None: not before the budget.
    stop_below_percent: float | None = None

    def __post_init__(self) -> None:
        self._spec = self.spec.recommendable
        self._draws, self._further = (
            Draws(self._spec, self.problem, self.gpu_facts, self.seed) for _ in range(2)
        )
        self._ahead: dict[Key, Configuration] = {}
        self._told: set[Key] = set()
        self._pending: Configuration | None = None
        spanned = (whole(each, self._spec) for each in self.guesses if self._draws.spans(each))
        self._first = [baseline(self.spec), *spanned]
        self._prepare()
        for configuration, time_ms in self.known:
            if configuration["variant"] in self._spec.variants:
                self.tell(configuration, time_ms)

    def _prepare(self) -> None:
        """Called once, before the first :meth:`tell`; random draws need no preparation."""

    def propose(self) -> Configuration | None:
        """Next configuration to measure; None when the budget is spent or nothing is left."""
        if len(self._told) >= self.budget:
            return None
        if self._pending is None:
            first = next((each for each in self._first if self._is_new(each)), None)
            self._pending = first or self._drawn()
        return None if self._pending is None else dict(self._pending)

    def tell(self, configuration: Configuration, time_ms: float | None) -> None:
        """Record an outcome; the first one of a configuration counts."""
        key = self._draws.key(configuration)
        if key not in self._told:
            self._told.add(key)
            self._pending = None
            self._learn(whole(configuration, self._spec), time_ms)

    def _is_new(self, configuration: Configuration) -> bool:
        known = self._draws.key(configuration) in self._told
        return not known and self._draws.feasible(configuration)

    def conclusion(self) -> dict[str, float]:
        """Nothing: random draws do not know."""
        return {}

    def likely(self, count: int) -> list[Configuration]:
        """Configurations that it is likely to propose after the pending one, at most ``count``."""
        pending = self._in_hand()
        found = {self._draws.key(each): each for each in self._first if self._is_new(each)}
        for each in self._guessed(count):
            found.setdefault(self._draws.key(each), each)
        return [dict(each) for key, each in found.items() if key not in pending][:count]

    def _in_hand(self) -> set[Key]:
        return set() if self._pending is None else {self._draws.key(self._pending)}

    def _guessed(self, count: int) -> Iterable[Configuration]:
        """What it will draw, as long as its first configurations are all told."""
        self._ahead = {key: each for key, each in self._ahead.items() if key not in self._told}
        seen = {*self._told, *self._ahead, *self._in_hand()}
        while len(self._ahead) <= count and (drawn := self._drawn_from(self._further, seen)):
            seen.add(key := self._draws.key(drawn))
            self._ahead[key] = drawn
        return self._ahead.values()

    def _drawn(self) -> Configuration | None:
        return self._drawn_from(self._draws, self._told)

    def _drawn_from(self, draws: Draws, told: set[Key]) -> Configuration | None:
        # A random state that does not depend on draws before a kill.
        return draws.draw(random.Random(f"{self.seed} {len(told)} "), told)

    def _learn(self, configuration: Configuration, time_ms: float | None) -> None:
        """Do nothing: random draws do not learn."""


def neighbours(values: Sequence[Value], value: Value) -> list[Value]:
    """Values of a tunable one step away: the next numbers in increasing order, any other text."""
    if isinstance(value, str):
        return [each for each in values if each != value]
    ascending = sorted(values, key=int)
    place = ascending.index(value)
    return [*ascending[max(0, place - 1) : place], *ascending[place + 1 : place + 2]]


SAMPLED_CANDIDATES = 5_000
"""Most candidates drawn from the space: all feasible configurations where there are no more."""

CANDIDATES_FROM_ELSEWHERE = 10_000
"""Most candidates taken from other GPUs: those that were fastest there."""

CENTRES = 5
NEIGHBOURS_EVERY = 10
"""Interval in rows, and number of fastest rows whose neighbours then join a sample."""


class TransferExplorer(RandomDraws):
    """Gaussian process over candidates whose prior is other GPUs' rows. The candidates are the
    feasible configurations of the problem. Where there are more than :data:`SAMPLED_CANDIDATES`,
    they are a random sample, what other GPUs measured and is feasible here, and the neighbours of
    the fastest rows. When all are measured, random draws follow."""

    def _prepare(self) -> None:
        from launchwise.search.candidates import KeyedSearch, away, fastest_elsewhere, texts_of

        every = [(away(self.gpu, gpu), self._losses_of(rows)) for gpu, rows in self.prior]
        away_from = [each for each, losses in every if losses]
        self._losses = [losses for _, losses in every if losses]
        # A state of its own: the sample must be the same whatever is told.
        state = random.Random(f"{self.seed}")
        sampled = self._draws.sample(state, SAMPLED_CANDIDATES)
        # Of candidates that are as promising the first is taken: any of them must be able to be it.
        state.shuffle(sampled)
        self._is_sample = self._draws.size > LISTABLE or len(sampled) == SAMPLED_CANDIDATES
        first = [each for each in self._first if self._draws.feasible(each)]
        elsewhere = fastest_elsewhere(self._losses, CANDIDATES_FROM_ELSEWHERE)
        keys = [*map(self._draws.key, sampled), *elsewhere, *map(self._draws.key, first)]
        self._times: list[tuple[float, int]] = []
        self._search = (
            KeyedSearch(keys, texts_of(self._spec), self._losses, away_from) if keys else None
        )

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

    def _of_key(self, key: Key) -> Configuration:
        return dict(zip(self._spec.tunable_columns, key, strict=True))

    def _drawn(self) -> Configuration | None:
        if self._is_sure():
            return None
        key = self._search.ask() if self._search else None
        return super()._drawn() if key is None else self._of_key(key)

    def _guessed(self, count: int) -> Iterable[Configuration]:
        """The most promising candidates, by what is known before the pending one is measured."""
        if self._search is None:
            return super()._guessed(count)
        return [self._of_key(self._search.keys[place]) for place in self._search.ranked(count + 1)]

    def conclusion(self) -> dict[str, float]:
        """``within_percent``; ``chance_left``, that something faster by more than it is left. And
        ``started_from``: of how many GPUs, and problems on this one, rows were known."""
        within = STATED_PERCENT if self.stop_below_percent is None else self.stop_below_percent
        if self._search is None:
            return {}
        return {
            "within_percent": within,
            "chance_left": self._search.chance_left(within / 100),
            "started_from": len(self._losses),
        }

    def _is_sure(self) -> bool:
        from launchwise.search.transfer_search import SURE

        if self.stop_below_percent is None or self._search is None:
            return False
        if not self._search.has_looked_around():
            return False
        return self.conclusion().get("chance_left", 1.0) <= SURE

    def _learn(self, configuration: Configuration, time_ms: float | None) -> None:
        if self._search is None:
            return
        key = self._draws.key(configuration)
        if key not in self._search.places and not self._search.learns(time_ms):
            return
        # It is new if it is a row of another strategy, or of an infeasible baseline.
        self._search.add([key])
        place = self._search.places[key]
        self._search.tell(place, time_ms)
        if time_ms is not None:
            self._times.append((time_ms, place))
        if self._is_sample and len(self._told) % NEIGHBOURS_EVERY == 0:
            fastest = [self._search.keys[place] for _, place in sorted(self._times)[:CENTRES]]
            near = [each for key in fastest for each in self._neighbours(self._of_key(key))]
            self._search.add(map(self._draws.key, near))

    def _neighbours(self, configuration: Configuration) -> Iterator[Configuration]:
        """Feasible configurations of the same variant that differ in one tunable, by one step."""
        if not self._draws.spans(configuration):
            return
        for name in self._draws.used(str(configuration["variant"])):
            for value in neighbours(self._spec.tunables[name].values, configuration[name]):
                found = {**configuration, name: value}
                if self._draws.feasible(found):
                    yield found
