"""Every expression of a spec at the corners of its space, so that none fails in a queued job."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from launchwise.base.names import assigned
from launchwise.gpus.profile import GPU_FEATURES
from launchwise.workloads.checks.fitting_sizes import nearest_problems
from launchwise.workloads.checks.spec_checks import Place, places
from launchwise.workloads.parts import UNKNOWN_GPU, ProblemParameter, Value
from launchwise.workloads.space import Configuration, Problem, baseline, feasible
from launchwise.workloads.spec import Spec

MOST_CORNERS = 64  # Most problems, and configurations of a variant, that are tried; chosen evenly
UNBOUNDED = 1 << 20  # Size in place of a maximum that a spec does not give
PLAUSIBLE = 128  # Value of every attribute of a GPU that features read


def corner_problems(spec: Spec) -> list[Problem]:
    """Problems with the smallest and largest sizes and every category. Sizes that break a
    constraint of the problem are moved to the nearest that fit, or left out where none do. Where
    the baseline is infeasible, the nearest problem that it may run is added."""
    values = {name: _ends(parameter) for name, parameter in spec.problem.items()}
    crossed = [dict(zip(values, each, strict=True)) for each in _some([*values.values()])]
    found = nearest_problems(spec, crossed)
    first = baseline(spec)
    idle = [problem for problem in found if not _is_feasible(spec, problem, first)]
    found += nearest_problems(spec, idle, [first])
    return list({tuple(each.values()): each for each in found}.values())


def _is_feasible(spec: Spec, problem: Problem, configuration: Configuration) -> bool:
    try:
        return feasible(spec, problem, configuration)
    except ValueError:
        return True


def _ends(parameter: ProblemParameter) -> list[Value]:
    if parameter.values is not None:
        every = list(parameter.values)
        return every if parameter.type == "category" else [every[0], every[-1]]
    low = parameter.minimum if parameter.minimum is not None else 1
    high = parameter.maximum if parameter.maximum is not None else max(low, UNBOUNDED)
    return [low, high] if high != low else [low]


def corner_configurations(spec: Spec) -> list[Configuration]:
    """The baseline, and configurations of the first and last values of every variant's tunables."""
    found = [baseline(spec)]
    for name, variant in spec.variants.items():
        ends = {each: _ends_of(spec.tunables[each].values) for each in variant.tunables}
        for values in _some([*ends.values()]):
            chosen = dict(zip(ends, values, strict=True))
            found.append({"variant": name, **spec.neutral, **chosen})
    return found


def _ends_of(values: list[Value]) -> list[Value]:
    """The first and the last of texts, the least and the largest of numbers, in their order."""
    numbers = [value for value in values if isinstance(value, int)]
    ends = {min(numbers), max(numbers)} if len(numbers) == len(values) else {values[0], values[-1]}
    return [value for value in values if value in ends]


def _some(choices: Sequence[Sequence[Value]]) -> list[tuple[Value, ...]]:
    """At most :data:`MOST_CORNERS` of all combinations, evenly, without listing all: 40 tunables
    have 10^12."""
    count = math.prod(map(len, choices))
    step = max(1, -(-count // MOST_CORNERS))
    return [_combination(choices, number) for number in range(0, count, step)]


def _combination(choices: Sequence[Sequence[Value]], number: int) -> tuple[Value, ...]:
    found: list[Value] = []
    for values in reversed(choices):
        number, place = divmod(number, len(values))
        found.append(values[place])
    return tuple(reversed(found))


def complaint(spec: Spec, drawn: bool = True) -> tuple[str, str] | None:
    """First expression without a value at a corner, or whose value is no size: its key and what is
    wrong; None for none.

    Constraints are tried everywhere, all others where the constraints hold.

    ``drawn``: whether constraints of the problem that no drawn size meets are a mistake.
    """
    problems, configurations = corner_problems(spec), corner_configurations(spec)
    if drawn and not problems:
        return "constraints", nothing_fits(spec)
    every = list(places(spec))
    alone = [each for each in every if each.is_of_problem]
    conditions = [each for each in every if each.is_condition]
    others = [each for each in every if not each.is_condition and not each.is_of_problem]
    for problem in problems:
        if said := _first_failure(spec, alone, problem):
            return said
        for configuration in configurations:
            gpu = {**dict.fromkeys(GPU_FEATURES, PLAUSIBLE), **UNKNOWN_GPU}
            names = {**gpu, **problem, **configuration}
            variant = ("", configuration["variant"])
            for each in [one for one in conditions if one.variant in variant]:
                if said := _first_failure(spec, [each], names):
                    return said
                # As a sweep reads them: what one rules out the next need not bear.
                if not spec.value(each.text, names):
                    break
            else:
                own = [each for each in others if each.variant in variant]
                if said := _first_failure(spec, own, names):
                    return said
    return None


def _first_failure(
    spec: Spec, asked: Sequence[Place], names: Mapping[str, Any]
) -> tuple[str, str] | None:
    """Key and complaint of the first expression without a value. What reads counters, or numbers
    that ``inputs`` gives, has its value only when it runs."""
    for each in asked:
        if names.keys() >= set(spec.formulas.raw_names(each.text)):
            try:
                value = spec.value(each.text, names)
                least = each.least
                if least is not None and (isinstance(value, str) or value % 1 or value < least):
                    raise ValueError(f"{each.text!r} is {value}, no whole number from {least} on,")
            except ValueError as error:
                columns = [*spec.problem, *spec.tunable_columns]
                where = {name: names[name] for name in columns if name in names}
                return each.key, f"{error} for {assigned(where)}"
    return None


def nothing_fits(spec: Spec) -> str:
    """What is said where no drawn size meets the constraints of the problem."""
    texts = " and ".join(spec.problem_constraints)
    names = [
        name
        for name in spec.problem
        if any(name in spec.formulas.raw_names(text) for text in spec.problem_constraints)
    ]
    limits = ", ".join(_limits(name, spec.problem[name]) for name in names)
    return (
        f"no size was found that meets {texts} ({limits}); if there are some, list them as values"
    )


def _limits(name: str, parameter: ProblemParameter) -> str:
    if parameter.values is not None:
        return f"{name} in {', '.join(map(str, parameter.values))}"
    low, high = parameter.minimum, parameter.maximum
    if low is not None and high is not None:
        return f"{name} from {low} to {high}"
    if low is not None:
        return f"{name} from {low}"
    return f"{name} up to {high}" if high is not None else f"any {name}"
