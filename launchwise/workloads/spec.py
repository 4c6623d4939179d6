"""``kernels/<workload>/spec.yaml``: a workload as typed data.

A workload's problems, tunables, variants, constraints, baseline, bytes and FLOP are data; every
expression in them is read by :mod:`launchwise.base.expressions`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import Field, PrivateAttr, model_validator

from launchwise.base.errors import UserError
from launchwise.base.expressions import Expression, Formulas
from launchwise.base.names import SPEC_FILE, WORKLOAD, beside, check_folder_name, inside
from launchwise.base.typed import Strict, read_yaml, validated
from launchwise.workloads import problem_checks
from launchwise.workloads.arguments import FUNCTION, Argument, Name, Reference
from launchwise.workloads.compiler_options import CompilerOption
from launchwise.workloads.completion import completed, derived_features
from launchwise.workloads.cost import COST_FILE, Cost
from launchwise.workloads.feasible import read_feasible
from launchwise.workloads.file_checks import check_described
from launchwise.workloads.parts import (
    ProblemParameter,
    Tunable,
    Value,
    Variant,
    Work,
)
from launchwise.workloads.spec_checks import check_spec
from launchwise.workloads.usual import USUAL_FILE, Usual, read_usual

FEATURES_FILE = "features.yaml"


class Spec(Strict, title="spec.yaml"):
    """A workload: problem space, tunables, variants, constraints, baseline and work."""

    workload: str = Field(pattern=WORKLOAD, description="name of the workload: that of its folder")
    title: str = Field(description="title of the workload in the report")
    description: str = Field("", description="what the workload computes, for the report")
    problem: dict[Name, ProblemParameter] = Field(
        min_length=1, description="problem parameters by name; the order is that of the columns"
    )
    derived: dict[Name, Expression] = Field(
        {}, description="names for subexpressions; each may read those before it"
    )
    tunables: dict[Name, Tunable] = Field(
        description="tunables by name; the order is that of the columns"
    )
    arguments: dict[Name, Argument] = Field(
        {},
        description=(
            "parameters of the kernels, in their order; with them a workload needs no `host/`"
        ),
    )
    macros: dict[Name, Expression] = Field(
        {},
        description=(
            "macros of every build beside its build tunables, for a spec with `arguments`: "
            "expressions over build tunables and listed problem values"
        ),
    )
    inputs: str | None = Field(
        None,
        pattern=FUNCTION,
        description=(
            "a function of your own that makes inputs which depend on each other, "
            "`inputs.py:make`, for a spec with `arguments`. It gets what its signature names: "
            "`generator` (of NumPy, seeded), problem parameters, derived names, `problem` (all "
            "parameters). It returns arrays, and numbers, by the names of arguments"
        ),
    )
    compiler_options: list[CompilerOption] = Field(
        [],
        description=(
            "options of nvcc beside `-std=c++17 -O3`: another `-std`, `--use_fast_math`, "
            "`--fmad=false`, `-O1` to `-O3`, `-maxrregcount=64`, `-lineinfo`, "
            "`--extra-device-vectorization`, `--expt-relaxed-constexpr`, `--extended-lambda`"
        ),
    )
    reference: Reference | None = Field(
        None, description="reference of the outputs, for a spec with `arguments`"
    )
    variants: dict[str, Variant] = Field(min_length=1, description="CUDA implementations by name")
    constraints: list[Expression] = Field(
        [],
        description=(
            "conditions that configurations of every variant satisfy; one that reads problem "
            "parameters only, such as `n % 256 == 0`, says which problems there are: sizes that "
            "are drawn keep it, others are refused"
        ),
    )
    feasible: str | None = Field(
        None,
        description=(
            "Parquet file in the workload's folder that lists the feasible configurations, where "
            "no constraints tell them: a column `variant` and one per tunable"
        ),
    )
    baseline: dict[str, Value] = Field(
        description="default configuration: variant and tunables; those left out are neutral"
    )
    # The default is never used: what is left out is derived or missing, see _complete.
    work: Work = Field(
        None,  # type: ignore[assignment]
        description="bytes, FLOP and memory of a problem; derived from `arguments` when left out",
    )
    features: dict[str, Expression] = Field(
        {}, description="features that models learn from; usually in `features.yaml`"
    )
    cost: Cost | None = Field(
        None, description="demands of each run on the hardware; usually in `cost.yaml`"
    )
    headers: list[str] = Field(
        [], description="header files, included once before the sources of a compilation"
    )
    stages: dict[Name, str] = Field(
        {}, description="timed phases of a run to their descriptions; each has a column `<name>_ms`"
    )
    findings: dict[Name, str] = Field(
        {}, description="check results beside the largest error to descriptions, a column each"
    )
    _folder: Path | None = PrivateAttr(None)
    _feasible: dict[tuple[Value, ...], None] | None = PrivateAttr(None)
    _usual: tuple[Usual, ...] = PrivateAttr(())

    @property
    def folder(self) -> Path | None:
        """Folder that the spec was read from, if it was."""
        return self._folder

    @property
    def usual(self) -> tuple[Usual, ...]:
        """Usual configurations of ``usual.yaml``; empty without the file."""
        return self._usual

    @property
    def has_kernel(self) -> bool:
        """Whether its variants have sources, so that it can be measured."""
        return all(variant.source is not None for variant in self.variants.values())

    @property
    def has_host_code(self) -> bool:
        """Whether Python of the workload decides how its kernels are built and launched."""
        return self.has_kernel and not self.arguments

    @property
    def feasible_configurations(self) -> dict[tuple[Value, ...], None] | None:
        """Values of :attr:`tunable_columns` of each feasible configuration, in the file's order.

        None where constraints alone tell them. A mapping without values: looked up and in order.
        """
        return self._feasible

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
        compilation.
        """
        return tuple(configuration[name] for name in self._chosen_by_builds)

    @property
    def build_columns(self) -> list[str]:
        """Columns that decide which code a row runs: those of a build, and problems' listed values.

        A number that may be any in a range is an argument of a kernel, not a macro of it.
        """
        return [*self._chosen_by_builds, *self.listed_columns]

    @property
    def listed_columns(self) -> list[str]:
        """Columns of a problem whose values are listed, such as a type."""
        return [name for name, one in self.problem.items() if one.values is not None]

    @property
    def _chosen_by_builds(self) -> list[str]:
        """Columns of a configuration that its build may depend on."""
        return ["variant", *(name for name, one in self.tunables.items() if one.kind == "build")]

    @property
    def size(self) -> int:
        """Configurations that the tunables span, feasible or not; listed ones where they are."""
        if self._feasible is not None:
            return len(self._feasible)
        return sum(
            math.prod(len(self.tunables[name].values) for name in variant.tunables)
            for variant in self.variants.values()
        )

    def narrowed(self, allowed: Mapping[str, Collection[Value]]) -> Spec:
        """The same workload with some values only of some columns of a configuration.

        Parameters
        ----------
        allowed
            ``variant`` or a tunable to what it may be; whatever is not named may be anything.
        """
        wanted = {
            name: set(allowed.get(name, self.values_of(name))) for name in self.tunable_columns
        }
        tunables = {
            name: tunable.model_copy(
                update={"values": [each for each in tunable.values if each in wanted[name]]}
            )
            for name, tunable in self.tunables.items()
        }
        variants = {
            name: variant
            for name, variant in self.variants.items()
            if name in wanted["variant"]
            # A variant without a tunable has its neutral value, which may be left out too.
            and all(
                tunables[each].values
                if each in variant.tunables
                else tunable.neutral in wanted[each]
                for each, tunable in self.tunables.items()
            )
        }
        return self.model_copy(update={"tunables": tunables, "variants": variants})

    @property
    def recommendable(self) -> Spec:
        """The same workload without variants that are not verified."""
        # Not cached: a narrowed copy would keep what was cached for the whole.
        kept = [name for name, variant in self.variants.items() if variant.verified]
        return self if len(kept) == len(self.variants) else self.narrowed({"variant": kept})

    @property
    def key_columns(self) -> list[str]:
        """Columns whose values no two rows of a sweep share."""
        return ["gpu", *self.problem_columns, *self.tunable_columns]

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, raw: Any) -> Any:
        if not isinstance(raw, Mapping):
            return raw
        found = completed(raw)
        if "work" not in found:
            raise ValueError("work is missing: only a spec with arguments may leave it out")
        return found

    @model_validator(mode="after")
    def _consistent(self) -> Spec:
        check_spec(self)
        return self

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

    @property
    def problem_constraints(self) -> list[str]:
        """Constraints that read problem parameters only: what breaks one is no problem."""
        return problem_checks.problem_constraints(self)

    def check_value(self, name: str, value: Any) -> str | None:
        """Complaint about a value of a problem parameter, whatever the others are, or None."""
        return problem_checks.check_value(self, name, value)

    def check_problem(self, problem: Mapping[str, Any]) -> str | None:
        """Complaint about ``problem``, or None.

        Its values may be missing, unknown or illegal, or break a constraint of the problem.
        """
        return problem_checks.check_problem(self, problem)


