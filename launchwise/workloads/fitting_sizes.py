"""Sizes near wanted ones that meet conditions such as ``n % 256 == 0`` or ``m <= n``.

Values worth a try are read off the conditions: multiples of what they divide by, values at which
a comparison changes sides, powers of two, what is near. The search is deterministic, and bounded:
it may miss sizes that meet unusual conditions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from launchwise.base.expressions import evaluate
from launchwise.workloads.parts import ProblemParameter, Value
from launchwise.workloads.size_conditions import Condition, conditions_of

if TYPE_CHECKING:
    from launchwise.workloads.spec import Spec

MOST_EVALUATED = 12_000
"""Most evaluations of an expression in one search, about 0.1 s."""

NEAR = 64
"""Values on each side of a wanted one that are all tried."""

FAR = 4096
"""Values on each side that are tried, where nothing else fits the only parameter."""

BRANCHES = (3, 6, 12)
"""Values of a parameter that are tried before those of the next: few first, then more."""

LAST = (64, True)
"""How the last round searches: all values near are tried."""

FACTOR = 2.0
"""Ratio of sizes up to which few evaluations are enough."""

LARGEST = (1 << 31) - 1
"""Largest size in place of a maximum that a spec does not give."""

Problem = dict[str, Value]


def nearest_problem(
    spec: Spec,
    wanted: Mapping[str, Value],
    configurations: Iterable[Mapping[str, Any]] = (),
    also: Callable[[Problem], bool] | None = None,
    moving: Collection[str] | None = None,
) -> Problem | None:
    """The problem nearest to a wanted one that meets every constraint of the problem.

    Near in size: the product over integers of (larger + 1) / (smaller + 1) is least, as in
    :mod:`launchwise.exporting.table`; texts stay. Of equally near problems it is the smallest.

    Parameters
    ----------
    wanted
        A value for every parameter; integers outside their limits are moved into them.
    configurations
        Configurations that must be feasible for it, such as the baseline.
    also
        Whether a problem that meets all this is wanted.
    moving
        Integers that may differ from the wanted ones; all when left out.

    Returns
    -------
    None where none was found.
    """
    conditions = conditions_of(spec, configurations)
    return Search(spec.problem, wanted, conditions, also, moving).nearest()


def nearest_problems(
    spec: Spec, wanted: Iterable[Problem], configurations: Sequence[Mapping[str, Any]] = ()
) -> list[Problem]:
    """The nearest problem to each wanted one (see :func:`nearest_problem`); those without left out.

    Problems that differ only in what no constraint reads share a search.
    """
    conditions = conditions_of(spec, configurations)
    read = [name for name in spec.problem if any(name in one.reads for one in conditions)]
    known: dict[tuple[Value, ...], Problem | None] = {}
    found = []
    for problem in wanted:
        key = tuple(problem[name] for name in read)
        if key not in known:
            known[key] = Search(spec.problem, problem, conditions).nearest()
        if (nearest := known[key]) is not None:
            found.append({**problem, **{name: nearest[name] for name in read}})
    return found


def nearest_value(spec: Spec, name: str, wanted: Value) -> Value | None:
    """The value of a parameter nearest to a wanted one, by constraints that read it alone."""
    alone = {name: spec.problem[name]}
    found = Search(alone, {name: wanted}, conditions_of(spec, only=name)).nearest()
    return None if found is None else found[name]


class _Spent(Exception):
    """No evaluation is left."""


class Search:
    """Search for the problem nearest to a wanted one.

    Parameters
    ----------
    parameters
        Parameters of the problem.
    wanted
        A value for each.
    conditions
        What must hold.
    also
        What must hold, too, asked last.
    moving
        Integers that may differ from the wanted ones; all when left out.
    """

    def __init__(
        self,
        parameters: Mapping[str, ProblemParameter],
        wanted: Mapping[str, Value],
        conditions: Sequence[Condition],
        also: Callable[[Problem], bool] | None = None,
        moving: Collection[str] | None = None,
    ) -> None:
        self._parameters = parameters
        self._wanted = {name: _within(parameters[name], value) for name, value in wanted.items()}
        self._conditions = conditions
        self._also = also
        self._remaining = MOST_EVALUATED
        self._branches, self._scans = BRANCHES[0], False
        self._known: dict[tuple[Value, ...], bool] = {}
        integers = [
            name
            for name, one in parameters.items()
            if one.type == "integer" and (moving is None or name in moving)
        ]
        read = [name for name in integers if any(name in one.reads for one in self._conditions)]
        self._free = read if also is None else integers
        self._fixed = {
            name: value for name, value in self._wanted.items() if name not in self._free
        }
        self._best: Problem | None = None
        self._least = math.inf

    def nearest(self) -> Problem | None:
        """The nearest problem; None where none was found."""
        try:
            if self._meets(self._wanted) and self._is_wanted(self._wanted):
                return dict(self._wanted)
            if not (self._free and self._meets(self._fixed)):
                return None
            for self._branches, self._scans in (*((few, False) for few in BRANCHES), LAST):
                for order in _orders(self._free):
                    self._down(order, dict(self._fixed), 0.0)
                if self._best is not None and self._is_enough():
                    break
        except _Spent:
            pass
        return self._best

    def _is_enough(self) -> bool:
        """Whether a problem that was found counts as the nearest."""
        share = 0.75 if self._least <= math.log(FACTOR) else 0.6
        return len(self._free) == 1 or self._remaining < share * MOST_EVALUATED

    def _is_wanted(self, problem: Problem) -> bool:
        if self._also is None:
            return True
        self._spend()
        return self._also({name: problem[name] for name in self._wanted})

    def _down(self, order: Sequence[str], known: Problem, cost: float) -> None:
        """Try values of the first parameter of an order, then of the next, nearest first."""
        name, last = order[0], len(order) == 1
        for value in self._tries(name, known, last):
            total = cost + self._distance(name, value)
            if total > self._least:
                break
            problem = {**known, name: value}
            if not self._meets(problem, name):
                continue
            if not last:
                self._down(order[1:], problem, total)
            elif self._is_wanted(problem):
                self._keep(problem, total)
                break

    def _keep(self, problem: Problem, cost: float) -> None:
        ordered = {name: problem[name] for name in self._wanted}
        known = tuple(self._best.values()) if self._best else ()
        if cost < self._least or (cost == self._least and tuple(ordered.values()) < known):
            self._best, self._least = ordered, cost

    def _distance(self, name: str, value: int) -> float:
        """Logarithm of the ratio of two sizes, as answers are looked up by."""
        low, high = sorted((value, int(self._wanted[name])))
        return math.log((high + 1) / (low + 1)) if low >= 0 else math.log1p(high - low)

    def _meets(self, problem: Problem, name: str | None = None) -> bool:
        """Whether conditions hold whose parameters are all known: those that read ``name``."""
        return all(
            self._holds(one, problem)
            for one in self._conditions
            if one.reads <= problem.keys() and (name is None or name in one.reads)
        )

    def _holds(self, one: Condition, problem: Problem) -> bool:
        key = (id(one), *(problem[name] for name in one.reads))
        if key not in self._known:
            self._known[key] = bool(self._value(one.text, {**one.names, **problem}))
        return self._known[key]

    def _spend(self) -> None:
        if self._remaining <= 0:
            raise _Spent
        self._remaining -= 1

    def _value(self, text: str, names: Mapping[str, Any]) -> Any:
        """Value of an expression; None where it has none."""
        self._spend()
        try:
            return evaluate(text, names)
        except ValueError:
            return None

    # What is worth a try

    def _limits(self, name: str) -> tuple[int, int]:
        one, wanted = self._parameters[name], int(self._wanted[name])
        low = one.minimum if one.minimum is not None else min(1, wanted)
        return low, one.maximum if one.maximum is not None else max(LARGEST, wanted)

    def _tries(self, name: str, known: Problem, last: bool) -> Iterator[int]:
        """Values of a parameter, nearest first; for the last one, whatever lies near after these.

        Where others are still to be chosen, some of the far ones come early.
        """
        wanted = int(self._wanted[name])

        def nearest_first(values: Iterable[int]) -> list[int]:
            return sorted(values, key=lambda value: (self._distance(name, value), value))

        listed = self._parameters[name].values
        if listed is not None:
            yield from nearest_first(int(value) for value in listed)
            return
        low, high = self._limits(name)
        offered = {each for each in self._offered(name, known, low, high) if low <= each <= high}
        near = nearest_first(offered)
        if not last:
            kept = [value for value in near if self._meets({**known, name: value}, name)]
            few = self._branches - self._branches // 3
            step = max(1, len(kept[few:]) // (self._branches - few))
            yield from nearest_first({*kept[:few], *kept[few::step], *_ends(kept)})
            return
        yield from near
        if self._scans:
            far = FAR if len(self._free) == 1 else 2 * NEAR
            scanned = {*range(max(low, wanted - far), min(high, wanted + far) + 1)}
            yield from nearest_first(scanned - offered)

    def _offered(self, name: str, known: Problem, low: int, high: int) -> Iterator[int]:
        wanted = int(self._wanted[name])
        readable = [one for one in self._conditions if one.reads - known.keys() <= {name}]
        steps = self._steps(readable, known)
        crossings = [
            each
            for one in readable
            for pair in one.pairs
            for each in self._crossing(pair, one.names, name, known, low, high)
        ]
        yield from range(wanted - NEAR, wanted + NEAR + 1)
        for centre in dict.fromkeys((wanted, *crossings, low, high)):
            yield from range(centre - 2, centre + 3)
            for step in steps:
                first = centre // step * step
                yield from range(first - 2 * step, first + 4 * step, step)
            for one in readable:
                yield from self._by_remainder(one, name, known, centre)
        for power in range(64):
            yield from (1 << power, 3 << power, wanted >> power)
        for root in range(math.isqrt(max(0, wanted)) - 1, math.isqrt(max(0, wanted)) + 3):
            yield root * root

    def _steps(self, readable: Sequence[Condition], known: Problem) -> list[int]:
        """What conditions divide by, parts of it, and least common multiples."""
        found: list[int] = []
        for one in readable:
            for text in one.divisors:
                value = self._value(text, {**one.names, **known})
                if _is_whole(value) and 2 <= abs(value) <= LARGEST:
                    found.append(abs(int(value)))
        found = list(dict.fromkeys(found))[:8]
        every = [math.lcm(*found)] if found else []
        both = [math.lcm(one, other) for one, other in itertools.combinations(found, 2)]
        parts = [value >> power for value in found for power in range(1, 12)]
        steps = dict.fromkeys((*found, *every, *both, *(part for part in parts if part > 1)))
        return [step for step in steps if step <= LARGEST][:40]

    def _crossing(
        self,
        pair: tuple[str, str],
        names: Mapping[str, Any],
        name: str,
        known: Problem,
        low: int,
        high: int,
    ) -> Iterator[int]:
        """Value at which the two sides of a comparison change places, if they do so once."""

        def order(value: int) -> Any:
            sides = [self._value(text, {**names, **known, name: value}) for text in pair]
            if not all(isinstance(side, int | float) for side in sides):
                return None
            return (sides[0] > sides[1]) - (sides[0] < sides[1])

        first, end = order(low), order(high)
        if first is None or end is None or (first < 0) == (end < 0):
            return
        while high - low > 1:
            middle = (low + high) // 2
            here = order(middle)
            if here is None:
                return
            low, high = (middle, high) if (here < 0) == (first < 0) else (low, middle)
        yield from (low, high)

    def _by_remainder(
        self, one: Condition, name: str, known: Problem, centre: int
    ) -> Iterator[int]:
        """Values near a centre where ``(n + 2) % 32 == 0`` holds, and the like."""
        names = {**one.names, **known, name: centre}
        for left, right, target in one.remainders:
            value, step, rest = (self._value(text, names) for text in (left, right, target))
            if all(map(_is_whole, (value, step, rest))) and step > 1:
                away = int(value - rest) % int(step)
                yield from (centre - away, centre - away + int(step))


def _within(parameter: ProblemParameter, value: Value) -> Value:
    """An integer moved into its limits."""
    if parameter.type != "integer" or isinstance(value, str):
        return value
    if parameter.values is not None:
        listed = [int(each) for each in parameter.values]
        return min(listed, key=lambda each: (abs(each - int(value)), each))
    if parameter.minimum is not None:
        value = max(value, parameter.minimum)
    return value if parameter.maximum is None else min(value, parameter.maximum)


def _ends(values: Sequence[int]) -> list[int]:
    return [min(values), max(values)] if values else []


def _is_whole(value: Any) -> bool:
    if isinstance(value, float):
        return value.is_integer()
    return isinstance(value, int)


def _orders(names: Sequence[str]) -> list[list[str]]:
    """Orders in which values are chosen: each parameter comes last in one of them."""
    turned = [[*names[place:], *names[:place]] for place in range(len(names))]
    every = [*turned, *([*reversed(order)] for order in turned)] if len(names) > 2 else turned
    return list(map(list, dict.fromkeys(map(tuple, every))))
