"""The same network in C++ with Eigen on the CPU (see ``eigen.cpp``), to compare with."""

from __future__ import annotations

import ctypes
import functools
import os
import shlex
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

import numpy as np

from launchwise.base.storage import digest, digest_files, whole_file
from launchwise.cpu.toolchain import private_folder

from .network import SHAPES, Network

SOURCE = Path(__file__).with_suffix(".cpp")
FLAGS = ("-std=c++14", "-O3", "-march=native", "-DNDEBUG", "-fopenmp", "-shared", "-fPIC")
COMPILERS = ("c++", "g++", "clang++")
FOLDER_VARIABLE = "EIGEN3_INCLUDE_DIR"
"""Environment variable for the folder that holds ``Eigen/Core``, as CMake's modules name it."""
FOLDERS = ("/usr/include/eigen3", "/usr/local/include/eigen3")
PACKAGE = "cmeel-eigen"  # package of PyPI that carries the headers


class NoEigen(RuntimeError):
    """``eigen.cpp`` cannot be compiled or loaded on this machine; the message is one line."""


class Eigen:
    """Answers reviews in float32 on some cores.

    ``threads``: cores; several reviews are shared out among them, a single one is split by Eigen.
    Raises NoEigen: see :func:`library`.
    """

    def __init__(self, network: Network, threads: int) -> None:
        self._threads = threads
        self._library = library()
        # Pointers keep nothing alive.
        self._weights = [np.ascontiguousarray(getattr(network, name)) for name in SHAPES]
        self._pointers = (ctypes.c_void_p * len(SHAPES))(
            *(each.ctypes.data for each in self._weights)
        )

    def logits(self, x: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """The network's answer, float32 (cases, 2).

        ``x``: embeddings, float32 (cases, tokens, 300), contiguous.
        ``lengths``: tokens that count, at least 1 each: int32 (cases,), contiguous.
        Raises ValueError when the arrays are not as above.
        """
        cases, tokens, width = x.shape
        if x.dtype != np.float32 or width != SHAPES["w1"][0] or not x.flags.c_contiguous:
            raise ValueError(f"x must be contiguous float32 (cases, tokens, {SHAPES['w1'][0]})")
        if lengths.dtype != np.int32 or lengths.shape != (cases,):
            raise ValueError("lengths must be int32 (cases,)")
        if cases and not (lengths.min() >= 1 and lengths.max() <= tokens):
            raise ValueError("lengths must be 1 at least and no more than the tokens")
        lengths = np.ascontiguousarray(lengths)
        found = np.empty((cases, SHAPES["b4"][0]), np.float32)
        given = x.ctypes.data, lengths.ctypes.data, self._pointers, found.ctypes.data
        sizes = ctypes.c_int64(cases), ctypes.c_int64(tokens)
        addresses = [ctypes.cast(each, ctypes.c_void_p) for each in given]
        self._library.eigen_logits(*sizes, *addresses, ctypes.c_int32(self._threads))
        return found

    @property
    def version(self) -> str:
        rest, minor = divmod(int(self._library.eigen_version()), 100)
        return f"{rest // 100}.{rest % 100}.{minor}"


@functools.cache
def library() -> ctypes.CDLL:
    """``eigen.cpp``, compiled once for its content, compiler, processor and Eigen. Raises NoEigen
    when Eigen or a C++ compiler (``CXX``, ``c++``, ``g++`` or ``clang++``) is missing, or the
    compiler fails."""
    compiler, headers = _compiler(), _headers()
    command = [*compiler, *FLAGS, "-I", str(headers)]
    try:
        # What -march=native means here: a folder may be shared by several machines.
        meant = _run([*compiler, *FLAGS, "-dM", "-E", "-x", "c++", os.devnull])
        version = headers / "Eigen" / "src" / "Core" / "util" / "Macros.h"
        mark = digest([command, meant, digest_files([SOURCE, version])])
        path = private_folder("eigen") / f"{mark}.so"
        if not path.is_file():
            with whole_file(path) as scratch:
                _run([*command, "-o", str(scratch), str(SOURCE)])
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise NoEigen(f"{SOURCE.name} cannot be compiled and loaded: {error}") from error


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = " ".join(done.stderr.split())[:300]
        raise NoEigen(f"{command[0]} cannot compile {SOURCE.name}: {said}")
    return done.stdout


def _compiler() -> list[str]:
    if named := shlex.split(os.environ.get("CXX", "")):
        return named
    for name in COMPILERS:
        if path := shutil.which(name):
            return [path]
    wanted = ", ".join(COMPILERS)
    raise NoEigen(f"{SOURCE.name} needs a C++ compiler: install one of {wanted}, or set CXX")


def _headers() -> Path:
    named = os.environ.get(FOLDER_VARIABLE)
    for folder in [Path(named)] if named else [*map(Path, FOLDERS), *_packaged()]:
        if (folder / "Eigen" / "Core").is_file():
            return folder
    if named:
        raise NoEigen(f"{FOLDER_VARIABLE}={named} holds no Eigen/Core")
    raise NoEigen(
        f"{SOURCE.name} needs Eigen 3: install libeigen3-dev (Debian) or {PACKAGE} (PyPI), or set "
        f"{FOLDER_VARIABLE} to the folder that holds Eigen/Core"
    )


def _packaged() -> list[Path]:
    try:
        listed = files(PACKAGE) or []
    except PackageNotFoundError:
        return []
    return [Path(str(each.locate())).parents[1] for each in listed if each.match("Eigen/Core")]
