"""The ``compile`` stage: every build of a workload for one architecture, through PyCUDA.

``pycuda.compiler.compile_plain`` needs nvcc and no driver, so a login node can do this. Without
PyCUDA, nvcc is called with the same options.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.measuring.bundle import write_bundle
from launchwise.measuring.source_states import FLAGS, fingerprint
from launchwise.workloads.builds import Build, spread, translation_unit
from launchwise.workloads.sources import include_folders, system_headers, unit_headers
from launchwise.workloads.spec import Spec

_ENTRY = re.compile(r"Compiling entry function '(?P<symbol>\w+)'")
_SPILLS = re.compile(r"(?P<stores>\d+) bytes spill stores, (?P<loads>\d+) bytes spill loads")
_REGISTERS = re.compile(r"Used (?P<registers>\d+) registers")
_SHARED = re.compile(r"(?P<shared>\d+) bytes smem")


def compile_bundle(
    folder: Path, spec: Spec, builds: Iterable[Build], arch: str, path: Path, threads: int
) -> None:
    """Compile ``builds`` for ``arch`` on ``threads`` cores and write the bundle to ``path``.

    Builds that nvcc refuses are listed in the bundle with its message.

    Raises
    ------
    UserError
        When nvcc is missing, or refuses every build of a source: its message is shown.
    """
    compiler = Compiler(folder, spec, arch)
    groups = spread(builds, threads)
    with compiler, ThreadPoolExecutor(threads) as pool:
        compiled = list(pool.map(compiler.compile, groups))
    refused = {key: said for part in compiled for key, said in part.refused.items()}
    by_source: dict[str, list[Build]] = {}
    for group in groups:
        for build in group:
            by_source.setdefault(build.source, []).append(build)
    for own in by_source.values():
        # No configuration is to blame when all of a source are refused.
        if all(build.key in refused for build in own):
            raise UserError(folder, arch, refused[own[0].key])
    compiler.write(path, compiled)


@dataclass(frozen=True)
class Compiled:
    """Outcome of compiling a group of builds.

    Parameters
    ----------
    cubins
        Builds that were compiled together, with their cubin.
    refused
        Key of a build to what nvcc says against it.
    """

    cubins: list[tuple[list[Build], bytes]]
    refused: Mapping[str, str] = field(default_factory=dict)


class Compiler:
    """Compiles groups of builds of one workload for one architecture, each with one run of nvcc.

    A context manager: PyCUDA hands on what ptxas says of registers as warnings, which are only
    heard inside the ``with`` block. :meth:`compile` may be called from several threads.

    Raises
    ------
    UserError
        When nvcc is missing.
    """

    def __init__(self, folder: Path, spec: Spec, arch: str) -> None:
        self.folder = folder
        self.spec = spec
        self.arch = arch
        self.toolkit = nvcc_release()
        self.fingerprint = fingerprint(folder, self.toolkit)
        self._catching = warnings.catch_warnings(record=True)
        self._said: list[warnings.WarningMessage] = []
        self._succeeded = False

    def __enter__(self) -> Compiler:
        heard = self._catching.__enter__()
        assert heard is not None  # record=True
        self._said = heard
        warnings.simplefilter("always")
        return self

    def __exit__(self, *error: Any) -> None:
        self._catching.__exit__(*error)

    def compile(self, group: list[Build]) -> Compiled:
        """Compile a group of builds with one run of nvcc; halves of it where nvcc refuses it.

        A single build is refused only if nvcc says so twice: a request to stop that is sent to all
        processes of a job (Slurm's, a terminal's) ends nvcc too, which says nothing of the build.

        Raises
        ------
        UserError
            With what nvcc said, when it says the same of the first and the last build of a group
            before it has taken any: then the source is wrong, not a configuration.
        """
        try:
            cubin = self._cubin(group)
        except UserError:
            if len(group) == 1:
                return self._compile_again(group[0])
            if not self._succeeded:
                self._blame_source(group)
            half = len(group) // 2
            parts = [self.compile(group[:half]), self.compile(group[half:])]
            refused = {key: said for part in parts for key, said in part.refused.items()}
            return Compiled([each for part in parts for each in part.cubins], refused)
        self._succeeded = True
        return Compiled([(group, cubin)])

    def _compile_again(self, build: Build) -> Compiled:
        try:
            return Compiled([([build], self._cubin([build]))])
        except UserError as error:
            return Compiled([], {build.key: error.message})

    def _blame_source(self, group: list[Build]) -> None:
        said = []
        for build in (group[0], group[-1]):
            try:
                self._cubin([build])
            except UserError as error:
                said.append(error)
        if len(said) == 2 and said[0].message == said[1].message:
            raise said[0]

    def _cubin(self, group: list[Build]) -> bytes:
        sources = {build.source: None for build in group}
        untouched = [build.source for build in group if build.kernels]
        headers = [
            *system_headers(self.folder, dict.fromkeys(untouched)),
            *unit_headers(self.folder, sources, self.spec.headers),
        ]
        return compile_unit(translation_unit(group, headers), self.folder, self.arch)

    def write(self, path: Path, compiled: list[Compiled]) -> None:
        """Write a bundle of everything in ``compiled``."""
        together = [each for part in compiled for each in part.cubins]
        refused = {key: said for part in compiled for key, said in part.refused.items()}
        resources = parse_resources("\n".join(str(warning.message) for warning in self._said))
        taken = _by_build(resources)
        names = [f"{number}.cubin" for number in range(len(together))]
        index = {
            "arch": self.arch,
            "toolkit": self.toolkit,
            "flags": FLAGS,
            "fingerprint": self.fingerprint,
            "cubins": names,
            "builds": {
                build.key: _kernels(build, name, taken.get(build.key, {}))
                for (group, _), name in zip(together, names, strict=True)
                for build in group
            },
            **({"refused": refused} if refused else {}),
        }
        cubins = [cubin for _, cubin in together]
        write_bundle(path, index, dict(zip(names, cubins, strict=True)))


def compile_unit(unit: str, folder: Path, arch: str) -> bytes:
    """Cubin of one translation unit.

    Raises
    ------
    UserError
        With nvcc's first error.
    """
    options = [*FLAGS, "-arch", arch, *(f"-I{place}" for place in include_folders(folder))]
    try:
        from pycuda.compiler import compile_plain
    except ImportError:
        return _by_nvcc(unit, options, folder, arch)
    try:
        return bytes(compile_plain(unit, options, False, "nvcc", None, "cubin"))
    except Exception as error:
        # Without a driver PyCUDA cannot even make its own error (the class lives in the driver
        # module): then nvcc is asked once more, for its message alone.
        said = getattr(error, "stderr", None) or _nvcc_message(unit, options)
        raise UserError(folder, arch, f"nvcc failed: {_first_error(said, error)}") from error


def nvcc_release() -> str:
    """Release of the nvcc on the path, such as ``13.0``.

    Raises
    ------
    UserError
        When there is none.
    """
    if shutil.which("nvcc") is None:
        raise UserError("compile", "nvcc", "is not on the PATH: install the CUDA toolkit")
    said = subprocess.run(["nvcc", "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"release (\d+\.\d+)", said.stdout)
    if found is None:
        raise UserError("compile", "nvcc", f"does not report its release: {said.stderr}")
    return found.group(1)


def _by_nvcc(unit: str, options: list[str], folder: Path, arch: str) -> bytes:
    """:func:`compile_unit` on a machine that has a toolkit, but not PyCUDA."""
    with tempfile.TemporaryDirectory(prefix="launchwise-nvcc-") as scratch:
        path = Path(scratch, "unit.cubin")
        command = ["nvcc", *options, "-x", "cu", "-cubin", "-o", str(path), "-"]
        done = subprocess.run(command, input=unit, capture_output=True, text=True, check=False)
        said = done.stderr + done.stdout
        if done.returncode:
            error = subprocess.CalledProcessError(done.returncode, command[0])
            raise UserError(folder, arch, f"nvcc failed: {_first_error(said, error)}")
        # As PyCUDA hands on what ptxas says.
        warnings.warn(said, stacklevel=2)
        return path.read_bytes()


def _nvcc_message(unit: str, options: list[str]) -> str:
    command = ["nvcc", *options, "-x", "cu", "-cubin", "-o", "/dev/null", "-"]
    done = subprocess.run(command, input=unit, capture_output=True, text=True, check=False)
    return done.stderr + done.stdout


def _first_error(said: str, error: Exception) -> str:
    lines = [line.strip() for line in said.splitlines() if "error" in line or "fatal" in line]
    return lines[0] if lines else (said.strip() or repr(error))[:500]


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


_KEY = re.compile(r"_(?P<key>[0-9a-f]{16})(?=\D|$)")


def _by_build(
    resources: Mapping[str, dict[str, int]],
) -> dict[str, dict[str, dict[str, int]]]:
    """Resources of symbols by the key of the build that the symbols name."""
    found: dict[str, dict[str, dict[str, int]]] = {}
    for symbol, taken in resources.items():
        if named := _KEY.search(symbol):
            found.setdefault(named["key"], {})[symbol] = taken
    return found


def _kernels(
    build: Build, cubin: str, resources: Mapping[str, dict[str, int]]
) -> dict[str, dict[str, Any]]:
    found = {
        kernel: {"cubin": cubin, "symbol": symbol, **taken}
        for symbol, taken in resources.items()
        if (kernel := build.kernel_of(symbol)) is not None
    }
    missing = [kernel for kernel in build.kernels if kernel not in found]
    if missing or not found:
        what = f"no kernel {missing[0]}" if missing else "no kernel at all"
        hint = "is it a __global__ function of that name, and no template?"
        if not build.kernels:
            hint = 'is each one written extern "C" __global__ void KERNEL(name)(...)?'
        message = f"{build.source} compiles to {what} with {dict(build.defines)}: {hint}"
        raise UserError("compile", "", message)
    return found
