"""Whether everything in a spec fits together: names, expressions, arguments."""

from __future__ import annotations

import keyword
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from launchwise.base.errors import LONGEST_NAME, Misfit, check_known
from launchwise.base.expressions import FUNCTIONS, Extent, check_names, extent
from launchwise.gpus.profile import GPU_FEATURES
from launchwise.workloads.arguments import (
    GIVEN,
    NULL,
    TOLERANCES,
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
    NO_ELEMENT,
    Variant,
    Work,
)
from launchwise.workloads.spec_fields import SpecFields

MOST_NAMES = 250  # Most parameters, tunables, variants or other names of one kind in a spec

RESERVED = {
    **dict.fromkeys((*MEASURED_COLUMNS, "variant"), "a name that every sweep has"),
    **dict.fromkeys(LATER_COLUMNS, "a column of later tables"),
    **dict.fromkeys(GPU_NAMES, "a fact of the GPU"),
    **dict.fromkeys(FUNCTIONS, "a function"),
    **dict.fromkeys(("only", "constraints"), "a key of sweep.yaml"),
}
"""Names that no parameter, tunable or derived name may have, beside :data:`keyword.kwlist`, to what
they are."""

KEYWORD = "is a word of the language of expressions: take another name"


def check_spec(spec: SpecFields) -> None:
    """Check that what a spec names is there, and that its expressions can be read. Raises
    ValueError with the key, at the first mistake."""
    for part in ("problem", "derived", "tunables", "variants", "arguments", "features", "macros"):
        if len(getattr(spec, part)) > MOST_NAMES:
            raise ValueError(f"{part}: has more than {MOST_NAMES:,} names")
        if long := [name for name in getattr(spec, part) if len(name) > LONGEST_NAME]:
            raise ValueError(f"{part}.{long[0]}: is longer than {LONGEST_NAME} characters")
    _check_own_names(spec)
    for name, variant in spec.variants.items():
        check_known(f"variants.{name}.tunables", "tunable", variant.tunables, spec.tunables)
    for name, entry in spec.tunables.items():
        if len({type(value) for value in (entry.neutral, *entry.values)}) > 1:
            raise ValueError(f"tunables.{name}: its values mix numbers and texts")
        if len(set(entry.values)) != len(entry.values):
            raise ValueError(f"tunables.{name}.values: a value is given twice")
    _check_arguments(spec)
    _check_expressions(spec)
    first = spec.baseline.get("variant")
    tunables = [key for key in spec.baseline if key != "variant"]
    check_known("baseline", "variant", [first], spec.variants)
    check_known("baseline", "tunable", tunables, spec.tunables)
    for key in tunables:
        if (value := spec.baseline[key]) not in spec.values_of(key):
            raise Misfit(f"baseline.{key}", f"{value!r} is not a value of this tunable")
    if not any(variant.verified for variant in spec.variants.values()):
        raise Misfit("variants", "none is verified, so none could be recommended")
    if not spec.variants[str(first)].verified:
        message = f"variant {first!r} is not verified: nothing can be compared with it"
        raise Misfit("baseline", message)


def _check_arguments(spec: SpecFields) -> None:
    if not spec.arguments:
        for key in ("macros", "reference", "inputs"):
            if getattr(spec, key):
                raise ValueError(f"{key}: belongs to a spec with arguments")
        if named := [name for name, variant in spec.variants.items() if variant.is_triton]:
            raise ValueError(f"variants.{named[0]}.source: Triton belongs to a spec with arguments")
        return
    for name, argument in spec.arguments.items():
        _check_argument(spec, name, argument)
    if not any(argument.is_written for argument in spec.arguments.values()):
        raise ValueError("arguments: none has the role output or inout")
    for name in spec.macros:
        if name in spec.tunables:
            raise ValueError(f"macros.{name}: is a tunable")
    for name, variant in spec.variants.items():
        _check_kernels(spec, f"variants.{name}", variant)
    _check_reference(spec)


