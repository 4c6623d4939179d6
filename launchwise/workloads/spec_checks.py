"""Whether everything in a spec fits together: names, expressions, arguments."""

from __future__ import annotations

import keyword
from collections.abc import Mapping
from typing import Any

from launchwise.base.errors import LONGEST_NAME, unknown
from launchwise.base.expressions import FUNCTIONS, Extent, check_names, extent
from launchwise.gpus.profile import GPU_FEATURES
from launchwise.workloads.arguments import (
    GIVEN,
    NO_ELEMENT,
    NULL,
    Argument,
    Fill,
    Repeated,
    parameters_of,
    types_of,
)
from launchwise.workloads.parts import (
    GPU_NAMES,
    LATER_COLUMNS,
    MEASURED_COLUMNS,
    Variant,
    Work,
)
from launchwise.workloads.spec_fields import SpecFields

MOST_NAMES = 250
"""Most parameters, tunables, variants or other names of one kind in a spec."""

KEYWORD = "is a word of the language of expressions: take another name"


def check_spec(spec: SpecFields) -> None:
    """Check that what a spec names is there, and that its expressions can be read.

    Raises
    ------
    ValueError
        With the key, at the first mistake.
    """
    for part in ("problem", "derived", "tunables", "variants", "arguments", "features", "macros"):
        if len(getattr(spec, part)) > MOST_NAMES:
            raise ValueError(f"{part}: has more than {MOST_NAMES:,} names")
        if long := [name for name in getattr(spec, part) if len(name) > LONGEST_NAME]:
            raise ValueError(f"{part}.{long[0]}: is longer than {LONGEST_NAME} characters")
    _check_own_names(spec)
    for name, variant in spec.variants.items():
        for tunable in variant.tunables:
            if tunable not in spec.tunables:
                message = unknown("tunable", tunable, spec.tunables)
                raise ValueError(f"variants.{name}.tunables: {message}")
    for name, entry in spec.tunables.items():
        if len({type(value) for value in (entry.neutral, *entry.values)}) > 1:
            raise ValueError(f"tunables.{name}: its values mix numbers and texts")
        if len(set(entry.values)) != len(entry.values):
            raise ValueError(f"tunables.{name}.values: a value is given twice")
    _check_arguments(spec)
    _check_expressions(spec)
    if spec.baseline.get("variant") not in spec.variants:
        raise ValueError(
            f"baseline: {unknown('variant', spec.baseline.get('variant'), spec.variants)}"
        )
    for key, value in spec.baseline.items():
        if key != "variant" and key not in spec.tunables:
            raise ValueError(f"baseline: {unknown('tunable', key, spec.tunables)}")
        if key != "variant" and value not in (
            *spec.tunables[key].values,
            spec.tunables[key].neutral,
        ):
            raise ValueError(f"baseline.{key}: {value!r} is not a value of this tunable")
    _check_verified(spec)


def _check_verified(spec: SpecFields) -> None:
    """Insist that something may be recommended, and that all is compared with right answers."""
    if not any(variant.verified for variant in spec.variants.values()):
        raise ValueError("variants: none is verified, so none could be recommended")
    name = str(spec.baseline["variant"])
    if not spec.variants[name].verified:
        raise ValueError(
            f"baseline: variant {name!r} is not verified: nothing can be compared with it"
        )


def _check_arguments(spec: SpecFields) -> None:
    """Check what :class:`Argument`, :class:`Reference` and kernels name."""
    if not spec.arguments:
        for key in ("macros", "reference", "inputs"):
            if getattr(spec, key):
                raise ValueError(f"{key}: belongs to a spec with arguments")
        if named := [name for name, variant in spec.variants.items() if variant.is_triton]:
            raise ValueError(f"variants.{named[0]}.source: Triton belongs to a spec with arguments")
        return
    known = {*spec.problem, *spec.derived}
    given = [name for name, each in spec.arguments.items() if each.value == GIVEN]
    for name, argument in spec.arguments.items():
        _check_argument(spec, name, argument, {*known, *spec.tunable_columns, *given})
    if not any(argument.is_written for argument in spec.arguments.values()):
        raise ValueError("arguments: none has the role output or inout")
    chosen = {"variant", *(n for n, one in spec.tunables.items() if one.kind == "build")}
    for name, text in spec.macros.items():
        check_names(f"macros.{name}", text, known | chosen)
        if name in spec.tunables:
            raise ValueError(f"macros.{name}: is a tunable")
    for name, variant in spec.variants.items():
        _check_kernels(spec, f"variants.{name}", variant)
    _check_reference(spec, known)


