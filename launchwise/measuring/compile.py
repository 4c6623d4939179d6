"""The ``compile`` stage: every build of a workload for one architecture, by nvcc.

Sources in C are compiled by Clang (:mod:`launchwise.measuring.openmp`), and those in Python by
Triton (:mod:`launchwise.measuring.triton_compiler`); without it they are left out.
"""

from __future__ import annotations

import logging
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.measuring import openmp, triton_compiler
from launchwise.measuring.bundle import (
    Apart,
    Compiled,
    CompilerMissing,
    constant_symbols,
    joined,
    kernel_symbols,
    of_another_build,
    refusal,
    write_bundle,
)
from launchwise.measuring.source_states import FLAGS, fingerprint
from launchwise.measuring.units import Units
from launchwise.workloads.builds import Build, by_source, spread, symbol_path
from launchwise.workloads.sources import include_folders
from launchwise.workloads.spec import Spec

log = logging.getLogger(__name__)

_ENTRY = re.compile(r"Compiling entry function '(?P<symbol>\w+)'")
_SPILLS = re.compile(r"(?P<stores>\d+) bytes spill stores, (?P<loads>\d+) bytes spill loads")
_REGISTERS = re.compile(r"Used (?P<registers>\d+) registers")
_SHARED = re.compile(r"(?P<shared>\d+) bytes smem")


def compile_bundle(
    folder: Path, spec: Spec, builds: Iterable[Build], arch: str, path: Path, threads: int
) -> None:
    """Compile ``builds`` for ``arch`` on ``threads`` cores and write the bundle to ``path``. Builds
    that a compiler refuses are listed in the bundle with its message, and so are sources whose
    compiler is missing; a warning tells of these. Raises UserError when nvcc is missing, or all
    builds of a source are refused: the first message is shown."""
    compiler = Compiler(folder, spec, arch)
    groups = spread(builds, threads)
    with compiler, ThreadPoolExecutor(threads) as pool:
        compiled = list(pool.map(compiler.compile, groups))
    refused = {key: said for part in compiled for key, said in part.refused.items()}
    for source, own in by_source(build for group in groups for build in group).items():
        if source in compiler.left_out:
            log.warning("%s: %s is left out: %s", folder.name, source, compiler.left_out[source])
        # No configuration is to blame when all of a source are refused.
        elif all(build.key in refused for build in own):
            raise UserError(folder, arch, refused[own[0].key])
    compiler.write(path, compiled)


MOST_SECONDS = 600  # Processor time of each process of nvcc, s
MOST_BLOCKS = 1 << 20  # Size of each file that it writes, in blocks of 512 bytes
MOST_SAID = 1 << 24  # Bytes of its messages that are read

SAME_WORDS = 3
"""Builds, compiled one by one, of which nvcc must say the same for a source to be at fault."""


