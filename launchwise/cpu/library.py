"""Compiles builds for the CPU with g++, and keeps them until one of their files changes."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from launchwise.base.parallel import usable_cores
from launchwise.base.storage import digest
from launchwise.cpu import toolchain
from launchwise.cpu.source import HEADERS, Refused, Source, entries
from launchwise.cpu.toolchain import (
    CannotCompile,
    CannotRun,
    CompilerKilled,
    first_error,
    further_errors,
    plain,
)
from launchwise.workloads.builds import Build, split_kernel, translation_unit
from launchwise.workloads.sources import (
    include_folders,
    included_files,
    system_headers,
    unit_headers,
)

HEADERS_OF_TYPES = {
    r"\b(?:__half2?|half2?)\b": "<cuda_fp16.h>",
    r"\b(?:__)?nv_bfloat16": "<cuda_bf16.h>",
    r"\bcu(?:Float|Double)?Complex\b": "<cuComplex.h>",
}
"""Pattern of a type of CUDA that macros and template arguments may name, to its header."""

PROJECT = "<kernels>/"  # Stands for the folder `kernels` of the project in names of files

_INCLUDE = re.compile(
    r'^[ \t]*#[ \t]*include[ \t]*(?:"(?P<own>[^"\n]+)"|<(?P<system>[^>\n]+)>)'
    r'|__has_include\w*\s*\(\s*["<](?P<asked>[^">\n]+)[">]',
    re.MULTILINE,
)


class Compiler:
    """Compiles the builds of a workload.

    ``headers``: what its spec lists under ``headers``.
    ``kept``: folder of the compiled libraries.
    """

    def __init__(self, folder: Path, headers: list[str], kept: Path) -> None:
        self._folder = folder
        self._headers = headers
        self._kept = kept.absolute()
        self._failed: dict[str, CannotCompile] = {}

    def prepare(self, builds: Iterable[Build]) -> None:
        """Compile builds at the same time; the first failure is raised when all are done."""
        missing = [build for build in dict.fromkeys(builds) if self._known(build)[1] is None]
        if missing:
            toolchain.precompiled()
            with ThreadPoolExecutor(usable_cores()) as pool:
                list(pool.map(self._tried, missing))
        for build in missing:
            self.library(build)

    def _tried(self, build: Build) -> None:
        try:
            self.library(build)
        except CompilerKilled:
            pass  # once more, alone: together they may need more memory than there is
        except CannotCompile as failure:
            self._failed[build.key] = failure

    def library(self, build: Build) -> Path:
        """The compiled build, made now or kept from before. Raises CannotCompile with the first
        error of g++, or with what the CPU device cannot run."""
        if build.key in self._failed:
            raise self._failed[build.key]
        name, library = self._known(build)
        if library is not None:
            return library
        source, read = self._preprocessed(build)
        names = self._names([*read, *self._absent(read)])
        library = self._kept / f"{name}_{self._contents(names)}.so"
        self._compile(build, source, read, library)
        scratch = self._kept / f"{name}.files.{os.getpid()}"
        scratch.write_text("\n".join(names), errors="surrogateescape")
        scratch.replace(self._kept / f"{name}.files")
        return library

    def _known(self, build: Build) -> tuple[str, Path | None]:
        """Name under which a build is kept, and its library if that is still right."""
        files = included_files(self._folder, (build.source, *self._headers))
        parts = [toolchain.toolchain(), toolchain.own_code(), self._unit(build), self._names(files)]
        name = f"{Path(build.source).stem}_{digest(parts)}"
        listed = self._kept / f"{name}.files"
        if listed.exists():
            library = self._kept / f"{name}_{self._contents(listed.read_text().splitlines())}.so"
            if library.exists():
                return name, library
        return name, None

    def _unit(self, build: Build) -> str:
        """The translation unit of a build; what is wrong in it is said of its source."""
        # A file may include a header for another compiler only: if not, it is missed there. That is
        # not asked by __has_include, after which g++ skips a missing header without a word.
        places = [*include_folders(self._folder), *toolchain.header_folders()]
        named = system_headers(self._folder, [build.source, *self._headers], quoted=True)
        every = [name for name in named if any((at / name.strip("<>")).is_file() for at in places)]
        untouched = every if build.kernels else []
        # Those of the CPU device belong to no namespace, whatever includes them.
        own = [name for name in every if (toolchain.INCLUDE / name.strip("<>")).is_file()]
        headers = [
            *dict.fromkeys([*untouched, *own, *_headers_of_types(build)]),
            *unit_headers(self._folder, [build.source], self._headers),
        ]
        lines, last = [], 1
        for line in translation_unit([build], headers).splitlines():
            lines += [f'#line {last} "{build.source}"', line]
            if line == f'#include "{build.source}"':
                path = self._folder / build.source
                last = path.read_bytes().count(b"\n") or 1 if path.is_file() else 1
        return "\n".join(lines) + "\n"

    def _names(self, paths: Iterable[str | Path]) -> list[str]:
        """Paths relative to the folder that holds them: equal in every copy of these folders. Those
        of ``kernels/`` begin with :data:`PROJECT`; all others stay whole."""
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
            total.update(name.encode(errors="surrogateescape") + b"\0")
            total.update(path.read_bytes() if path.is_file() else b"missing")
        return total.hexdigest()[:16]

    def _included(self, read: Iterable[str]) -> Iterable[tuple[Path, re.Match[str]]]:
        """Files of the user's among those read, and each header that one names."""
        for path in map(Path, read):
            if not str(path).startswith("/usr/") and path.is_file():
                text = path.read_text(encoding="utf-8", errors="surrogateescape")
                for found in _INCLUDE.finditer(text):
                    yield path, found

    def _absent(self, read: Iterable[str]) -> list[str]:
        """Files that would be read instead of others, or would be found, if they were there."""
        found: dict[str, None] = {}
        for path, include in self._included(read):
            name = include["own"] or include["system"] or include["asked"]
            places = include_folders(self._folder)
            for place in places if include["system"] else [path.parent, *places]:
                if not (place / name).is_file():
                    found[str(place / name)] = None
        return sorted(found)

    def _libraries(self, build: Build) -> dict[str, tuple[str, int]]:
        """Headers of CUDA's that are empty here: where each is included first, file and line."""
        found: dict[str, tuple[str, int]] = {}
        asked = set()
        files = included_files(self._folder, [build.source, *self._headers])
        for path, include in self._included(map(str, files)):
            name = include["own"] or include["system"] or include["asked"]
            if include["asked"]:
                asked.add(name)
            elif _of_a_library(name):
                line = include.string.count("\n", 0, include.start()) + 1
                found.setdefault(name, (str(path), line))
        return {name: place for name, place in found.items() if name not in asked}

    def _preprocessed(self, build: Build) -> tuple[Source, list[str]]:
        """Output of the preprocessor and the files that it read, without the CPU device's own."""
        header, _ = toolchain.precompiled()
        own = str(toolchain.headers_folder())
        with tempfile.NamedTemporaryFile(suffix=".d") as dependencies:
            places = [f"-I{place}" for place in include_folders(self._folder)]
            empty = toolchain.empty_headers(self._libraries(build))
            places += ["-isystem", own, "-idirafter", str(empty), "-include", str(header)]
            written = ["-MD", "-MF", dependencies.name, "-MT", "unit"]
            options = ["-E", "-fpch-preprocess", *self._prefixes(), *places, *written]
            done = toolchain.gxx([*options, "-x", "c++", "-"], self._unit(build))
            if done.returncode:
                raise self._refusal(build, done.stderr, Source(""))
            rule = Path(dependencies.name).read_text(errors="surrogateescape").replace("\\\n", " ")
        names = re.findall(r"(?:\\ |\S)+", rule.partition(":")[2])
        paths = [re.sub(r"\\([ #])", r"\1", name).replace("$$", "$") for name in names]
        foreign = ("-", str(header), own, str(empty))
        return Source(done.stdout), sorted(
            {os.path.abspath(path) for path in paths if not path.startswith(foreign)}
        )

    def _prefixes(self) -> list[str]:
        """Options by which what fails names its file inside the folders, wherever they lie."""
        return [f"-fmacro-prefix-map={place}/=" for place in include_folders(self._folder)]

    def _compile(self, build: Build, source: Source, read: list[str], library: Path) -> None:
        # A CPU path of the source itself has barriers of the block where lanes exchange values.
        own = [name for name in read if not name.startswith("/usr/")]
        own_path = any(b"__CUDACC__" in Path(name).read_bytes() for name in own)
        names = [split_kernel(kernel)[0].split("::")[-1] for kernel in build.kernels]
        source = source.needed([build.symbol(name) for name in names])
        waits = ("BY_WARP" if own_path else "BY_BLOCK") if source.waits else "NEVER"
        try:
            source.check()
            text = source.translated() + entries(build, source.kernels(), waits)
        except Refused as refused:
            raise CannotRun(self.as_user_knows(build, str(refused))) from refused
        scratch = library.with_suffix(f".{os.getpid()}")
        runtime = ["-x", "none", str(toolchain.precompiled()[1])]
        translate = ["-fpreprocessed", "-shared", "-Wl,-z,defs", "-x", "c++-cpp-output", "-"]
        done = toolchain.gxx([*self._prefixes(), *translate, *runtime, "-o", str(scratch)], text)
        if done.returncode:
            raise self._refusal(build, done.stderr, source)
        scratch.replace(library)

    def _refusal(self, build: Build, said: str, source: Source) -> CannotCompile:
        """The first errors in the output of g++, if possible in files of the user's."""
        own = str(toolchain.headers_folder())
        error = first_error(said, own, str(self._folder / build.source))
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
        more = (f"; {one.place}: {one.message}" for one in further_errors(said, own, error))
        return CannotCompile(self.as_user_knows(build, text + "".join(more)))

    def as_user_knows(self, build: Build, text: str) -> str:
        """The text without the names that a build adds, and with paths inside the folder."""
        for place in (*include_folders(self._folder), self._folder):
            text = text.replace(f"{place}/", "")
        return plain(text.replace(f"{build.namespace}::", "").replace(f"_{build.key}", ""))


def _headers_of_types(build: Build) -> list[str]:
    said = " ".join([*build.kernels, *dict(build.defines).values()])
    return [header for pattern, header in HEADERS_OF_TYPES.items() if re.search(pattern, said)]


def _of_a_library(header: str) -> bool:
    known = any(re.fullmatch(pattern, header) for pattern in HEADERS)
    return known and ".." not in header and not (toolchain.INCLUDE / header).is_file()


def exported(library: Path) -> dict[str, int]:
    """Symbols that a library defines, with the size of what they name, bytes."""
    command = ["nm", "-D", "-S", "--defined-only", str(library)]
    done = subprocess.run(command, text=True, capture_output=True, check=True)
    found = re.findall(r"^[0-9a-f]+ ([0-9a-f]+) \w (\S+)$", done.stdout, re.MULTILINE)
    return {name: int(size, 16) for size, name in found}
