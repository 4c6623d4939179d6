"""Functions of Triton as their file declares them, read without running it, and their builds.

A build's ``defines`` hold the value of each constexpr and option, and per other parameter its type
in the notation of Triton's own compile tool: ``*fp16:16`` (a pointer divisible by 16), ``i32:16``,
``i32``, and ``1`` for an integer that equals 1. Triton's ``JITFunction`` specialises in that way.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError, unknown
from launchwise.base.names import SPEC_FILE, last_name
from launchwise.workloads.arguments import GIVEN, NULL, Argument, parameters_of, types_of
from launchwise.workloads.builds import Build
from launchwise.workloads.parts import Variant
from launchwise.workloads.sources import source_text
from launchwise.workloads.spec_fields import SpecFields
from launchwise.workloads.templates import own_names

OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")
POWERS_OF_TWO = ("num_warps", "num_ctas")
"""Options of Triton's compiler that a build may set, beside the constexprs of the function."""

REGISTERS = "maxnreg"  # The option that limits registers per thread
NO_LIMIT = 0  # Its value for no limit, beside configurations that have one

INSTALL = "pip install 'launchwise[triton]'"
MISSING = f"triton is missing: {INSTALL}"


_UNALIGNED = "do_not_specialize_on_alignment"
_GENERAL = "do_not_specialize"


@dataclass(frozen=True)
class Parameter:
    """A parameter of a function of Triton."""

    name: str
    is_constexpr: bool  # whether its value is fixed by a compilation
    has_default: bool  # whether the file gives it a value
    # Whether Triton compiles the function anew for the integer 1, and for multiples of 16.
    equals_one: bool = True
    is_aligned: bool = True


@dataclass(frozen=True)
class TritonFunction:
    """A ``@triton.jit`` function."""

    name: str
    parameters: tuple[Parameter, ...]
    prints: tuple[int, ...] = ()  # lines on which its file prints
    keys: frozenset[str] = frozenset()  # names in the `key` of its `@triton.autotune`

    @property
    def constexprs(self) -> list[Parameter]:
        """Parameters that a build fixes."""
        return [each for each in self.parameters if each.is_constexpr]

    @property
    def given(self) -> list[Parameter]:
        """Parameters that get the arguments of a launch, in their order."""
        return [each for each in self.parameters if not each.is_constexpr]


def triton_function(path: Path, name: str) -> TritonFunction:
    """The function ``name`` of a file. Raises UserError when the file is no Python, or has no
    ``@triton.jit`` function of that name."""
    changed = path.stat().st_mtime_ns if path.is_file() else 0
    functions = _functions(path, changed)
    if name not in functions:
        message = unknown("@triton.jit function", name, functions)
        raise UserError(path, "", message)
    return functions[name]


@lru_cache(maxsize=64)
def _functions(path: Path, changed: int) -> dict[str, TritonFunction]:
    try:
        tree = ast.parse(source_text(path))
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        said = getattr(error, "msg", None) or str(error)
        raise UserError(path, f"line {line}" if line else "", f"SyntaxError: {said}") from error
    defined = [
        (node, decorator)
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        for decorator in node.decorator_list
        if last_name(decorator) == "jit"
    ]
    inner = (each for node, _ in defined for part in node.body for each in ast.walk(part))
    calls = [each for each in inner if isinstance(each, ast.Call)]
    named = [each.lineno for each in calls if last_name(each) in ("device_print", "print")]
    prints = tuple(sorted(named))
    return {
        node.name: TritonFunction(
            node.name, tuple(_parameters(node, decorator)), prints, _keys(node)
        )
        for node, decorator in defined
    }


def _keys(function: ast.FunctionDef) -> frozenset[str]:
    """Texts that ``@triton.autotune(configs, key)`` lists as they are."""
    found: set[str] = set()
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call) and last_name(decorator) == "autotune":
            named = [each.value for each in decorator.keywords if each.arg == "key"]
            for node in (*named, *decorator.args[1:2]):
                found |= {each for each in _listed(node) if isinstance(each, str)}
    return frozenset(found)


def _parameters(function: ast.FunctionDef, decorator: ast.AST) -> Iterator[Parameter]:
    listed = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    with_default = len(function.args.defaults)
    places = len(listed) - len(function.args.kwonlyargs)
    named = {
        key.arg: _listed(key.value)
        for key in getattr(decorator, "keywords", ())
        if key.arg in (_GENERAL, _UNALIGNED)
    }
    for place, each in enumerate(listed):
        if place < places:
            has_default = place >= places - with_default
        else:
            has_default = function.args.kw_defaults[place - places] is not None
        own = {each.arg, place}
        is_general = bool(own & named.get(_GENERAL, set()))
        is_unaligned = is_general or bool(own & named.get(_UNALIGNED, set()))
        is_constexpr = each.annotation is not None and last_name(each.annotation) == "constexpr"
        yield Parameter(each.arg, is_constexpr, has_default, not is_general, not is_unaligned)


def _listed(node: ast.AST) -> set[str | int]:
    found = (each.value for each in ast.walk(node) if isinstance(each, ast.Constant))
    return {each for each in found if isinstance(each, str | int)}


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
    defines = {name: configuration[name] for name in own_names(spec, variant) if name in wanted} | {
        name: spec.value(text, problem, configuration)
        for name, text in spec.macros.items()
        if name in wanted
    }
    named = parameters_of(variant.arguments, spec.arguments)
    for parameter, name in zip(function.given, named, strict=True):
        defines[parameter.name] = _specialised(
            spec, variant, parameter, name, problem, configuration
        )
    return Build.of(variant.source, defines, [function.name])


def _specialised(
    spec: SpecFields,
    variant: Variant,
    parameter: Parameter,
    name: str,
    problem: Mapping[str, Any],
    configuration: Mapping[str, Any],
) -> str:
    """Type of an argument; its value where Triton compiles for that."""
    if name == NULL:
        return NONE
    argument = spec.arguments[name]
    kind = TYPES[argument.dtype({**configuration, **problem}).name]
    aligned = f":{ALIGNMENT}" if parameter.is_aligned else ""
    if argument.is_array:
        return f"*{kind}{aligned}"  # Buffers begin at multiples of 256 bytes.
    if kind[0] not in "iu" or kind == "i1" or not _is_known(spec, variant, argument):
        return kind
    value = int(spec.value(str(argument.value), problem, configuration))
    if value == 1 and parameter.equals_one:
        return "1"
    return kind if value % ALIGNMENT else f"{kind}{aligned}"


def _is_known(spec: SpecFields, variant: Variant, argument: Argument) -> bool:
    """Whether the value of a number is known before a launch; a general build serves others."""
    if argument.value == GIVEN:
        return False
    read = spec.formulas.raw_names(str(argument.value))
    known = {*spec.problem, *spec.tunable_columns}
    return set(read) <= known


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
