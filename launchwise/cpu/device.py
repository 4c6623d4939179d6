"""A device that runs the kernels' own sources on the CPU.

It lets everything around a GPU run for real where there is none: builds, launches, verification,
the measuring process, journals. Its times are a CPU's and mean nothing.
"""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from launchwise.base.storage import digest
from launchwise.workloads.builds import Build, translation_unit
from launchwise.workloads.sources import include_folders, included_files, unit_headers
from launchwise.workloads.workload import Buffer, Launch, OutOfMemory

HEADER = Path(__file__).with_name("cuda_on_cpu.h")
FLAGS = ["-std=c++17", "-O1", "-ffp-contract=off", "-fPIC"]


class CpuBuffer:
    """Memory of the CPU; ``allocation`` as the CUDA device's buffers have it."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        # Neither zeros nor poison: nothing may rely on what fresh memory holds.
        self.allocation = np.full(nbytes, 0x5A, np.uint8)


def memory_of(buffer: Buffer, nbytes: int) -> np.ndarray:
    """The first bytes of a buffer; somebody else's memory is known by its address."""
    memory: Any = buffer.allocation  # type: ignore[attr-defined]
    if isinstance(memory, int):
        return np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(memory))
    return np.asarray(memory[:nbytes])


class CpuPart:
    """Some bytes of a buffer."""

    def __init__(self, whole: Buffer, offset: int, nbytes: int) -> None:
        self.nbytes = nbytes
        self.allocation = memory_of(whole, offset + nbytes)[offset:]


class CpuGraph:
    """Work kept for later."""

    def __init__(self, queue: Callable[[], None]) -> None:
        self.launch = queue

    def close(self) -> None:
        """There is nothing to give back."""


