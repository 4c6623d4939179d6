"""Arguments and references of ``spec.yaml``: call of a kernel and expected outputs, as data.

A workload whose spec has ``arguments`` needs no Python: buffers, inputs, launches and the check
follow from them (:mod:`launchwise.workloads.declared.declared_workload`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, model_validator

from launchwise.base.arrays import TYPES, element_type, is_inexact, struct_type
from launchwise.base.errors import unknown
from launchwise.base.expressions import Expression
from launchwise.base.typed import Strict

GIVEN = "data"  # In place of a shape or a value: the function `inputs` of the spec decides it

FUNCTION = r"^[\w./-]+\.py:[A-Za-z_]\w*$"
"""A function of a Python file in the workload's folder, such as ``reference.py:expected``."""


def _as_text(value: Any) -> Any:
    """A bare number of a YAML file as an expression; a truth value as 0 or 1."""
    number = int(value) if isinstance(value, bool) else value
    return str(number) if isinstance(number, int | float) else value


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


Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")]

NULL = "nullptr"  # Stands for a null pointer among the arguments of a kernel

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

    uniform: tuple[Formula, Formula] | None = None
    """uniformly distributed from the first number up to the second; expressions over the problem,
    so `[0, n]` draws integers below n"""
    normal: tuple[Formula, Formula] | None = None
    """normally distributed: mean and standard deviation"""
    value: Formula | None = None
    """the same number everywhere"""
    file: str | None = None
    """a `.npy` file in the workload's folder, of the type and length of the array"""

    @model_validator(mode="after")
    def _one(self) -> Fill:
        if len(self.model_fields_set) != 1:
            raise ValueError("needs exactly one of uniform, normal, value and file")
        return self

    @property
    def formulas(self) -> tuple[str, ...]:
        single = () if self.value is None else (self.value,)
        return self.uniform or self.normal or single


Role = Literal["input", "output", "inout", "scratch"]


class Argument(Strict, title="argument"):
    """One parameter of the kernel: an array (``shape``) or a number (``value``)."""

    type: str | dict[Name, str] = Field(
        description=(
            f"{', '.join(TYPES)}; or a problem parameter or build tunable whose values are such "
            "types; or a struct: its fields to their types, in their order"
        )
    )
    shape: list[Formula] | Literal["data"] | None = None
    """elements per dimension, the slowest first; of an array. Expressions over the problem,
    tunables, and numbers that `inputs` gives; `data`: as long as `inputs` makes it"""
    role: Role = "input"
    """whether the kernel reads the array, writes it, or both; `scratch` is memory of the kernel's
    own: filled anew before a verification, never compared"""
    fill: Literal["uniform", "normal", "zeros", "iota"] | Fill | None = None
    """content of an input. `uniform`, the default, is -1 to 1 for floating-point numbers and 0 to
    99 for integers; `normal` has mean 0 and deviation 1; `iota` counts from 0"""
    constant: str | None = None
    """name of the `__constant__` array that holds the input; it is then no parameter of a kernel"""
    restore: bool = True
    """whether an array that launches change is put back before each timed launch, outside the timed
    region; false where its content changes neither time nor safety"""
    length: Literal["shape", "data"] = "shape"
    """`data`: the data decide how many elements of an output count; the reference may give fewer
    than the shape, and only these are compared"""
    value: Formula | dict[Name, Formula] | None = None
    """value of a number; of a struct, one expression per field; `data`: as `inputs` gives it"""
    description: str = ""
    """meaning of the argument, for the report"""

    @model_validator(mode="after")
    def _kind(self) -> Argument:
        if (self.shape is None) == (self.value is None):
            raise ValueError("needs either shape (an array) or value (a number)")
        if self.shape is not None and not self.shape:
            raise ValueError("shape: needs at least one dimension")
        if self.value is not None:
            for key in ("role", "fill", "constant", "restore", "length"):
                if key in self.model_fields_set:
                    raise ValueError(f"{key} belongs to arrays, and this is a number")
        if self.constant is not None and self.role != "input":
            raise ValueError("a kernel cannot write to constant memory: role must be input")
        if self.fill is not None and self.role == "output":
            raise ValueError(
                "fill: an output has no content before the kernel runs; say role: inout where the "
                "kernel adds to it"
            )
        if "restore" in self.model_fields_set and self.role not in ("inout", "scratch"):
            raise ValueError(
                f"restore belongs to arrays that are inout or scratch, not {self.role}"
            )
        if self.length == "data" and self.role not in ("output", "inout"):
            raise ValueError("length: data belongs to outputs")
        if self.is_data and self.role in ("output", "scratch"):
            raise ValueError(f"shape: inputs makes no array for the role {self.role}")
        self._check_struct()
        return self

    def _check_struct(self) -> None:
        fields = self.type if isinstance(self.type, dict) else None
        if fields is not None:
            for name, kind in fields.items():
                if kind not in TYPES:
                    raise ValueError(f"type.{name}: {kind!r} is no type ({', '.join(TYPES)})")
            if not fields:
                raise ValueError("type: a struct needs a field")
            if self.fill is not None and self.fill != "zeros":
                raise ValueError("fill: a struct's content is zeros, or made by inputs")
        if isinstance(self.value, dict):
            if fields is None:
                raise ValueError("value: one per field belongs to a struct (type: its fields)")
            if set(self.value) != set(fields):
                raise ValueError(f"value: needs one value per field ({', '.join(fields)})")
        elif fields is not None and self.value not in (None, GIVEN):
            raise ValueError(f"value: a struct needs one per field ({', '.join(fields)})")

    @property
    def is_array(self) -> bool:
        return self.shape is not None

    @property
    def is_data(self) -> bool:
        """Whether the function ``inputs`` decides its length or value."""
        return GIVEN in (self.shape, self.value)

    @property
    def is_read(self) -> bool:
        """Whether it is an array whose content the kernel reads."""
        return self.is_array and (
            self.role in ("input", "inout") or (self.role == "scratch" and self.fill is not None)
        )

    @property
    def is_written(self) -> bool:
        """Whether it is an array with a result: an output, or in-out."""
        return self.is_array and self.role in ("output", "inout")

    @property
    def is_restored(self) -> bool:
        """Whether it is put back before each timed launch."""
        return self.is_read and self.role != "input" and self.restore

    @property
    def sizes(self) -> list[str]:
        """Expressions of its shape; none where it has no shape, or data decide it."""
        return [] if self.shape is None or isinstance(self.shape, str) else self.shape

    @property
    def values(self) -> dict[str, str]:
        """Expressions of its value, by field; of a plain number, by ''."""
        if self.value is None or self.value == GIVEN:
            return {}
        return dict(self.value) if isinstance(self.value, dict) else {"": self.value}

    def dtype(self, names: Mapping[str, Any]) -> np.dtype[Any]:
        """Type of the elements for a problem, and a configuration where its type is a tunable."""
        if isinstance(self.type, dict):
            return struct_type(self.type)
        return element_type(str(names.get(self.type, self.type)))


