"""Functions that are no CUDA on the CPU: in C with OpenMP, and of Triton.

C is compiled by g++ without ``-fopenmp``, so pragmas are left out and loops run in the order in
which they stand; Clang reads the pragmas in the compile stage. Triton's own interpreter runs
program instances one after the other and reads and writes addresses as the GPU would; it takes
arrays of NumPy for tensors of PyTorch through :class:`Tensor`."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from launchwise.base.errors import UserError
from launchwise.base.storage import digest, digest_files
from launchwise.cpu import toolchain
from launchwise.cpu.loaded import address_of
from launchwise.cpu.toolchain import CannotCompile, CannotRun, errors
from launchwise.workloads.builds import NONE, Build, constant, macros_of
from launchwise.workloads.declared.own_functions import import_from
from launchwise.workloads.device import Launch, LaunchFailed, called
from launchwise.workloads.sources import MISSING, include_folders, included_files, triton_function

FLAGS = ("-x", "c", "-std=gnu17", "-shared")


class CFunctions:
    """Compiled functions in C of a workload. ``kept``: folder of the compiled libraries."""

    def __init__(self, folder: Path, kept: Path) -> None:
        self._folder = folder
        self._kept = kept.absolute()
        self._loaded: dict[str, ctypes.CDLL] = {}

    def call(self, launch: Launch) -> Callable[[], None]:
        """The function of a launch. Raises CannotCompile for a source that g++ refuses. Raises
        LaunchFailed when the library lacks the function."""
        build = launch.build
        if build.key not in self._loaded:
            self._loaded[build.key] = ctypes.CDLL(str(self.library(build)))
        return called(self._loaded[build.key], launch, address_of)

    def library(self, build: Build) -> Path:
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
        error = errors(done.stderr, os.devnull, str(self._folder / build.source))[0]
        text = f"{error.place}: {error.message}".replace(f"_{build.key}", "")
        return text.replace(f"{self._folder.resolve()}/", "")


INTERPRET = "TRITON_INTERPRET"


class Tensor:
    """A buffer as Triton's interpreter sees a tensor: an address and a type of elements.
    ``address``: of the first element. ``dtype``: type of the elements, by Triton's name, such as
    ``fp16``."""

    device = "cpu"

    def __init__(self, address: int, dtype: str) -> None:
        self._address = address
        self.dtype = dtype

    def data_ptr(self) -> int:
        return self._address

    def cpu(self, *ignored: Any, **more: Any) -> Tensor:
        """Itself: its memory is the host's already, and results are in place."""
        return self

    untyped_storage = new_empty = set_ = copy_ = cpu

    def storage_offset(self) -> int:
        return 0

    def size(self) -> tuple[int, ...]:
        return ()

    stride = size


class TritonFunctions:
    """Functions of Triton of a workload, as the interpreter runs them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def prepare(self, build: Build) -> None:
        """Insist that Triton is there; nothing needs a compilation. Raises CannotRun without
        Triton."""
        if importlib.util.find_spec("triton") is None:
            raise CannotRun(MISSING)

    def call(self, launch: Launch) -> Callable[[], None]:
        """Function that runs every program instance of a launch, and raises LaunchFailed with what
        the interpreter says. Raises CannotCompile when the file cannot be imported."""
        self.prepare(launch.build)
        function = self._interpreted(launch.build, launch.kernel)
        arguments = self._arguments(launch)

        def run() -> None:
            try:
                with np.errstate(all="ignore"):
                    function[launch.grid](**arguments)
            except Exception as error:
                cause = error.__cause__ or error
                if "0-dimensional arrays can be converted" in str(cause):
                    raise CannotRun(_too_old()) from error
                said = " ".join(str(cause).split()) or type(cause).__name__
                message = f"{launch.build.source}: {launch.kernel}: {said}"
                raise LaunchFailed(message) from error

        return run

    def _interpreted(self, build: Build, name: str) -> Any:
        """The function without decorators that choose configurations."""
        os.environ[INTERPRET] = "1"  # Read when a file's decorators run.
        try:
            module = import_from(self._folder, build.source.removesuffix(".py").replace("/", "."))
        except UserError as error:
            place = f"{Path(error.where).name}: {error.key}"
            raise CannotCompile(f"{place}: {error.message}") from error
        from triton.runtime.interpreter import InterpretedFunction, interpreter_builder

        # Assertions against overflow take most of the time, and end no run without `debug`.
        options = replace(interpreter_builder.options, sanitize_overflow=False)
        interpreter_builder.options = options
        found = getattr(module, name)
        while not isinstance(found, InterpretedFunction):
            found = found.fn  # Of triton.autotune and triton.heuristics.
        # Of annotations in quotation marks, and of another name for tl, it takes none for these.
        own = triton_function(self._folder / build.source, name).constexprs
        found.rewrite().__annotations__ |= {each.name: "constexpr" for each in own}
        return found

    def _arguments(self, launch: Launch) -> dict[str, Any]:
        build = launch.build
        function = triton_function(self._folder / build.source, launch.kernel)
        defines = dict(build.defines)
        values = {}
        for parameter, value in zip(function.given, launch.arguments, strict=True):
            values[parameter.name] = _value(value, defines[parameter.name])
        named = [each.name for each in function.constexprs if each.name in defines]
        return values | {name: constant(defines[name]) for name in named}


def _too_old() -> str:
    import triton

    known = f"the interpreter of Triton {triton.__version__} fails with NumPy {np.__version__}"
    return f"{known}: install Triton 3.9 or NumPy below 2.4"


def _value(value: Any, kind: str) -> Any:
    """An argument of a launch for the interpreter, of the type that the build names."""
    if kind == NONE:
        return None
    if kind.startswith("*"):
        return Tensor(address_of(value), kind[1:].partition(":")[0])
    if kind == "1":
        return 1
    # A number of Python would take its type from its value: int64 that fits 32 bits, those.
    import triton.language as tl
    from triton.runtime.interpreter import TensorHandle

    known = tl.str_to_ty(kind.partition(":")[0], None)
    content = np.array([value])
    # The interpreter keeps bfloat16 as its bits.
    bits = content.view(np.uint16) if content.dtype.name == "bfloat16" else content
    return tl.tensor(TensorHandle(bits, known), known)
