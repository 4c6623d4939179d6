"""Feasible configurations drawn from a space that is never listed.

The tunables of a workload may span a thousand million configurations, most of them refused by the
constraints. So a configuration is a number in mixed radix, drawn and then asked about; where next
to all are refused, tunables are set one by one and a constraint is asked as soon as all that it
reads is known, which leaves out whole regions at once.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from launchwise.base.errors import UserError
from launchwise.workloads.parts import UNKNOWN_GPU, Value
from launchwise.workloads.space import (
    LENIENT_GPU,
    MOST_LISTED,
    MOST_STEPS,
    Configuration,
    Growth,
    Problem,
    baseline,
    feasible,
    spans,
    whole,
)
from launchwise.workloads.spec import Spec
from launchwise.workloads.templates import own_names

LISTABLE = MOST_LISTED
"""Spaces up to this size, before constraints, are enumerated in random order, so that they end."""

MAX_DRAWS = 1_000
"""Draws from a larger space before a constraint-guided search for a feasible configuration."""

MAX_SEARCH_STEPS = 20_000  # Most steps (tunables set) of one search for a feasible configuration
DRAWS_PER_SAMPLE = 10  # Draws per configuration of a sample from a larger space
Key = tuple[Value, ...]  # Values of a configuration in the order of `tunable_columns`


class Draws:
    """Random feasible configurations of one problem on one GPU.

    ``spec``, ``problem``: what is measured.
    ``gpu_facts``: facts of the GPU (see :data:`launchwise.workloads.parts.GPU_NAMES`).
    ``seed``: order in which a small space is gone through.
    """

    def __init__(
        self, spec: Spec, problem: Problem, gpu_facts: Mapping[str, Any] | None, seed: int
    ) -> None:
        self._spec = spec
        self._problem = dict(problem)
        self._facts = {**UNKNOWN_GPU, **(gpu_facts or {})}
        self._neutral = spec.neutral
        # Kept here because a sample asks for them thousands of times.
        self._columns = spec.tunable_columns
        self._growth = Growth(spec, {**self._facts, **self._problem})
        self._used = self._growth.used
        self._sizes = {
            name: math.prod(len(spec.tunables[each].values) for each in used)
            for name, used in self._used.items()
        }
        self.size = sum(self._sizes.values())
        self._seed = seed
        self._orders: dict[str | None, list[int]] = {}
        self._ended: set[str | None] = set()

    def used(self, variant: str) -> list[str]:
        """Tunables of a variant, in the order of the spec; the others stay neutral."""
        return self._used[variant]

    def key(self, configuration: Configuration) -> Key:
        return tuple([configuration[name] for name in self._columns])

    def spans(self, configuration: Configuration) -> bool:
        """Whether the spec has this variant with these values, feasible or not."""
        return spans(self._spec, configuration)

    def feasible(self, configuration: Configuration) -> bool:
        """Whether every constraint holds."""
        return feasible(self._spec, self._problem, configuration, self._facts)

    def draw(
        self, dice: random.Random, unwanted: Collection[Key], variant: str | None = None
    ) -> Configuration | None:
        """A feasible configuration that is not ``unwanted``, each as likely as any other.

        None means that there is none left or, among more than :data:`LISTABLE` configurations,
        that none was found: there are very few, if any. Among so many, those that are rare (less
        than one in :data:`MAX_DRAWS`) may also be drawn unevenly.

        ``dice``: chance, where there are too many to be gone through in an order fixed beforehand.
        ``unwanted``: keys of configurations; from one call to the next they must only become more.
        ``variant``: the only variant that is wanted.
        """
        if variant in self._ended:
            return None
        start, size = self._numbers(variant)
        if size <= LISTABLE:
            return self._next_listed(unwanted, variant)
        for _ in range(MAX_DRAWS):
            found = self._at(start + dice.randrange(size))
            if self.key(found) not in unwanted and self.feasible(found):
                return found
        return self._searched(dice, unwanted, variant)

    def any(self, variant: str | None = None) -> Configuration | None:
        """Some feasible configuration; None when there is none or, in a huge space, none was found.

        Quicker than :meth:`draw` where there is none: what the constraints say of the problem
        alone, or of the first tunables, is asked first.

        ``variant``: the only variant that is wanted.
        """
        steps = iter(range(MAX_SEARCH_STEPS))
        found = next(self._search(random.Random(self._seed), variant, steps), None)
        if found is None and next(steps, None) is None:
            return self.draw(random.Random(self._seed), (), variant)
        return found

    def sample(self, dice: random.Random, count: int) -> list[Configuration]:
        """Up to ``count`` different feasible configurations, in random order. Fewer when there are
        no more or, among more than :data:`LISTABLE`, when they are rare."""
        numbers: Iterable[int]
        rare: Iterable[Configuration] = ()
        if self.size <= LISTABLE:
            numbers = dice.sample(range(self.size), self.size)
        else:
            numbers = (dice.randrange(self.size) for _ in range(DRAWS_PER_SAMPLE * count))
            rare = self._search(dice, None, iter(range(MAX_SEARCH_STEPS)))
        drawn = (each for each in map(self._at, numbers) if self.feasible(each))
        found: dict[Key, Configuration] = {}
        for each in itertools.chain(drawn, rare):
            if len(found) == count:
                break
            found.setdefault(self.key(each), each)
        return list(found.values())

    def ended(self, variant: str) -> bool:
        """Whether a draw has exhausted a variant."""
        return variant in self._ended

    def _next_listed(self, unwanted: Collection[Key], variant: str | None) -> Configuration | None:
        if variant not in self._orders:
            start, size = self._numbers(variant)
            self._orders[variant] = list(range(start, start + size))
            random.Random(f"{self._seed} {variant}").shuffle(self._orders[variant])
        order = self._orders[variant]
        while order:
            found = self._at(order[-1])
            if self.key(found) not in unwanted and self.feasible(found):
                return found
            order.pop()  # Infeasible or unwanted, and it stays so.
        self._ended.add(variant)
        return None

    def _numbers(self, variant: str | None) -> tuple[int, int]:
        """First number and count of a variant's configurations (None: of all)."""
        if variant is None:
            return 0, self.size
        before = itertools.takewhile(lambda name: name != variant, self._sizes)
        return sum(self._sizes[name] for name in before), self._sizes[variant]

    def _at(self, number: int) -> Configuration:
        """The configuration of a number below :attr:`size`: its digits in mixed radix."""
        for variant, size in self._sizes.items():
            if number < size:
                found: Configuration = {"variant": variant, **self._neutral}
                for name in self._used[variant]:
                    values = self._spec.tunables[name].values
                    number, digit = divmod(number, len(values))
                    found[name] = values[digit]
                return found
            number -= size
        raise IndexError("number outside the space")

    def _searched(
        self, dice: random.Random, unwanted: Collection[Key], variant: str | None
    ) -> Configuration | None:
        steps = iter(range(MAX_SEARCH_STEPS))
        for found in self._search(dice, variant, steps):
            if self.key(found) not in unwanted:
                return found
        if next(steps, None) is not None:
            self._ended.add(variant)
        return None

    def _search(
        self, dice: random.Random, variant: str | None, steps: Iterator[int]
    ) -> Iterator[Configuration]:
        """Feasible configurations, depth first, in random order, as long as there are steps."""
        variants = list(self._used) if variant is None else [variant]
        dice.shuffle(variants)
        for name in variants:
            yield from filter(self.feasible, self._growth.below(name, steps, dice))