def _check_argument(spec: SpecFields, name: str, argument: Argument) -> None:
    where = f"arguments.{name}"
    with _below(f"{where}."):
        types_of(argument, spec.problem, spec.tunables)
    tunable = spec.tunables.get(argument.type) if isinstance(argument.type, str) else None
    if tunable is not None and tunable.kind != "build":
        raise ValueError(f"{where}.type: {argument.type} is a launch tunable: say build")
    if argument.is_data and spec.inputs is None:
        key = "value" if argument.shape is None else "shape"
        raise ValueError(f"{where}.{key}: data is made by a function: inputs is missing")
    if "0" in map(str.strip, argument.sizes):
        raise ValueError(f"{where}.shape: has no element: {NO_ELEMENT}")


def _counters(variant: Variant) -> list[str]:
    return [name for part in (variant, *variant.kernels) for name in part.repeat]


def _check_kernels(spec: SpecFields, where: str, variant: Variant) -> None:
    if (variant.kernel is None) == (not variant.kernels):
        raise ValueError(f"{where}: needs kernel, the name of its __global__ function")
    for named in (variant.arguments, *(step.arguments for step in variant.kernels)):
        own = [name for name in parameters_of(named, spec.arguments) if name != NULL]
        check_known(f"{where}.arguments", "argument", own, spec.arguments)
        for name in own:
            if spec.arguments[name].constant is not None:
                raise ValueError(f"{where}.arguments: {name} lies in constant memory")
    known = {*spec.problem, *spec.derived, *spec.tunable_columns, *GPU_NAMES}
    _check_repeat(spec, where, variant, known)
    for number, step in enumerate(variant.kernels):
        _check_repeat(spec, f"{where}.kernels.{number}", step, known | set(variant.repeat))


def _check_repeat(spec: SpecFields, where: str, part: Repeated, known: set[str]) -> None:
    for name in part.repeat:
        if name in known:
            raise ValueError(f"{where}.repeat.{name}: is already a name of the spec")
    check_known(f"{where}.swap", "argument", part.swap or (), spec.arguments)
    for name in part.swap or ():
        if not spec.arguments[name].is_array or spec.arguments[name].constant is not None:
            raise ValueError(f"{where}.swap: {name} is no array of device memory")
    if part.swap is not None:
        one, other = (spec.arguments[name] for name in part.swap)
        if (one.type, one.shape) != (other.type, other.shape):
            message = f"{' and '.join(part.swap)} differ in type or shape"
            raise ValueError(f"{where}.swap: {message}")


def _check_reference(spec: SpecFields) -> None:
    if spec.reference is None:
        raise ValueError("reference is missing: what must the outputs be?")
    for text in spec.reference.given or []:
        argument = spec.arguments.get(text)
        if argument is not None and argument.is_array and not argument.is_read:
            raise ValueError(f"reference.given: {text} is an output")
    if (variant := spec.reference.variant) is not None:
        check_known("reference.variant", "variant", [variant], spec.variants)
    written = [one for one in spec.arguments.values() if one.is_written]
    kinds = {kind for one in written for kind in types_of(one, spec.problem, spec.tunables)}
    limit = spec.reference.tolerance
    if limit and isinstance(limit, float) and kinds and kinds.isdisjoint(TOLERANCES):
        raise ValueError(f"reference.tolerance: of integers, say {{{min(kinds)}: {limit:g}}}")


def _check_own_names(spec: SpecFields) -> None:
    taken = dict(RESERVED)
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
        with _below(f"derived.{name}: "):
            extents[name] = extent(text, extents)
    for place in places(spec):
        _check_place(spec, place)
        with _below(f"{place.key}: "):
            extent(place.text, extents)
    for key in _WORK:
        # Whatever stands behind derived names: a problem costs the same for every variant.
        raw = spec.formulas.raw_names(getattr(spec.work, key))
        if strange := [each for each in raw if each not in spec.problem]:
            may = "it may read problem parameters only"
            raise ValueError(f"work.{key}: {getattr(spec.work, key)!r} reads {strange[0]}; {may}")
    if spec.cost is not None:
        with _below("cost."):
            named = {*known, *spec.tunable_columns, *GPU_NAMES, *GPU_FEATURES}
            spec.cost.check(named, spec.variants)


def _check_place(spec: SpecFields, place: Place) -> None:
    """As ``check_names``; a launch knows no arguments: those that ``inputs`` gives come later."""
    try:
        check_names(place.key, place.text, place.known)
    except ValueError as error:
        argument = next((each for each in spec.arguments if f"name {each!r}" in str(error)), None)
        if argument is None or not place.variant:
            raise
        may = "problem parameters, derived names, tunables, and counters"
        message = f"{place.text!r} reads the argument {argument}; it may read {may}"
        raise ValueError(f"{place.key}: {message}") from None


