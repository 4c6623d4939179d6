"""Expected outputs of a spec with ``arguments``, from its reference, checked and by name."""

from __future__ import annotations

import importlib
import itertools
import math
import operator
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from launchwise.base.arrays import widened
from launchwise.base.errors import Misfit, UserError, unknown
from launchwise.base.names import SPEC_FILE
from launchwise.workloads.arguments import GIVEN, Reference
from launchwise.workloads.declared.content import Content, shape_of
from launchwise.workloads.declared.own_functions import OwnFunction, own_function
from launchwise.workloads.spec import Spec
from launchwise.workloads.spec_fields import SpecFields

Outputs = dict[str, np.ndarray]
"""Name of an output to its expected values, maybe masked; outputs that are not compared lack."""


class OwnReference:
    """A workload's reference and comparison, where they are functions of its own."""

    def __init__(self, folder: Path, spec: Spec) -> None:
        reference = spec.reference
        assert reference is not None  # the spec was checked
        self._folder = folder
        self._spec = spec
        self._reference: Reference = reference
        self._expected = self._own(reference.file, "reference.file")
        self._compare = self._own(reference.compare, "reference.compare")

    def _own(self, named: str | None, key: str) -> OwnFunction | None:
        return None if named is None else own_function(self._folder, named, key)

    def read_names(self) -> set[str]:
        """Names of problem, derived names, numbers and tunables that the reference reads."""
        own = [each for each in (self._expected, self._compare) if each is not None]
        names = {name for each in own for name in each.parameters}
        for text in self._reference.given or []:
            if text not in self._spec.arguments:
                names |= set(self._spec.formulas.raw_names(text))
            else:
                names.add(text)
        return names

    def outputs(self, names: Mapping[str, Any], content: Content) -> Outputs:
        """Expected outputs; empty where a comparison of the user's own needs none.

        ``names``: the problem and the tunables that the reference reads.
        Raises UserError when the reference fails, or what it gives does not fit.
        """
        reference = self._reference
        if self._expected is not None:
            given: Any = self._expected(self._available(self._expected, names, content))
        elif reference.call is not None:
            given = called(
                self._folder, self._spec, {**names, **self._numbers(names, content)}, content.arrays
            )
        else:
            return {}
        where = reference.call or str(reference.file)
        by_name = self._by_name(given, where)
        return {
            name: self._fitting(name, each, where, {**names, **content.numbers})
            for name, each in by_name.items()
            if each is not None
        }

    def compared(
        self, names: Mapping[str, Any], content: Content, found: Outputs, expected: Outputs
    ) -> str:
        """What the comparison of the user's own says: '' where it returns True or an empty text.
        Raises UserError when it fails, or returns neither a truth value nor a text."""
        compare = self._compare
        assert compare is not None
        available = self._available(compare, names, content)
        result = compare({**available, "found": found, "expected": expected})
        if isinstance(result, str):
            said = " ".join(result.split())
            return f"{compare.named}: {said}" if said else ""
        if not isinstance(result, bool | np.bool_):
            kind = type(result).__name__
            message = f"returns {kind}, must return True, False or a text that says what is wrong"
            raise UserError(compare.file, compare.name, message)
        return "" if result else f"{compare.named} returns False"

    @property
    def compares(self) -> bool:
        """Whether results are compared by a function of the user's own."""
        return self._compare is not None

    def _available(
        self, function: OwnFunction, names: Mapping[str, Any], content: Content
    ) -> dict[str, Any]:
        """What a function may ask for. Arrays that it takes are copies: it may change them."""
        spec = self._spec
        # A comparison is called for every configuration: what it does not take is not copied.
        arrays = {
            name: widened(array) if function.takes(name) else array
            for name, array in content.arrays.items()
        }
        return {**spec.derived_values(names), **self._numbers(names, content), **names, **arrays}

    def _numbers(self, names: Mapping[str, Any], content: Content) -> dict[str, Any]:
        """Numbers among the arguments whose values are known, in their own types."""
        spec = self._spec
        numbers: dict[str, Any] = dict(content.numbers)
        known = {**names, **content.numbers}
        for name, argument in spec.arguments.items():
            texts = argument.values.values()
            read = {each for text in texts for each in spec.formulas.raw_names(text)}
            if argument.values and read <= set(known):
                numbers[name] = number(spec, name, known)
        return numbers

    def _by_name(self, given: Any, where: str) -> dict[str, Any]:
        outputs = [name for name, each in self._spec.arguments.items() if each.is_written]
        listed = ", ".join(outputs)
        if isinstance(given, Mapping):
            for name in given:
                if name not in outputs:
                    raise self._unfit(f"{where} gives {unknown('output', name, outputs)}")
            if missing := [name for name in outputs if name not in given]:
                message = f"{where} gives no {missing[0]} (outputs: {listed}; None: not compared)"
                raise self._unfit(message)
            return dict(given)
        if isinstance(given, tuple) or (isinstance(given, list) and _in_order(given, outputs)):
            if len(given) != len(outputs):
                message = f"{where} gives {len(given)} arrays, the kernel writes {listed}"
                raise self._unfit(message)
            return dict(zip(outputs, given, strict=True))
        if len(outputs) != 1:
            message = f"{where} gives 1 array, the kernel writes {len(outputs)}: {listed}"
            raise self._unfit(message)
        return {outputs[0]: given}

    def _fitting(self, name: str, given: Any, where: str, names: Mapping[str, Any]) -> np.ndarray:
        """Expected values in the shape of the output, or fewer where the data decide."""
        argument = self._spec.arguments[name]
        dtype = argument.dtype(names)
        try:
            masked = isinstance(given, np.ma.MaskedArray)
            array: np.ndarray = given if masked else np.asarray(given)
        except ValueError as error:
            raise self._unfit(f"{where} gives {name} as no array: {error}") from None
        if dtype.names is not None:
            if array.dtype.names != dtype.names:
                fields = ", ".join(dtype.names)
                raise self._unfit(f"{where} gives {name} without the fields {fields}")
        elif array.dtype.kind not in "bifuc" and array.dtype.name != "bfloat16":
            raise self._unfit(f"{where} gives {name} as {array.dtype}, which are no numbers")
        elif array.dtype.kind == "c" and dtype.kind != "c":
            raise self._unfit(f"{where} gives {name} as {array.dtype}, the output is {dtype.name}")
        if dtype.kind == "c":
            array = array.astype(np.complex128)
        if argument.shape == GIVEN:
            return array
        shape = shape_of(self._spec, argument, names)
        size = math.prod(shape)
        if argument.length == "data":
            if array.size > size:
                message = f"{where} gives {array.size} elements of {name}, which has {size}"
                raise self._unfit(message)
            return array.reshape(-1)
        if not _in_same_order(array.shape, shape):
            message = f"{where} gives shape {array.shape} for {name}, whose shape is {shape}"
            raise self._unfit(message)
        return array.reshape(shape)

    def _unfit(self, message: str) -> UserError:
        return UserError(self._folder / SPEC_FILE, "reference", message)


