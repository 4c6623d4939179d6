"""Builds: a source file with its macros set, and translation units that hold many of them.

A kernel file is included once for every set of macros, inside a namespace of its own and with
``KERNEL(name)`` expanding to a name that no other build has. So one run of nvcc compiles many
builds, and a kernel file is plain CUDA C++.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property

from launchwise.base.storage import digest

CHECK_SOURCE = "check.cu"
"""Kernels of a workload that make its inputs and check its outputs."""

REALS = {"float32": "float", "float64": "double"}


@dataclass(frozen=True)
class Build:
    """One source file with the macros that it is compiled with."""

    source: str
    defines: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, source: str, defines: Mapping[str, str | int]) -> Build:
        """A build from a mapping; the order of its keys does not matter."""
        return cls(source, tuple(sorted((name, str(value)) for name, value in defines.items())))

    @cached_property
    def key(self) -> str:
        """Name of this build: the same for the same source name and macros."""
        return digest([self.source, list(self.defines)])

    def symbol(self, kernel: str) -> str:
        """Name of ``KERNEL(kernel)`` in the compiled module."""
        return f"{kernel}_{self.key}"


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
    """Source text that compiles every one of ``builds``; ``headers`` are included once, first."""
    lines = [f'#include "{header}"' for header in headers]
    for build in builds:
        lines.append(f"namespace build_{build.key} {{")
        lines.append(f"#define KERNEL(name) name##_{build.key}")
        lines.extend(f"#define {name} {value}" for name, value in build.defines)
        lines.append(f'#include "{build.source}"')
        lines.extend(f"#undef {name}" for name in ("KERNEL", *(name for name, _ in build.defines)))
        lines.append("}")
    return "\n".join(lines) + "\n"


def spread(builds: Iterable[Build], units: int) -> list[list[Build]]:
    """Cut ``builds`` into at most ``units`` groups of nearly equal size, deterministically."""
    ordered = sorted(set(builds), key=lambda build: (build.source, build.defines))
    count = max(1, min(units, len(ordered)))
    # Neighbours (same file, other macros) cost about the same, so deal them out like cards.
    return [ordered[start::count] for start in range(count)]