class Repeated(Strict):
    """What may run several times in a row."""

    repeat: dict[Name, Formula] = Field({})
    """counters, nested, each to the number of its steps: it counts from 0. Later ones and the
    values of numbers may read the earlier ones"""
    swap: tuple[str, str] | None = None
    """two arrays that change places between repetitions; after the last one their names mean what
    the last one was given"""

    @model_validator(mode="after")
    def _repeated(self) -> Repeated:
        if self.swap is not None and not self.repeat:
            raise ValueError("swap: goes with repeat")
        return self


class Step(Repeated, title="launch"):
    """One of several kernels that run one after the other."""

    kernel: str
    """name of the `__global__` function; of a template with its arguments"""
    block: Sizes
    """threads per block in x, y, z"""
    grid: Sizes
    """blocks per grid in x, y, z"""
    shared_bytes: Formula = "0"
    """dynamic shared memory per block, bytes"""
    arguments: list[str] | None = None
    """arguments in the kernel's order, or `nullptr`; all when left out"""
    main: bool = False
    """whether its resources are recorded for the run; the first when none is marked"""


CALLS: Mapping[str, tuple[str, ...]] = {
    "numpy": (
        *("abs", "add", "argmax", "argmin", "argsort", "bincount", "clip", "convolve", "copy"),
        *("correlate", "cos", "cross", "cumprod", "cumsum", "diff", "divide", "dot", "einsum"),
        *("exp", "flip", "histogram", "hypot", "inner", "kron", "log", "matmul", "max", "maximum"),
        *("mean", "min", "minimum", "mod", "multiply", "negative", "outer", "power", "prod"),
        *("reciprocal", "repeat", "reshape", "roll", "rot90", "searchsorted", "sin", "sort"),
        *("sqrt", "square", "std", "subtract", "sum", "take", "tanh", "tensordot", "tile", "trace"),
        *("transpose", "tril", "triu", "unique", "var", "vdot", "where"),
    ),
    "numpy.fft": ("fft", "fft2", "fftn", "ifft", "ifft2", "irfft", "rfft", "rfft2"),
    "numpy.linalg": ("cholesky", "det", "eigvalsh", "inv", "norm", "solve"),
    "scipy.fft": ("dct", "dctn", "idct"),
    "scipy.linalg": ("cholesky", "inv", "solve", "solve_banded", "solve_triangular", "toeplitz"),
    "scipy.ndimage": (
        *("convolve", "convolve1d", "correlate", "correlate1d", "gaussian_filter", "label"),
        *("laplace", "maximum_filter", "median_filter", "minimum_filter", "sobel"),
        *("uniform_filter",),
    ),
    "scipy.signal": (
        *("convolve", "convolve2d", "correlate", "correlate2d", "fftconvolve", "lfilter"),
    ),
    "scipy.spatial.distance": ("cdist", "pdist"),
    "scipy.special": ("erf", "expit", "gamma", "logsumexp", "softmax"),
}
"""Functions that ``call`` may name. Whatever else is right is a function of the user's own."""