def load_spec(folder: Path) -> Spec:
    """Read and check ``folder/spec.yaml`` and what lies beside it.

    ``features.yaml``, ``cost.yaml`` and ``usual.yaml`` may be missing.

    Raises
    ------
    UserError
        One line with the file and the key.
    """
    path = beside(folder, SPEC_FILE)
    raw = read_yaml(path)
    check_folder_name(folder)
    spec = validated(Spec, raw, path)
    for key, file in (("features", FEATURES_FILE), ("cost", COST_FILE)):
        own = beside(folder, file)
        if own.is_file():
            if getattr(spec, key):
                raise UserError(path, key, f"also given in {own}: keep one of them")
            whole = {**spec.model_dump(exclude_unset=True), key: read_yaml(own)}
            spec = validated(Spec, whole, own)
    if spec.arguments and not spec.features:
        whole = {**spec.model_dump(exclude_unset=True), "features": derived_features(spec)}
        spec = validated(Spec, whole, path)
    if spec.workload != folder.name:
        raise UserError(path, "workload", f"is {spec.workload!r} but the folder is {folder.name!r}")
    for name, variant in spec.variants.items():
        if variant.source is not None:
            _check_file(folder, variant.source, f"variants.{name}.source")
    for header in spec.headers:
        _check_file(folder, header, "headers")
    if spec.arguments:
        check_described(folder, spec)
    spec._folder = folder
    if spec.feasible is not None:
        spec._feasible = read_feasible(inside(folder, spec.feasible, path, "feasible"), spec)
    spec._usual = read_usual(beside(folder, USUAL_FILE), spec)
    return spec


def _check_file(folder: Path, name: str, key: str) -> None:
    """Insist on a file of the folder (:func:`launchwise.base.names.inside`)."""
    path = folder / SPEC_FILE
    if not inside(folder, name, path, key).is_file():
        raise UserError(path, key, f"no file {name!r}")
