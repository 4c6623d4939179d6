"""Finds and reads the CUDA files that a workload's sources include, within limits.

``kernels/common/`` holds device code that workloads share. Every workload, also one outside the
project, includes a header of it as ``#include "common/uniform.cuh"``.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from launchwise.base.errors import UserError
from launchwise.base.places import shipped
from launchwise.base.storage import insist_on_regular, read_bytes

PROJECT_KERNELS = shipped("kernels")
COMMON = PROJECT_KERNELS / "common"

MOST_BYTES = 4 << 20  # Longest source file, bytes
READING_S = 6  # Most CPU time for reading the sources of a workload

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)', re.MULTILINE)


def source_text(path: Path, most: int = MOST_BYTES) -> str:
    """Text of a source file, in UTF-8 or else in Latin-1: compilers take both. Raises UserError
    when it cannot be read, or is longer than ``most`` bytes."""
    content = read_bytes(path, most)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    return text.replace("\r\n", "\n")


@contextmanager
def cpu_limit(where: str | Path, seconds: float = READING_S) -> Iterator[None]:
    """Limit of the CPU time of a block, in the main thread; ``seconds`` of the whole process.
    Raises UserError when the block, which reads the file ``where``, takes longer."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise UserError(where, "", f"takes more than {seconds:g} s of CPU time to read")

    previous = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, previous)


def include_folders(folder: Path) -> list[Path]:
    """Folders in which a compiler searches the headers of a workload, the first one first."""
    return [folder.resolve(), PROJECT_KERNELS]


def included_files(folder: Path, names: Iterable[str]) -> list[Path]:
    """Files ``names`` of a workload and every file that they include, directly or indirectly.

    Headers of the CUDA toolkit are left out. An ``#include`` counts whatever ``#if`` surrounds it.

    ``names``: as an ``#include`` line names them.
    Returns absolute paths, in the order in which a compiler first opens them.
    """
    found: dict[Path, None] = {}

    def visit(name: str, beside: Path) -> None:
        path = _included(folder, name, beside)
        if path is not None and path not in found:
            found[path] = None
            for quoted, system in _INCLUDE.findall(source_text(path)):
                if quoted:
                    visit(quoted, path.parent)
                elif _is_own(folder, system):
                    visit(system, folder)

    for name in names:
        visit(name, folder)
    return list(found)


def _included(folder: Path, name: str, beside: Path) -> Path | None:
    """File that ``#include "name"`` means in a file of the folder ``beside``; None: a system's."""
    for place in (beside, *include_folders(folder)):
        path = (place / name).resolve()
        if _is_file(path):
            return path
    return None


def _is_own(folder: Path, name: str) -> bool:
    return _is_file(folder / name)


def _is_file(path: Path) -> bool:
    """Whether there is a file; UserError for a pipe or a device, which may have no end."""
    insist_on_regular(path)
    return path.is_file()


def sources_text(folder: Path, names: Iterable[str]) -> str:
    """Texts of :func:`included_files`, one after the other."""
    return "\n".join(source_text(path) for path in included_files(folder, names))


def unit_headers(folder: Path, sources: Iterable[str], headers: Iterable[str]) -> list[str]:
    """Headers that a translation unit of ``sources`` includes first, outside every namespace.

    Those of ``kernels/common/`` that any of its files includes, then ``headers``: builds lie in
    namespaces, and a header with ``#pragma once`` would belong to the first of them alone.

    ``sources``: source files of the unit's builds.
    ``headers``: what the workload's spec lists under ``headers``.
    """
    own = list(headers)
    files = included_files(folder, [*own, *sources])
    common = [path for path in files if path.is_relative_to(COMMON) and path.suffix == ".cuh"]
    return [*(path.relative_to(PROJECT_KERNELS).as_posix() for path in common), *own]


def system_headers(folder: Path, sources: Iterable[str], quoted: bool = False) -> list[str]:
    """Headers of the system, in angle brackets, that any file of ``sources`` includes.

    A file that is used as it is includes them itself, which would be inside a namespace.

    ``quoted``: also those in quotation marks (``"cuda_runtime.h"``) that are no file of the user.
    """
    found: dict[str, None] = {}
    for path in included_files(folder, sources):
        text = source_text(path)
        found |= {f"<{name}>": None for name in foreign_headers(folder, text, path.parent, quoted)}
    return list(found)


def foreign_headers(folder: Path, text: str, beside: Path, quoted: bool) -> list[str]:
    """Names of the headers that a file in the folder ``beside`` includes from elsewhere."""
    return [
        system or own
        for own, system in _INCLUDE.findall(text)
        if (system and not _is_own(folder, system))
        or (own and quoted and _included(folder, own, beside) is None)
    ]