def _check_argument(spec: SpecFields, name: str, argument: Argument, known: set[str]) -> None:
    """Check type, shape, content and value of an argument.

    Parameters
    ----------
    known
        Names of the problem, tunables, and numbers that ``inputs`` gives.
    """
    where = f"arguments.{name}"
    types_of_argument(where, argument, spec.problem, spec.tunables)
    tunable = spec.tunables.get(argument.type) if isinstance(argument.type, str) else None
    if tunable is not None and tunable.kind != "build":
        raise ValueError(f"{where}.type: {argument.type} is a launch tunable: say build")
    if argument.is_data and spec.inputs is None:
        key = "value" if argument.shape is None else "shape"
        raise ValueError(f"{where}.{key}: data is made by a function: inputs is missing")
    for text in argument.sizes:
        check_names(f"{where}.shape", text, known)
        if text.strip() == "0":
            raise ValueError(f"{where}.shape: has no element: {NO_ELEMENT}")
    if isinstance(argument.fill, Fill):
        for text in argument.fill.formulas:
            check_names(f"{where}.fill", text, {*spec.problem, *spec.derived})
    counters = {each for one in spec.variants.values() for each in _counters(one)}
    for field, text in argument.values.items():
        key = f"{where}.value.{field}" if field else f"{where}.value"
        check_names(key, text, known | counters)


def _counters(variant: Variant) -> list[str]:
    """Counters of a variant's repetitions."""
    return [name for part in (variant, *variant.kernels) for name in part.repeat]


def _check_kernels(spec: SpecFields, where: str, variant: Variant) -> None:
    if (variant.kernel is None) == (not variant.kernels):
        raise ValueError(f"{where}: needs kernel, the name of its __global__ function")
    for named in (variant.arguments, *(step.arguments for step in variant.kernels)):
        for name in parameters_of(named, spec.arguments):
            if name == NULL:
                continue
            if name not in spec.arguments:
                message = unknown("argument", name, spec.arguments)
                raise ValueError(f"{where}.arguments: {message}")
            if spec.arguments[name].constant is not None:
                raise ValueError(f"{where}.arguments: {name} lies in constant memory")
    known = {*spec.problem, *spec.derived, *spec.tunable_columns, *GPU_NAMES}
    outer = _check_repeat(spec, where, variant, known)
    for number, step in enumerate(variant.kernels):
        inner = _check_repeat(spec, f"{where}.kernels.{number}", step, known | outer)
        for text in (*step.block, *step.grid, step.shared_bytes):
            _check_launch(spec, f"{where}.kernels", text, known | outer | inner)
    _check_launch(spec, f"{where}.shared_bytes", variant.shared_bytes, known)


def _check_launch(spec: SpecFields, where: str, text: str, known: set[str]) -> None:
    """As ``check_names``; a launch knows no arguments: those that ``inputs`` gives come later."""
    try:
        check_names(where, text, known)
    except ValueError as error:
        argument = next((each for each in spec.arguments if f"name {each!r}" in str(error)), None)
        if argument is None:
            raise
        may = "problem parameters, derived names, tunables, and counters"
        message = f"{text!r} reads the argument {argument}; it may read {may}"
        raise ValueError(f"{where}: {message}") from None


def _check_repeat(spec: SpecFields, where: str, part: Repeated, known: set[str]) -> set[str]:
    """Check counters and swapped arrays of what is repeated; returns the counters."""
    counters: set[str] = set()
    for name, text in part.repeat.items():
        _check_launch(spec, f"{where}.repeat.{name}", text, known | counters)
        if name in known:
            raise ValueError(f"{where}.repeat.{name}: is already a name of the spec")
        counters.add(name)
    for name in part.swap or ():
        if name not in spec.arguments:
            raise ValueError(f"{where}.swap: {unknown('argument', name, spec.arguments)}")
        if not spec.arguments[name].is_array or spec.arguments[name].constant is not None:
            raise ValueError(f"{where}.swap: {name} is no array of device memory")
    if part.swap is not None:
        one, other = (spec.arguments[name] for name in part.swap)
        if (one.type, one.shape) != (other.type, other.shape):
            message = f"{' and '.join(part.swap)} differ in type or shape"
            raise ValueError(f"{where}.swap: {message}")
    return counters