_WORK = [key for key in Work.model_fields if key != "item"]


@dataclass(frozen=True)
class Place:
    """An expression of a spec."""

    key: str
    text: str
    known: Collection[str]  # names that it may read
    # Whether it says what is allowed, or has a value for each problem, whatever is allowed.
    is_condition: bool = False
    is_of_problem: bool = False
    least: int | None = None  # of an array's, a grid's or a block's size: a whole number
    variant: str = ""  # the variant that has it; '' for all


def places(spec: SpecFields) -> Iterator[Place]:
    """Every expression of a spec but derived names; of a configuration, conditions come first."""
    problem = {*spec.problem, *spec.derived}
    every = {*problem, *spec.tunable_columns, *GPU_NAMES}
    for key in _WORK:
        yield Place(f"work.{key}", getattr(spec.work, key), problem, is_of_problem=True)
    for text in spec.constraints:
        yield Place("constraints", text, every, is_condition=True)
    for name, variant in spec.variants.items():
        where = f"variants.{name}"
        for text in variant.constraints:
            yield Place(f"{where}.constraints", text, every, is_condition=True, variant=name)
    for name, variant in spec.variants.items():
        for key, text, counters in _of_launches(f"variants.{name}", variant):
            is_size = ".repeat." not in key and not key.endswith(".shared_bytes")
            yield Place(key, text, every | counters, least=1 if is_size else None, variant=name)
    given = [name for name, each in spec.arguments.items() if each.value == GIVEN]
    known = {*problem, *spec.tunable_columns, *given}
    counters = {each for one in spec.variants.values() for each in _counters(one)}
    for name, argument in spec.arguments.items():
        where = f"arguments.{name}"
        for text in argument.sizes:
            alone, least = _reads_sizes_only(spec, text), int(argument.role != "scratch")
            yield Place(f"{where}.shape", text, known, is_of_problem=alone, least=least)
        for text in argument.fill.formulas if isinstance(argument.fill, Fill) else ():
            yield Place(f"{where}.fill", text, problem)
        for field, text in argument.values.items():
            yield Place(f"{where}.value.{field}".rstrip("."), text, known | counters)
    for text in (spec.reference.given if spec.reference else None) or []:
        if text not in spec.arguments:
            alone = _reads_sizes_only(spec, text)
            yield Place("reference.given", text, problem | set(spec.tunables), is_of_problem=alone)
    for name, text in spec.macros.items():
        yield Place(f"macros.{name}", text, {*problem, "variant", *spec.build_tunables})
    for name, text in spec.features.items():
        yield Place(f"features.{name}", text, every - set(GPU_NAMES) | set(GPU_FEATURES))


def _reads_sizes_only(spec: SpecFields, text: str) -> bool:
    try:
        return spec.problem.keys() >= set(spec.formulas.raw_names(text))
    except ValueError:
        return False  # It is no expression, which is told with its key.


def _of_launches(where: str, variant: Variant) -> Iterator[tuple[str, str, set[str]]]:
    """Keys and expressions of a variant's launches, and the counters that they may read."""
    for key in ("block", "grid"):
        yield from ((f"{where}.{key}", text, set()) for text in getattr(variant, key) or ())
    yield f"{where}.shared_bytes", variant.shared_bytes, set()
    outer = set(variant.repeat)
    yield from _of_counters(where, variant, set())
    for number, step in enumerate(variant.kernels):
        own = f"{where}.kernels.{number}"
        yield from _of_counters(own, step, outer)
        for text in (*step.block, *step.grid):
            yield own, text, outer | set(step.repeat)
        yield f"{own}.shared_bytes", step.shared_bytes, outer | set(step.repeat)


def _of_counters(
    where: str, part: Repeated, known: set[str]
) -> Iterator[tuple[str, str, set[str]]]:
    names = [*part.repeat]
    for place, (name, text) in enumerate(part.repeat.items()):
        yield f"{where}.repeat.{name}", text, known | set(names[:place])


@contextmanager
def _below(key: str) -> Iterator[None]:
    """Put a key before what is said of a part."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{key}{error}") from error
