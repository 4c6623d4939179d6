"""``kernels/<workload>/spec.yaml``: what a workload is, as typed data.

A workload's problems, tunables, variants, constraints, baseline, bytes and FLOP are data; every
expression in them is read by :mod:`launchwise.expressions`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from launchwise.errors import UserError, unknown
from launchwise.expressions import Formulas, names_in
from launchwise.typed import Strict, read_yaml, validated

Value = int | str
GPU_NAMES = ("gpu_memory_bytes", "gpu_max_threads_per_block", "gpu_shared_per_block_bytes")
"""Facts of the GPU that constraints may read, beside problem, derived names and tunables."""


class ProblemParameter(Strict):
    """One dimension of the problem space."""

    type: Literal["integer", "category"]
    values: list[Value] | None = Field(None, min_length=1, description="the only values allowed")
    minimum: int | None = None
    maximum: int | None = None
    unit: str = ""
    description: str

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


class Tunable(Strict):
    """A parameter that the recommender may choose."""

    kind: Literal["build", "launch"]
    values: list[Value] = Field(min_length=1)
    neutral: Value = Field(description="what a variant without this tunable carries in its rows")
    unit: str = ""
    description: str


class Variant(Strict):
    """One CUDA implementation: a source file, its tunables, its launch."""

    source: str
    title: str
    tunables: list[str] = Field([])
    constraints: list[str] = Field([])
    block: tuple[str, str, str] = Field(description="threads in x, y, z, as expressions")
    grid: tuple[str, str, str] = Field(description="blocks in x, y, z, as expressions")


class Work(Strict):
    """What a problem costs, from its definition alone (not from any variant)."""

    items: str = Field(description="work items of a problem, as an expression")
    item: str = Field(description="name of one item, in plural, such as points")
    bytes: str = Field(description="least bytes through device memory, as an expression")
    flop: str = Field(description="floating-point operations, as an expression")
    footprint_bytes: str = Field(description="device memory that measuring needs")


class Spec(Strict):
    """A workload as data."""

    workload: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    title: str
    description: str
    problem: dict[str, ProblemParameter] = Field(min_length=1)
    derived: dict[str, str] = Field({}, description="names for the expressions below")
    tunables: dict[str, Tunable]
    variants: dict[str, Variant] = Field(min_length=1)
    constraints: list[str] = Field([], description="for every variant")
    baseline: dict[str, Value]
    work: Work
    features: dict[str, str] = Field({}, description="what models may learn from, as expressions")
    headers: list[str] = Field([], description="files that variants stand on, included once")

    @property
    def problem_columns(self) -> list[str]:
        """Columns that name a problem, in the order of the file."""
        return list(self.problem)

    @property
    def tunable_columns(self) -> list[str]:
        """Columns that name a configuration: the variant, then the tunables."""
        return ["variant", *self.tunables]

    @property
    def key_columns(self) -> list[str]:
        """Columns whose values no two rows of a sweep share."""
        return ["gpu", *self.problem_columns, *self.tunable_columns]

    @model_validator(mode="after")
    def _references(self) -> Spec:
        for name, variant in self.variants.items():
            for tunable in variant.tunables:
                if tunable not in self.tunables:
                    message = unknown("tunable", tunable, self.tunables)
                    raise ValueError(f"variants.{name}.tunables: {message}")
        for name, entry in self.tunables.items():
            if len(set(entry.values)) != len(entry.values):
                raise ValueError(f"tunables.{name}.values: a value is given twice")
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
        return self

    def _check_expressions(self) -> None:
        known = set(self.problem)
        for name, text in self.derived.items():
            # A derived name may stand on tunables (a pitch on the padding), so they count too.
            self._check_names(f"derived.{name}", text, known | set(self.tunable_columns))
            known.add(name)
        for key in Work.model_fields:
            if key != "item":
                self._check_names(f"work.{key}", getattr(self.work, key), known)
        known |= {*self.tunable_columns, *GPU_NAMES}
        for text in self.constraints:
            self._check_names("constraints", text, known)
        for name, variant in self.variants.items():
            for text in (*variant.constraints, *variant.block, *variant.grid):
                self._check_names(f"variants.{name}", text, known)
        for name, text in self.features.items():
            self._check_names(f"features.{name}", text, known - set(GPU_NAMES))

    @staticmethod
    def _check_names(key: str, text: str, known: set[str]) -> None:
        if strange := sorted(names_in(text) - known):
            raise ValueError(f"{key}: {unknown('name', strange[0], known)} in {text!r}")

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


def load_spec(folder: Path) -> Spec:
    """Read and check ``folder/spec.yaml``.

    Raises
    ------
    UserError
        One line with the file and the key.
    """
    path = folder / "spec.yaml"
    spec = validated(Spec, read_yaml(path), path)
    if spec.workload != folder.name:
        raise UserError(path, "workload", f"is {spec.workload!r} but the folder is {folder.name!r}")
    for name, variant in spec.variants.items():
        if not (folder / variant.source).is_file():
            raise UserError(path, f"variants.{name}.source", f"no file {variant.source!r}")
    for header in spec.headers:
        if not (folder / header).is_file():
            raise UserError(path, "headers", f"no file {header!r}")
    return spec


def find_workloads(folders: list[Path]) -> dict[str, Path]:
    """Folders of every workload below ``folders``: name -> folder with a ``spec.yaml``.

    Raises
    ------
    UserError
        When a folder is missing or two workloads share a name.
    """
    found: dict[str, Path] = {}
    for folder in folders:
        if not folder.is_dir():
            raise UserError("config.yaml", "workloads", f"no folder {str(folder)!r}")
        for path in sorted(folder.glob("*/spec.yaml")):
            name = path.parent.name
            if name in found:
                raise UserError(path, "", f"workload {name!r} is also in {found[name]}")
            found[name] = path.parent
    return found