class Compiler:
    """Compiles groups of builds of one workload for one architecture, each with one run of nvcc. A
    context manager: copies of the sources exist within the ``with`` block. :meth:`compile` may be
    called from several threads. Raises UserError when nvcc is missing."""

    def __init__(self, folder: Path, spec: Spec, arch: str) -> None:
        self.folder = folder
        self.spec = spec
        self.arch = arch
        self.toolkit = nvcc_release()
        self.fingerprint = fingerprint(folder, self.toolkit)
        self._said: list[str] = []  # what nvcc said of units that it compiled
        self._succeeded: set[str] = set()  # sources of which a build compiled
        # Source and what nvcc said to the builds that it refused with these words.
        self._refused: dict[tuple[str, str], set[Build]] = {}
        self.left_out: dict[str, str] = {}  # sources whose compiler is missing, and what to install
        self.compilers: dict[str, str] = {}  # releases of the programs beside nvcc that were used
        self._scratch = tempfile.TemporaryDirectory(prefix="launchwise-units-")
        self._units = Units(folder, spec.headers, Path(self._scratch.name))
        self._as_it_is: set[str] = set()  # sources that compile outside a namespace only

    def __enter__(self) -> Compiler:
        return self

    def __exit__(self, *error: Any) -> None:
        self._scratch.cleanup()

    def compile(self, group: list[Build]) -> Compiled:
        """Compile a group of builds with one run of nvcc; halves of it where nvcc refuses it. Those
        of functions in C are compiled one by one, by Clang, and those of Triton by it.

        A single build is refused only if nvcc says so twice: a request to stop that is sent to all
        processes of a job (Slurm's, a terminal's) ends nvcc too, which says nothing of the build.
        Raises UserError with what nvcc said, when it says the same of the first and the last build
        of a source, or of :data:`SAME_WORDS` single ones, before it has taken any of it: then the
        source is wrong, not a configuration.
        """
        offloading = [build for build in group if build.offloads]
        triton = [build for build in group if build.is_triton]
        if offloading or triton:
            others = [build for build in group if not (build.offloads or build.is_triton)]
            parts = [self._compile_offloading(build) for build in offloading]
            parts += [self._compile_triton(triton)] if triton else []
            return joined([*([self.compile(others)] if others else []), *parts])
        alone = [
            build
            for build in group
            if build.source in self._as_it_is or self._units.must_be_alone(build)
        ]
        if alone and len(group) > 1:
            together = [build for build in group if build not in alone]
            groups = [*([together] if together else []), *([build] for build in alone)]
            return joined([self.compile(each) for each in groups])
        try:
            cubin = self._cubin(group)
        except UserError:
            sources = by_source(group)
            if len(sources) > 1:
                return joined([self.compile(own) for own in sources.values()])
            if len(group) == 1:
                return self._compile_again(group[0])
            if group[0].source not in self._succeeded:
                self._blame_source(group)
            half = len(group) // 2
            return joined([self.compile(group[:half]), self.compile(group[half:])])
        self._succeeded |= {build.source for build in group}
        return Compiled([(group, cubin)])

    def _compile_offloading(self, build: Build) -> Compiled:
        try:
            clang = openmp.clang_for(self.arch)
            content, said = clang.library(build, self.folder)
        except CompilerMissing as missing:
            said = self.left_out[build.source] = str(missing)
            return Compiled([], {build.key: said})
        except UserError as error:
            return Compiled([], {build.key: error.message})
        self.compilers |= clang.releases
        member = f"{build.key}.so"
        kernels = openmp.functions(build, member, parse_resources(said))
        return Compiled([], {}, [Apart(build, member, content, kernels)])

    def _compile_triton(self, builds: list[Build]) -> Compiled:
        try:
            release, compiled = triton_compiler.compile_builds(self.folder, builds, self.arch)
        except CompilerMissing as missing:
            self.left_out |= dict.fromkeys((build.source for build in builds), str(missing))
            return Compiled([], {build.key: str(missing) for build in builds})
        self.compilers["triton"] = release
        return compiled

    def _compile_again(self, build: Build) -> Compiled:
        try:
            cubin = self._cubin_again(build)
        except UserError as error:
            alike = self._refused.setdefault((build.source, error.message), set())
            alike.add(build)
            if len(alike) == SAME_WORDS and build.source not in self._succeeded:
                raise
            return Compiled([], {build.key: error.message})
        self._succeeded.add(build.source)
        return Compiled([([build], cubin)])

    def _cubin_again(self, build: Build) -> bytes:
        """Second attempt; without a namespace where the source may need that."""
        if build.source in self._as_it_is or not self._units.may_need_file_scope(build):
            return self._cubin([build])
        cubin = self._cubin([build], as_it_is=True)
        self._as_it_is.add(build.source)
        return cubin

    def _blame_source(self, group: list[Build]) -> None:
        said = []
        for build in (group[0], group[-1]):
            try:
                if self._units.may_need_file_scope(build):
                    self._cubin_again(build)
                else:
                    self._cubin([build])
                self._succeeded.add(build.source)
            except UserError as error:
                said.append(error)
        if len(said) == 2 and said[0].message == said[1].message:
            raise said[0]

    def _cubin(self, group: list[Build], as_it_is: bool = False) -> bytes:
        as_it_is = as_it_is or any(build.source in self._as_it_is for build in group)
        unit = self._units.text(group, as_it_is)
        folders = self._units.folders(group)
        options = self.spec.compiler_options
        try:
            cubin, said = compile_unit(unit, self.folder, self.arch, folders, options)
        except UserError as error:
            asked = [kernel for build in group for kernel in build.kernels]
            more = of_another_build(error.message, asked)
            raise UserError(error.where, error.key, error.message + more) from error
        self._said.append(said)
        return cubin

    def write(self, path: Path, compiled: list[Compiled]) -> None:
        """Write a bundle of everything in ``compiled``."""
        whole = joined(compiled)
        together, refused, apart = whole.cubins, whole.refused, whole.apart
        taken = _by_build(parse_resources("\n".join(self._said)))
        names = [f"{number}.cubin" for number in range(len(together))]
        named = {each.constant for each in self.spec.arguments.values() if each.constant}
        constants = {
            build.key: placed
            for group, cubin in together
            for build in group
            if named and (placed := constant_symbols(build, named, cubin))
        }
        index = {
            "arch": self.arch,
            "toolkit": self.toolkit,
            "flags": [*FLAGS, *self.spec.compiler_options],
            "fingerprint": self.fingerprint,
            "cubins": [*names, *(each.member for each in apart)],
            "builds": {
                build.key: _kernels(build, name, taken.get(build.key, {}))
                for (group, _), name in zip(together, names, strict=True)
                for build in group
            }
            | {each.build.key: each.kernels for each in apart},
            **({"refused": refused} if refused else {}),
            **({"constants": constants} if constants else {}),
            **({"left_out": self.left_out} if self.left_out else {}),
            **({"compilers": self.compilers} if self.compilers else {}),
        }
        contents = [cubin for _, cubin in together] + [each.content for each in apart]
        write_bundle(path, index, dict(zip(index["cubins"], contents, strict=True)))


