"""Functions in C with OpenMP on the CPU: in one thread, in memory of the CPU device.

g++ compiles them as C without ``-fopenmp``, so pragmas are left out and loops run in the order in
which they stand. Clang reads the pragmas in the compile stage.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from launchwise.base.storage import digest, digest_files
from launchwise.cpu import toolchain
from launchwise.cpu.buffers import GUARDS, CpuBuffer, address_of
from launchwise.cpu.messages import first_error
from launchwise.workloads.builds import Build, macros_of
from launchwise.workloads.c_functions import called
from launchwise.workloads.device import Launch, LaunchFailed
from launchwise.workloads.sources import include_folders, included_files

FLAGS = ("-x", "c", "-std=gnu17", "-shared")


class CFunctions:
    """Compiled functions in C of a workload.

    ``kept``: folder of the compiled libraries.
    """

    def __init__(self, folder: Path, kept: Path) -> None:
        self._folder = folder
        self._kept = kept.absolute()
        self._loaded: dict[str, ctypes.CDLL] = {}
        self._calls = 0

    def call(self, launch: Launch, buffers: Sequence[CpuBuffer]) -> None:
        """Call the function of a launch. Raises CannotCompile for a source that g++ refuses. Raises
        LaunchFailed when the library lacks the function, or writes to the guard zone of a
        buffer."""
        build = launch.build
        if build.key not in self._loaded:
            self._loaded[build.key] = ctypes.CDLL(str(self.library(build)))
        call = called(self._loaded[build.key], launch, address_of)
        # Sums keep a NaN and change numbers; what is read there shows as a NaN.
        self._calls += 1
        guarded(buffers, call, launch.kernel, GUARDS[self._calls % 2])

    def library(self, build: Build) -> Path:
        """The compiled build, made now or kept from before."""
        files = digest_files(included_files(self._folder, [build.source]))
        marks = digest([toolchain.toolchain(), FLAGS, files, build.key])
        path = self._kept / f"{Path(build.source).stem}_{marks}.so"
        toolchain.made(path, lambda scratch: self._compile(build, scratch))
        return path

    def _compile(self, build: Build, made: Path) -> None:
        macros = [f"-D{name}={value}" for name, value in macros_of(build)]
        searched = [f"-I{place}" for place in include_folders(self._folder)]
        source = str(self._folder.resolve() / build.source)
        done = toolchain.gxx([*FLAGS, *macros, *searched, source, "-o", str(made), "-lgomp"])
        if done.returncode:
            raise toolchain.CannotCompile(self._refusal(build, done))

    def _refusal(self, build: Build, done: subprocess.CompletedProcess[str]) -> str:
        error = first_error(done.stderr, os.devnull, str(self._folder / build.source))
        text = f"{error.place}: {error.message}".replace(f"_{build.key}", "")
        return text.replace(f"{self._folder.resolve()}/", "")


def guarded(
    buffers: Sequence[CpuBuffer], call: Callable[[], None], function: str, content: np.ndarray
) -> None:
    """Call a function; LaunchFailed where it wrote beside a buffer, where ``content`` lay."""
    for buffer in buffers:
        buffer.guard(content)
    call()
    for buffer in buffers:
        if said := buffer.overrun():
            raise LaunchFailed(f"{function}: {said}", fatal=False)
