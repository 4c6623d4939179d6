"""Sizes near wanted ones that meet conditions such as ``n % 256 == 0`` or ``m <= n``.

Values worth a try are read off the conditions: multiples of what they divide by, values at which
a comparison changes sides, powers of two; then whatever is near. The search is deterministic, and
bounded: it may miss sizes that meet unusual conditions.
"""

from __future__ import annotations

import ast
import bisect
import itertools
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from launchwise.base.expressions import evaluate, inlined, parsed
from launchwise.workloads.parts import UNKNOWN_GPU, ProblemParameter, Value
from launchwise.workloads.spec_fields import SpecFields

MOST_EVALUATED = 12_000  # Most evaluations of an expression in one search, about 0.1 s
NEAR = 64  # Values on each side of a wanted one that are all tried
FAR = 4096  # Values on each side that are tried, where nothing else fits the only parameter

BRANCHES = (2, 4, 8)
"""Values of a parameter that are tried before those of the next, and as many far ones: few first,
then more."""

LARGEST = (1 << 31) - 1  # Largest size in place of a maximum that a spec does not give

Problem = dict[str, Value]


@dataclass(frozen=True)
class Condition:
    """An expression, without derived names, that a problem must make true."""

    text: str
    # Values that it reads beside the problem's: of a configuration, of a GPU.
    names: Mapping[str, Any]
    reads: frozenset[str]  # problem parameters that it reads
    pairs: tuple[tuple[str, str], ...]  # both sides of each comparison
    # Each divisor, and what leaves no remainder, if a comparison says so; else ''.
    divisions: tuple[tuple[str, str], ...]

    @classmethod
    def of(
        cls, text: str, parameters: Collection[str], names: Mapping[str, Any] | None = None
    ) -> Condition:
        """Read an expression over ``parameters`` and ``names``."""
        return replace(_read(text, frozenset(parameters)), names=names or {})


@lru_cache(maxsize=4096)
def _read(text: str, parameters: frozenset[str]) -> Condition:
    pairs, divisions, names = list[tuple[str, str]](), dict[tuple[str, str], None](), set[str]()
    for node in ast.walk(parsed(text)):
        match node:
            case ast.Name(name):
                names.add(name)
            case ast.Compare(left, _, others):
                for one, other in itertools.pairwise([left, *others]):
                    pairs.append((ast.unparse(one), ast.unparse(other)))
                    for side, rest in ((one, other), (other, one)):
                        if isinstance(side, ast.BinOp) and isinstance(side.op, ast.Mod):
                            dividend = ast.BinOp(side.left, ast.Sub(), rest)
                            divisions[ast.unparse(side.right), ast.unparse(dividend)] = None
            case ast.BinOp(_, ast.Mod() | ast.FloorDiv() | ast.Div(), divisor):
                divisions[ast.unparse(divisor), ""] = None
            case ast.Call(_, [_, divisor]):
                divisions[ast.unparse(divisor), ""] = None
    return Condition(text, {}, parameters & names, tuple(pairs), tuple(divisions))


def conditions_of(
    spec: SpecFields,
    configurations: Iterable[Mapping[str, Any]] = (),
    gpu: Mapping[str, Any] = UNKNOWN_GPU,
    only: str | None = None,
) -> list[Condition]:
    """Constraints of the problem, and those that configurations must meet.

    ``configurations``: each with every tunable.
    ``gpu``: limits of the GPU; those that every card allows when left out.
    ``only``: a parameter: constraints of the problem that read something else are left out.
    """
    own, raw_names = spec.problem_constraints, spec.formulas.raw_names
    asked: list[tuple[Mapping[str, Any], str]] = [
        ({}, text) for text in own if only is None or raw_names(text) == (only,)
    ]
    for one in configurations:
        further = (*spec.constraints, *spec.variants[str(one["variant"])].constraints)
        asked += [({**gpu, **one}, text) for text in further if text not in own]
    return [
        Condition.of(each, spec.problem, names)
        for names, text in asked
        for each in _inlined_parts(text, tuple(spec.derived.items()))
    ]


@lru_cache(maxsize=1024)
def _inlined_parts(text: str, derived: tuple[tuple[str, str], ...]) -> list[str]:
    return parts(inlined(text, dict(derived)))


def parts(text: str) -> list[str]:
    """Expressions that an expression joins by ``and``."""
    tree = parsed(text)
    if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And):
        return [each for value in tree.values for each in parts(ast.unparse(value))]
    return [ast.unparse(tree)]


def nearest_problem(
    spec: SpecFields, wanted: Mapping[str, Value], configurations: Iterable[Mapping[str, Any]] = ()
) -> Problem | None:
    """The problem nearest to a wanted one that meets every constraint; None where none was found.

    Near in size: the product over integers of (larger + 1) / (smaller + 1) is least, as in
    :mod:`launchwise.exporting.table`; texts stay. Of equally near problems it is the smallest.

    ``wanted``: a value for every parameter; integers outside their limits are moved into them.
    ``configurations``: configurations that must be feasible for it, such as the baseline.
    """
    return fitting(spec.problem, wanted, conditions_of(spec, configurations))


