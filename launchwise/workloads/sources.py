"""Finds the CUDA files that a workload's sources include.

``kernels/common/`` holds device code that workloads share. Every workload, also one outside the
project, includes a header of it as ``#include "common/uniform.cuh"``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from launchwise.base.imports import ROOT

PROJECT_KERNELS = ROOT / "kernels"
COMMON = PROJECT_KERNELS / "common"

_SYSTEM_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*(<[^>]+>)", re.MULTILINE)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)


def include_folders(folder: Path) -> list[Path]:
    """Folders in which a compiler searches the headers of a workload, the first one first."""
    return [folder.resolve(), PROJECT_KERNELS]


def included_files(folder: Path, names: Iterable[str]) -> list[Path]:
    """Files ``names`` of a workload and every file that they include, directly or indirectly.

    Headers of the CUDA toolkit are left out. An ``#include`` counts whatever ``#if`` surrounds it.

    Parameters
    ----------
    folder
        Folder of the workload.
    names
        As an ``#include`` line names them.

    Returns
    -------
    Absolute paths, in the order in which a compiler first opens them.
    """
    found: dict[Path, None] = {}

    def visit(name: str, beside: Path) -> None:
        for place in (beside, *include_folders(folder)):
            path = (place / name).resolve()
            if path.is_file():
                break
        else:
            return
        if path not in found:
            found[path] = None
            for included in _INCLUDE.findall(path.read_text(encoding="utf-8", errors="replace")):
                visit(included, path.parent)

    for name in names:
        visit(name, folder)
    return list(found)


def unit_headers(folder: Path, sources: Iterable[str], headers: Iterable[str]) -> list[str]:
    """Headers that a translation unit of ``sources`` includes first, outside every namespace.

    Those of ``kernels/common/`` that any of its files includes, then ``headers``: builds lie in
    namespaces, and a header with ``#pragma once`` would belong to the first of them alone.

    Parameters
    ----------
    folder
        Folder of the workload.
    sources
        Source files of the unit's builds.
    headers
        What the workload's spec lists under ``headers``.
    """
    own = list(headers)
    files = included_files(folder, [*own, *sources])
    common = [path for path in files if path.is_relative_to(COMMON) and path.suffix == ".cuh"]
    return [*(path.relative_to(PROJECT_KERNELS).as_posix() for path in common), *own]


def system_headers(folder: Path, sources: Iterable[str]) -> list[str]:
    """Headers in angle brackets, with these, that any file of ``sources`` includes.

    A file that is used as it is includes them itself, which would be inside a namespace.
    """
    files = included_files(folder, sources)
    texts = (path.read_text(encoding="utf-8", errors="replace") for path in files)
    return list(dict.fromkeys(name for text in texts for name in _SYSTEM_INCLUDE.findall(text)))
