"""Builds of variants in Triton: constexprs, options, and argument types specialised by Triton.

A build's ``defines`` hold the value of each constexpr and option, and per other parameter its type
in the notation of Triton's own compile tool: ``*fp16:16`` (a pointer divisible by 16), ``i32:16``,
``i32``, and ``1`` for an integer that equals 1. Triton's ``JITFunction`` specialises in that way.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError, unknown
from launchwise.base.names import SPEC_FILE
from launchwise.workloads.arguments import GIVEN, NULL, parameters_of, types_of
from launchwise.workloads.builds import Build
from launchwise.workloads.parts import Variant
from launchwise.workloads.sources import (
    OPTIONS,
    POWERS_OF_TWO,
    Parameter,
    TritonFunction,
    triton_function,
)
from launchwise.workloads.spec_fields import SpecFields
from launchwise.workloads.templates import own_names

TYPES: Mapping[str, str] = {
    **{"bool": "i1", "float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64"},
    **{f"int{bits}": f"i{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"u{bits}" for bits in (8, 16, 32, 64)},
}
"""Type of ``spec.yaml`` (NumPy's name) to that of Triton."""

ALIGNMENT = 16  # Triton compiles pointers and integers that this number divides apart from others

_WORDS = {"True": True, "False": False, "None": None}

NONE = "None"  # In place of a type: `nullptr` among the arguments


def triton_build(
    folder: Path,
    spec: SpecFields,
    variant: Variant,
    problem: Mapping[str, Any],
    configuration: Mapping[str, Any],
) -> Build:
    """Build of a configuration, for arguments like those of a problem. Raises UserError when the
    source is no Python or lacks the function."""
    function = triton_function(folder / str(variant.source), str(variant.kernel))
    wanted = {*OPTIONS, *(each.name for each in function.constexprs)}
    known = {**configuration, **problem}
    defines = {name: configuration[name] for name in own_names(spec, variant) if name in wanted}
    defines |= {n: spec.value(text, known) for n, text in spec.macros.items() if n in wanted}
    named = parameters_of(variant.arguments, spec.arguments)
    for parameter, name in zip(function.given, named, strict=True):
        defines[parameter.name] = _specialised(spec, parameter, name, known)
    return Build.of(variant.source, defines, [function.name])


def _specialised(
    spec: SpecFields, parameter: Parameter, name: str, known: Mapping[str, Any]
) -> str:
    """Type of an argument; its value where Triton compiles for that."""
    if name == NULL:
        return NONE
    argument = spec.arguments[name]
    kind = TYPES[argument.dtype(known).name]
    aligned = f":{ALIGNMENT}" if parameter.is_aligned else ""
    if argument.is_array:
        return f"*{kind}{aligned}"  # Buffers begin at multiples of 256 bytes.
    if kind[0] not in "iu" or kind == "i1" or argument.value == GIVEN:
        return kind
    read = {*spec.formulas.raw_names(str(argument.value))}
    if not read <= {*spec.problem, *spec.tunable_columns}:
        return kind  # Not known before a launch: a general build serves every value.
    value = int(spec.value(str(argument.value), known))
    if value == 1 and parameter.equals_one:
        return "1"
    return kind if value % ALIGNMENT else f"{kind}{aligned}"


def constant(text: str) -> Any:
    """Value of a constexpr that a build holds as text: a number, a bool, ``tl.float16``, a text."""
    if text in _WORDS:
        return _WORDS[text]
    if text.startswith("tl."):
        import triton.language as tl

        return getattr(tl, text.removeprefix("tl."), text)
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def check_triton(folder: Path, spec: SpecFields, name: str, variant: Variant) -> None:
    """Insist that a variant and the function of its file fit together. Raises UserError at the
    first mistake."""
    path = folder / SPEC_FILE
    function = triton_function(folder / str(variant.source), str(variant.kernel))
    if function.prints:
        message = "a kernel that prints (device_print) cannot be timed: delete that line"
        raise UserError(folder / str(variant.source), f"line {function.prints[0]}", message)
    _check_given(path, spec, name, variant, function)
    own = own_names(spec, variant)
    fixed = [each.name for each in function.constexprs]
    for each in function.constexprs:
        if each.name in spec.tunables and spec.tunables[each.name].kind == "launch":
            message = f"is launch, but a constexpr of {function.name}: say build"
            raise UserError(path, f"tunables.{each.name}.kind", message)
        if each.name not in (*own, *spec.macros) and not each.has_default:
            message = (
                f"the constexpr {each.name} of {function.name} has no value: add a build tunable "
                "of that name to the variant, or an expression to macros"
            )
            raise UserError(path, f"variants.{name}.tunables", message)
    for tunable in (each for each in variant.tunables if each in OPTIONS and each not in own):
        message = "is launch, but an option of Triton's compiler: say build"
        raise UserError(path, f"tunables.{tunable}.kind", message)
    for tunable in (each for each in own if each in POWERS_OF_TWO):
        powers = {1 << power for power in range(32)}
        if wrong := [each for each in spec.tunables[tunable].values if each not in powers]:
            message = f"{wrong[0]!r} is no power of two, which Triton insists on"
            raise UserError(path, f"tunables.{tunable}.values", message)
    if strange := [each for each in own if each not in (*fixed, *OPTIONS)]:
        message = unknown(f"constexpr of {function.name}", strange[0], [*fixed, *OPTIONS])
        raise UserError(path, f"variants.{name}.tunables", message)


def _check_given(
    path: Path, spec: SpecFields, name: str, variant: Variant, function: TritonFunction
) -> None:
    named = parameters_of(variant.arguments, spec.arguments)
    if len(named) != len(function.given):
        takes = ", ".join(each.name for each in function.given)
        message = f"{function.name} takes {len(function.given)} ({takes}) beside its constexprs"
        given = f"{len(named)} are given ({', '.join(named)})"
        raise UserError(path, f"variants.{name}.arguments", f"{message}, {given}")
    for each in named:
        if each == NULL:
            continue
        kinds = types_of(spec.arguments[each], spec.problem, spec.tunables)
        if strange := [kind for kind in kinds if kind not in TYPES]:
            message = f"Triton has no type for {strange[0]}"
        elif not kinds:
            message = "Triton takes no structs"
        else:
            continue
        raise UserError(path, f"arguments.{each}.type", f"{message}: {variant.source}")
