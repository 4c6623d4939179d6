"""Problems and configurations, enumerated from a spec.

Both come as plain dictionaries in a fixed order, so that two runs list the same things in the same
order, and so that they can be sent to the measuring process as JSON.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from launchwise.base.errors import UserError
from launchwise.workloads.parts import GPU_NAMES, UNKNOWN_GPU, Value
from launchwise.workloads.spec import Spec

MOST_LISTED = 200_000
"""Most configurations of one problem that are listed; larger spaces are sampled."""

MOST_STEPS = 2_000_000
"""Most values that are set, one tunable after the other, to list the configurations of a problem:
constraints that refuse late may leave few of 10^12 combinations."""

MOST_PROBLEMS = 100_000  # Most problems of a sweep

Problem = dict[str, Value]
Configuration = dict[str, Value]

# As much as any card allows so far (CUDA C++ Programming Guide, compute capabilities): for what
# must be made before it is known which card there is.
LENIENT_GPU = {
    **UNKNOWN_GPU,
    "gpu_shared_per_block_bytes": 227 * 1024,
    "gpu_compute_capability": 121,
}

# Opt-in limits of dynamic shared memory per block by compute capability, KiB (same tables).
_SHARED_KIB = {
    **{70: 96, 72: 96, 75: 64, 80: 163, 86: 99, 87: 163, 88: 163, 89: 99},
    **{90: 227, 100: 227, 101: 227, 103: 227, 110: 227, 120: 99, 121: 99},
}


def gpu_of_architecture(arch: str) -> dict[str, int]:
    """Limits of any GPU of an architecture such as ``sm_90``, as far as it decides them."""
    capability = int("".join(filter(str.isdigit, arch)) or UNKNOWN_GPU["gpu_compute_capability"])
    shared = _SHARED_KIB.get(capability)
    known = {} if shared is None else {"gpu_shared_per_block_bytes": shared * 1024}
    return {**UNKNOWN_GPU, **known, "gpu_compute_capability": capability}


ONLY = "only"  # Key of a block of problems: tunables to the values that are measured

CONSTRAINTS = "constraints"
"""Key of a block of problems: expressions that measured configurations satisfy."""

ProblemBlock = Mapping[str, Any]
"""Problem parameters to the values to cross; :data:`ONLY` and :data:`CONSTRAINTS` narrow what is
measured of them."""


def problems(spec: Spec, blocks: Iterable[ProblemBlock]) -> list[Problem]:
    """Every problem of ``blocks``, without repetition, in the order of the blocks.

    ``blocks``: each a mapping from problem parameter to the values to cross.
    Raises ValueError when a parameter is missing, unknown or out of its range.
    """
    found: dict[tuple[Value, ...], Problem] = {}
    for block in blocks:
        for name in block:
            if name not in spec.problem and name not in (ONLY, CONSTRAINTS):
                raise ValueError(spec.check_problem({name: 0}) or "")
        if missing := [name for name in spec.problem if name not in block]:
            raise ValueError(f"{missing[0]} is missing")
        if math.prod(len(block[name]) for name in spec.problem) > MOST_PROBLEMS:
            raise ValueError(f"are more than {MOST_PROBLEMS:,} combinations of values")
        for values in itertools.product(*(block[name] for name in spec.problem)):
            problem = dict(zip(spec.problem, values, strict=True))
            if complaint := spec.check_problem(problem):
                raise ValueError(complaint)
            found.setdefault(values, problem)
    return list(found.values())


@dataclass(frozen=True)
class Part:
    # Tunables to the values that are in it (see :meth:`launchwise.workloads.spec.Spec.narrowed`).
    only: Mapping[str, list[Value]] = field(default_factory=dict)
    constraints: tuple[str, ...] = ()  # expressions that hold in it, beside the workload's own

    def of(self, spec: Spec) -> Spec:
        """The workload with this part of its space."""
        narrowed = spec.narrowed(self.only)
        return narrowed.model_copy(update={"constraints": [*spec.constraints, *self.constraints]})


Narrowing = list[Part]  # Parts of a space; empty for all of it


def narrowings(spec: Spec, blocks: Iterable[ProblemBlock]) -> dict[tuple[Value, ...], Narrowing]:
    """Measured part of the space of each problem (keyed by its values), over all blocks. A problem
    that also stands in a block that narrows nothing is measured whole."""
    found: dict[tuple[Value, ...], Narrowing] = {}
    for block in blocks:
        part = Part(block.get(ONLY, {}), tuple(block.get(CONSTRAINTS, ())))
        for problem in problems(spec, [block]):
            key = tuple(problem.values())
            if part == Part() or found.get(key) == []:
                found[key] = []
            else:
                found.setdefault(key, []).append(part)
    return found


def whole(configuration: Mapping[str, Value], spec: Spec) -> Configuration:
    """A configuration with every tunable in it, in the order of the spec."""
    found = {**spec.neutral, **configuration}
    return {name: found[name] for name in spec.tunable_columns}


def baseline(spec: Spec) -> Configuration:
    """The baseline's configuration with every tunable in it."""
    return whole(spec.baseline, spec)


