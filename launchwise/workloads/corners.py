"""Every expression of a spec at the corners of its space, so that none fails in a queued job."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from launchwise.base.names import assigned
from launchwise.gpus.profile import GPU_FEATURES
from launchwise.workloads.fitting_sizes import nearest_problems
from launchwise.workloads.parts import UNKNOWN_GPU, ProblemParameter, Value, Variant
from launchwise.workloads.space import Configuration, Problem, baseline, feasible
from launchwise.workloads.spec import Spec

MOST_CORNERS = 64
"""Most problems, and configurations of a variant, that are tried; chosen evenly."""

UNBOUNDED = 1 << 20
"""Size in place of a maximum that a spec does not give."""

PLAUSIBLE = 128
"""Value of every attribute of a GPU that features read."""


def corner_problems(spec: Spec) -> list[Problem]:
    """Problems with the smallest and largest sizes and every category.

    Sizes that break a constraint of the problem are moved to the nearest that fit, or left out
    where none do. Where the baseline is infeasible, the nearest problem that it may run is added.
    """
    values = {name: _ends(parameter) for name, parameter in spec.problem.items()}
    crossed = [dict(zip(values, each, strict=True)) for each in _some([*values.values()])]
    found = nearest_problems(spec, crossed)
    first = baseline(spec)
    idle = [problem for problem in found if not _is_feasible(spec, problem, first)]
    found += nearest_problems(spec, idle, [first])
    return list({tuple(each.values()): each for each in found}.values())


def _is_feasible(spec: Spec, problem: Problem, configuration: Configuration) -> bool:
    """Whether constraints hold; also where they have no value, which is complained of later."""
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
        found += _of_variant(spec, name, variant)
    return found


def _of_variant(spec: Spec, name: str, variant: Variant) -> Iterator[Configuration]:
    neutral = spec.neutral
    ends = {each: _ends_of(spec.tunables[each].values) for each in variant.tunables}
    for values in _some([*ends.values()]):
        yield {"variant": name, **neutral, **dict(zip(ends, values, strict=True))}


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
    """Combination ``number`` in the order of :func:`itertools.product`."""
    found: list[Value] = []
    for values in reversed(choices):
        number, place = divmod(number, len(values))
        found.append(values[place])
    return tuple(reversed(found))


def complaint(spec: Spec, drawn: bool = True) -> tuple[str, str] | None:
    """First expression without a value at a corner: its key and what is wrong; None for none.

    Constraints are tried everywhere, all others where the constraints hold.

    Parameters
    ----------
    drawn
        Whether constraints of the problem that no drawn size meets are a mistake.
    """
    plausible = dict.fromkeys(GPU_FEATURES, PLAUSIBLE)
    corners = corner_problems(spec)
    if drawn and not corners:
        return "constraints", nothing_fits(spec)
    for problem in corners:
        for key, text in _of_work(spec):
            if said := _failure(spec, text, problem):
                return key, f"{said} for {assigned(problem)}"
        for configuration in corner_configurations(spec):
            names = {**plausible, **problem, **configuration, **UNKNOWN_GPU}
            where = assigned({**problem, **configuration})
            variant = spec.variants[str(configuration["variant"])]
            prefix = f"variants.{configuration['variant']}"
            allowed = True
            for key, text in _conditions(spec, prefix, variant):
                if said := _failure(spec, text, names):
                    return key, f"{said} for {where}"
                # As a sweep reads them: what one rules out the next need not bear.
                if not spec.value(text, names):
                    allowed = False
                    break
            if allowed:
                for key, text in _others(spec, prefix, variant):
                    if said := _failure(
                        spec, text, {**dict.fromkeys(GPU_FEATURES, PLAUSIBLE), **names}
                    ):
                        return key, f"{said} for {where}"
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


def _of_work(spec: Spec) -> Iterator[tuple[str, str]]:
    for key in ("items", "bytes", "flop", "footprint_bytes", "host_bytes", "precision"):
        yield f"work.{key}", getattr(spec.work, key)
    for key, text in _of_arrays(spec):
        if set(spec.formulas.raw_names(text)) <= set(spec.problem):
            yield key, text


def _of_arrays(spec: Spec) -> Iterator[tuple[str, str]]:
    """Shapes, contents, and what a reference is given."""
    for name, argument in spec.arguments.items():
        for text in argument.sizes:
            yield f"arguments.{name}.shape", text
    if spec.reference is not None:
        for text in spec.reference.given or []:
            if text not in spec.arguments:
                yield "reference.given", text


def _conditions(spec: Spec, prefix: str, variant: Variant) -> Iterator[tuple[str, str]]:
    for text in spec.constraints:
        yield "constraints", text
    for text in variant.constraints:
        yield f"{prefix}.constraints", text


def _others(spec: Spec, prefix: str, variant: Variant) -> Iterator[tuple[str, str]]:
    for key in ("block", "grid"):
        for text in getattr(variant, key) or ():
            yield f"{prefix}.{key}", text
    yield f"{prefix}.shared_bytes", variant.shared_bytes
    for number, step in enumerate(variant.kernels):
        for text in (*step.block, *step.grid, step.shared_bytes):
            yield f"{prefix}.kernels.{number}", text
    for key, text in _of_arrays(spec):
        if not set(spec.formulas.raw_names(text)) <= set(spec.problem):
            yield key, text
    for name, argument in spec.arguments.items():
        for text in argument.values.values():
            yield f"arguments.{name}.value", text
    for name, text in spec.macros.items():
        yield f"macros.{name}", text
    for name, text in spec.features.items():
        yield f"features.{name}", text


def _failure(spec: Spec, text: str, names: Mapping[str, Any]) -> str:
    """Complaint about the value of an expression; '' if it is right.

    What reads counters, or numbers that ``inputs`` gives, has its value only when it runs.
    """
    if not set(spec.formulas.raw_names(text)) <= set(names):
        return ""
    try:
        spec.value(text, names)
    except ValueError as error:
        return str(error)
    return ""
