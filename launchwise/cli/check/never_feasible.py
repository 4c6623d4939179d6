"""Variants that constraints keep from every problem."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

from launchwise.cli.check.small_problems import SEED, SmallProblems
from launchwise.workloads.sampling import Draws
from launchwise.workloads.space import LENIENT_GPU, Problem
from launchwise.workloads.spec import Spec

MOST_CORNERS = 8
"""Corners of a space that problems near are searched for, at 0.1 s each."""


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
        if any(_may_run(alone, each) for each in tried) or _fits_near(alone, tried):
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


def _may_run(spec: Spec, problem: Problem) -> bool:
    """Whether there is a feasible configuration, or may be one that was not found."""
    draws = Draws(spec, problem, LENIENT_GPU, SEED)
    return any(
        draws.draw(random.Random(SEED), (), name) is not None or not draws.ended(name)
        for name in spec.variants
    )


def _fits_near(spec: Spec, problems: Sequence[Problem]) -> bool:
    """Whether a corner of the space may run a problem near to one of these."""
    small = SmallProblems(spec, LENIENT_GPU)
    spans = Draws(spec, problems[0], LENIENT_GPU, SEED).spans
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
