"""Keys of ``spec.yaml``, and what reads them alone.

A workload's problems, tunables, variants, constraints, baseline, bytes and FLOP are data; every
expression in them is read by :mod:`launchwise.base.expressions`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from pydantic import Field

from launchwise.base.expressions import Expression, Formulas
from launchwise.base.names import WORKLOAD
from launchwise.base.typed import Strict
from launchwise.workloads.arguments import FUNCTION, Argument, Name, Reference
from launchwise.workloads.cost import Cost
from launchwise.workloads.parts import (
    CompilerOption,
    ProblemParameter,
    Tunable,
    Value,
    Variant,
    Work,
)


class SpecFields(Strict):
    """A workload: problem space, tunables, variants, constraints, baseline and work."""

    workload: str = Field(pattern=WORKLOAD)
    """name of the workload: that of its folder"""
    title: str
    """title of the workload in the report"""
    description: str = ""
    """what the workload computes, for the report"""
    problem: dict[Name, ProblemParameter] = Field(min_length=1)
    """problem parameters by name; the order is that of the columns"""
    derived: dict[Name, Expression] = Field({})
    """names for subexpressions; each may read those before it"""
    tunables: dict[Name, Tunable]
    """tunables by name; the order is that of the columns"""
    arguments: dict[Name, Argument] = Field({})
    """parameters of the kernels, in their order; with them a workload needs no `host/`"""
    macros: dict[Name, Expression] = Field({})
    """macros of every build beside its build tunables, for a spec with `arguments`: expressions
    over build tunables and listed problem values"""
    inputs: str | None = Field(None, pattern=FUNCTION)
    """a function of your own that makes inputs which depend on each other, `inputs.py:make`, for a
    spec with `arguments`. It gets what its signature names: `generator` (of NumPy, seeded), problem
    parameters, derived names, `problem` (all parameters). It returns arrays, and numbers, by the
    names of arguments"""
    compiler_options: list[CompilerOption] = Field([])
    """options of nvcc beside `-std=c++17 -O3`: another `-std`, `--use_fast_math`, `--fmad=false`,
    `-O1` to `-O3`, `-maxrregcount=64`, `-lineinfo`, `--extra-device-vectorization`,
    `--expt-relaxed-constexpr`, `--extended-lambda`"""
    reference: Reference | None = None
    """reference of the outputs, for a spec with `arguments`"""
    variants: dict[str, Variant] = Field(min_length=1)
    """CUDA implementations by name"""
    constraints: list[Expression] = Field([])
    """conditions that configurations of every variant satisfy; one that reads problem parameters
    only, such as `n % 256 == 0`, says which problems there are: sizes that are drawn keep it,
    others are refused"""
    feasible: str | None = None
    """Parquet file in the workload's folder that lists the feasible configurations, where no
    constraints tell them: a column `variant` and one per tunable"""
    baseline: dict[str, Value]
    """default configuration: variant and tunables; those left out are neutral"""
    # The default is never used: what is left out is derived or missing, see _complete.
    work: Work = None  # type: ignore[assignment]
    """bytes, FLOP and memory of a problem; derived from `arguments` when left out"""
    features: dict[str, Expression] = Field({})
    """features that models learn from; usually in `features.yaml`"""
    cost: Cost | None = None
    """demands of each run on the hardware; usually in `cost.yaml`"""
    headers: list[str] = Field([])
    """header files, included once before the sources of a compilation"""
    stages: dict[Name, str] = Field({})
    """timed phases of a run to their descriptions; each has a column `<name>_ms`"""
    findings: dict[Name, str] = Field({})
    """check results beside the largest error to descriptions, a column each"""

    @property
    def has_kernel(self) -> bool:
        """Whether its variants have sources, so that it can be measured."""
        return all(variant.source is not None for variant in self.variants.values())

    @property
    def has_host_code(self) -> bool:
        """Whether Python of the workload decides how its kernels are built and launched."""
        return self.has_kernel and not self.arguments

    @property
    def own_functions(self) -> dict[str, str]:
        """Key to the function of the user's own that it names, ``reference.py:expected``."""
        named = {"inputs": self.inputs}
        if self.reference is not None:
            named |= {"reference.file": self.reference.file}
            named |= {"reference.compare": self.reference.compare}
        return {key: text for key, text in named.items() if text is not None}

    @property
    def problem_columns(self) -> list[str]:
        """Columns that name a problem, in the order of the file."""
        return list(self.problem)

    @property
    def tunable_columns(self) -> list[str]:
        """Columns that name a configuration: the variant, then the tunables."""
        return ["variant", *self.tunables]

    @property
    def neutral(self) -> dict[str, Value]:
        """Value of each tunable in the rows of variants without it."""
        return {name: tunable.neutral for name, tunable in self.tunables.items()}

    def used(self, variant: str) -> list[str]:
        """Tunables of a variant in the order of the spec, so that columns never move."""
        return [name for name in self.tunables if name in self.variants[variant].tunables]

    def values_of(self, column: str) -> list[Value]:
        """Values that a column of a configuration may hold, neutral ones included."""
        if column == "variant":
            return list(self.variants)
        tunable = self.tunables[column]
        return list(dict.fromkeys([tunable.neutral, *tunable.values]))

    @property
    def stage_columns(self) -> list[str]:
        """Columns with the time of each stage, ms."""
        return [f"{name}_ms" for name in self.stages]

    def build_choice(self, configuration: Mapping[str, Any]) -> tuple[Value, ...]:
        """Part of a configuration that its build may depend on: the variant and its build tunables.
        Configurations that differ in launch tunables alone share a build: those cost no
        compilation."""
        return tuple(configuration[name] for name in ("variant", *self.build_tunables))

    @property
    def build_columns(self) -> list[str]:
        """Columns that decide which code a row runs: those of a build, and problems' listed values.
        A number that may be any in a range is an argument of a kernel, not a macro of it."""
        return ["variant", *self.build_tunables, *self.listed_columns]

    @property
    def listed_columns(self) -> list[str]:
        """Columns of a problem whose values are listed, such as a type."""
        return [name for name, one in self.problem.items() if one.values is not None]

    @property
    def build_tunables(self) -> list[str]:
        return [name for name, one in self.tunables.items() if one.kind == "build"]

    @property
    def key_columns(self) -> list[str]:
        """Columns whose values no two rows of a sweep share."""
        return ["gpu", *self.problem_columns, *self.tunable_columns]

    @cached_property
    def formulas(self) -> Formulas:
        """Evaluator of this workload's expressions, with its derived names."""
        return Formulas(self.derived)

    def value(
        self,
        text: str,
        problem: Mapping[str, Any],
        configuration: Mapping[str, Any] | None = None,
        gpu: Mapping[str, Any] | None = None,
    ) -> Any:
        """Value of an expression of this file for a problem and a configuration on a GPU."""
        return self.formulas.value(text, {**problem, **(configuration or {}), **(gpu or {})})

    def derived_values(self, names: Mapping[str, Any]) -> dict[str, Any]:
        """Values of the derived names that read ``names`` alone."""
        raw_names = self.formulas.raw_names
        return {n: self.value(n, names) for n in self.derived if names.keys() >= {*raw_names(n)}}

    @property
    def problem_constraints(self) -> list[str]:
        """Constraints that read problem parameters only: what breaks one is no problem."""
        found = []
        for text in self.constraints:
            raw = self.formulas.raw_names(text)
            if raw and self.problem.keys() >= set(raw):
                found.append(text)
        return found
