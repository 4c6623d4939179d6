"""C code of the host, compiled by the C compiler of this machine when it is first called."""

from __future__ import annotations

import ctypes
import functools
import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

FLAGS = ("-std=c11", "-O3", "-shared", "-fPIC")
COMPILERS = ("cc", "gcc", "clang")


class NoCompiler(RuntimeError):
    """A source cannot be compiled or loaded on this machine."""


@functools.cache
def library(source: Path, *options: str) -> ctypes.CDLL:
    """A C source as a library, compiled once per process.

    Parameters
    ----------
    options
        Of the compiler, beside :data:`FLAGS`.

    Raises
    ------
    NoCompiler
        When there is no compiler (``CC``, ``cc``, ``gcc`` or ``clang``), or it fails.
    """
    with tempfile.TemporaryDirectory(prefix="launchwise-") as folder:
        path = Path(folder, source.stem).with_suffix(".so")
        command = [*_compiler(source), *FLAGS, *options, "-o", str(path), str(source)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                said = " ".join(done.stderr.split())[:300]
                raise NoCompiler(f"{command[0]} cannot compile {source.name}: {said}")
            # A loaded library outlives its file.
            return ctypes.CDLL(str(path))
        except OSError as error:
            raise NoCompiler(f"{source.name} cannot be compiled and loaded: {error}") from error


def _compiler(source: Path) -> list[str]:
    if named := shlex.split(os.environ.get("CC", "")):
        return named
    for name in COMPILERS:
        if path := shutil.which(name):
            return [path]
    wanted = ", ".join(COMPILERS)
    raise NoCompiler(f"{source.name} needs a C compiler: install one of {wanted}, or set CC")
