"""Builds: a source file with its macros set, and translation units that hold many of them.

A kernel file is included once for every set of macros, inside a namespace of its own and with
``KERNEL(name)`` expanding to a name that no other build has. So one run of nvcc compiles many
builds, and a kernel file is plain CUDA C++. Where a build names its kernels, their own names are
replaced: such a file stays as it is, and its symbols are those of C or of C++.

``defines`` of a build in Triton hold the value of each constexpr and option, and per other
parameter its type in the notation of Triton's own compile tool: ``*fp16:16`` (a pointer divisible
by 16), ``i32:16``, ``i32``, and ``1`` for an integer that equals 1: ``JITFunction`` specialises so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError, unknown
from launchwise.base.names import SPEC_FILE
from launchwise.base.storage import digest
from launchwise.workloads.arguments import GIVEN, NULL, parameters_of, types_of
from launchwise.workloads.parts import Variant
from launchwise.workloads.sources import (
    OFFLOADING,
    OPTIONS,
    POWERS_OF_TWO,
    TRITON,
    Parameter,
    TritonFunction,
    triton_function,
)
from launchwise.workloads.spec_fields import SpecFields
from launchwise.workloads.templates import own_names

CHECK_SOURCE = "check.cu"  # Kernels of a workload that make its inputs and check its outputs

COMPARE_SOURCE = "common/compare.cu"
"""Kernel of the project that compares outputs of workloads without a ``check.cu``."""

COMPARE_HALF_SOURCE = "common/compare_half.cu"
"""The same for outputs of 16-bit floating-point numbers."""

DIGEST_SOURCE = "common/digest.cu"
"""Kernel of the project that tells whether a launch left memory as it was."""

REALS = {"float32": "float", "float64": "double"}

HEADERS_OF_TYPES = {
    r"\b(?:__half2?|half2?)\b": "<cuda_fp16.h>",
    r"\b(?:__)?nv_bfloat16": "<cuda_bf16.h>",
    r"\bcu(?:Float|Double)?Complex\b": "<cuComplex.h>",
}
"""Pattern of a type of CUDA to its header."""


@dataclass(frozen=True)
class Build:
    """One source file with the macros that it is compiled with."""

    source: str
    defines: tuple[tuple[str, str], ...]
    # Kernels of a file that does not use ``KERNEL``, as they are launched: ``axpy`` or
    # ``gemm<64, 64, float>``; empty for a file that does.
    kernels: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, source: str | None, defines: Mapping[str, str | int], kernels: Iterable[str] = ()
    ) -> Build:
        """A build from a mapping; the order of its keys does not matter. Raises ValueError without
        a source: an imported workload has no kernel."""
        if source is None:
            raise ValueError("the variant has no kernel")
        sorted_defines = tuple(sorted((name, str(value)) for name, value in defines.items()))
        return cls(source, sorted_defines, tuple(kernels))

    @cached_property
    def key(self) -> str:
        """Name of this build: the same for the same source name, macros and kernels."""
        named = [list(self.kernels)] if self.kernels else []
        return digest([self.source, list(self.defines), *named])

    @property
    def offloads(self) -> bool:
        """Whether its kernels are functions of the host, in C with OpenMP."""
        return self.source.endswith(OFFLOADING)

    @property
    def is_triton(self) -> bool:
        """Whether its kernel is a function of Triton; ``defines`` hold its specialisation, too."""
        return self.source.endswith(TRITON)

    def symbol(self, kernel: str) -> str:
        """Name of a kernel in the compiled module, before C++ adds to it. Triton's is that of the
        source, in a module of its own."""
        return kernel if self.is_triton else f"{kernel}_{self.key}"

    def kernel_of(self, symbol: str) -> str | None:
        """Kernel that a symbol of the compiled module stands for; None if it is not of this build.
        Of several instantiations of a template, the symbol alone does not tell which one it is: see
        :func:`launchwise.measuring.bundle.kernel_symbols`."""
        if not self.kernels:
            kernel = symbol.removesuffix(f"_{self.key}")
            return kernel if symbol == self.symbol(kernel) else None
        own = [kernel for kernel in self.kernels if self.is_named(symbol, kernel)]
        is_template = symbol_path(symbol).is_template
        alike = [kernel for kernel in own if is_template == ("<" in kernel)]
        candidates = alike or own
        return candidates[0] if len(candidates) == 1 else None

    def is_named(self, symbol: str, kernel: str) -> bool:
        """Whether a symbol is of this build and has the name of ``kernel``, whatever arguments."""
        path = symbol_path(symbol)
        suffix = f"_{self.key}"
        if not path.names or not (path.names[-1].endswith(suffix) or self.namespace in path.names):
            return False
        named = [name for name in path.names[:-1] if not name.startswith("_GLOBAL__N_")]
        # Namespaces without a name have one in the symbol.
        names = [*named, path.names[-1].removesuffix(suffix)]
        wanted = split_kernel(kernel)[0].split("::")
        # A symbol of C names no namespaces.
        count = len(wanted) if path.is_cpp else 1
        return names[-count:] == wanted[-count:]

    def constant(self, name: str) -> str:
        """Symbol of the ``__constant__`` array ``name``, which has C++ linkage in its namespace."""
        return f"_ZN{_mangled(self.namespace)}{_mangled(name)}E"

    @property
    def headers_of_types(self) -> list[str]:
        """Headers of the types of CUDA that its macros and template arguments name."""
        said = " ".join([*self.kernels, *dict(self.defines).values()])
        return [header for pattern, header in HEADERS_OF_TYPES.items() if re.search(pattern, said)]

    @property
    def namespace(self) -> str:
        return f"build_{self.key}"


@dataclass(frozen=True)
class SymbolPath:
    """Names in a symbol of a function."""

    names: tuple[str, ...]  # namespaces, then the function; the function alone for a symbol of C
    is_cpp: bool  # whether it is a symbol of C++
    is_template: bool  # whether it is an instantiation of a template


def symbol_path(symbol: str) -> SymbolPath:
    """Names in a symbol of a function (Itanium C++ ABI, section 5.1)."""
    if not symbol.startswith("_Z"):
        return SymbolPath((symbol,), False, False)
    names: list[str] = []
    place = 3 if symbol[2:3] == "N" else 2
    while match := re.compile(r"L?(\d+)").match(symbol, place):
        names.append(symbol[match.end() : match.end() + int(match[1])])
        place = match.end() + int(match[1])
    return SymbolPath(tuple(names), True, symbol[place : place + 1] == "I")


def split_kernel(text: str) -> tuple[str, str]:
    """Name of a kernel, and its template arguments without brackets: ``gemm<64, float>``."""
    base, _, rest = text.partition("<")
    return base.strip(), rest.strip().removesuffix(">").strip()


def _mangled(name: str) -> str:
    """A name as C++ symbols hold it (Itanium C++ ABI, section 5.1.3)."""
    return f"{len(name)}{name}"


def real_macro(dtype: str) -> dict[str, str | int]:
    """The macro ``REAL``: the C++ type of ``dtype``, float32 or float64. Raises ValueError for any
    other type."""
    if dtype not in REALS:
        raise ValueError(f"no REAL for dtype {dtype!r}: only for {' and '.join(REALS)}")
    return {"REAL": REALS[dtype]}


@cache
def check_build(dtype: str | None) -> Build:
    """Build of ``check.cu`` for arrays of ``dtype``; without ``REAL`` where that is None."""
    return Build.of(CHECK_SOURCE, {} if dtype is None else real_macro(dtype))


def macros_of(build: Build) -> list[tuple[str, str]]:
    """Macros around the source of a build: new names of its kernels, then its own macros."""
    if not build.kernels:
        return [("KERNEL(name)", f"name##_{build.key}"), *build.defines]
    bases = dict.fromkeys(split_kernel(kernel)[0].split("::")[-1] for kernel in build.kernels)
    return [*((base, build.symbol(base)) for base in bases), *build.defines]


def by_source(builds: Iterable[Build]) -> dict[str, list[Build]]:
    """Builds of each source, in their order."""
    found: dict[str, list[Build]] = {}
    for build in builds:
        found.setdefault(build.source, []).append(build)
    return found


def spread(builds: Iterable[Build], units: int) -> list[list[Build]]:
    """Cut ``builds`` into at most ``units`` groups of nearly equal size, deterministically."""
    ordered = sorted(set(builds), key=lambda build: (build.source, build.defines))
    count = max(1, min(units, len(ordered)))
    # Neighbours (same file, other macros) cost about the same, so deal them out like cards.
    return [ordered[start::count] for start in range(count)]


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