def _check_reference(spec: SpecFields, known: set[str]) -> None:
    if spec.reference is None:
        raise ValueError("reference is missing: what must the outputs be?")
    for text in spec.reference.given or []:
        if text not in spec.arguments:
            check_names("reference.given", text, known | set(spec.tunables))
        elif spec.arguments[text].is_array and not spec.arguments[text].is_read:
            raise ValueError(f"reference.given: {text} is an output")
    if spec.reference.variant is not None and spec.reference.variant not in spec.variants:
        message = unknown("variant", spec.reference.variant, spec.variants)
        raise ValueError(f"reference.variant: {message}")


def _check_own_names(spec: SpecFields) -> None:
    taken = {name: "a name that every sweep has" for name in (*MEASURED_COLUMNS, "variant")}
    taken |= dict.fromkeys(LATER_COLUMNS, "a column of later tables")
    taken |= {name: "a fact of the GPU" for name in GPU_NAMES}
    taken |= {name: "a function" for name in FUNCTIONS}
    taken |= dict.fromkeys(("only", "constraints"), "a key of sweep.yaml")
    for part in ("problem", "tunables", "derived"):
        for name in getattr(spec, part):
            if keyword.iskeyword(name):
                raise ValueError(f"{part}.{name}: {KEYWORD}")
            if name in taken:
                raise ValueError(f"{part}.{name}: {name} is already {taken[name]}")
            taken[name] = f"in {part}"
    for variant, one in spec.variants.items():
        for name in _counters(one):
            if keyword.iskeyword(name):
                raise ValueError(f"variants.{variant}.repeat.{name}: {KEYWORD}")
    for name, column in zip(spec.stages, spec.stage_columns, strict=True):
        if column in taken:
            raise ValueError(f"stages.{name}: {column} is already {taken[column]}")
        taken[column] = "a stage"
    for name in spec.findings:
        if name in taken:
            raise ValueError(f"findings.{name}: {name} is already {taken[name]}")


def _check_expressions(spec: SpecFields) -> None:
    known, extents = set(spec.problem), dict[str, Extent]()
    for name, text in spec.derived.items():
        # A derived name may depend on tunables (a pitch on the padding), so they count too.
        check_names(f"derived.{name}", text, known | set(spec.tunable_columns))
        known.add(name)
        extents[name] = _extent(f"derived.{name}", text, extents)
    for key in Work.model_fields:
        if key != "item":
            text = getattr(spec.work, key)
            check_names(f"work.{key}", text, known)
            # Whatever stands behind derived names: a problem costs the same for every variant.
            raw = spec.formulas.raw_names(text)
            if strange := [each for each in raw if each not in spec.problem]:
                message = f"{text!r} reads {strange[0]}; it may read problem parameters only"
                raise ValueError(f"work.{key}: {message}")
    known |= {*spec.tunable_columns, *GPU_NAMES}
    for text in spec.constraints:
        check_names("constraints", text, known)
        _extent("constraints", text, extents)
    for name, variant in spec.variants.items():
        for part in ("constraints", "block", "grid"):
            for text in getattr(variant, part) or ():
                _check_launch(spec, f"variants.{name}.{part}", text, known)
                _extent(f"variants.{name}.{part}", text, extents)
    for name, text in spec.features.items():
        check_names(f"features.{name}", text, known - set(GPU_NAMES) | set(GPU_FEATURES))
    if spec.cost is not None:
        try:
            spec.cost.check(known | set(GPU_FEATURES), spec.variants)
        except ValueError as error:
            raise ValueError(f"cost.{error}") from error


def _extent(where: str, text: str, derived: Mapping[str, Extent]) -> Extent:
    """As ``extent``, with the key in its message."""
    try:
        return extent(text, derived)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error


def types_of_argument(
    where: str, argument: Argument, problem: Mapping[str, Any], tunables: Mapping[str, Any]
) -> list[str]:
    """:func:`launchwise.workloads.arguments.types_of`, with the key in its message."""
    try:
        return types_of(argument, problem, tunables)
    except ValueError as error:
        raise ValueError(f"{where}.{error}") from None