def configurations(
    spec: Spec,
    problem: Mapping[str, Any],
    gpu: Mapping[str, Any] | None = None,
    parts: Narrowing | None = None,
    most: int | None = None,
) -> list[Configuration]:
    """Every configuration that the constraints allow for ``problem``, the baseline first.

    ``gpu``: facts of the GPU (the names in :data:`spec.GPU_NAMES`); left out: limits that any GPU
        may have.
    ``parts``: parts of the space that are listed, beside the baseline; all of it when left out or
        empty.
    ``most``: the first ones beside the baseline; all of them when left out.
    Raises UserError when there are more than :data:`MOST_LISTED`, or more than :data:`MOST_STEPS`
    are needed.
    """
    facts = {**UNKNOWN_GPU, **(gpu or {})}
    first = baseline(spec)
    narrowed = [part.of(spec) for part in parts or [Part()]]
    steps = iter(range(MOST_STEPS))
    growths = [(each, Growth(each, {**facts, **problem})) for each in narrowed]
    listed = (
        configuration
        for each, growth in growths
        for variant in each.variants
        for configuration in growth.every(variant, steps)
        if configuration != first and feasible(each, problem, configuration, facts)
    )
    rest = list(itertools.islice(listed, MOST_LISTED if most is None else most))
    if len(narrowed) > 1:
        # What two parts have in common is listed once.
        rest = list({tuple(each.values()): each for each in rest}.values())
    if most is None and next(listed, None) is not None:
        message = f"more than {MOST_LISTED:,} configurations of one problem"
        message += ": use random or transfer"
        raise UserError(f"sweeps.{spec.workload}", "strategy", message)
    return [first, *rest] if feasible(spec, problem, first, facts) else rest


class Growth:
    """Configurations put together tunable by tunable, in the order of the spec.

    A constraint is asked as soon as all that it reads is known: where it says no, everything that
    could be made of the tunables so far is left out at once. What is found may still be
    infeasible, where a constraint could not be asked before the end.

    ``names``: values that constraints may read beside the configuration: the GPU's and the
        problem's.
    """

    def __init__(self, spec: Spec, names: Mapping[str, Any]) -> None:
        self._spec = spec
        self._names = dict(names)
        self._neutral = spec.neutral
        self.used = {name: spec.used(name) for name in spec.variants}
        self._constraints = {name: self._by_depth(name) for name in spec.variants}

    def every(self, variant: str, steps: Iterator[int]) -> Iterator[Configuration]:
        """What may be feasible of a variant, in order. Raises UserError where ``steps``, which may
        count over several calls, come to an end."""
        yield from self.below(variant, steps)
        if next(steps, None) is None:
            message = f"listing the feasible configurations takes more than {MOST_STEPS:,} steps"
            message += ": put tunables that constraints read first, or use random or transfer"
            raise UserError(f"sweeps.{self._spec.workload}", "strategy", message)

    def below(
        self,
        variant: str,
        steps: Iterator[int],
        dice: random.Random | None = None,
        found: Configuration | None = None,
        depth: int = 0,
    ) -> Iterator[Configuration]:
        """What may be feasible of a variant, in order or by chance, as long as there are ``steps``.

        ``found``: its first ``depth`` tunables are set; none where a search begins.
        """
        found = {"variant": variant, **self._neutral} if found is None else found
        if next(steps, None) is None or not self.promising(found, depth):
            return
        if depth == len(self.used[variant]):
            yield found
            return
        name = self.used[variant][depth]
        values = list(self._spec.tunables[name].values)
        if dice is not None:
            dice.shuffle(values)
        for value in values:
            yield from self.below(variant, steps, dice, {**found, name: value}, depth + 1)

    def promising(self, found: Configuration, depth: int) -> bool:
        """Whether the constraints hold that the last of ``depth`` tunables completes."""
        names = {**self._names, **found}
        for text in self._constraints[str(found["variant"])][depth]:
            try:
                if not self._spec.formulas.value(text, names):
                    return False
            except ValueError:
                # A constraint that comes before it may keep it from being asked: see at the end.
                continue
        return True

    def _by_depth(self, variant: str) -> list[list[str]]:
        used = self.used[variant]
        found: list[list[str]] = [[] for _ in range(len(used) + 1)]
        for text in (*self._spec.variants[variant].constraints, *self._spec.constraints):
            read = self._spec.formulas.raw_names(text)
            depth = max((used.index(name) + 1 for name in read if name in used), default=0)
            found[depth].append(text)
        return found


