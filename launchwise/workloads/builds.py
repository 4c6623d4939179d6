"""Builds: a source file with its macros set, and translation units that hold many of them.

A kernel file is included once for every set of macros, inside a namespace of its own and with
``KERNEL(name)`` expanding to a name that no other build has. So one run of nvcc compiles many
builds, and a kernel file is plain CUDA C++. Where a build names its kernels, their own names are
replaced: such a file stays as it is, and its symbols are those of C or of C++.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property

from launchwise.base.storage import digest

CHECK_SOURCE = "check.cu"  # Kernels of a workload that make its inputs and check its outputs

COMPARE_SOURCE = "common/compare.cu"
"""Kernel of the project that compares outputs of workloads without a ``check.cu``."""

COMPARE_HALF_SOURCE = "common/compare_half.cu"
"""The same for outputs of 16-bit floating-point numbers."""

DIGEST_SOURCE = "common/digest.cu"
"""Kernel of the project that tells whether a launch left memory as it was."""

OFFLOADING = ".c"
"""Suffix of sources that are no CUDA: functions in C that offload their work by OpenMP."""

TRITON = ".py"  # Suffix of sources that are no CUDA: functions of Triton, compiled by it

REALS = {"float32": "float", "float64": "double"}


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
