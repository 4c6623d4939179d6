"""Clang as the compile stage calls it: C sources that offload by OpenMP, one library per build.

A ``.c`` source of a variant has functions of the host, which get pointers to device memory
(``is_device_ptr``) and return when the device has finished. Clang compiles such a file to a shared
library that holds the device's code, too; LLVM's ``libomptarget`` runs it.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from launchwise.base.errors import UserError
from launchwise.measuring.bundle import CompilerMissing, refusal
from launchwise.workloads.builds import Build, macros_of, split_kernel
from launchwise.workloads.sources import include_folders

FLAGS = ["-O3", "-ffast-math", "-fPIC", "-shared", "-fopenmp", "-fopenmp-version=51"]
"""Options of Clang, beside the architecture and the macros of a build."""

RELEASES = range(22, 16, -1)
"""Releases of Clang that are looked for as ``clang-19``; ``clang`` itself comes first."""

INSTALL = "apt-get install clang-19 libomp-19-dev lld-19 llvm-19 clang-tools-19"

# Clang has ptxas make a relocatable object and nvlink an executable of it. The packages that hold
# ptxas 12 lack nvlink 12, and LLVM's runtime up to 19 refuses what nvlink 13 writes. The one object
# is the whole program: the first of these makes an executable beside it, the second hands that on.
_PTXAS = """#!/bin/sh
here=${0%/*}
"$here/ptxas12" "$@" || exit
last=
for word do
  shift
  if [ "$last" = --output-file ]; then
    set -- "$@" "$here/whole.cubin"
  elif [ "$word" != -c ]; then
    set -- "$@" "$word"
  fi
  last=$word
done
exec "$here/ptxas12" -v "$@"
"""
_NVLINK = """#!/bin/sh
while [ "$1" != -o ]; do shift; done
exec cp "${0%/*}/whole.cubin" "$2"
"""


@dataclass(frozen=True)
class Clang:
    """A Clang that can offload to one architecture."""

    path: str  # the compiler
    arch: str  # architecture, such as `sm_90`
    libraries: Path  # folder of LLVM's OpenMP libraries
    device_library: Path  # what runs on the device beside the user's code, as bitcode
    ptxas: Path  # assembler of CUDA 12
    releases: Mapping[str, str]  # of Clang and ptxas, by their names

    def library(self, build: Build, folder: Path) -> tuple[bytes, str]:
        """Shared library of a build of the workload in ``folder``, and what ptxas said of it.
        Raises UserError with Clang's first errors, or where the source lacks a function of the
        build."""
        with tempfile.TemporaryDirectory(prefix="launchwise-clang-") as name:
            scratch = Path(name)
            self._make_toolkit(scratch / "cuda")
            command = [
                *self._options(scratch),
                *(f"-D{name}={value}" for name, value in macros_of(build)),
                *(f"-I{place}" for place in include_folders(folder)),
            ]
            source = str(folder.resolve() / build.source)
            made = scratch / "made.so"
            done = subprocess.run(
                [self.path, *command, "-o", str(made), source],
                cwd=scratch,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
            )
            if done.returncode:
                error = subprocess.CalledProcessError(done.returncode, "clang")
                said = refusal(done.stderr, error, folder).replace("nvcc failed", "clang failed", 1)
                raise UserError(folder, self.arch, said.replace(f"{folder.resolve()}/", ""))
            content = made.read_bytes()
        for function in build.kernels:
            if build.symbol(function).encode() not in content:
                message = f"has no function {function} that other code may call (static?)"
                raise UserError(folder / build.source, "", message)
        return content, done.stderr

    def _options(self, scratch: Path) -> list[str]:
        return [
            *FLAGS,
            f"--offload-arch={self.arch}",
            f"--cuda-path={scratch / 'cuda'}",
            f"--libomptarget-nvptx-bc-path={self.device_library}",
            f"-L{self.libraries}",
            f"-Wl,-rpath,{self.libraries}",
        ]

    def _make_toolkit(self, folder: Path) -> None:
        """What Clang takes for a CUDA toolkit; of one build, since its ptxas keeps a file there."""
        programs = folder / "bin"
        programs.mkdir(parents=True)
        (folder / "include").mkdir()
        (folder / "nvvm").symlink_to(self.ptxas.parents[1] / "nvvm")
        (folder / "version.txt").write_text("CUDA Version 12.0\n")
        (programs / "ptxas12").symlink_to(self.ptxas)
        for program, text in (("ptxas", _PTXAS), ("nvlink", _NVLINK)):
            (programs / program).write_text(text)
            (programs / program).chmod(0o755)


@cache
def clang_for(arch: str) -> Clang:
    """The Clang of this machine that offloads to ``arch``. Raises CompilerMissing with what to
    install."""
    found = (shutil.which(name) for name in ("clang", *(f"clang-{one}" for one in RELEASES)))
    path = next((one for one in found if one is not None), None)
    if path is None:
        raise CompilerMissing(f"clang is not on the PATH: {INSTALL}")
    release = _said(path, "--version", r"clang version (\S+?)(?:-\S*)?\s")
    libraries = Path(_said(path, "-print-resource-dir", r"(.+)")).parents[1]
    names = (f"libomptarget-nvptx-{arch}.bc", "libomptarget-nvptx.bc")
    device_library = next((libraries / one for one in names if (libraries / one).is_file()), None)
    if device_library is None:
        message = f"{path} {release} has no OpenMP library for {arch} in {libraries}: {INSTALL}"
        raise CompilerMissing(f"libomptarget {message}")
    ptxas, number = _ptxas()
    releases = {"clang": release, "ptxas": number}
    return Clang(path, arch, libraries, device_library, ptxas, releases)


def _ptxas() -> tuple[Path, str]:
    """The ptxas of CUDA 12: of a toolkit on the PATH, or of a package of Python."""
    others = []
    for path in _ptxas_of_machine():
        number = _said(str(path), "--version", r"release (\d+\.\d+)")
        libdevice = path.parents[1] / "nvvm" / "libdevice"
        if number.startswith("12.") and libdevice.is_dir():
            return path, number
        others.append(number or "?")
    known = f" (found {', '.join(others)})" if others else ""
    install = "pip install nvidia-cuda-nvcc-cu12==12.6.85"
    raise CompilerMissing(f"ptxas of CUDA 12 is missing{known}: {install}")


def _ptxas_of_machine() -> Iterator[Path]:
    for place in os.environ.get("PATH", "").split(os.pathsep):
        if (path := shutil.which("ptxas", path=place)) is not None:
            yield Path(path).resolve()
    try:
        package = importlib.util.find_spec("nvidia.cuda_nvcc")
    except ModuleNotFoundError:
        return
    for folder in (package and package.submodule_search_locations) or ():
        if (path := shutil.which("ptxas", path=str(Path(folder, "bin")))) is not None:
            yield Path(path).resolve()


def _said(program: str, option: str, pattern: str) -> str:
    done = subprocess.run([program, option], capture_output=True, text=True, check=False)
    found = re.search(pattern, done.stdout)
    return found[1] if found else ""


def functions(build: Build, library: str, kernels: Mapping[str, Mapping[str, int]]) -> dict:
    """Index entry of a build in the member ``library`` of a bundle: each function with the most
    registers, spilled bytes and shared memory of the ``kernels`` that it offloads, given by their
    symbols."""

    def most(name: str) -> int:
        return max((each[name] for each in kernels.values()), default=0)

    return {
        function: {
            "cubin": library,
            "symbol": build.symbol(split_kernel(function)[0]),
            **{name: most(name) for name in ("registers", "spill_bytes", "shared_bytes")},
        }
        for function in build.kernels
    }