def nearest_problems(
    spec: SpecFields, wanted: Iterable[Problem], configurations: Sequence[Mapping[str, Any]] = ()
) -> list[Problem]:
    """The nearest problem to each wanted one (see :func:`nearest_problem`); those without left out.
    Problems that differ only in what no constraint reads share a search."""
    conditions = conditions_of(spec, configurations)
    read = [name for name in spec.problem if any(name in one.reads for one in conditions)]
    known: dict[tuple[Value, ...], Problem | None] = {}
    found = []
    for problem in wanted:
        key = tuple(problem[name] for name in read)
        if key not in known:
            known[key] = fitting(spec.problem, problem, conditions)
        if (nearest := known[key]) is not None:
            found.append({**problem, **{name: nearest[name] for name in read}})
    return found


def nearest_value(spec: SpecFields, name: str, wanted: Value) -> Value | None:
    """The value of a parameter nearest to a wanted one, by constraints that read it alone."""
    alone = {name: spec.problem[name]}
    found = fitting(alone, {name: wanted}, conditions_of(spec, only=name))
    return None if found is None else found[name]


def fitting(
    parameters: Mapping[str, ProblemParameter],
    wanted: Mapping[str, Value],
    conditions: Sequence[Condition],
) -> Problem | None:
    """The nearest problem that meets conditions (see :func:`nearest_problem`). Parameters that none
    joins are searched apart: ratios of sizes multiply, so the nearest of each are so together."""
    groups: list[tuple[frozenset[str], list[Condition]]] = [
        (frozenset([name]), []) for name in parameters
    ]
    for one in conditions:
        own = [group for group in groups if group[0] & one.reads]
        groups = [group for group in groups if group not in own]
        names = one.reads.union(*(group[0] for group in own))
        groups.append((names, [*(each for group in own for each in group[1]), one]))
    found: Problem = {}
    for names, its_own in groups:
        known = {name: value for name, value in wanted.items() if name in names}
        part = Search(parameters, known, its_own).nearest()
        if part is None:
            return None
        found |= part
    return {name: found[name] for name in wanted}


class _Spent(Exception):
    """No evaluation is left."""


