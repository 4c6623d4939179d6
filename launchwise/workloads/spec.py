"""``kernels/<workload>/spec.yaml``: what a workload is, as typed data.

A workload's problems, tunables, variants, constraints, baseline, bytes and FLOP are data; every
expression in them is read by :mod:`launchwise.base.expressions`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import pyarrow
import pyarrow.parquet
from pydantic import Field, PrivateAttr, StringConstraints, model_validator

from launchwise.base.errors import UserError, unknown
from launchwise.base.expressions import FUNCTIONS, Expression, Formulas, check_names
from launchwise.base.typed import Strict, read_yaml, validated
from launchwise.gpus.profile import GPU_FEATURES
from launchwise.workloads.arguments import (
    Argument,
    Formula,
    Reference,
    Sizes,
    Step,
    parameters_of,
    types_of,
)
from launchwise.workloads.completion import completed, derived_features
from launchwise.workloads.cost import COST_FILE, Cost

SPEC_FILE = "spec.yaml"
FEATURES_FILE = "features.yaml"

Value = int | str
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")]
GPU_NAMES = ("gpu_memory_bytes", "gpu_max_threads_per_block", "gpu_shared_per_block_bytes")
"""Facts of the GPU that constraints may read, beside problem, derived names and tunables."""


MEASURED_COLUMNS = (
    *("gpu", "workload", "status", "reason", "time_ms", "times_ms", "repeats", "relative_error"),
    *("first_ms", "l2", "max_error", "tolerance", "registers", "spill_bytes", "shared_bytes"),
    *("spread_ms", "outlier_repeats", "timer", "launches_per_repeat", "occupancy"),
    *("bandwidth_gbs", "flop_rate_gflops"),
    *("sm_clock_mhz", "memory_clock_mhz", "temperature_c", "power_w", "energy_j"),
    *("throttle", "control_ratio", "attempt"),
    *("card", "driver", "toolkit", "backend", "commit", "seed", "measured_at"),
)
"""Columns of a sweep beside problem and configuration: no parameter may have their names."""


LATER_COLUMNS = (
    *("study", "model", "role", "split", "fold", "scope", "rank", "predictor", "predicted_ms"),
    *("baseline_ms", "best_ms", "roofline_ms", "bytes_ms", "flop_ms", "lower_ms", "upper_ms"),
    *("improvement", "fraction", "improved_runs", "spearman", "absolute_percentage_error"),
    *("bound_by", "position", "launches", "kernel", "grid_blocks", "block_threads"),
    *("achieved_occupancy", "dram_throughput", "case", "baseline", "oracle"),
    *("gain", "noise", "rate", "limit_share", "configurations", "worst", "loss"),
)
"""Columns that later stages and the report put beside a problem and a configuration: no parameter
may have their names either."""


class ProblemParameter(Strict, title="problem parameter"):
    """One dimension of the problem space."""

    type: Literal["integer", "category"] = Field(description="integers, or one of listed texts")
    values: list[Value] | None = Field(
        None, min_length=1, description="allowed values; required for a category"
    )
    minimum: int | None = Field(None, description="smallest allowed integer; none when left out")
    maximum: int | None = Field(None, description="largest allowed integer; none when left out")
    unit: str = Field("", description="unit, for the report")
    description: str = Field("", description="what the parameter is, for the report")

    @model_validator(mode="after")
    def _bounds(self) -> ProblemParameter:
        if self.type == "category" and self.values is None:
            raise ValueError("a category needs values")
        expected = int if self.type == "integer" else str
        if strange := [value for value in self.values or [] if not isinstance(value, expected)]:
            raise ValueError(f"values: {strange[0]!r} is not of type {self.type}")
        if None not in (self.minimum, self.maximum) and self.minimum > self.maximum:  # type: ignore[operator]
            raise ValueError(f"minimum {self.minimum} is above maximum {self.maximum}")
        return self

    def check(self, value: Any) -> str | None:
        """What is wrong with ``value``, or None."""
        expected = int if self.type == "integer" else str
        if not isinstance(value, expected) or isinstance(value, bool):
            return f"must be of type {self.type}, not {value!r}"
        if self.values is not None and value not in self.values:
            return f"{value!r} is not among {', '.join(map(str, self.values))}"
        if self.minimum is not None and value < self.minimum:  # type: ignore[operator]
            return f"{value} is below the minimum {self.minimum}"
        if self.maximum is not None and value > self.maximum:  # type: ignore[operator]
            return f"{value} is above the maximum {self.maximum}"
        return None


class Tunable(Strict, title="tunable"):
    """A parameter that launchwise may choose."""

    kind: Literal["build", "launch"] = Field(
        description="build: every value needs a compilation; launch: none does"
    )
    values: list[Value] = Field(min_length=1, description="values to choose from")
    neutral: Value = Field(
        "",
        description=(
            "value in the rows of variants without this tunable; the first value when left out"
        ),
    )
    unit: str = Field("", description="unit, for the report")
    description: str = Field("", description="what the tunable is, for the report")

    @model_validator(mode="before")
    @classmethod
    def _neutral(cls, raw: Any) -> Any:
        if isinstance(raw, Mapping) and "neutral" not in raw:
            values = raw.get("values")
            if isinstance(values, list) and values:
                return {**raw, "neutral": values[0]}
        return raw


class Variant(Strict, title="variant"):
    """One CUDA implementation: source file, tunables, launch."""

    source: str | None = Field(
        None,
        description="CUDA source file in the workload's folder; none where others measured",
    )
    title: str = Field("", description="name of the variant in the report")
    kernel: str | None = Field(
        None,
        description=(
            "name of its `__global__` function, for a spec with `arguments`; the file then needs "
            'neither `KERNEL` nor `extern "C"`'
        ),
    )
    kernels: list[Step] = Field(
        [], description="several kernels that run one after the other, instead of `kernel`"
    )
    arguments: list[str] | None = Field(
        None, description="arguments in the order of the kernel's parameters; all when left out"
    )
    tunables: list[str] = Field([], description="tunables that the variant has")
    constraints: list[Expression] = Field(
        [], description="conditions that configurations of the variant satisfy"
    )
    block: Sizes | None = Field(None, description="threads per block in x, y, z")
    grid: Sizes | None = Field(None, description="blocks per grid in x, y, z")
    shared_bytes: Formula = Field("0", description="dynamic shared memory per block, bytes")
    verified: bool = Field(
        True,
        description=(
            "false for published code with a known race: it is timed, its results are not "
            "checked, and it is never recommended"
        ),
    )

    @model_validator(mode="after")
    def _launched(self) -> Variant:
        if self.source is not None:
            for key in ("block", "grid"):
                if getattr(self, key) is None:
                    raise ValueError(f"{key} is missing: how is {self.source} launched?")
        elif self.kernel is not None or self.kernels:
            raise ValueError("source is missing: which file has the kernel?")
        return self


class Work(Strict, title="work"):
    """What a problem costs by its definition, independent of any variant."""

    items: Expression = Field(description="work items of the problem")
    item: str = Field(description="name of the work items, in plural, such as points")
    bytes: Expression = Field(description="least traffic to and from device memory, bytes")
    flop: Expression = Field(description="floating-point operations")
    footprint_bytes: Expression = Field(description="device memory that measuring needs, bytes")
    host_bytes: Expression = Field("0", description="host memory that measuring needs, bytes")
    precision: Expression = Field(
        "'float32'", description="type of the arithmetic: `'float32'` or `'float64'`"
    )


class Spec(Strict, title="spec.yaml"):
    """A workload: problem space, tunables, variants, constraints, baseline and work."""

    workload: str = Field(
        pattern=r"^[a-z][a-z0-9_]*$", description="name of the workload: that of its folder"
    )
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
    reference: Reference | None = Field(
        None, description="what the outputs must be, for a spec with `arguments`"
    )
    variants: dict[str, Variant] = Field(min_length=1, description="CUDA implementations by name")
    constraints: list[Expression] = Field(
        [], description="conditions that configurations of every variant satisfy"
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

    @property
    def folder(self) -> Path | None:
        """Folder that the spec was read from, if it was."""
        return self._folder

    @property
    def has_kernel(self) -> bool:
        """Whether its variants have sources, so that it can be measured."""
        return all(variant.source is not None for variant in self.variants.values())

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
        """What of a configuration its build may depend on: the variant and its build tunables.

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
    def _references(self) -> Spec:
        self._check_own_names()
        for name, variant in self.variants.items():
            for tunable in variant.tunables:
                if tunable not in self.tunables:
                    message = unknown("tunable", tunable, self.tunables)
                    raise ValueError(f"variants.{name}.tunables: {message}")
        for name, entry in self.tunables.items():
            if len({type(value) for value in (entry.neutral, *entry.values)}) > 1:
                raise ValueError(f"tunables.{name}: its values mix numbers and texts")
            if len(set(entry.values)) != len(entry.values):
                raise ValueError(f"tunables.{name}.values: a value is given twice")
        self._check_arguments()
        self._check_expressions()
        if self.baseline.get("variant") not in self.variants:
            raise ValueError(
                f"baseline: {unknown('variant', self.baseline.get('variant'), self.variants)}"
            )
        for key, value in self.baseline.items():
            if key != "variant" and key not in self.tunables:
                raise ValueError(f"baseline: {unknown('tunable', key, self.tunables)}")
            if key != "variant" and value not in (
                *self.tunables[key].values,
                self.tunables[key].neutral,
            ):
                raise ValueError(f"baseline.{key}: {value!r} is not a value of this tunable")
        self._check_verified()
        return self

    def _check_verified(self) -> None:
        """Insist that something may be recommended, and that all is compared with right answers."""
        if not any(variant.verified for variant in self.variants.values()):
            raise ValueError("variants: none is verified, so none could be recommended")
        name = str(self.baseline["variant"])
        if not self.variants[name].verified:
            raise ValueError(
                f"baseline: variant {name!r} is not verified: nothing can be compared with it"
            )

    def _check_arguments(self) -> None:
        """Check what :class:`Argument`, :class:`Reference` and kernels name."""
        if not self.arguments:
            for key in ("macros", "reference"):
                if getattr(self, key):
                    raise ValueError(f"{key}: belongs to a spec with arguments")
            return
        known = {*self.problem, *self.derived}
        for name, argument in self.arguments.items():
            types_of_argument(f"arguments.{name}", argument, self.problem)
            for text in argument.shape or []:
                self._check_of_problem(f"arguments.{name}.shape", text, known)
            if argument.value is not None:
                everything = known | {*self.tunable_columns}
                check_names(f"arguments.{name}.value", argument.value, everything)
        if not any(argument.is_written for argument in self.arguments.values()):
            raise ValueError("arguments: none has the role output or inout")
        chosen = {"variant", *(n for n, one in self.tunables.items() if one.kind == "build")}
        for name, text in self.macros.items():
            check_names(f"macros.{name}", text, known | chosen)
            if name in self.tunables:
                raise ValueError(f"macros.{name}: is a tunable")
        for name, variant in self.variants.items():
            self._check_kernels(f"variants.{name}", variant)
        self._check_reference(known)

    def _check_kernels(self, where: str, variant: Variant) -> None:
        if (variant.kernel is None) == (not variant.kernels):
            raise ValueError(f"{where}: needs kernel, the name of its __global__ function")
        for named in (variant.arguments, *(step.arguments for step in variant.kernels)):
            for name in parameters_of(named, self.arguments):
                if name not in self.arguments:
                    message = unknown("argument", name, self.arguments)
                    raise ValueError(f"{where}.arguments: {message}")
                if self.arguments[name].constant is not None:
                    raise ValueError(f"{where}.arguments: {name} lies in constant memory")
        known = {*self.problem, *self.derived, *self.tunable_columns, *GPU_NAMES}
        for step in variant.kernels:
            for text in (*step.block, *step.grid, step.shared_bytes):
                check_names(f"{where}.kernels", text, known)
        check_names(f"{where}.shared_bytes", variant.shared_bytes, known)

    def _check_reference(self, known: set[str]) -> None:
        if self.reference is None:
            raise ValueError("reference is missing: what must the outputs be?")
        for text in self.reference.given or []:
            if text not in self.arguments:
                check_names("reference.given", text, known)
            elif not self.arguments[text].is_read:
                raise ValueError(f"reference.given: {text} is an output")
        if self.reference.variant is not None and self.reference.variant not in self.variants:
            message = unknown("variant", self.reference.variant, self.variants)
            raise ValueError(f"reference.variant: {message}")

    def _check_of_problem(self, where: str, text: str, known: set[str]) -> None:
        check_names(where, text, known)
        raw = self.formulas.raw_names(text)
        if strange := [each for each in raw if each not in self.problem]:
            message = f"{text!r} reads {strange[0]}; it may read problem parameters only"
            raise ValueError(f"{where}: {message}")

    def _check_own_names(self) -> None:
        taken = {name: "a name that every sweep has" for name in (*MEASURED_COLUMNS, "variant")}
        taken |= dict.fromkeys(LATER_COLUMNS, "a column of later tables")
        taken |= {name: "a fact of the GPU" for name in GPU_NAMES}
        taken |= {name: "a function" for name in FUNCTIONS}
        taken |= dict.fromkeys(("only", "constraints"), "a key of sweep.yaml")
        for part in ("problem", "tunables", "derived"):
            for name in getattr(self, part):
                if name in taken:
                    raise ValueError(f"{part}.{name}: {name} is already {taken[name]}")
                taken[name] = f"in {part}"
        for name, column in zip(self.stages, self.stage_columns, strict=True):
            if column in taken:
                raise ValueError(f"stages.{name}: {column} is already {taken[column]}")
            taken[column] = "a stage"
        for name in self.findings:
            if name in taken:
                raise ValueError(f"findings.{name}: {name} is already {taken[name]}")

    def _check_expressions(self) -> None:
        known = set(self.problem)
        for name, text in self.derived.items():
            # A derived name may stand on tunables (a pitch on the padding), so they count too.
            check_names(f"derived.{name}", text, known | set(self.tunable_columns))
            known.add(name)
        for key in Work.model_fields:
            if key != "item":
                text = getattr(self.work, key)
                check_names(f"work.{key}", text, known)
                # Whatever stands behind derived names: a problem costs the same for every variant.
                raw = self.formulas.raw_names(text)
                if strange := [each for each in raw if each not in self.problem]:
                    message = f"{text!r} reads {strange[0]}; it may read problem parameters only"
                    raise ValueError(f"work.{key}: {message}")
        known |= {*self.tunable_columns, *GPU_NAMES}
        for text in self.constraints:
            check_names("constraints", text, known)
        for name, variant in self.variants.items():
            for part in ("constraints", "block", "grid"):
                for text in getattr(variant, part) or ():
                    check_names(f"variants.{name}.{part}", text, known)
        for name, text in self.features.items():
            check_names(f"features.{name}", text, known - set(GPU_NAMES) | set(GPU_FEATURES))
        if self.cost is not None:
            try:
                self.cost.check(known | set(GPU_FEATURES), self.variants)
            except ValueError as error:
                raise ValueError(f"cost.{error}") from error

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

    def check_problem(self, problem: Mapping[str, Any]) -> str | None:
        """What is wrong with ``problem`` (missing, unknown or illegal values), or None."""
        for name in problem:
            if name not in self.problem:
                return unknown("problem parameter", name, self.problem)
        for name, parameter in self.problem.items():
            if name not in problem:
                return f"{name} is missing"
            if complaint := parameter.check(problem[name]):
                return f"{name}: {complaint}"
        return None