def listed_call(name: str) -> str:
    """The full name itself. Raises ValueError when no function of :data:`CALLS` has it."""
    module, _, short = name.rpartition(".")
    if short not in CALLS.get(module, ()):
        every = [f"{each}.{one}" for each, names in CALLS.items() for one in names]
        raise ValueError(unknown("function", name, every))
    return name


class Reference(Strict, title="reference"):
    """Reference of the outputs: one of ``call``, ``file`` and ``variant``."""

    call: Annotated[str, AfterValidator(listed_call)] | None = None
    """a function of NumPy or SciPy, by its full name"""
    given: list[Formula] | None = None
    """arguments of `call`, in order: names of arguments, or expressions over the problem (a text in
    quotes)"""
    file: str | None = Field(None, pattern=FUNCTION)
    """a function of your own, `reference.py:expected`. It gets what its signature names: problem
    parameters, derived names, inputs, numbers, tunables. It returns the outputs: one array, a dict
    by name, or a tuple or list in their order. None in place of an output, and masked elements of a
    masked array, are not compared"""
    variant: str | None = None
    """a variant whose outputs at neutral tunables are right"""
    tolerance: float | dict[str, float] | None = None
    """largest allowed error, relative to the largest expected value of an output: a number, for
    real and complex ones, or one per type; integers must be equal unless their type is named"""
    compare: str | None = Field(None, pattern=FUNCTION)
    """a comparison of your own instead of the tolerance, `reference.py:same`. It gets `found`
    (whole arrays) and `expected` (what the reference returns), outputs by name, and what else its
    signature names; it returns True, False, or a text that says what is wrong, empty where nothing
    is. With it, a reference may be left out"""
    allow_nan: bool = False
    """whether NaN among the expected values is meant; else it is an error"""

    @model_validator(mode="after")
    def _one(self) -> Reference:
        named = [name for name in ("call", "file", "variant") if getattr(self, name) is not None]
        if len(named) > 1 or (not named and self.compare is None):
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
        if isinstance(self.tolerance, float | int) and is_inexact(dtype):
            return float(self.tolerance)
        return TOLERANCES.get(dtype.name, 0.0)


TOLERANCES = {
    **{"float16": 1e-2, "bfloat16": 2e-2, "float32": 1e-5, "float64": 1e-12},
    **{"complex64": 1e-5, "complex128": 1e-12},
}
"""Relative tolerances where a spec gives none; integers and truth values must be equal."""


def types_of(
    argument: Argument, problem: Mapping[str, Any], tunables: Mapping[str, Any]
) -> list[str]:
    """Types that an argument may have; none for a struct.

    ``problem``, ``tunables``: problem parameters and tunables by name.
    Raises ValueError if its type is neither a type nor a parameter or tunable whose values are
    types.
    """
    if isinstance(argument.type, dict):
        return []
    if argument.type in TYPES:
        return [argument.type]
    named = problem.get(argument.type) or tunables.get(argument.type)
    values = list(named.values or []) if named is not None else []
    if not values or not set(values) <= set(TYPES):
        raise ValueError(
            f"type: {argument.type!r} is neither a type ({', '.join(TYPES)}) nor a problem "
            "parameter or build tunable whose values are types"
        )
    return list(map(str, values))


def parameters_of(names: Iterable[str] | None, arguments: Mapping[str, Argument]) -> list[str]:
    """Names of the arguments that a kernel gets, in order: those given, else all but constants."""
    if names is not None:
        return list(names)
    return [name for name, each in arguments.items() if each.constant is None]
