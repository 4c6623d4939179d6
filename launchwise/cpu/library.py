"""Compiles builds for the CPU with g++, and keeps them by their preprocessed text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from launchwise.base.storage import digest
from launchwise.base.work import usable_cores
from launchwise.cpu import toolchain
from launchwise.cpu.source import HEADERS, Refused, Source, entries
from launchwise.cpu.toolchain import CannotCompile, CannotRun, CompilerKilled, errors, plain
from launchwise.workloads.builds import Build, macros_of, split_kernel
from launchwise.workloads.sources import (
    INCLUDE,
    include_folders,
    included_files,
    system_headers,
    unit_headers,
)

_ASKED = re.compile(r'__has_include\w*\s*\(\s*["<]([^">\n]+)[">]')


class Compiler:
    """Compiles the builds of a workload. ``headers``: what its spec lists under ``headers``.
    ``kept``: folder of the compiled libraries. ``watched``: they notice updates that a GPU
    loses."""

    def __init__(self, folder: Path, headers: list[str], kept: Path, watched: bool = False) -> None:
        self._flags = toolchain.WATCHED if watched else []
        self._folder = folder
        self._headers = headers
        self._kept = kept.absolute()
        self._made: dict[str, Path | CannotCompile] = {}

    def prepare(self, builds: Iterable[Build]) -> None:
        """Compile builds at the same time; the first failure is raised when all are done."""
        if wanted := list(dict.fromkeys(builds)):
            toolchain.precompiled(self._flags)
            with ThreadPoolExecutor(usable_cores()) as pool:
                list(pool.map(self._tried, wanted))
        for build in wanted:
            self.library(build)

    def _tried(self, build: Build) -> None:
        try:
            self.library(build)
        except CompilerKilled:
            pass  # once more, alone: together they may need more memory than there is
        except CannotCompile as failure:
            self._made[build.key] = failure

    def library(self, build: Build) -> Path:
        """The compiled build, made now or kept from before. Raises CannotCompile with the first
        error of g++, or with what the CPU device cannot run."""
        known = self._made.get(build.key)
        if isinstance(known, CannotCompile):
            raise known
        if known is None:
            source = self._preprocessed(build)
            parts = [
                toolchain.toolchain(),
                toolchain.own_code(),
                *self._flags,
                build.key,
                *build.kernels,
            ]
            # Equal in every copy of the folders.
            marks = digest([*parts, self._without_folders(source.text)])
            known = self._kept / f"{Path(build.source).stem}_{marks}.so"
            toolchain.made(known, partial(self._compile, build, source))
            self._made[build.key] = known
        return known

    def _unit(self, build: Build) -> str:
        """The translation unit of a build; what is wrong in it is said of its source."""
        # A file may include a header for another compiler only: if not, it is missed there. That is
        # not asked by __has_include, after which g++ skips a missing header without a word.
        places = [*include_folders(self._folder), *toolchain.header_folders()]
        named = system_headers(self._folder, [build.source, *self._headers])
        every = [name for name in named if any((at / name.strip("<>")).is_file() for at in places)]
        untouched = every if build.kernels else []
        # Those of the CPU device belong to no namespace, whatever includes them.
        own = [name for name in every if (toolchain.INCLUDE / name.strip("<>")).is_file()]
        headers = [
            *dict.fromkeys([*untouched, *own, *build.headers_of_types]),
            *unit_headers(self._folder, [build.source], self._headers),
        ]
        macros, path = macros_of(build), self._folder / build.source
        before = [f"#include {one}" if one[0] == "<" else f'#include "{one}"' for one in headers]
        before += [f"namespace {build.namespace} {{"]
        before += [f"#define {name} {value}" for name, value in macros]
        after = [*(f"#undef {name.removesuffix('(name)')}" for name, _ in macros), "}"]
        last = path.read_bytes().count(b"\n") or 1 if path.is_file() else 1
        numbered = [*((1, line) for line in [*before, f'#include "{build.source}"'])]
        numbered += [(last, line) for line in after]
        return "".join(f'#line {at} "{build.source}"\n{line}\n' for at, line in numbered)

    def _libraries(self, build: Build) -> dict[str, tuple[str, int]]:
        """Headers of CUDA's that are empty here: where each is included first, file and line."""
        found: dict[str, tuple[str, int]] = {}
        asked = set[str]()
        for path in included_files(self._folder, [build.source, *self._headers]):
            text = path.read_text(encoding="utf-8", errors="surrogateescape")
            asked |= {*_ASKED.findall(text)}
            for include in INCLUDE.finditer(text):
                name = include[1] or include[2]
                if _of_a_library(name):
                    line = text.count("\n", 0, include.start()) + 1
                    found.setdefault(name, (str(path), line))
        return {name: place for name, place in found.items() if name not in asked}

    def _preprocessed(self, build: Build) -> Source:
        header, _ = toolchain.precompiled(self._flags)
        places = [f"-I{place}" for place in include_folders(self._folder)]
        empty = toolchain.empty_headers(self._libraries(build))
        places += ["-isystem", str(toolchain.headers_folder()), "-idirafter", str(empty)]
        options = [
            *self._flags,
            "-E",
            "-fpch-preprocess",
            *self._prefixes(),
            *places,
            "-include",
            str(header),
        ]
        done = toolchain.gxx([*options, "-x", "c++", "-"], self._unit(build))
        if done.returncode:
            raise self._refusal(build, done.stderr, Source(""))
        return Source(done.stdout)

    def _prefixes(self) -> list[str]:
        """Options by which what fails names its file inside the folders, wherever they lie."""
        return [f"-fmacro-prefix-map={place}/=" for place in include_folders(self._folder)]

    def _compile(self, build: Build, source: Source, scratch: Path) -> None:
        # A CPU path of the source itself has barriers of the block where lanes exchange values.
        own = [path for path in map(Path, source.files) if path.is_file()]
        own_path = any(b"__CUDACC__" in path.read_bytes() for path in own)
        names = [split_kernel(kernel)[0].split("::")[-1] for kernel in build.kernels]
        source = source.needed([*build.kernels, *map(build.symbol, names)])
        waits = ("BY_WARP" if own_path else "BY_BLOCK") if source.waits else "NEVER"
        try:
            source.check()
            text = source.translated() + entries(build, source.kernels(), waits)
        except Refused as refused:
            raise CannotRun(self.as_user_knows(build, str(refused))) from refused
        linked = toolchain.LIBRARIES if self._flags else []
        runtime = ["-x", "none", str(toolchain.precompiled(self._flags)[1])]
        translate = ["-fpreprocessed", "-shared", "-Wl,-z,defs", "-x", "c++-cpp-output", "-"]
        options = [*self._prefixes(), *self._flags, *translate, *runtime, *linked]
        done = toolchain.gxx([*options, "-o", str(scratch)], text)
        if done.returncode:
            raise self._refusal(build, done.stderr, source)

    def _refusal(self, build: Build, said: str, source: Source) -> CannotCompile:
        """The first errors in the output of g++, if possible in files of the user's."""
        own = str(toolchain.headers_folder())
        error, *others = errors(said, own, str(self._folder / build.source))
        if (word := error.undeclared) in source.host_names:
            message = f"the CPU device cannot run {word}(), which is host code"
            return CannotRun(self.as_user_knows(build, f"{error.place}: {message}"))
        text = f"{error.place}: {error.message}"
        libraries = self._libraries(build)
        if error.undeclared and libraries:
            header, (file, line) = next(iter(libraries.items()))
            name = next(name for pattern, name in HEADERS.items() if re.fullmatch(pattern, header))
            text += f"; {file}:{line}: the CPU device cannot run {name} (<{header}>)"
            return CannotRun(self.as_user_knows(build, text))
        more = (f"; {one.place}: {one.message}" for one in others)
        return CannotCompile(self.as_user_knows(build, text + "".join(more)))

    def as_user_knows(self, build: Build, text: str) -> str:
        """The text without the names that a build adds, and with paths inside the folder."""
        own = self._without_folders(text).replace(f"{build.namespace}::", "")
        return plain(own.replace(f"_{build.key}", ""))

    def _without_folders(self, text: str) -> str:
        for place in (*include_folders(self._folder), self._folder, toolchain.private_folder("")):
            text = text.replace(f"{place}/", "")
        return text


def _of_a_library(header: str) -> bool:
    known = any(re.fullmatch(pattern, header) for pattern in HEADERS)
    return known and ".." not in header and not (toolchain.INCLUDE / header).is_file()
