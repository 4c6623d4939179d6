"""Compiled builds in this process: their kernels, parameters and variables, and the memory."""

from __future__ import annotations

import ctypes
import itertools
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from launchwise.cpu.source import entry_name
from launchwise.workloads.builds import Build
from launchwise.workloads.device import Buffer, Launch, LaunchFailed

GUARD_BYTES = 1 << 14  # Guard zone before and behind a buffer

GUARDS = tuple(
    np.tile(np.array(content, np.uint8), GUARD_BYTES // 4)
    for content in ([0x5B, 0x5A, 0xFF, 0xFF], [0x3F, 0x40, 0x41, 0x41])
)
"""Contents of a guard zone: NaN, but not the poison of shared memory; numbers that adding changes.

Both of float32 and float64; what is read there shows as NaN, and a sum stored there as a change.
The numbers differ from buffer to buffer, so that a copy from one zone to another shows, too.
"""

_numbers = itertools.count(1)


class CpuBuffer:
    """Memory of the CPU, its own or at an address; ``allocation`` as the CUDA device's buffers."""

    def __init__(self, nbytes: int, address: int | None = None) -> None:
        self.nbytes = nbytes
        self._guards: tuple[np.ndarray, ...] = ()
        self._kind = self._content = GUARDS[0]
        self._mark = next(_numbers) % 250
        self.allocation: Any = address
        self.address = address or 0
        if address is None:
            # Neither zeros nor poison: nothing may rely on what fresh memory holds.
            memory = np.full(nbytes + 2 * GUARD_BYTES, 0x5A, np.uint8)
            self.allocation = memory[GUARD_BYTES : GUARD_BYTES + nbytes]
            # NumPy lets a slice without elements begin where the whole array does.
            self.address = memory.ctypes.data + GUARD_BYTES
            self._guards = memory[:GUARD_BYTES], memory[GUARD_BYTES + nbytes :]
            for guard in self._guards:
                guard[:] = self._content

    def guard(self, content: np.ndarray) -> None:
        """Let the guard zones hold this content, one of :data:`GUARDS`."""
        if content is self._kind:
            return
        self._kind = content
        self._content = content.copy()
        if content is not GUARDS[0]:
            self._content[1::4] = self._mark
        for guard in self._guards:
            guard[:] = self._content

    def overrun(self) -> str:
        """What a launch wrote into a guard zone, in words; '' if nothing. Mends the zone."""
        for end, guard in zip(("start", "end"), self._guards, strict=False):
            (written,) = np.nonzero(guard != self._content)
            if written.size:
                guard[:] = self._content
                byte = written[-1] - GUARD_BYTES if end == "start" else self.nbytes + written[0]
                return f"writes byte {byte}, beyond the {end} of a buffer of {self.nbytes} B"
        return ""


def memory_of(buffer: Buffer, nbytes: int) -> np.ndarray:
    """The first bytes of a buffer; somebody else's memory is known by its address."""
    memory: Any = buffer.allocation  # type: ignore[attr-defined]
    if isinstance(memory, int):
        return np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(memory))
    return np.asarray(memory[:nbytes])


def address_of(buffer: Buffer) -> int:
    """Where a buffer begins; of somebody else's, where its memory does."""
    own: Any = getattr(buffer, "address", None)
    return int(memory_of(buffer, buffer.nbytes).ctypes.data if own is None else own)


class CpuPart:
    def __init__(self, whole: Buffer, offset: int, nbytes: int) -> None:
        self.nbytes = nbytes
        self.allocation = memory_of(whole, offset + nbytes)[offset:]
        self.address = address_of(whole) + offset


# Kernels

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
        """Arguments as the kernel reads them. Raises LaunchFailed for those that do not fit."""
        if len(arguments) != len(self.parameters):
            raise LaunchFailed(
                f"{len(arguments)} arguments, it has {len(self.parameters)} parameters"
            )
        numbers = range(1, len(arguments) + 1)
        given = zip(numbers, arguments, self.parameters, strict=True)
        return [self._value(number, argument, *own) for number, argument, own in given]

    def _value(self, number: int, argument: Any, size: int, kind: int) -> Any:
        if hasattr(argument, "allocation"):
            if kind != 0:
                raise LaunchFailed(
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
            raise LaunchFailed(f"{message} of {size} B")
        return (ctypes.c_char * size).from_buffer_copy(argument.tobytes())


class Library:
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

    def placed(self, said: str) -> str:
        """A message that begins with a place in the library, ``@...``, with file and line."""
        place, _, rest = said.partition(" ")
        if not place.startswith("@"):
            return said
        command = ["addr2line", "-e", str(self._path), place[1:]]
        done = subprocess.run(command, text=True, capture_output=True, check=True)
        name, _, line = done.stdout.split()[0].rpartition(":")
        # What the unit itself holds is of no file.
        return f"{self._build.source if '<' in name else name}:{line}: {rest}"

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
    """Symbols that a library defines, with the size of what they name, bytes."""
    command = ["nm", "-D", "-S", "--defined-only", str(library)]
    done = subprocess.run(command, text=True, capture_output=True, check=True)
    found = re.findall(r"^[0-9a-f]+ ([0-9a-f]+) \w (\S+)$", done.stdout, re.MULTILINE)
    return {name: int(size, 16) for size, name in found}