def _in_same_order(given: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Whether one shape only joins dimensions of the other that are next to each other. (6, 4) is
    (24,), (6, 4, 1) and (2, 3, 4), but not (4, 6): that is another order of elements."""
    one, other = (set(itertools.accumulate(shape, operator.mul)) for shape in (given, wanted))
    return math.prod(given) == math.prod(wanted) and (one <= other or other <= one)


def number(spec: Spec, name: str, names: Mapping[str, Any]) -> Any:
    """Value of a number or a struct among the arguments, in its own type. Raises Misfit when an
    expression cannot be evaluated, or its value does not fit the type."""
    argument = spec.arguments[name]
    dtype = argument.dtype(names)
    try:
        values = {field: spec.value(text, names) for field, text in argument.values.items()}
        if dtype.names is not None:
            made = np.zeros((), dtype)
            for field, value in values.items():
                made[field] = value
            return made[()]
        return dtype.type(values[""])
    except (OverflowError, TypeError, ValueError) as error:
        raise Misfit(f"arguments.{name}.value", str(error)) from error


def _in_order(given: list[Any], outputs: list[str]) -> bool:
    """Whether a list holds one array per output; else it is an array itself."""
    if len(outputs) > 1:
        return True
    return len(given) == 1 and (given[0] is None or isinstance(given[0], np.ndarray))


def called(
    folder: Path, spec: SpecFields, names: Mapping[str, Any], inputs: Mapping[str, np.ndarray]
) -> Any:
    """Result of a spec's ``call``; floating-point inputs are float64 there.

    ``names``: the problem, and numbers among the arguments.
    Raises UserError when the function fails.
    """
    reference = spec.reference
    assert reference is not None
    assert reference.call is not None
    given = [_given(spec, text, names, inputs) for text in reference.given or []]
    module, _, name = reference.call.rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)(*given)
    except (ValueError, TypeError, IndexError, ArithmeticError, np.linalg.LinAlgError) as error:
        message = f"{reference.call} fails: {error}"
        raise UserError(folder / SPEC_FILE, "reference.call", message) from error


def _given(
    spec: SpecFields, text: str, names: Mapping[str, Any], inputs: Mapping[str, np.ndarray]
) -> Any:
    if text in inputs:
        return widened(inputs[text])
    return names[text] if text in spec.arguments else spec.value(text, names)
