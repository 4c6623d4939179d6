"""Compiles builds for the CPU with g++, and keeps them until one of their files changes."""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from functools import cache, partial
from pathlib import Path

from launchwise.base.storage import digest, digest_files
from launchwise.cpu.source import HEADERS, Kernel, Refused, Source
from launchwise.workloads.builds import Build, translation_unit
from launchwise.workloads.device import LaunchFailed
from launchwise.workloads.sources import (
    include_folders,
    included_files,
    system_headers,
    unit_headers,
)

INCLUDE = Path(__file__).with_name("include")
HEADER = "cuda_on_cpu.h"
RUNTIME = "launchwise_cpu/runtime.cpp"
FLAGS = [
    "-std=c++17",
    "-O1",
    "-w",
    "-ffp-contract=off",
    "-fPIC",
    "-fno-strict-aliasing",
    "-fno-threadsafe-statics",
    # Two libraries of one process may hold functions of one name.
    "-fno-gnu-unique",
]

PROJECT = "<kernels>/"
"""Stands for the folder ``kernels`` of the project in names of files."""


class CannotCompile(LaunchFailed):
    """A build that g++ or the CPU device refuses; the message names file and line."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, fatal=False)


def private_folder(name: str) -> Path:
    """A private folder for kept files in the system's temporary folder."""
    folder = Path(tempfile.gettempdir(), f"launchwise-cpu-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.getuid() or folder.stat().st_mode & 0o022:
        folder = _own_folder()
    (folder / name).mkdir(exist_ok=True)
    return folder / name


@cache
def _own_folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="launchwise-cpu-"))


def _gxx(arguments: list[str], text: str | None = None) -> subprocess.CompletedProcess[str]:
    if shutil.which("g++") is None:
        raise CannotCompile("g++ is not on the PATH; the CPU device needs it")
    command = ["g++", *FLAGS, *arguments]
    plain = {**os.environ, "LC_ALL": "C"}
    return subprocess.run(command, input=text, text=True, capture_output=True, env=plain)


@cache
def _toolchain() -> str:
    """Digest of the compiler, its flags and the CPU device's own headers."""
    own = [path for path in INCLUDE.rglob("*") if path.is_file()]
    return digest([_gxx(["-v"]).stderr, FLAGS, digest_files(own)])


@cache
def _headers() -> Path:
    """Folder with a copy of the CPU device's headers, so that what is kept outlives a checkout."""
    folder = private_folder(f"header-{_toolchain()}") / "include"
    _made(folder, partial(shutil.copytree, INCLUDE))
    return folder


@cache
def _precompiled() -> tuple[Path, Path]:
    """The header of the CPU device, its precompiled form beside it, and its compiled runtime."""
    # Not in the folder that is searched: the runtime would take it with flags of its own.
    header = _headers().with_name(HEADER)
    _made(header, lambda scratch: scratch.write_text((INCLUDE / HEADER).read_text()))
    ready, runtime = header.with_name(f"{HEADER}.gch"), header.with_name("runtime.o")
    for target, options in (
        (ready, ["-x", "c++-header", str(header)]),
        (runtime, ["-O2", "-c", str(_headers() / RUNTIME)]),
    ):
        _made(target, partial(_built, options))
    return header, runtime


def _built(options: list[str], scratch: Path) -> None:
    done = _gxx(["-isystem", str(_headers()), *options, "-o", str(scratch)])
    if done.returncode:
        raise CannotCompile(f"the header of the CPU device: {done.stderr.strip()}")


def _made(path: Path, make: Callable[[Path], object]) -> None:
    """Make a file or folder unless it is there; another process may be making the same one."""
    if not path.exists():
        scratch = path.with_name(f"{path.name}.{os.getpid()}")
        make(scratch)
        try:
            scratch.replace(path)
        except OSError:
            # A folder takes no other's place.
            if not path.is_dir():
                raise
            shutil.rmtree(scratch)


