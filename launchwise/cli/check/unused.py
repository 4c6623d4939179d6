"""Variants, and values of tunables, that no configuration of any problem may have."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from launchwise.cli.check.small_problems import SEED, SmallProblems
from launchwise.workloads.sampling import Draws
from launchwise.workloads.space import LENIENT_GPU, Problem
from launchwise.workloads.spec import Spec

MOST_DRAWN_FOR = 8
"""Combinations of listed values of a problem that each value of a tunable is tried for."""

SAMPLE = 300
"""Configurations of each of these that are drawn first: most values are among them."""

MOST_CORNERS = 8
"""Corners of a space that problems near are searched for, at 0.1 s each."""

MOST_TRIED = 16
"""Values that are tried alone; what is left is not looked at."""


def refused_variant(spec: Spec, problems: Sequence[Problem]) -> tuple[str, str] | None:
    """The first variant that constraints keep from every problem: key of these, and what is said.

    A variant of which this is not certain passes: a large space may hold what no search finds.
    """
    tried: list[Problem] = []
    for name, variant in spec.variants.items():
        alone = spec.narrowed({"variant": [name]})
        if any(_may_run(alone, each) for each in problems):
            continue
        tried = tried or [*problems, *SmallProblems(spec, LENIENT_GPU).drawn()]
        if any(_may_run(alone, each) for each in tried) or _fits_near(alone, tried, LENIENT_GPU):
            continue
        asked = [(f"variants.{name}.constraints", text) for text in variant.constraints]
        asked += [("constraints", text) for text in spec.constraints]
        never = [(key, text) for key, text in asked if not _holds(alone, tried, name, text)]
        named = " and ".join(text for _, text in never)
        together = "the constraints of the variant and of the workload do not hold together"
        said = f"{named} never holds" if never else together
        why = f"{said}, in none of its configurations for {len(tried)} problems"
        return (never or asked)[0][0], f"no configuration of {name} may run: {why}"
    return None


def unused_values(
    spec: Spec, problems: Sequence[Problem], gpu: Mapping[str, Any]
) -> Iterator[tuple[str, Any]]:
    """Tunables with those of their values that no feasible configuration of any problem has.

    Only constraints count that hold or do not whatever the sizes are. A value of which this is not
    certain is none of them.
    """
    listed = {tuple(each[name] for name in spec.listed_columns): each for each in problems}
    combinations = math.prod(len(spec.problem[name].values or []) for name in spec.listed_columns)
    if len(listed) < combinations or combinations > MOST_DRAWN_FOR:
        return
    plain = _whatever_the_sizes(spec)
    draws = [Draws(plain, each, gpu, SEED) for each in listed.values()]
    drawn = [each for one in draws for each in one.sample(random.Random(SEED), SAMPLE)]
    unseen = [
        (name, value)
        for name, tunable in spec.tunables.items()
        if any(name in variant.tunables for variant in spec.variants.values())
        for value in tunable.values
        if not any(name in _used(spec, each) and each[name] == value for each in drawn)
    ]
    for name, value in unseen[:MOST_TRIED]:
        having = [key for key, variant in spec.variants.items() if name in variant.tunables]
        alone = plain.narrowed({"variant": having, name: [value]})
        if not any(_may_run(alone, each, gpu) for each in listed.values()):
            yield name, value


def _whatever_the_sizes(spec: Spec) -> Spec:
    """The workload without constraints that read sizes of the problem."""
    sizes = spec.problem.keys() - set(spec.listed_columns)

    def kept(texts: Sequence[str]) -> list[str]:
        return [text for text in texts if sizes.isdisjoint(spec.formulas.raw_names(text))]

    variants = {
        name: one.model_copy(update={"constraints": kept(one.constraints)})
        for name, one in spec.variants.items()
    }
    return spec.model_copy(update={"constraints": kept(spec.constraints), "variants": variants})


def _used(spec: Spec, configuration: Mapping[str, Any]) -> list[str]:
    return spec.variants[str(configuration["variant"])].tunables


def _may_run(spec: Spec, problem: Problem, gpu: Mapping[str, Any] = LENIENT_GPU) -> bool:
    """Whether there is a feasible configuration, or may be one that was not found."""
    draws = Draws(spec, problem, gpu, SEED)
    return any(
        draws.draw(random.Random(SEED), (), name) is not None or not draws.ended(name)
        for name in spec.variants
    )


def _fits_near(spec: Spec, problems: Sequence[Problem], gpu: Mapping[str, Any]) -> bool:
    """Whether a corner of the space may run a problem near to one of these."""
    small = SmallProblems(spec, gpu)
    spans = Draws(spec, problems[0], gpu, SEED).spans
    return any(
        small.near(problem, [configuration]) is not None
        for configuration in itertools.islice(filter(spans, small.corners), MOST_CORNERS)
        for problem in problems
    )


def _holds(spec: Spec, problems: Sequence[Problem], variant: str, text: str) -> bool:
    """Whether a constraint, alone, leaves a variant any configuration."""
    own = spec.variants[variant].model_copy(update={"constraints": [text]})
    alone = spec.model_copy(update={"variants": {variant: own}, "constraints": []})
    try:
        return any(_may_run(alone, each) for each in problems)
    except ValueError:
        return True  # What stands before it keeps it from being asked.
