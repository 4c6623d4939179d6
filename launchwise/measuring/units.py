"""Translation units for nvcc: several builds of files that stay as their authors left them.

nvcc reads copies of such files, in a folder of their own, where

- ``#pragma unroll`` gets the value of a macro, which nvcc does not expand there;
- ``#pragma once`` counts per build, since every build lies in a namespace of its own;
- a line that sets a macro of the build anew is an error: it would override a tunable;
- functions of the host that launch have no body: they instantiate kernels that no build asks for.

``#line`` keeps the name and the lines of the user's file in every message. Macros that a file
defines, its include guards among them, end with its build.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from launchwise.base.storage import digest
from launchwise.cuda_text.host_code import macros_in, without_host_bodies
from launchwise.cuda_text.syntax import without_comments
from launchwise.measuring.bundle import mark_of
from launchwise.workloads.builds import Build, macros_of, split_kernel
from launchwise.workloads.sources import (
    COMMON,
    INCLUDE,
    foreign_headers,
    include_folders,
    included_files,
    sources_text,
    system_headers,
    unit_headers,
)
from launchwise.workloads.templates import definitions, functions_of_c

UNROLL = "LAUNCHWISE_UNROLL"
_UNROLL_MACROS = [
    f"#define {UNROLL}_TEXT(text) _Pragma(#text)",
    f"#define {UNROLL}(factor) {UNROLL}_TEXT(unroll factor)",
]
_PRAGMA = re.compile(r"^([ \t]*)#[ \t]*pragma[ \t]+unroll\b[ \t]*(.*?)[ \t]*(?=\r?$)", re.MULTILINE)
_OPERATOR = re.compile(r'\b_Pragma[ \t]*\([ \t]*"[ \t]*unroll\b[ \t]*([^"\\]*)"[ \t]*\)')
_ONCE = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+once\b[^\r\n]*", re.MULTILINE)
_SETS = re.compile(r"^([ \t]*#[ \t]*)(define|undef)([ \t]+)(\w+)", re.MULTILINE)
_FILE_SCOPE = re.compile(
    r"\bnamespace\s+(?:std|cuda|cub|thrust|nvcuda|cooperative_groups)\b[\w:\s]*\{"
    r"|(?<![\w>:])\s*::\s*[A-Za-z_]|^[ \t]*#[ \t]*include[ \t]+[A-Za-z_]",
    re.MULTILINE,
)
_COMMENT = re.compile(r"/\*.*?\*/|//.*")


@dataclass(frozen=True)
class SourceCopy:
    """A copy of a source that nvcc reads, with copies of the headers beside it."""

    path: Path  # of the copy of the source
    folders: tuple[Path, ...]  # where nvcc looks for headers
    macros: tuple[str, ...]  # names that its files define or undefine, sorted
    text: str  # the source and the headers beside it, without comments
    # Kernels of C beside those of the build: they get names of their own, too.
    c_kernels: tuple[str, ...]
    is_shared: bool  # whether it has other functions of C: two builds cannot share a unit
    needs_file_scope: bool  # whether it may not compile inside a namespace


class Units:
    """Writes translation units of a workload. ``headers``: what its spec lists: they are included
    once, as they are. ``scratch``: folder of the copies."""

    def __init__(self, folder: Path, headers: Iterable[str], scratch: Path) -> None:
        self._folder = folder.resolve()
        self._headers = list(headers)
        self._scratch = scratch.resolve()
        self._copies: dict[tuple[object, ...], SourceCopy] = {}
        self._lock = threading.Lock()

    def must_be_alone(self, build: Build) -> bool:
        """Whether a build cannot share a unit with another one of its source."""
        return bool(build.kernels) and self._copy(build).is_shared

    def may_need_file_scope(self, build: Build) -> bool:
        """Whether a source may compile only as it is: it reopens ``namespace std``, for one."""
        copy = self._copy(build) if build.kernels else None
        return copy is not None and copy.needs_file_scope

    def folders(self, group: Iterable[Build]) -> list[Path]:
        """Folders in which nvcc searches the headers of a unit, the first one first."""
        copies = (self._copy(build).folders for build in group if build.kernels)
        own = dict.fromkeys(folder for folders in copies for folder in folders)
        return [*own, *include_folders(self._folder)]

    def text(self, group: Iterable[Build], as_it_is: bool = False) -> str:
        """Text of a unit. ``as_it_is``: without a namespace around the source, as its author
        compiles it; for one build alone."""
        builds = list(group)
        sources = list(dict.fromkeys(build.source for build in builds))
        untouched = list(dict.fromkeys(build.source for build in builds if build.kernels))
        types = [header for build in builds for header in build.headers_of_types]
        hoisted = system_headers(self._folder, untouched)
        lines = [line for header in dict.fromkeys([*types, *hoisted]) for line in _hoisted(header)]
        lines += [
            f'#include "{header}"' for header in unit_headers(self._folder, sources, self._headers)
        ]
        lines += _UNROLL_MACROS
        for build in builds:
            lines += self._lines(build, as_it_is)
        return "\n".join(lines) + "\n"

    def _lines(self, build: Build, as_it_is: bool) -> list[str]:
        copy = self._copy(build) if build.kernels else None
        macros = macros_of(build)
        if copy is not None and not as_it_is:
            macros = [each for each in macros if not _is_taken(each[0], copy, build)]
            macros = [*((name, f"{name}_{build.key}") for name in copy.c_kernels), *macros]
        own = [name.removesuffix("(name)") for name, _ in macros]
        names = list(dict.fromkeys([*own, *(copy.macros if copy else ())]))
        lines = [] if as_it_is else [f"namespace {build.namespace} {{"]
        lines += [f'#pragma push_macro("{name}")' for name in names]
        # A file may define `__global__` and its like for other tools: these stay the compiler's.
        lines += [f"#undef {name}" for name in names if not name.startswith("__")]
        lines += [f"#define {name} {value}" for name, value in macros]
        lines.append(f'#include "{copy.path if copy else build.source}"')
        lines += self._uses(build, copy) if copy else []
        lines += [f'#pragma pop_macro("{name}")' for name in names]
        return lines if as_it_is else [*lines, "}"]

    def _uses(self, build: Build, copy: SourceCopy) -> list[str]:
        """Lines that make nvcc compile every kernel, also instantiations and static functions."""
        lines = []
        for number, kernel in enumerate(build.kernels):
            base, arguments = split_kernel(kernel)
            defined = definitions(copy.text, base)
            name = defined[0].name if defined else base
            lines.append(f'#line {self._line(build, base)} "{self._folder / build.source}"')
            if "<" in kernel:
                mark = mark_of(build, number)
                # The first part alone would do; its message about wrong arguments names the kernel.
                lines.append(
                    f"static const void *const {mark}_used = (const void *)&{name}<{arguments}>; "
                    f"template <auto *> __global__ void {mark}() {{}} "
                    f"template __global__ void {mark}<&{name}<{arguments}>>();"
                )
            elif any(each.is_local for each in defined):
                lines.append(
                    f"static const void *const {mark_of(build, number)} = (const void *)&{name};"
                )
        return lines

    def _line(self, build: Build, base: str) -> int:
        """Line of the source that defines a kernel; 1 for one in a header."""
        text = without_comments((self._folder / build.source).read_text("latin-1"))
        return next((each.line for each in definitions(text, base)), 1)

    def _copy(self, build: Build) -> SourceCopy:
        names = tuple(name for name, _ in build.defines)
        kernels = tuple(split_kernel(kernel)[0] for kernel in build.kernels)
        key = (build.source, names, kernels)
        with self._lock:
            if key not in self._copies:
                self._copies[key] = self._copied(build.source, names, kernels)
            return self._copies[key]

    def _copied(self, source: str, names: tuple[str, ...], kernels: tuple[str, ...]) -> SourceCopy:
        shared = set(included_files(self._folder, self._headers))
        files = [
            path
            for path in included_files(self._folder, [source])
            if path not in shared and not path.is_relative_to(COMMON)
        ]
        place = self._scratch / digest([source, list(names)])
        whole = without_comments(sources_text(self._folder, [source]))
        known = {each.name.split("::")[-1] for each in definitions(whole)}
        defined = macros_in(whole)
        macros: set[str] = set()
        for path in files:
            content = path.read_bytes().removeprefix(b"\xef\xbb\xbf").decode("latin-1")
            once = f"LAUNCHWISE_ONCE_{digest(str(path))}"
            macros |= {once, *(match[4] for match in _SETS.finditer(content))}
            copy = place / path.relative_to(path.anchor)
            copy.parent.mkdir(parents=True, exist_ok=True)
            foreign = foreign_headers(self._folder, content, path.parent)
            launchless = without_host_bodies(content, defined, known)
            text = rewritten(launchless, path, once, names, foreign)
            copy.write_bytes(text.encode("latin-1"))
        folder = place / self._folder.relative_to(self._folder.anchor)
        first = files[0].relative_to(files[0].anchor) if files else Path(source)
        of_c = functions_of_c(whole)
        others = known - {kernel.split("::")[-1] for kernel in kernels}
        return SourceCopy(
            path=place / first,
            folders=(folder,),
            macros=tuple(sorted(macros)),
            text=whole,
            c_kernels=tuple(sorted(others)) if 'extern "C"' in whole else (),
            is_shared=bool(of_c - known),
            needs_file_scope=_FILE_SCOPE.search(whole) is not None,
        )


def _is_taken(macro: str, copy: SourceCopy, build: Build) -> bool:
    """Whether a kernel keeps its name, since the source uses that name for something else, too.
    Such as ``std::copy`` beside a kernel ``copy``. The namespace of the build tells it from
    others."""
    bases = {split_kernel(kernel)[0].split("::")[-1] for kernel in build.kernels}
    if macro not in bases or 'extern "C"' in copy.text:
        return False
    return re.search(rf"(?:\.|->|::)\s*{macro}\b", copy.text) is not None


def _has(header: str) -> str:
    """Macro of a unit that says that a header was included."""
    return f"LAUNCHWISE_HAS_{digest(header)}"


def _hoisted(header: str) -> list[str]:
    """Lines that include a header if there is one of that name. A file may include it for another
    compiler only: then its absence is no mistake."""
    return [
        f"#if __has_include({header})",
        f"#define {_has(header)}",
        f"#include {header}",
        "#endif",
    ]


def rewritten(
    content: str, path: Path, once: str, names: Iterable[str], foreign: Iterable[str]
) -> str:
    """A source as nvcc gets it (see the module). ``content``, ``path``: the file, decoded byte by
    byte (Latin-1), and its path for messages. ``once``: macro that stands for ``#pragma once``.
    ``names``: macros of the build. ``foreign``: headers that the unit includes before, outside the
    build's namespace."""
    listed, before = set(names), set(foreign)

    def sets(match: re.Match[str]) -> str:
        if match[4] not in listed:
            return match[0]
        return f'{match[1]}error "{match[4]} is set by the spec: put #ifndef {match[4]} before it"'

    def included(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if name not in before:
            return match[0]
        # GCC says nothing of a missing header that __has_include has asked for.
        number = content.count("\n", 0, match.start()) + 1
        said = f"#ifndef {_has(f'<{name}>')}\n#line {number}\n#error {name}: No such file\n"
        return f"{said}#endif\n#line {number}\n"

    text = INCLUDE.sub(included, content)
    text = _SETS.sub(sets, text)
    text = _PRAGMA.sub(lambda match: match[1] + _unroll(match[2], match[0]), text)
    text = _OPERATOR.sub(lambda match: _unroll(match[1], match[0]), text)
    line = f'#line 1 "{path}"'
    text, count = _ONCE.subn("", text)
    if count:
        return f"#ifndef {once}\n#define {once}\n{line}\n{text}\n#endif\n"
    return f"{line}\n{text}\n"


def _unroll(factor: str, whole: str) -> str:
    """``#pragma unroll`` with macros expanded; as it was where the factor holds no name."""
    factor = _COMMENT.sub("", factor).strip()
    if not re.search(r"[A-Za-z_]", factor):
        return whole.lstrip(" \t")
    return f"{UNROLL}(({factor}))"