def left_out(builds: Iterable[Build], arch: str) -> dict[str, str]:
    """Sources among those of ``builds`` whose compiler this machine lacks, and what to install."""
    known = list(builds)
    asked: list[tuple[list[str], Callable[[], object]]] = [
        ([build.source for build in known if build.offloads], lambda: openmp.clang_for(arch)),
        ([build.source for build in known if build.is_triton], triton_compiler.release),
    ]
    found: dict[str, str] = {}
    for sources, compiler in asked:
        try:
            if sources:
                compiler()
        except CompilerMissing as missing:
            found |= dict.fromkeys(sources, str(missing))
    return found


def compile_unit(
    unit: str,
    folder: Path,
    arch: str,
    folders: Iterable[Path] | None = None,
    given: Sequence[str] = (),
) -> tuple[bytes, str]:
    """Cubin of one translation unit, and what nvcc said of it. ``folders``: where headers are
    searched; those of the workload in ``folder`` when left out. ``given``: options of the workload;
    a standard or level of optimisation replaces the usual one. Raises UserError with nvcc's first
    error."""
    searched = include_folders(folder) if folders is None else folders
    replaced = {each[:2] for each in given if each[:2] in ("-s", "-O")}
    usual = [each for each in FLAGS if each[:2] not in replaced]
    options = [*usual, *given, "-arch", arch, *(f"-I{place}" for place in searched)]
    with tempfile.TemporaryDirectory(prefix="launchwise-nvcc-") as scratch:
        status, said = _nvcc(unit, options, Path(scratch))
        if status:
            error = subprocess.CalledProcessError(status, "nvcc")
            raise UserError(folder, arch, refusal(said, error, folder))
        return Path(scratch, "kernel.cubin").read_bytes(), said


def nvcc_release() -> str:
    """Release of the nvcc on the path, such as ``13.0``. Raises UserError when there is none."""
    if shutil.which("nvcc") is None:
        raise UserError("compile", "nvcc", "is not on the PATH: install the CUDA toolkit")
    said = subprocess.run(["nvcc", "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"release (\d+\.\d+)", said.stdout)
    if found is None:
        raise UserError("compile", "nvcc", f"does not report its release: {said.stderr}")
    return found.group(1)


def _nvcc(unit: str, options: list[str], scratch: Path) -> tuple[int, str]:
    """Exit status and messages of nvcc, which writes ``kernel.cubin`` in a folder. It runs in that
    folder: a file of the working directory must not take the place of a header. Headers that
    include themselves must not fill the disk: each of its processes has limits."""
    (scratch / "kernel.cu").write_text(unit, encoding="utf-8")
    limits = f'ulimit -t {MOST_SECONDS}; ulimit -f {MOST_BLOCKS}; exec nvcc "$@"'
    command = ["sh", "-c", limits, "nvcc", *options, "-cubin", "-o", "kernel.cubin", "kernel.cu"]
    with (scratch / "said").open("w+b") as said:
        done = subprocess.run(command, cwd=scratch, stdout=said, stderr=said, check=False)
        said.seek(0)
        return done.returncode, said.read(MOST_SAID).decode("utf-8", "replace")


def parse_resources(said: str) -> dict[str, dict[str, int]]:
    """Registers, spilled bytes and static shared memory of each kernel, from ``ptxas -v``."""
    found: dict[str, dict[str, int]] = {}
    symbol = ""
    for line in said.splitlines():
        if entry := _ENTRY.search(line):
            symbol = entry["symbol"]
            found[symbol] = {"registers": 0, "spill_bytes": 0, "shared_bytes": 0}
        if not symbol:
            continue
        if spills := _SPILLS.search(line):
            # Functions that a kernel calls are told apart below it: their spills are its own, too.
            found[symbol]["spill_bytes"] += int(spills["stores"]) + int(spills["loads"])
        if registers := _REGISTERS.search(line):
            found[symbol]["registers"] = int(registers["registers"])
            if shared := _SHARED.search(line):
                found[symbol]["shared_bytes"] = int(shared["shared"])
    return found


_KEY = re.compile(r"_(?P<key>[0-9a-f]{16})$")


def _by_build(resources: Mapping[str, dict[str, int]]) -> dict[str, dict[str, dict[str, int]]]:
    found: dict[str, dict[str, dict[str, int]]] = {}
    for symbol, taken in resources.items():
        for name in symbol_path(symbol).names:
            if named := _KEY.search(name):
                found.setdefault(named["key"], {})[symbol] = taken
                break
    return found


def _kernels(
    build: Build, cubin: str, resources: Mapping[str, dict[str, int]]
) -> dict[str, dict[str, Any]]:
    found = {
        kernel: {"cubin": cubin, "symbol": symbol, **resources[symbol]}
        for kernel, symbol in kernel_symbols(build, resources).items()
    }
    missing = [kernel for kernel in build.kernels if kernel not in found]
    if missing or not found:
        what = f"no kernel {missing[0]}" if missing else "no kernel at all"
        hint = "is it a __global__ function of that name?"
        if not build.kernels:
            hint = 'is each one written extern "C" __global__ void KERNEL(name)(...)?'
        message = f"{build.source} compiles to {what} with {dict(build.defines)}: {hint}"
        raise UserError("compile", "", message)
    return found