def _check_described(folder: Path, spec: Spec) -> None:
    """Check what the arguments of a spec name outside of it: kernels, macros, the reference."""
    from launchwise.workloads.references import check_listed

    path = folder / SPEC_FILE
    for name, variant in spec.variants.items():
        text = _without_comments((folder / str(variant.source)).read_text(encoding="utf-8"))
        kernels = [step.kernel for step in variant.kernels] or [str(variant.kernel)]
        for kernel in kernels:
            if not re.search(rf"\b{re.escape(kernel)}\s*\(", text):
                known = re.findall(r"__global__[^;{(]*?(\w+)\s*\(", text)
                message = f"{variant.source}: {unknown('kernel', kernel, known)}"
                raise UserError(path, f"variants.{name}.kernel", message)
        for tunable in variant.tunables:
            if spec.tunables[tunable].kind == "launch" and _is_macro(tunable, text):
                message = f"is launch, but {variant.source} reads {tunable} as a macro: say build"
                raise UserError(path, f"tunables.{tunable}.kind", message)
    if spec.reference is not None and spec.reference.call is not None:
        try:
            check_listed(spec.reference.call)
        except ValueError as error:
            raise UserError(path, "reference.call", str(error)) from None


def _is_macro(name: str, text: str) -> bool:
    """Whether a C++ text uses a name without declaring it as a variable or parameter."""
    declared = re.search(rf"(?:\w|[*&>])\s+[*&]?{name}\s*[=;,)\[({{]", text)
    return declared is None and re.search(rf"\b{name}\b", text) is not None


