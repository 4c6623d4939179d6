"""Variants that no configuration of any problem may run, and the constraints that refuse them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from launchwise.base.errors import UserError
from launchwise.base.names import SPEC_FILE
from launchwise.cli.check.small_runs import SEED, small_problems
from launchwise.workloads import corners
from launchwise.workloads.fitting_sizes import nearest_problem
from launchwise.workloads.sampling import Draws
from launchwise.workloads.space import LENIENT_GPU, Problem
from launchwise.workloads.spec import Spec


def check_idle(folder: Path, spec: Spec, problems: Sequence[Problem]) -> None:
    """Check that each variant may run for one of some problems, or for one near to them.

    A variant of which this is not certain passes: a large space may hold what no search finds.

    Raises
    ------
    UserError
        At the first variant that constraints keep from every problem; with these constraints.
    """
    tried: list[Problem] = []
    for name, variant in spec.variants.items():
        if any(_may_run(spec, each, name) for each in problems):
            continue
        tried = tried or [*problems, *small_problems(folder, spec)]
        if any(_may_run(spec, each, name) for each in tried) or _fits_near(spec, tried, name):
            continue
        own = f"variants.{name}.constraints"
        asked = [(own, text) for text in variant.constraints]
        asked += [("constraints", text) for text in spec.constraints]
        never = [(key, text) for key, text in asked if not _holds(spec, tried, name, text)]
        key = never[0][0] if never else own if variant.constraints else "constraints"
        named = " and ".join(text for _, text in never)
        together = "the constraints of the variant and of the workload do not hold together"
        said = f"{named} never holds" if never else together
        why = f"{said}, in none of its configurations for {len(tried)} problems"
        raise UserError(folder / SPEC_FILE, key, f"no configuration of {name} may run: {why}")


def _may_run(spec: Spec, problem: Problem, variant: str) -> bool:
    """Whether a variant has a feasible configuration, or may have one that was not found."""
    draws = Draws(spec.narrowed({"variant": [variant]}), problem, LENIENT_GPU, SEED)
    found = draws.draw(random.Random(SEED), (), variant)
    return found is not None or not draws.ended(variant)


def _fits_near(spec: Spec, problems: Sequence[Problem], variant: str) -> bool:
    """Whether a corner of the variant's space may run a problem near to one of these."""
    return any(
        nearest_problem(spec, problem, [configuration]) is not None
        for configuration in corners.corner_configurations(spec)
        if configuration["variant"] == variant
        for problem in problems
    )


def _holds(spec: Spec, problems: Sequence[Problem], variant: str, text: str) -> bool:
    """Whether a constraint, alone, leaves a variant any configuration."""
    own = spec.variants[variant].model_copy(update={"constraints": [text]})
    alone = spec.model_copy(update={"variants": {**spec.variants, variant: own}, "constraints": []})
    try:
        return any(_may_run(alone, each, variant) for each in problems)
    except ValueError:
        return True  # What stands before it keeps it from being asked.
