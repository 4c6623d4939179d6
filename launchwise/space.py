"""Problems and configurations, enumerated from a spec.

Both come as plain dictionaries in a fixed order, so that two runs list the same things in the same
order, and so that they can be sent to the measuring process as JSON.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from launchwise.spec import GPU_NAMES, Spec, Value

Problem = dict[str, Value]
Configuration = dict[str, Value]

# What a GPU nobody described can do: every CUDA card of the last ten years allows this much.
UNKNOWN_GPU = {
    "gpu_memory_bytes": 1 << 62,
    "gpu_max_threads_per_block": 1024,
    "gpu_shared_per_block_bytes": 48 * 1024,
}


def problems(spec: Spec, blocks: Iterable[Mapping[str, list[Value]]]) -> list[Problem]:
    """Every problem of ``blocks``, without repetition, in the order of the blocks.

    Parameters
    ----------
    spec
        The workload.
    blocks
        Each a mapping from problem parameter to the values to cross.

    Raises
    ------
    ValueError
        When a parameter is missing, unknown or out of its range.
    """
    found: dict[tuple[Value, ...], Problem] = {}
    for block in blocks:
        for name in block:
            if name not in spec.problem:
                raise ValueError(spec.check_problem({name: 0}) or "")
        if missing := [name for name in spec.problem if name not in block]:
            raise ValueError(f"{missing[0]} is missing")
        for values in itertools.product(*(block[name] for name in spec.problem)):
            problem = dict(zip(spec.problem, values, strict=True))
            if complaint := spec.check_problem(problem):
                raise ValueError(complaint)
            found.setdefault(values, problem)
    return list(found.values())


def baseline(spec: Spec) -> Configuration:
    """The baseline's configuration with every tunable in it."""
    neutral = {name: tunable.neutral for name, tunable in spec.tunables.items()}
    return {"variant": spec.baseline["variant"], **neutral, **spec.baseline}


def configurations(
    spec: Spec, problem: Mapping[str, Any], gpu: Mapping[str, Any] | None = None
) -> list[Configuration]:
    """Every configuration that the constraints allow for ``problem``, the baseline first.

    Parameters
    ----------
    gpu
        Facts of the GPU (the names in :data:`spec.GPU_NAMES`); a lenient guess when left out.
    """
    facts = {**UNKNOWN_GPU, **(gpu or {})}
    first = baseline(spec)
    rest = [
        configuration
        for configuration in _candidates(spec)
        if configuration != first and feasible(spec, problem, configuration, facts)
    ]
    return [first, *rest] if feasible(spec, problem, first, facts) else rest


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
    from launchwise.draws import Draws

    first = baseline(spec)
    idle = dict.fromkeys(spec.variants)
    for problem in listed:
        for text in (spec.work.items, spec.work.bytes, spec.work.flop, spec.work.footprint_bytes):
            spec.value(text, problem)
        if not feasible(spec, problem, first):
            named = ", ".join(f"{name}={value}" for name, value in problem.items())
            if Draws(spec, problem, None, 0).draw(random.Random(0), ()):
                raise ValueError(f"baseline: the constraints refuse it for {named}")
            raise ValueError(f"the constraints leave no configuration for {named}")
        if idle:
            draws = Draws(spec, problem, None, 0)
            for variant in list(idle):
                if configuration := draws.draw(random.Random(0), (), variant):
                    launch(spec, problem, configuration)
                    del idle[variant]
    if idle and every_variant:
        key = f"variants.{next(iter(idle))}.constraints"
        raise ValueError(f"{key}: they leave no configuration for any problem")


def feasible(
    spec: Spec,
    problem: Mapping[str, Any],
    configuration: Mapping[str, Any],
    gpu: Mapping[str, Any] | None = None,
) -> bool:
    """Whether every constraint of the workload and of the variant holds."""
    names = {**UNKNOWN_GPU, **(gpu or {}), **problem, **configuration}
    variant = spec.variants[str(configuration["variant"])]
    value = spec.formulas.value
    return all(value(text, names) for text in (*variant.constraints, *spec.constraints))


def universe(spec: Spec) -> list[Configuration]:
    """Every configuration that the tunables span, feasible anywhere or not, in a fixed order."""
    return list(_candidates(spec))


def _candidates(spec: Spec) -> Iterator[Configuration]:
    neutral = {name: tunable.neutral for name, tunable in spec.tunables.items()}
    for name, variant in spec.variants.items():
        # The order of spec.tunables, not of the variant's list, so that columns never move.
        chosen = [tunable for tunable in spec.tunables if tunable in variant.tunables]
        for values in itertools.product(*(spec.tunables[tunable].values for tunable in chosen)):
            yield {"variant": name, **neutral, **dict(zip(chosen, values, strict=True))}


def launch(
    spec: Spec, problem: Mapping[str, Any], configuration: Mapping[str, Any]
) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Threads a block and blocks a grid (x, y, z each) of one configuration."""
    variant = spec.variants[str(configuration["variant"])]
    block = tuple(int(spec.value(text, problem, configuration)) for text in variant.block)
    grid = tuple(int(spec.value(text, problem, configuration)) for text in variant.grid)
    return block, grid  # type: ignore[return-value]


def gpu_facts(profile: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of a GPU profile that constraints may read (see :data:`spec.GPU_NAMES`)."""
    return {name: profile[name.removeprefix("gpu_")] for name in GPU_NAMES}


def label(configuration: Mapping[str, Any], spec: Spec) -> str:
    """A short readable name of a configuration: its variant and the tunables that it uses."""
    variant = str(configuration["variant"])
    used = [name for name in spec.tunables if name in spec.variants[variant].tunables]
    return " ".join([variant, *(f"{name}={configuration[name]}" for name in used)])


def cut(problems: list[Problem], weights: list[float], shards: int) -> list[list[Problem]]:
    """Cut ``problems`` into ``shards`` runs of neighbours with nearly equal sums of weights.

    The order is kept, so that what the settings name first is measured first. Fewer problems than
    shards leave the last shards empty.
    """
    total, passed = sum(weights), 0.0
    parts: list[list[Problem]] = [[] for _ in range(shards)]
    for problem, weight in zip(problems, weights, strict=True):
        middle = passed + weight / 2
        parts[min(shards - 1, int(shards * middle / total))].append(problem)
        passed += weight
    return parts