def _without_comments(text: str) -> str:
    """A C++ text without its comments."""
    return re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)


def types_of_argument(where: str, argument: Argument, problem: Mapping[str, Any]) -> list[str]:
    """:func:`launchwise.workloads.arguments.types_of`, with the key in its message."""
    try:
        return types_of(argument, problem)
    except ValueError as error:
        raise ValueError(f"{where}.{error}") from None


def load_spec(folder: Path) -> Spec:
    """Read and check ``folder/spec.yaml``, with ``features.yaml`` and ``cost.yaml`` beside it.

    Both may be missing.

    Raises
    ------
    UserError
        One line with the file and the key.
    """
    path = folder / SPEC_FILE
    spec = validated(Spec, read_yaml(path), path)
    for key, file in (("features", FEATURES_FILE), ("cost", COST_FILE)):
        beside = folder / file
        if beside.is_file():
            if getattr(spec, key):
                raise UserError(path, key, f"also given in {beside}: keep one of them")
            whole = {**spec.model_dump(exclude_unset=True), key: read_yaml(beside)}
            spec = validated(Spec, whole, beside)
    if spec.arguments and not spec.features:
        whole = {**spec.model_dump(exclude_unset=True), "features": derived_features(spec)}
        spec = validated(Spec, whole, path)
    if spec.workload != folder.name:
        raise UserError(path, "workload", f"is {spec.workload!r} but the folder is {folder.name!r}")
    for name, variant in spec.variants.items():
        if variant.source is not None and not (folder / variant.source).is_file():
            raise UserError(path, f"variants.{name}.source", f"no file {variant.source!r}")
    if spec.arguments:
        _check_described(folder, spec)
    for header in spec.headers:
        if not (folder / header).is_file():
            raise UserError(path, "headers", f"no file {header!r}")
    spec._folder = folder
    if spec.feasible is not None:
        spec._feasible = _read_feasible(folder / spec.feasible, spec)
    return spec


def _read_feasible(path: Path, spec: Spec) -> dict[tuple[Value, ...], None]:
    """Values of each configuration in a Parquet file.

    Raises
    ------
    UserError
        When the file cannot be read, lacks a column, or holds a value that the spec does not list.
    """
    try:
        table = pyarrow.parquet.read_table(path, columns=spec.tunable_columns)
    except FileNotFoundError as error:
        raise UserError(path, "", "is missing") from error
    except (OSError, ValueError, KeyError, pyarrow.ArrowException) as error:
        raise UserError(path, "", f"cannot be read: {error}") from error
    if lacking := [name for name in spec.tunable_columns if name not in table.column_names]:
        raise UserError(path, lacking[0], "is missing")
    columns = [table[name].to_pylist() for name in spec.tunable_columns]
    for name, values in zip(spec.tunable_columns, columns, strict=True):
        if strange := sorted(set(values) - set(spec.values_of(name)), key=str):
            raise UserError(path, name, unknown("value", strange[0], spec.values_of(name)))
    return dict.fromkeys(zip(*columns, strict=True))