class Compiler:
    """Compiles the builds of a workload.

    Parameters
    ----------
    folder
        The workload's folder.
    headers
        What its spec lists under ``headers``.
    kept
        Folder of the compiled libraries.
    """

    def __init__(self, folder: Path, headers: list[str], kept: Path) -> None:
        self._folder = folder
        self._headers = headers
        self._kept = kept

    def library(self, build: Build) -> Path:
        """The compiled build, made now or kept from before.

        Raises
        ------
        CannotCompile
            With the first error of g++, or with what the CPU device cannot run.
        """
        untouched = [build.source] if build.kernels else []
        headers = [
            *system_headers(self._folder, untouched),
            *unit_headers(self._folder, [build.source], self._headers),
        ]
        unit = translation_unit([build], headers)
        files = included_files(self._folder, (build.source, *self._headers))
        name = f"{Path(build.source).stem}_{digest([_toolchain(), unit, self._names(files)])}"
        listed = self._kept / f"{name}.files"
        if listed.exists():
            library = self._kept / f"{name}_{self._contents(listed.read_text().splitlines())}.so"
            if library.exists():
                return library
        source, read = self._preprocessed(build, unit)
        names = self._names(read)
        library = self._kept / f"{name}_{self._contents(names)}.so"
        self._compile(build, source, read, library)
        _write(listed, "\n".join(names))
        return library

    def _names(self, paths: Iterable[str | Path]) -> list[str]:
        """Paths relative to the folder that holds them: equal in every copy of these folders.

        Those of ``kernels/`` begin with :data:`PROJECT`; all others stay whole.
        """
        own, project = include_folders(self._folder)
        found = []
        for path in map(Path, paths):
            if path.is_relative_to(own):
                found.append(path.relative_to(own).as_posix())
            elif path.is_relative_to(project):
                found.append(f"{PROJECT}{path.relative_to(project).as_posix()}")
            else:
                found.append(str(path))
        return found

    def _contents(self, names: Iterable[str]) -> str:
        """Digest of the contents of files (see :meth:`_names`); of a missing file, its absence."""
        total = hashlib.sha256()
        own, project = include_folders(self._folder)
        for name in names:
            of_project = name.startswith(PROJECT)
            path = project / name.removeprefix(PROJECT) if of_project else own / name
            total.update(name.encode() + b"\0")
            total.update(path.read_bytes() if path.is_file() else b"missing")
        return total.hexdigest()[:16]

    def _preprocessed(self, build: Build, unit: str) -> tuple[Source, list[str]]:
        """Output of the preprocessor and the files that it read, without the compiler's own."""
        with tempfile.NamedTemporaryFile(suffix=".d") as dependencies:
            places = [f"-I{place}" for place in include_folders(self._folder)]
            # What fails names its file inside these folders, wherever they lie.
            own = [f"-fmacro-prefix-map={place}/=" for place in include_folders(self._folder)]
            own += ["-isystem", str(_headers()), "-include", str(_precompiled()[0])]
            written = ["-MMD", "-MF", dependencies.name, "-MT", "unit"]
            done = _gxx(["-E", "-fpch-preprocess", *own, *places, *written, "-x", "c++", "-"], unit)
            if done.returncode:
                raise CannotCompile(self._first_error(build, done.stderr))
            rule = Path(dependencies.name).read_text().replace("\\\n", " ")
        names = re.findall(r"(?:\\ |\S)+", rule.partition(":")[2])
        paths = [name.replace("\\ ", " ") for name in names if name != "-"]
        own_header = str(_precompiled()[0])
        return Source(done.stdout), sorted(
            path for path in paths if not path.startswith(own_header)
        )

    def _compile(self, build: Build, source: Source, read: list[str], library: Path) -> None:
        # A CPU path of the source itself has barriers of the block where lanes exchange values.
        own_path = any("__CUDACC__" in Path(name).read_text(errors="replace") for name in read)
        waits = ("BY_WARP" if own_path else "BY_BLOCK") if source.waits else "NEVER"
        try:
            source.check()
            kernels = source.kernels()
            text = source.translated() + _entries(kernels, waits)
        except Refused as refused:
            raise CannotCompile(self.as_user_knows(build, str(refused))) from refused
        scratch = library.with_suffix(f".{os.getpid()}")
        runtime = ["-x", "none", str(_precompiled()[1])]
        translate = ["-fpreprocessed", "-shared", "-x", "c++-cpp-output", "-"]
        done = _gxx([*translate, *runtime, "-o", str(scratch)], text)
        if done.returncode:
            raise CannotCompile(self._first_error(build, done.stderr))
        scratch.replace(library)

    def _first_error(self, build: Build, said: str) -> str:
        """The first error in the output of g++, if possible one in a file of the user's."""
        errors = re.findall(r"^(.*?:\d+):\d+: (?:fatal )?error: (.*)$", said, re.MULTILINE)
        foreign = (str(_headers()), "/usr/", "<")
        own = [error for error in errors if not error[0].startswith(foreign)]
        if not errors:
            return self.as_user_knows(build, f"g++: {' '.join(said.split())[-500:]}")
        place, message = (own or errors)[0]
        missing = re.match(r"(\S+): No such file or directory", message)
        for pattern, name in HEADERS.items() if missing else ():
            assert missing is not None
            if re.fullmatch(pattern, missing[1]):
                message = f"the CPU device cannot run {name} (<{missing[1]}>)"
        return self.as_user_knows(build, f"{place}: {message}")

    def as_user_knows(self, build: Build, text: str) -> str:
        """The text without the names that a build adds, and with paths inside the folder."""
        for place in (*include_folders(self._folder), self._folder):
            text = text.replace(f"{place}/", "")
        return text.replace(f"{build.namespace}::", "").replace(f"_{build.key}", "")


def _write(path: Path, text: str) -> None:
    scratch = path.with_name(f"{path.name}.{os.getpid()}")
    scratch.write_text(text)
    scratch.replace(path)


def _entries(kernels: list[Kernel], waits: str) -> str:
    """Functions that the device calls: one that runs a kernel, one that tells its parameters."""
    lines = [
        '\n# 1 "<launch>"',
        'extern "C" char *make_stacks() { return launchwise_cpu::make_stacks(); }',
    ]
    kind = f"launchwise_cpu::Waits::{waits}"
    named: dict[str, list[Kernel]] = {}
    for kernel in kernels:
        named.setdefault(kernel.name, []).append(kernel)
    for name, same in named.items():
        expressions = {kernel.expression for kernel in same}
        if len(expressions) > 1:
            # Instantiations of a template, or kernels of several namespaces: the name says no one.
            continue
        (expression,) = expressions
        lines.append(
            f'extern "C" int run_{name}(void **arguments, const launchwise_cpu::Request *request) '
            f"{{ return launchwise_cpu::run<{kind}>(&{expression}, arguments, request); }}"
        )
        lines.append(
            f'extern "C" unsigned describe_{name}(unsigned *parameters) '
            f"{{ return launchwise_cpu::describe(&{expression}, parameters); }}"
        )
    return "\n".join(lines) + "\n"


def exported(library: Path) -> dict[str, int]:
    """Symbols that a library defines, with the size of what they name, bytes."""
    command = ["nm", "-D", "-S", "--defined-only", str(library)]
    done = subprocess.run(command, text=True, capture_output=True, check=True)
    found = re.findall(r"^[0-9a-f]+ ([0-9a-f]+) \w (\S+)$", done.stdout, re.MULTILINE)
    return {name: int(size, 16) for size, name in found}


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