def drawn_of(
    spec: Spec, problem: Problem, variant: str, seed: int, gpu: Mapping[str, Any] | None = None
) -> Configuration | None:
    """A feasible configuration of a variant on a GPU; None where none is found."""
    draws = Draws(spec.narrowed({"variant": [variant]}), problem, gpu, seed)
    return draws.draw(random.Random(seed), (), variant)


def build_choices(spec: Spec, problem: Problem) -> list[Configuration]:
    """One configuration for every build that a feasible one may need, the baseline's first. That
    is, for every choice of a variant and its build tunables; the limits are those that any GPU may
    have. Launch tunables are not gone through, however many there are. Where neither a feasible one
    was found nor all were seen, the choice is taken to have one."""
    first = baseline(spec)
    # A part of a space need not hold the baseline.
    there = first["variant"] in spec.variants and feasible(spec, problem, first, LENIENT_GPU)
    found = {spec.build_choice(first): first} if there else {}
    growth = Growth(spec, {**LENIENT_GPU, **problem})
    for name, variant in spec.variants.items():
        chosen = own_names(spec, variant)
        if math.prod(len(spec.tunables[each].values) for each in chosen) > MOST_LISTED:
            message = f"its build tunables span more than {MOST_LISTED:,} builds"
            raise UserError(spec.workload, f"variants.{name}", message)
        if len(chosen) == len(variant.tunables):
            # Each build is one configuration.
            for every in growth.every(name, iter(range(MOST_STEPS))):
                if feasible(spec, problem, every, LENIENT_GPU):
                    found.setdefault(spec.build_choice(every), every)
            continue
        for values in itertools.product(*(spec.tunables[each].values for each in chosen)):
            fixed = dict(zip(chosen, values, strict=True))
            allowed: dict[str, list[Value]] = {"variant": [name]}
            allowed |= {each: [value] for each, value in fixed.items()}
            draws = Draws(spec.narrowed(allowed), problem, LENIENT_GPU, 0)
            one = draws.draw(random.Random(0), (), name)
            if one is None and not draws.ended(name):
                one = whole({"variant": name, **fixed}, spec)
            if one is not None:
                found.setdefault(spec.build_choice(one), one)
    return list(found.values())
