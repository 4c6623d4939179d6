"""Content of the arrays and numbers of a spec with ``arguments``: drawn, or made by a function."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from launchwise.base.arrays import cast, element_type, fits, is_float, read_array
from launchwise.base.errors import UserError, unknown
from launchwise.base.names import SPEC_FILE
from launchwise.workloads.arguments import GIVEN, Argument, Fill
from launchwise.workloads.declared.own_functions import OwnFunction, own_function
from launchwise.workloads.parts import NO_ELEMENT
from launchwise.workloads.spec import Spec

PART = 1 << 18  # Elements that are drawn at a time


@dataclass
class Content:
    """Content of the arguments of one problem."""

    arrays: dict[str, np.ndarray]  # every array that a kernel reads, by the name of its argument
    # Numbers that the function ``inputs`` gives, by name.
    numbers: dict[str, Any] = field(default_factory=dict)


def shape_of(spec: Spec, argument: Argument, names: Mapping[str, Any]) -> tuple[int, ...]:
    """Shape of an array whose ``shape`` is given, for a problem and what else it reads. Raises
    ValueError when a size is negative, or no number, or an array that is no scratch has no
    element."""
    shape = tuple(int(spec.value(text, names)) for text in argument.sizes)
    if any(size < 0 for size in shape):
        raise ValueError(f"shape {shape} is negative")
    # A tunable may decide that a kernel needs no scratch memory.
    if 0 in shape and argument.role != "scratch":
        raise ValueError(f"shape {shape} has no element: {NO_ELEMENT}")
    return shape


def named_shape(folder: Path, spec: Spec, name: str, names: Mapping[str, Any]) -> tuple[int, ...]:
    """:func:`shape_of` of an argument by its name; UserError with its key."""
    try:
        return shape_of(spec, spec.arguments[name], names)
    except ValueError as error:
        raise UserError(folder / SPEC_FILE, f"arguments.{name}.shape", str(error)) from error


def nbytes_of(spec: Spec, argument: Argument, names: Mapping[str, Any]) -> int:
    """Bytes of an array whose ``shape`` is given."""
    return math.prod(shape_of(spec, argument, names)) * argument.dtype(names).itemsize


class Source:
    """Makes the content of a workload's problems; keeps what ``inputs`` gave for the last one."""

    def __init__(self, folder: Path, spec: Spec) -> None:
        self._folder = folder
        self._spec = spec
        self._function: OwnFunction | None = None
        if spec.inputs is not None:
            self._function = own_function(folder, spec.inputs, "inputs")
        self._last: tuple[Any, dict[str, np.ndarray]] | None = None
        self._repeatable = False

    def content(self, problem: Mapping[str, Any], names: Mapping[str, Any], seed: int) -> Content:
        """Content of a problem.

        ``names``: the problem and the tunables that types and shapes read.
        Raises UserError when a file or what ``inputs`` gives does not fit.
        """
        spec = self._spec
        given = self._given(problem, seed)
        numbers = {
            name: self._number(name, argument, given[name], names)
            for name, argument in spec.arguments.items()
            if argument.value == GIVEN
        }
        known = {**names, **numbers}
        generator = np.random.default_rng(seed)
        arrays = {}
        for name, argument in spec.arguments.items():
            if argument.is_read:
                if name in given:
                    arrays[name] = self._array(name, argument, given[name], known)
                else:
                    arrays[name] = self._drawn(name, argument, known, generator)
        return Content(arrays, numbers)

    def _given(self, problem: Mapping[str, Any], seed: int) -> dict[str, np.ndarray]:
        if self._function is None:
            return {}
        key = (*problem.items(), seed)
        if self._last is None or self._last[0] != key:
            given = self._arrays(problem, seed)
            if not self._repeatable:
                _insist_on_same(self._function, given, self._arrays(problem, seed))
                self._repeatable = True
            self._last = key, given
        return self._last[1]

    def _arrays(self, problem: Mapping[str, Any], seed: int) -> dict[str, np.ndarray]:
        made = {}
        for name, value in self._called(problem, seed).items():
            try:
                made[name] = np.asarray(value)
            except ValueError as error:
                raise self._unfit(f"gives {name}, which is no array: {error}") from None
        return made

    def _called(self, problem: Mapping[str, Any], seed: int) -> dict[str, Any]:
        spec, function = self._spec, self._function
        assert function is not None
        known = {**spec.derived_values(problem), **problem, "problem": dict(problem)}
        given = function({**known, "generator": np.random.default_rng(seed)})
        if not isinstance(given, Mapping):
            raise self._unfit(f"gives {type(given).__name__}, not a dict of arrays by name")
        allowed = [name for name, each in spec.arguments.items() if each.is_read or each.is_data]
        for name in given:
            if name not in allowed:
                raise self._unfit(f"gives {unknown('input', name, allowed)}")
            if spec.arguments[name].fill is not None:
                message = f"gives {name}, whose fill is given in {SPEC_FILE}: keep one of them"
                raise self._unfit(message)
        for name, argument in spec.arguments.items():
            if argument.is_data and name not in given:
                raise self._unfit(f"does not give {name}")
        return dict(given)

    def _number(
        self, name: str, argument: Argument, array: np.ndarray, names: Mapping[str, Any]
    ) -> Any:
        if array.ndim:
            raise self._unfit(f"gives {name} with shape {array.shape}, which is a number")
        return self._fitting(name, array.reshape(1), argument.dtype(names))[0]

    def _array(
        self, name: str, argument: Argument, array: np.ndarray, names: Mapping[str, Any]
    ) -> np.ndarray:
        if argument.shape != GIVEN:
            wanted = named_shape(self._folder, self._spec, name, names)
            if array.shape != wanted:
                raise self._unfit(f"gives {name} with shape {array.shape}, must be {wanted}")
        return self._fitting(name, array, argument.dtype(names))

    def _fitting(self, name: str, array: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
        if not fits(array.dtype, dtype):
            raise self._unfit(f"gives {name} as {array.dtype}, must be {dtype.name}")
        try:
            return cast(array, dtype)
        except ValueError as error:
            raise self._unfit(f"gives {name}, which {error}") from None

    def _unfit(self, message: str) -> UserError:
        assert self._function is not None
        return UserError(self._function.file, self._function.name, message)

    def _drawn(
        self,
        name: str,
        argument: Argument,
        names: Mapping[str, Any],
        generator: np.random.Generator,
    ) -> np.ndarray:
        spec, dtype, fill = self._spec, argument.dtype(names), argument.fill or "uniform"
        shape = named_shape(self._folder, spec, name, names)
        if isinstance(fill, Fill):
            if fill.file is not None:
                return _from_file(self._folder, fill.file, shape, dtype)
            numbers = [spec.value(text, names) for text in fill.formulas]
            if fill.uniform is not None and not numbers[0] < numbers[1]:
                message = f"uniform: {numbers[0]:g} is not below {numbers[1]:g}"
                raise UserError(self._folder / SPEC_FILE, f"arguments.{name}.fill", message)
            if fill.value is not None:
                return np.full(shape, numbers[0], dtype)
            law = "uniform" if fill.normal is None else "normal"
            return _distributed(law, numbers, shape, dtype, generator)
        if dtype.names is not None:
            array = np.zeros(shape, dtype)
            for each in dtype.names if fill != "zeros" else ():
                array[each] = drawn(fill, shape, dtype[each], generator)
            return array
        return drawn(fill, shape, dtype, generator)


def drawn(
    fill: str, shape: tuple[int, ...], dtype: np.dtype[Any], generator: np.random.Generator
) -> np.ndarray:
    """Content by a name: ``zeros``, ``iota``, ``normal`` or ``uniform``."""
    if dtype.kind == "c" and fill in ("normal", "uniform"):
        part = element_type("float32" if dtype.itemsize == 8 else "float64")
        real = drawn(fill, shape, part, generator)
        return (real + 1j * drawn(fill, shape, part, generator)).astype(dtype)
    if fill == "zeros":
        return np.zeros(shape, dtype)
    if fill == "iota":
        return np.arange(math.prod(shape)).reshape(shape).astype(dtype)
    if fill == "normal":
        return _distributed(fill, (0, 1), shape, dtype, generator)
    if is_float(dtype):
        return _distributed("uniform", (-1, 1), shape, dtype, generator)
    return generator.integers(0, 2 if dtype.kind == "b" else 100, shape).astype(dtype)


def _distributed(
    fill: str,
    numbers: Sequence[float],
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    generator: np.random.Generator,
) -> np.ndarray:
    """Content that is ``normal`` (mean and deviation) or ``uniform`` (least and largest number).
    Elements with fewer digits than float32 are drawn in it, by parts that a cache holds: float64 of
    the whole takes twice as long."""
    first, second = numbers
    if not is_float(dtype) or dtype.itemsize >= np.dtype(np.float32).itemsize:
        whole = generator.normal if fill == "normal" else generator.uniform
        return whole(first, second, shape).astype(dtype)
    factor = second if fill == "normal" else second - first
    found = np.empty(shape, dtype)
    flat, buffer = found.reshape(-1), np.empty(min(PART, found.size), np.float32)
    for begin in range(0, found.size, PART):
        these = flat[begin : begin + PART]
        part = buffer[: these.size]
        if fill == "normal":
            generator.standard_normal(dtype=np.float32, out=part)
        else:
            generator.random(dtype=np.float32, out=part)
        part *= factor
        part += first
        these[:] = part
    return found


def _from_file(folder: Path, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    path = folder / name
    content = read_array(path)
    # NumPy's format has no bfloat16.
    same = content.dtype == dtype or (dtype.name == "bfloat16" and content.dtype == np.float32)
    if not same:
        raise UserError(path, "", f"holds {content.dtype}, the argument is {dtype.name}")
    if content.shape != shape and (content.ndim != 1 or content.size != math.prod(shape)):
        raise UserError(path, "", f"has shape {content.shape}, the argument {shape}")
    return np.ascontiguousarray(content.reshape(shape).astype(dtype))


def _insist_on_same(
    function: OwnFunction, first: Mapping[str, np.ndarray], again: Mapping[str, np.ndarray]
) -> None:
    for name, one in first.items():
        other = again.get(name, np.empty(0, object))
        if one.shape != other.shape or one.tobytes() != other.tobytes():
            message = (
                f"gives different {name} for the same problem and seed: draw from `generator` alone"
            )
            raise UserError(function.file, function.name, message)
