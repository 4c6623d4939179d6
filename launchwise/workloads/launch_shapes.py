"""How configurations are launched, and which problems have an answer."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from launchwise.base.expressions import evaluate, names_in, parsed
from launchwise.base.expressions import inlined as without_derived
from launchwise.base.vectors import is_simple
from launchwise.workloads.arguments import Repeated, Step
from launchwise.workloads.parts import ProblemParameter, Value, Variant
from launchwise.workloads.spec import Spec
from launchwise.workloads.templates import resolved_kernel

MOST_LAUNCHES = 100_000  # Most launches of one run: more is a mistake in a count


@dataclass(frozen=True)
class Planned:
    """One launch of a run."""

    step: Step  # what is launched
    place: int  # place of the step in its variant
    counters: Mapping[str, int]  # values of the counters around it
    # Names of arrays to the names that are passed in their place, for those that are swapped.
    passed: Mapping[str, str]


def swapped_in(variant: Variant) -> list[tuple[str, str]]:
    """Pairs of arrays that a variant swaps."""
    pairs = [each.swap for each in (variant, *variant.kernels)]
    return [pair for pair in pairs if pair is not None]


def planned(spec: Spec, variant: Variant, names: Mapping[str, Any]) -> list[Planned]:
    """Launches of a variant for the values of a problem and a configuration. Raises ValueError when
    a count cannot be evaluated, is negative or too large."""
    made: list[Planned] = []
    # Names of arrays to the names that stand for them at the moment.
    passed: dict[str, str] = {}

    def repeated(part: Repeated, known: Mapping[str, Any]) -> Iterator[dict[str, int]]:
        """Counters of each repetition; arrays are swapped before all but the first one."""
        for number, counters in enumerate(_counted(spec, list(part.repeat.items()), known)):
            if number and part.swap is not None:
                one, other = part.swap
                passed[one], passed[other] = passed.get(other, other), passed.get(one, one)
            yield counters

    for outer in repeated(variant, names):
        for place, step in enumerate(variant.steps):
            for inner in repeated(step, {**names, **outer}):
                if len(made) == MOST_LAUNCHES:
                    raise ValueError(f"more than {MOST_LAUNCHES} launches in a run")
                swapped = {name: other for name, other in passed.items() if name != other}
                made.append(Planned(step, place, {**outer, **inner}, swapped))
    return made


def _counted(
    spec: Spec, counters: list[tuple[str, str]], names: Mapping[str, Any]
) -> Iterator[dict[str, int]]:
    if not counters:
        yield {}
        return
    (name, text), *rest = counters
    count = int(spec.value(text, names))
    if not 0 <= count <= MOST_LAUNCHES:
        raise ValueError(f"repeat.{name}: {count} repetitions (allowed: 0 to {MOST_LAUNCHES})")
    for step in range(count):
        for more in _counted(spec, rest, {**names, name: step}):
            yield {name: step, **more}


Size = tuple[int, int, int]


@dataclass(frozen=True)
class LaunchShape:
    # Name of its ``__global__`` function, of a template with its arguments, ``gemm<64, float>``;
    # empty where host code knows it.
    kernel: str
    # Threads per block and blocks per grid in x, y, z.
    block: Size
    grid: Size
    # Dynamic shared memory per block, bytes; None where Triton decides it.
    shared_bytes: int | None

    @property
    def words(self) -> str:
        """Such as ``block 32 x 4 x 1, grid 11 x 84 x 4, 12544 bytes of dynamic shared memory``."""
        block, grid = (" x ".join(map(str, size)) for size in (self.block, self.grid))
        named = f"{self.kernel}: " if self.kernel else ""
        if self.shared_bytes is None:
            return f"{named}block {block}, grid {grid}"
        shared = f"{self.shared_bytes} bytes of dynamic shared memory"
        return f"{named}block {block}, grid {grid}, {shared}"


@dataclass(frozen=True)
class LaunchExpressions:
    """A :class:`LaunchShape` before it is evaluated: expressions over problem and configuration.
    Arguments of a template are names in ``kernel``, unless they stand in ``arguments``."""

    kernel: str
    block: Sequence[str]
    grid: Sequence[str]
    shared_bytes: str | None
    arguments: Sequence[str] = ()

    @property
    def texts(self) -> list[str]:
        shared = [] if self.shared_bytes is None else [self.shared_bytes]
        return [*self.block, *self.grid, *shared]


def launch_expressions(variant: Variant, exact: bool = True) -> list[LaunchExpressions]:
    """Expressions of :func:`launch_shapes`. Host code decides, and there is none, unless the spec
    states ``shared_bytes``, too: ``block`` and ``grid`` alone are those of its main kernel, in a
    run that may launch fewer blocks, parts of the problem or more kernels. ``exact``: leave out
    what host code decides."""
    if variant.offloads:
        return []
    if variant.steps:
        return [
            LaunchExpressions(
                one.kernel, one.block, one.grid, None if variant.is_triton else one.shared_bytes
            )
            for one in variant.steps
        ]
    decided = exact and "shared_bytes" not in variant.model_fields_set
    if variant.block is None or variant.grid is None or decided:
        return []
    return [LaunchExpressions("", variant.block, variant.grid, variant.shared_bytes)]


def launch_shapes(
    spec: Spec, problem: Mapping[str, Any], configuration: Mapping[str, Any], exact: bool = True
) -> list[LaunchShape]:
    """Launches of a configuration in the order in which they run.

    ``configuration``: the variant and the tunables that it has; others may be left out.
    Returns none where host code decides (``exact``: see :func:`launch_expressions`), the host
    computes or a function in C offloads its work.
    """
    names = {**problem, **spec.neutral, **configuration}
    variant = spec.variants[str(configuration["variant"])]
    return [evaluated(spec, each, names) for each in launch_expressions(variant, exact)]


def evaluated(spec: Spec, one: LaunchExpressions | Step, names: Mapping[str, Any]) -> LaunchShape:
    """Launch of one kernel for the values of a problem, a configuration and counters."""

    def size(texts: Sequence[str]) -> Size:
        x, y, z = (int(spec.value(text, names)) for text in texts)
        return x, y, z

    kernel = resolved_kernel(spec, one.kernel, names, names)
    shared = None if one.shared_bytes is None else int(spec.value(one.shared_bytes, names))
    return LaunchShape(kernel, size(one.block), size(one.grid), shared)


@dataclass(frozen=True)
class Limits:
    """Problems that some configuration may run."""

    parameters: Mapping[str, ProblemParameter] = field(default_factory=dict)
    # Expressions over the parameters: the workload's constraints that read nothing else. What
    # needs division, powers or functions beside ``ceil_div`` and ``round_up`` is left out.
    conditions: tuple[str, ...] = ()

    @classmethod
    def of(cls, spec: Spec) -> Limits:
        conditions = []
        for text in spec.constraints:
            # Too long without functions: for a file, as little simple as a power.
            with contextlib.suppress(ValueError):
                if set(spec.formulas.raw_names(text)) <= {*spec.problem}:
                    conditions.append(inlined(text, spec.derived))
        return cls(spec.problem, tuple(filter(is_simple, conditions)))

    @property
    def plain(self) -> dict[str, Any]:
        """As JSON holds them; None where there is no limit."""
        keys = ("minimum", "maximum", "values")
        ranges = [
            {"parameter": name, **{key: getattr(one, key) for key in keys}}
            for name, one in self.parameters.items()
        ]
        return {"ranges": ranges, "conditions": list(self.conditions)}

    @property
    def texts(self) -> list[str]:
        """Every limit as an expression over the parameters."""
        found = []
        for name, one in self.parameters.items():
            if one.values is not None:
                found.append(f"{name} in {tuple(one.values)!r}")
            if one.minimum is not None:
                found.append(f"{name} >= {one.minimum}")
            if one.maximum is not None:
                found.append(f"{name} <= {one.maximum}")
        return [*found, *self.conditions]

    def hold(self, problem: Mapping[str, Value]) -> bool:
        """Whether a problem lies within them."""
        return all(evaluate(text, problem) for text in self.texts)


def inlined(text: str, derived: Mapping[str, str]) -> str:
    """An expression with derived names and this project's own functions replaced. Raises ValueError
    when the result would be too long for an expression."""

    class Inline(ast.NodeTransformer):
        def visit_Call(self, node: ast.Call) -> ast.AST:
            node.args = [self.visit(one) for one in node.args]
            name = node.func.id if isinstance(node.func, ast.Name) else ""
            if name not in ("ceil_div", "round_up"):
                return node
            above, below = (ast.unparse(one) for one in node.args)
            quotient = f"-(-({above}) // ({below}))"
            plain = quotient if name == "ceil_div" else f"{quotient} * ({below})"
            # One of round_up holds its second number twice.
            names_in(plain)
            return parsed(plain)

    return ast.unparse(Inline().visit(parsed(without_derived(text, derived))))