class Search:
    """Search for the problem nearest to a wanted one (arguments of :func:`nearest_problem`)."""

    def __init__(
        self,
        parameters: Mapping[str, ProblemParameter],
        wanted: Mapping[str, Value],
        conditions: Sequence[Condition],
    ) -> None:
        self._parameters = parameters
        self._wanted = {name: _within(parameters[name], value) for name, value in wanted.items()}
        self._conditions = conditions
        self._remaining = MOST_EVALUATED
        self._known: dict[tuple[Any, ...], Any] = {}
        read = {name for each in conditions for name in each.reads}
        self._free = [
            name for name, one in parameters.items() if one.type == "integer" and name in read
        ]
        self._best: tuple[float, tuple[Value, ...]] | None = None

    def nearest(self) -> Problem | None:
        """The nearest problem; None where none was found."""
        fixed = {name: value for name, value in self._wanted.items() if name not in self._free}
        try:
            if self._meets(self._wanted):
                return dict(self._wanted)
            if not (self._free and self._meets(fixed)):
                return None
            # The last round tries all values near.
            for few in (*BRANCHES, None):
                for order in self._orders():
                    self._down(order, fixed, 0.0, few)
                spent = self._remaining < 0.7 * MOST_EVALUATED
                if self._best is not None and (spent or len(self._free) == 1):
                    break
        except _Spent:
            pass
        return None if self._best is None else dict(zip(self._wanted, self._best[1], strict=True))

    def _orders(self) -> Iterable[tuple[str, ...]]:
        """Orders in which values are chosen: each parameter comes last in one of them."""
        names = tuple(self._free)
        turned = [names[place:] + names[:place] for place in range(len(names))]
        return dict.fromkeys([*turned, *(order[::-1] for order in turned)])

    def _down(self, order: Sequence[str], known: Problem, cost: float, few: int | None) -> None:
        """Try values of the first parameter of an order, then of the next, nearest first."""
        name, *rest = order
        for value in self._tries(name, known, cost, few, bool(rest)):
            total = cost + self._distance(name, value)
            if self._best is not None and total > self._best[0]:
                break
            problem = {**known, name: value}
            if not self._meets(problem, name):
                continue
            if rest:
                self._down(rest, problem, total, few)
            else:
                found = total, tuple(problem[each] for each in self._wanted)
                self._best = found if self._best is None else min(found, self._best)
                break

    def _distance(self, name: str, value: int) -> float:
        """Logarithm of the ratio of two sizes, as answers are looked up by."""
        low, high = sorted((value, int(self._wanted[name])))
        return math.log((high + 1) / (low + 1)) if low >= 0 else math.log1p(high - low)

    def _meets(self, problem: Problem, name: str | None = None) -> bool:
        """Whether conditions hold whose parameters are all known: those that read ``name``."""
        return all(
            self._value(one.text, one, problem)
            for one in self._conditions
            if one.reads <= problem.keys() and (name is None or name in one.reads)
        )

    def _value(self, text: str, one: Condition, problem: Problem) -> Any:
        key = (text, id(one), *(problem.get(name) for name in one.reads))
        # Parts count each time, so that a search of many orders ends.
        if key not in self._known or text is not one.text:
            if self._remaining <= 0:
                raise _Spent
            self._remaining -= 1
        if key not in self._known:
            try:
                self._known[key] = evaluate(text, {**one.names, **problem})
            except ValueError:
                self._known[key] = None
        return self._known[key]

    def _tries(
        self, name: str, known: Problem, cost: float, few: int | None, more: bool
    ) -> Iterator[int]:
        """Values of a parameter, nearest first, none beyond the best so far. Where ``more``
        parameters are still to be chosen, a few that fit so far, some of them far; for the last one
        all, and in the last round whatever lies near after these."""
        wanted, one = int(self._wanted[name]), self._parameters[name]

        def nearest_first(values: Iterable[int]) -> list[int]:
            return sorted(values, key=lambda value: (self._distance(name, value), value))

        if one.values is not None:
            yield from nearest_first(map(int, one.values))
            return
        low = one.minimum if one.minimum is not None else min(1, wanted)
        high = one.maximum if one.maximum is not None else max(LARGEST, wanted)
        if self._best is not None and low >= 0:
            ratio = math.exp(min(self._best[0] - cost, 100.0))
            low = max(low, math.floor((wanted + 1) / ratio) - 1)
            high = min(high, math.ceil((wanted + 1) * ratio))
        offered = {each for each in self._offered(name, known, low, high) if low <= each <= high}
        if more:
            kept = [x for x in nearest_first(offered) if self._meets({**known, name: x}, name)]
            # The last round tries all of them, as long as it may.
            first = few or max(1, len(kept))
            step = max(1, 2 * len(kept[first:]) // first)
            ends = [min(kept), max(kept)] if kept else []
            yield from nearest_first({*kept[:first], *kept[first::step], *ends})
            return
        yield from nearest_first(offered)
        if few is None:
            far = FAR if len(self._free) == 1 else 2 * NEAR
            near = {*range(max(low, wanted - far), min(high, wanted + far) + 1)}
            yield from nearest_first(near - offered)

    def _offered(self, name: str, known: Problem, low: int, high: int) -> Iterator[int]:
        """Values that are worth a try."""
        wanted = int(self._wanted[name])
        readable = [one for one in self._conditions if one.reads - known.keys() <= {name}]
        crossings = [
            each
            for one in readable
            for pair in one.pairs
            for each in self._crossing(one, pair, lambda value: {**known, name: value}, low, high)
        ]
        yield from range(wanted - NEAR, wanted + NEAR + 1)
        for centre in dict.fromkeys((wanted, *crossings, low, high)):
            yield from range(centre - 2, centre + 3)
            for start, step in self._steps(readable, centre, {**known, name: centre}):
                yield from range(start - 2 * step, start + 4 * step, step)
        for power in range(64):
            yield from (1 << power, 3 << power, wanted >> power)

    def _steps(
        self, readable: Sequence[Condition], centre: int, problem: Problem
    ) -> Iterator[tuple[int, int]]:
        """Where multiples begin below a size, and their step: of each divisor, and of all."""
        steps = set[int]()
        for one in readable:
            for divisor, dividend in one.divisions:
                step = abs(_whole(self._value(divisor, one, problem)) or 0)
                if 2 <= step <= LARGEST:
                    steps.add(step)
                    value = _whole(self._value(dividend, one, problem)) if dividend else None
                    if value is not None:
                        yield centre - value % step, step
        for step in {*steps, math.lcm(*steps)}:
            if step <= LARGEST:
                yield centre // step * step, step

    def _crossing(
        self,
        one: Condition,
        pair: tuple[str, str],
        problem: Callable[[int], Problem],
        low: int,
        high: int,
    ) -> tuple[int, ...]:
        """Values at which the two sides of a comparison change places, if they do so once."""

        def is_less(value: int) -> bool | None:
            left, right = (self._value(text, one, problem(value)) for text in pair)
            return left < right if all(isinstance(x, int | float) for x in (left, right)) else None

        first, last = is_less(low), is_less(high)
        if first is None or last is None or first == last:
            return ()
        at = bisect.bisect(range(low, high), False, key=lambda value: is_less(value) != first)
        return low + at - 1, low + at


def _within(parameter: ProblemParameter, value: Value) -> Value:
    if parameter.type != "integer" or isinstance(value, str):
        return value
    if parameter.values is not None:
        listed = map(int, parameter.values)
        return min(listed, key=lambda each: (abs(each - int(value)), each))
    if parameter.minimum is not None:
        value = max(value, parameter.minimum)
    return value if parameter.maximum is None else min(value, parameter.maximum)


def _whole(value: Any) -> int | None:
    is_whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return int(value) if is_whole else None
