"""Arguments and references of ``spec.yaml``: call of a kernel and expected outputs, as data.

A workload whose spec has ``arguments`` needs no Python: buffers, inputs, launches and the check
follow from them (:mod:`launchwise.workloads.described`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, Field, model_validator

from launchwise.base.expressions import Expression
from launchwise.base.typed import Strict

TYPES = (
    *("float16", "float32", "float64", "int8", "uint8", "int16", "uint16"),
    *("int32", "uint32", "int64", "uint64"),
)
"""Types of arguments, by NumPy's names."""


def _as_text(value: Any) -> Any:
    """A bare number of a YAML file as an expression."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _padded(value: Any) -> Any:
    """Three sizes of a block or a grid; those that are left out are 1."""
    if not isinstance(value, list | tuple) or not 1 <= len(value) <= 3:
        return value
    return [*map(_as_text, value), *["1"] * (3 - len(value))]


def _sizes_schema(schema: dict[str, Any]) -> None:
    """In the JSON schema: one to three expressions, also bare numbers."""
    items = {"anyOf": [{"title": "expression", "type": "string"}, {"type": "integer"}]}
    for key in ("prefixItems", "maxItems", "minItems"):
        schema.pop(key, None)
    schema |= {"type": "array", "items": items, "minItems": 1, "maxItems": 3}


Formula = Annotated[Expression, BeforeValidator(_as_text)]
"""An expression that a YAML file may give as a bare number."""

Sizes = Annotated[
    tuple[Expression, Expression, Expression],
    BeforeValidator(_padded),
    Field(json_schema_extra=_sizes_schema),
]
"""Sizes in x, y and z; a file may leave out those that are 1."""


class Fill(Strict, title="fill"):
    """Content of an input, with the numbers that it takes; one of the keys."""

    uniform: tuple[float, float] | None = Field(
        None, description="uniformly distributed from the first number up to the second"
    )
    normal: tuple[float, float] | None = Field(
        None, description="normally distributed: mean and standard deviation"
    )
    value: float | None = Field(None, description="the same number everywhere")
    file: str | None = Field(
        None, description="a `.npy` file in the workload's folder; repeated or cut to the shape"
    )

    @model_validator(mode="after")
    def _one(self) -> Fill:
        if len(self.model_fields_set) != 1:
            raise ValueError("needs exactly one of uniform, normal, value and file")
        if self.uniform is not None and self.uniform[0] >= self.uniform[1]:
            raise ValueError(f"uniform: {self.uniform[0]:g} is not below {self.uniform[1]:g}")
        return self


class Argument(Strict, title="argument"):
    """One parameter of the kernel: an array (``shape``) or a number (``value``)."""

    type: str = Field(
        description=f"{', '.join(TYPES)}, or a problem parameter whose values are such types"
    )
    shape: list[Formula] | None = Field(
        None, min_length=1, description="elements per dimension, the slowest first; of an array"
    )
    role: Literal["input", "output", "inout"] = Field(
        "input", description="whether the kernel reads the array, writes it, or both"
    )
    fill: Literal["uniform", "normal", "zeros", "iota"] | Fill | None = Field(
        None,
        description=(
            "content of an input. `uniform`, the default, is -1 to 1 for floating-point numbers "
            "and 0 to 99 for integers; `normal` has mean 0 and deviation 1; `iota` counts from 0"
        ),
    )
    constant: str | None = Field(
        None,
        description=(
            "name of the `__constant__` array that holds the input; it is then no parameter of a "
            "kernel"
        ),
    )
    value: Formula | None = Field(None, description="value of a number")
    description: str = Field("", description="meaning of the argument, for the report")

    @model_validator(mode="after")
    def _kind(self) -> Argument:
        if (self.shape is None) == (self.value is None):
            raise ValueError("needs either shape (an array) or value (a number)")
        if self.value is not None:
            for key in ("role", "fill", "constant"):
                if key in self.model_fields_set:
                    raise ValueError(f"{key} belongs to arrays, and this is a number")
        if self.constant is not None and self.role != "input":
            raise ValueError("a kernel cannot write to constant memory: role must be input")
        if self.fill is not None and self.role == "output":
            raise ValueError("fill: an output has no content before the kernel runs")
        return self

    @property
    def is_array(self) -> bool:
        """Whether it is an array."""
        return self.shape is not None

    @property
    def is_read(self) -> bool:
        """Whether it is an array with content."""
        return self.is_array and self.role != "output"

    @property
    def is_written(self) -> bool:
        """Whether it is an array that the kernel writes."""
        return self.is_array and self.role != "input"

    def dtype(self, problem: Mapping[str, Any]) -> np.dtype[Any]:
        """Type of the elements for a problem."""
        return np.dtype(str(problem.get(self.type, self.type)))


class Step(Strict, title="launch"):
    """One of several kernels that run one after the other."""

    kernel: str = Field(description="name of the `__global__` function")
    block: Sizes = Field(description="threads per block in x, y, z")
    grid: Sizes = Field(description="blocks per grid in x, y, z")
    shared_bytes: Formula = Field("0", description="dynamic shared memory per block, bytes")
    arguments: list[str] | None = Field(
        None, description="arguments in the order of the kernel's parameters; all when left out"
    )
    main: bool = Field(
        False,
        description="whether its resources are recorded for the run; the first when none is marked",
    )


class Reference(Strict, title="reference"):
    """Reference of the outputs; one of ``call``, ``file`` and ``variant``."""

    call: str | None = Field(None, description="a function of NumPy or SciPy, by its full name")
    given: list[Formula] | None = Field(
        None,
        description=(
            "arguments of `call`, in order: names of arguments, or expressions over the problem "
            "(a text in quotes)"
        ),
    )
    file: str | None = Field(
        None,
        pattern=r"^[\w./-]+\.py:[A-Za-z_]\w*$",
        description=(
            "a function of your own, `reference.py:expected`: it gets the problem's parameters and "
            "the inputs by name and returns the outputs"
        ),
    )
    variant: str | None = Field(
        None, description="a variant whose outputs at neutral tunables are right"
    )
    tolerance: float | dict[str, float] | None = Field(
        None,
        description=(
            "largest allowed error, relative to the largest expected value of an output; a number, "
            "or one per type"
        ),
    )

    @model_validator(mode="after")
    def _one(self) -> Reference:
        named = [name for name in ("call", "file", "variant") if getattr(self, name) is not None]
        if len(named) != 1:
            raise ValueError("needs exactly one of call, file and variant")
        if (self.given is None) == (self.call is not None):
            raise ValueError("given: what call gets; it goes with call alone")
        limits = self.tolerance if isinstance(self.tolerance, dict) else {"": self.tolerance}
        for name, limit in limits.items():
            if name and name not in TYPES:
                raise ValueError(f"tolerance: {name!r} is no type (allowed: {', '.join(TYPES)})")
            if limit is not None and not 0 <= limit < 1:
                raise ValueError(f"tolerance: {limit:g} is not between 0 and 1")
        return self

    def tolerance_for(self, dtype: np.dtype[Any]) -> float:
        """Largest allowed relative error of an output of ``dtype``."""
        if isinstance(self.tolerance, dict) and dtype.name in self.tolerance:
            return self.tolerance[dtype.name]
        if isinstance(self.tolerance, float | int):
            return float(self.tolerance)
        return TOLERANCES.get(dtype.name, 0.0)


TOLERANCES = {"float16": 1e-2, "float32": 1e-5, "float64": 1e-12}
"""Relative tolerances where a spec gives none; integers must be equal."""


def types_of(argument: Argument, problem: Mapping[str, Any]) -> list[str]:
    """Types that an argument may have.

    Parameters
    ----------
    problem
        Problem parameters by name.

    Raises
    ------
    ValueError
        If its type is neither a type nor a parameter whose values are types.
    """
    if argument.type in TYPES:
        return [argument.type]
    parameter = problem.get(argument.type)
    values = list(parameter.values or []) if parameter is not None else []
    if not values or not set(values) <= set(TYPES):
        raise ValueError(
            f"type: {argument.type!r} is neither a type ({', '.join(TYPES)}) nor a problem "
            "parameter whose values are types"
        )
    return list(map(str, values))


def parameters_of(names: Iterable[str] | None, arguments: Mapping[str, Argument]) -> list[str]:
    """Names of the arguments that a kernel gets, in order: those given, else all but constants."""
    if names is not None:
        return list(names)
    return [name for name, each in arguments.items() if each.constant is None]
