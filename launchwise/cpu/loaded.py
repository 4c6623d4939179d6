"""Compiled builds in this process: their kernels, parameters and variables."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

from launchwise.cpu.buffers import CpuBuffer, address_of
from launchwise.cpu.library import exported
from launchwise.cpu.source import entry_name
from launchwise.workloads.builds import Build
from launchwise.workloads.device import Launch, LaunchFailed

POINTER, INTEGER, FLOATING, STRUCTURE, BFLOAT16 = range(5)  # Kinds of parameters, as in `kinds.h`

_memory_of_stacks: list[int] = []


def stacks(library: ctypes.CDLL) -> int:
    """Address of the threads' stacks, which all libraries of the process use in turn."""
    if not _memory_of_stacks:
        library.make_stacks.restype = ctypes.c_void_p
        address = library.make_stacks()
        if not address:
            raise LaunchFailed("the system refuses 320 MiB of address space for stacks")
        _memory_of_stacks.append(address)
    return _memory_of_stacks[0]


class Request(ctypes.Structure):
    """``launchwise_cpu::Request`` in ``failures.h``."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint),
        ("order", ctypes.c_uint),
        ("poison", ctypes.c_ubyte),
        ("stacks", ctypes.c_void_p),
        ("reason", ctypes.c_void_p),
        ("reason_bytes", ctypes.c_uint),
    )


def _kind(argument: Any) -> int:
    """Kind of a number: complex ones are structures to a kernel."""
    if argument.dtype.name == "bfloat16":
        return BFLOAT16
    return {"b": INTEGER, "i": INTEGER, "u": INTEGER, "f": FLOATING}.get(
        argument.dtype.kind, STRUCTURE
    )


class Kernel:
    """A compiled kernel and its parameters, which ``describe`` of cuda_on_cpu.h codes."""

    KINDS = ("a buffer", "an integer", "a floating-point number", "a structure", "a bfloat16")

    def __init__(self, library: ctypes.CDLL, name: str) -> None:
        self.library = library
        self.name = name
        self.run = getattr(library, f"run_{name}")
        described = (ctypes.c_uint * 4096)()
        count = getattr(library, f"describe_{name}")(described)
        self.parameters = [(each // 8, each % 8) for each in described[:count]]

    def values(self, arguments: tuple[Any, ...]) -> list[Any]:
        """Arguments as the kernel reads them."""
        if len(arguments) != len(self.parameters):
            raise self._unfit(
                f"{len(arguments)} arguments, it has {len(self.parameters)} parameters"
            )
        return [
            self._value(number, argument, *parameter)
            for number, (argument, parameter) in enumerate(
                zip(arguments, self.parameters, strict=True), 1
            )
        ]

    def _value(self, number: int, argument: Any, size: int, kind: int) -> Any:
        if hasattr(argument, "allocation"):
            if kind != 0:
                raise self._unfit(
                    f"argument {number} is a buffer, the parameter {self.KINDS[kind]}"
                )
            return ctypes.c_void_p(address_of(argument))
        given, name = _kind(argument), str(argument.dtype)
        # A pointer may be passed as an integer: null, or the address of a table.
        fits = argument.nbytes == size and (given == kind or (given, kind) == (INTEGER, POINTER))
        if not fits:
            if given == STRUCTURE and argument.dtype.names:
                name = f"a structure of {argument.nbytes} B"
            message = f"argument {number} is {name}, the parameter {self.KINDS[kind]}"
            raise self._unfit(f"{message} of {size} B")
        return (ctypes.c_char * size).from_buffer_copy(argument.tobytes())

    def _unfit(self, message: str) -> LaunchFailed:
        return LaunchFailed(f"{self.name}: {message}")


class Library:
    """The kernels and variables of a compiled build."""

    def __init__(self, build: Build, path: Path) -> None:
        self._build = build
        self._path = path
        try:
            self._loaded = ctypes.CDLL(str(path))
        except OSError as error:
            raise LaunchFailed(f"{build.source}: {error}") from error
        self._kernels: dict[str, Kernel] = {}

    def kernel(self, launch: Launch) -> Kernel:
        """The launched kernel, by its name in the build or in the source."""
        if launch.kernel not in self._kernels:
            for name in (entry_name(self._build, launch.kernel), launch.kernel):
                if hasattr(self._loaded, f"run_{name}"):
                    self._kernels[launch.kernel] = Kernel(self._loaded, name)
                    break
            else:
                raise self._missing(f"no __global__ function {launch.kernel}", "run_", "")
        return self._kernels[launch.kernel]

    def variable(self, name: str) -> CpuBuffer:
        """A global variable, by its C or its C++ name."""
        space = self._build.namespace
        mangled = f"_ZN{len(space)}{space}"
        found = {
            symbol: size
            for symbol, size in _exported(self._path).items()
            if symbol == name
            or (symbol.startswith(mangled) and symbol.endswith(f"{len(name)}{name}E"))
        }
        if len(found) != 1:
            which = "no" if not found else "more than one"
            raise self._missing(f"{which} __constant__ or __device__ variable {name}", mangled, "E")
        ((symbol, nbytes),) = found.items()
        return CpuBuffer(nbytes, ctypes.addressof(ctypes.c_char.in_dll(self._loaded, symbol)))

    def _missing(self, what: str, before: str, after: str) -> LaunchFailed:
        key = f"_{self._build.key}"
        there = {
            symbol.removeprefix(before).removesuffix(after).removesuffix(key).lstrip("0123456789")
            for symbol in _exported(self._path)
            if symbol.startswith(before) and symbol.endswith(after)
        }
        listed = ", ".join(sorted(there)) or "none"
        return LaunchFailed(f"{self._build.source} has {what} (it has: {listed})")


@cache
def _exported(library: Path) -> dict[str, int]:
    return exported(library)