class CpuDevice:
    """See :class:`launchwise.workloads.workload.Device`.

    Parameters
    ----------
    folder
        The workload's folder.
    memory_bytes
        Allocations beyond this fail as a card's do.
    cache
        Where compiled kernels are kept between devices of one test run.
    """

    sms = 2

    def __init__(
        self,
        folder: Path,
        headers: list[str],
        memory_bytes: int = 1 << 30,
        cache: Path | None = None,
    ) -> None:
        self.folder = folder
        self.headers = headers
        self.free_bytes = memory_bytes
        self.cache = cache or Path(tempfile.mkdtemp(prefix="launchwise-host-"))
        self._kernels: dict[str, Any] = {}
        self.launched: set[str] = set()
        """Keys of the builds that kernels were taken from."""

    def allocate(self, nbytes: int) -> CpuBuffer:
        """Take from the device's memory; OutOfMemory when too little is left."""
        if nbytes > self.free_bytes:
            raise OutOfMemory(f"{nbytes} B asked, {self.free_bytes} B free")
        self.free_bytes -= nbytes
        return CpuBuffer(nbytes)

    def release(self, buffer: Buffer) -> None:
        """Give memory back."""
        self.free_bytes += buffer.nbytes

    def fill_bytes(self, buffer: Buffer, value: int) -> None:
        """Set every byte."""
        memory_of(buffer, buffer.nbytes)[:] = value

    def part(self, buffer: Buffer, offset: int, nbytes: int) -> CpuPart:
        """Some bytes of a buffer."""
        return CpuPart(buffer, offset, nbytes)

    def page_locked(self, nbytes: int) -> np.ndarray:
        """Memory as any other."""
        return np.full(nbytes, 0x5A, np.uint8)

    def stream(self) -> str:
        """Everything is done at once, on every stream."""
        return "stream"

    def event(self, stream: Any = None) -> float:
        """Now, in seconds."""
        return time.perf_counter()

    def elapsed_ms(self, begin: float, end: float) -> float:
        """Milliseconds between two events."""
        return 1e3 * (end - begin)

    def synchronize(self) -> None:
        """There is nothing to wait for."""

    def upload(self, buffer: Buffer, array: np.ndarray, stream: Any = None) -> None:
        """Copy an array to the start of the buffer."""
        content = np.ascontiguousarray(array).view(np.uint8).reshape(-1)
        memory_of(buffer, content.size)[:] = content

    def download(self, buffer: Buffer, array: np.ndarray, stream: Any = None) -> None:
        """Fill an array from the start of the buffer."""
        array.reshape(-1).view(np.uint8)[:] = memory_of(buffer, array.nbytes)

    def launch(self, launch: Launch, stream: Any = None) -> None:
        """Run every thread of the launch, one after the other."""
        self.launched.add(launch.build.key)
        values = []
        for argument in launch.arguments:
            if hasattr(argument, "allocation"):
                address = memory_of(argument, argument.nbytes).ctypes.data
                values.append(ctypes.c_void_p(address))
            else:
                values.append(
                    (ctypes.c_char * argument.nbytes).from_buffer_copy(argument.tobytes())
                )
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        shape = (ctypes.c_uint * 7)(*launch.grid, *launch.block, launch.shared_bytes)
        self._kernel(launch)(pointers, shape)

    def captured(self, queue: Callable[[], None], streams: Iterable[Any]) -> CpuGraph:
        """It can be done again, whenever that is."""
        return CpuGraph(queue)

    def _kernel(self, launch: Launch) -> Any:
        symbol = launch.build.symbol(launch.kernel)
        if symbol not in self._kernels:
            library = self.cache / f"{Path(launch.build.source).stem}_{launch.build.key}.so"
            if not library.exists():
                self._compile(launch.build, library)
            entry = getattr(ctypes.CDLL(str(library)), f"run_{symbol}")
            entry.restype = None
            self._kernels[symbol] = entry
        return self._kernels[symbol]

    def _compile(self, build: Build, library: Path) -> None:
        names = (build.source, *self.headers)
        texts = [path.read_text() for path in included_files(self.folder, names)]
        kernels = {name for text in texts for name in re.findall(r"\bKERNEL\((\w+)\)\(", text)}
        entries = "".join(
            f'extern "C" void run_{build.symbol(name)}(void **arguments, const unsigned *shape) '
            f"{{ run(build_{build.key}::{build.symbol(name)}, arguments, shape); }}\n"
            for name in sorted(kernels)
        )
        # Fibers cost time: only where threads wait for each other.
        barriers = any("__syncthreads" in text for text in texts)
        headers = unit_headers(self.folder, [build.source], self.headers)
        source = translation_unit([build], headers) + entries
        # Another process may be making the same one.
        scratch = library.with_suffix(f".{os.getpid()}")
        places = [f"-I{place}" for place in include_folders(self.folder)]
        before = ["-include", str(precompiled(barriers)), "-shared", "-x", "c++"]
        command = compiler(barriers, *before, *places, "-o", str(scratch), "-")
        subprocess.run(command, input=source, text=True, check=True, capture_output=True)
        scratch.replace(library)


def compiler(barriers: bool, *options: str) -> list[str]:
    """Command line of the compiler."""
    return ["g++", *FLAGS, *(["-DBARRIERS"] if barriers else []), *options]


@cache
def precompiled(barriers: bool) -> Path:
    """Header of the host's CUDA, with its precompiled form beside it."""
    version = subprocess.run(["g++", "-v"], capture_output=True, text=True, check=True).stderr
    text = HEADER.read_text()
    key = digest([text, version, FLAGS, barriers])
    header = Path(tempfile.gettempdir(), f"launchwise-host-{key}", HEADER.name)
    ready = header.with_name(f"{HEADER.name}.gch")
    if not ready.exists():
        header.parent.mkdir(exist_ok=True)
        # Another process may be making the same ones.
        scratch = [path.with_name(f"{path.name}.{os.getpid()}") for path in (header, ready)]
        scratch[0].write_text(text)
        scratch[0].replace(header)
        command = compiler(barriers, "-x", "c++-header", "-o", str(scratch[1]), str(header))
        subprocess.run(command, check=True, capture_output=True)
        scratch[1].replace(ready)
    return header