def plain(row: Any, columns: Iterable[str]) -> dict[str, Value]:
    """Values of a mapping or a row in some columns, such as a problem's, as JSON holds them."""
    return {name: value if isinstance(value := row[name], str) else int(value) for name in columns}


def feasible(
    spec: Spec,
    problem: Mapping[str, Any],
    configuration: Mapping[str, Any],
    gpu: Mapping[str, Any] | None = None,
) -> bool:
    """Whether every constraint of the workload and of the variant holds, and the list has it."""
    listed = spec.feasible_configurations
    if listed is not None and tuple(configuration[n] for n in spec.tunable_columns) not in listed:
        return False
    names = {**UNKNOWN_GPU, **(gpu or {}), **problem, **configuration}
    variant = spec.variants[str(configuration["variant"])]
    value = spec.formulas.value
    return all(value(text, names) for text in (*variant.constraints, *spec.constraints))


def universe(spec: Spec) -> list[Configuration]:
    """Every configuration that the tunables span, feasible anywhere or not, in a fixed order. Of a
    workload that lists its feasible configurations: those."""
    if spec.feasible_configurations is None:
        neutral = spec.neutral
        return [
            {"variant": name, **neutral, **dict(zip(spec.used(name), values, strict=True))}
            for name in spec.variants
            for values in itertools.product(*(spec.tunables[n].values for n in spec.used(name)))
        ]
    listed = (
        dict(zip(spec.tunable_columns, values, strict=True))
        for values in spec.feasible_configurations
    )
    return [configuration for configuration in listed if spans(spec, configuration)]


def spans(spec: Spec, configuration: Configuration) -> bool:
    """Whether a spec has this variant with these values, feasible or not."""
    variant = spec.variants.get(str(configuration.get("variant")))
    return variant is not None and all(
        configuration.get(name) in (one.values if name in variant.tunables else [one.neutral])
        for name, one in spec.tunables.items()
    )


def launch(
    spec: Spec, problem: Mapping[str, Any], configuration: Mapping[str, Any]
) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Threads per block and blocks per grid (x, y, z each) of one configuration. Raises UserError
    when the variant has no kernel."""
    name = str(configuration["variant"])
    variant = spec.variants[name]
    if variant.block is None or variant.grid is None:
        raise UserError(spec.workload, f"variants.{name}", "has no kernel")
    block = tuple(int(spec.value(text, problem, configuration)) for text in variant.block)
    grid = tuple(int(spec.value(text, problem, configuration)) for text in variant.grid)
    return block, grid  # type: ignore[return-value]


def gpu_facts(profile: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of a GPU profile that constraints may read (see :data:`spec.GPU_NAMES`)."""
    facts = {name: profile[name.removeprefix("gpu_")] for name in GPU_NAMES}
    major, minor = facts["gpu_compute_capability"]
    return {**facts, "gpu_compute_capability": 10 * major + minor}


def label(configuration: Mapping[str, Any], spec: Spec) -> str:
    """A short readable name of a configuration: its variant and the tunables that it uses."""
    variant, *tunables = used(configuration, spec).items()
    return " ".join([str(variant[1]), *(f"{name}={value}" for name, value in tunables)])


def used(configuration: Mapping[str, Any], spec: Spec) -> dict[str, Any]:
    """Relevant part of a configuration: the variant and the tunables that it has."""
    variant = str(configuration["variant"])
    return {"variant": variant, **{name: configuration[name] for name in spec.used(variant)}}
