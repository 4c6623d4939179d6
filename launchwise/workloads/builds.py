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

CHECK_SOURCE = "check.cu"
"""Kernels of a workload that make its inputs and check its outputs."""

COMPARE_SOURCE = "common/compare.cu"
"""Kernel of the project that compares outputs of workloads without a ``check.cu``."""

REALS = {"float32": "float", "float64": "double"}


@dataclass(frozen=True)
class Build:
    """One source file with the macros that it is compiled with.

    Parameters
    ----------
    kernels
        Kernels of a file that does not use ``KERNEL``, as they are launched: ``axpy`` or
        ``gemm<64, 64, float>``; empty for a file that does.
    """

    source: str
    defines: tuple[tuple[str, str], ...]
    kernels: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, source: str | None, defines: Mapping[str, str | int], kernels: Iterable[str] = ()
    ) -> Build:
        """A build from a mapping; the order of its keys does not matter.

        Raises
        ------
        ValueError
            Without a source: an imported workload has no kernel.
        """
        if source is None:
            raise ValueError("the variant has no kernel")
        sorted_defines = tuple(sorted((name, str(value)) for name, value in defines.items()))
        return cls(source, sorted_defines, tuple(kernels))

    @cached_property
    def key(self) -> str:
        """Name of this build: the same for the same source name, macros and kernels."""
        named = [list(self.kernels)] if self.kernels else []
        return digest([self.source, list(self.defines), *named])

    def symbol(self, kernel: str) -> str:
        """Name of a kernel in the compiled module, before C++ adds to it."""
        return f"{kernel}_{self.key}"

    def kernel_of(self, symbol: str) -> str | None:
        """Kernel that a symbol of the compiled module stands for; None if it is not of this build.

        A C++ symbol holds the namespace's and the function's name, each after its length.
        """
        suffix = f"_{self.key}"
        if symbol.endswith(suffix) and not symbol.startswith("_Z"):
            return symbol.removesuffix(suffix)
        for kernel in self.kernels:
            name = self.symbol(split_kernel(kernel)[0])
            if re.match(rf"_ZN?\w*?{_mangled(name)}(?=\D|$)", symbol):
                return kernel
        return None

    def constant(self, name: str) -> str:
        """Symbol of the ``__constant__`` array ``name``, which has C++ linkage in its namespace."""
        return f"_ZN{_mangled(self.namespace)}{_mangled(name)}E"

    @property
    def namespace(self) -> str:
        """Namespace around the file."""
        return f"build_{self.key}"


def split_kernel(text: str) -> tuple[str, str]:
    """Name of a kernel, and its template arguments without brackets: ``gemm<64, float>``."""
    base, _, rest = text.partition("<")
    return base.strip(), rest.strip().removesuffix(">").strip()


def _mangled(name: str) -> str:
    """A name as C++ symbols hold it (Itanium C++ ABI, section 5.1.3)."""
    return f"{len(name)}{name}"


def real_macro(dtype: str) -> dict[str, str | int]:
    """The macro ``REAL``: the C++ type of ``dtype``, float32 or float64.

    Raises
    ------
    ValueError
        For any other type.
    """
    if dtype not in REALS:
        raise ValueError(f"no REAL for dtype {dtype!r}: only for {' and '.join(REALS)}")
    return {"REAL": REALS[dtype]}


@cache
def check_build(dtype: str | None) -> Build:
    """Build of ``check.cu`` for arrays of ``dtype``; without ``REAL`` where that is None."""
    return Build.of(CHECK_SOURCE, {} if dtype is None else real_macro(dtype))


def translation_unit(builds: Iterable[Build], headers: Iterable[str]) -> str:
    """Source text that compiles every one of ``builds``; ``headers`` are included once, first.

    Headers are as :func:`launchwise.workloads.sources.unit_headers` gives them.
    """
    lines = [
        f"#include {header}" if header.startswith("<") else f'#include "{header}"'
        for header in headers
    ]
    for build in builds:
        defines = [("KERNEL(name)", f"name##_{build.key}")]
        if build.kernels:
            bases = dict.fromkeys(
                split_kernel(kernel)[0].split("::")[-1] for kernel in build.kernels
            )
            defines = [(base, build.symbol(base)) for base in bases]
        defines += build.defines
        lines.append(f"namespace {build.namespace} {{")
        lines.extend(f"#define {name} {value}" for name, value in defines)
        lines.append(f'#include "{build.source}"')
        lines.extend(f"#undef {name.removesuffix('(name)')}" for name, _ in defines)
        lines.append("}")
    return "\n".join(lines) + "\n"


def spread(builds: Iterable[Build], units: int) -> list[list[Build]]:
    """Cut ``builds`` into at most ``units`` groups of nearly equal size, deterministically."""
    ordered = sorted(set(builds), key=lambda build: (build.source, build.defines))
    count = max(1, min(units, len(ordered)))
    # Neighbours (same file, other macros) cost about the same, so deal them out like cards.
    return [ordered[start::count] for start in range(count)]
