"""Whether a workload's space makes sense for the problems that are asked for."""

from __future__ import annotations

from collections.abc import Iterable

from launchwise.workloads.sampling import Draws
from launchwise.workloads.space import Problem, baseline, feasible, launch
from launchwise.workloads.spec import Spec


def check_space(spec: Spec, listed: Iterable[Problem], every_variant: bool = True) -> None:
    """Insist that every problem has its baseline and every variant a problem that it can do.

    The GPU is a lenient guess: what a certain one refuses is another question.

    Parameters
    ----------
    every_variant
        Whether a variant that can do none of the problems is a mistake.

    Raises
    ------
    ValueError
        When a constraint leaves nothing or refuses the baseline, or an expression has no value.
    """
    # Drawn, not listed: a space may be far too large for that.
    first = baseline(spec)
    idle = dict.fromkeys(spec.variants)
    for problem in listed:
        work = spec.work
        for text in (work.items, work.bytes, work.flop, work.footprint_bytes, work.host_bytes):
            spec.value(text, problem)
        if not feasible(spec, problem, first):
            named = ", ".join(f"{name}={value}" for name, value in problem.items())
            if Draws(spec, problem, None, 0).any():
                raise ValueError(f"baseline: the constraints refuse it for {named}")
            raise ValueError(f"the constraints leave no configuration for {named}")
        if idle:
            draws = Draws(spec, problem, None, 0)
            for variant in list(idle):
                if configuration := draws.any(variant):
                    launch(spec, problem, configuration)
                    del idle[variant]
    if idle and every_variant:
        key = f"variants.{next(iter(idle))}.constraints"
        raise ValueError(f"{key}: they leave no configuration for any problem")
