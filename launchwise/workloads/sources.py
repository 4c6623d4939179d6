"""Finds and reads the sources of kernels, within limits: CUDA files, and functions of Triton.

``kernels/common/`` holds device code that workloads share. Every workload, also one outside the
project, includes a header of it as ``#include "common/uniform.cuh"``. Functions of Triton are read
as their file declares them, without running it. The reader of Python kernels imports this before
its stand-ins: nothing here may load NumPy.
"""

from __future__ import annotations

import ast
import re
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import FrameType

from launchwise.base.errors import UserError, unknown
from launchwise.base.names import last_name
from launchwise.base.places import shipped
from launchwise.base.storage import insist_on_regular, read_bytes

PROJECT_KERNELS = shipped("kernels")
COMMON = PROJECT_KERNELS / "common"

OFFLOADING = ".c"
"""Suffix of sources that are no CUDA: functions in C that offload their work by OpenMP."""

TRITON = ".py"  # Suffix of sources that are no CUDA: functions of Triton, compiled by it

MOST_BYTES = 4 << 20  # Longest source file, bytes
READING_S = 6  # Most CPU time for reading the sources of a workload

INCLUDE = re.compile(
    r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)[^\r\n]*', re.MULTILINE
)
"""A line that includes a header: its name in quotation marks, or in angle brackets."""


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
        path = included(folder, name, beside)
        if path is not None and path not in found:
            found[path] = None
            for quoted, system in INCLUDE.findall(source_text(path)):
                if quoted:
                    visit(quoted, path.parent)
                elif _is_own(folder, system):
                    visit(system, folder)

    for name in names:
        visit(name, folder)
    return list(found)


def included(folder: Path, name: str, beside: Path) -> Path | None:
    """File that ``#include "name"`` means in a file of the folder ``beside``; None: a system's."""
    for place in (beside, *include_folders(folder)):
        with suppress(OSError, ValueError, RuntimeError):  # No name of a file; links in a circle.
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


def system_headers(folder: Path, sources: Iterable[str]) -> list[str]:
    """Headers of the system, in angle brackets, that any file of ``sources`` includes. A file that
    is used as it is includes them itself, which would be inside a namespace."""
    found: dict[str, None] = {}
    for path in included_files(folder, sources):
        names = foreign_headers(folder, source_text(path), path.parent)
        found |= {f"<{name}>": None for name in names}
    return list(found)


def foreign_headers(folder: Path, text: str, beside: Path) -> list[str]:
    """Names of the headers that a file in the folder ``beside`` includes from elsewhere, also those
    in quotation marks (``"cuda_runtime.h"``) that are no file of the user."""
    return [
        system or own
        for own, system in INCLUDE.findall(text)
        if (not _is_own(folder, system) if system else included(folder, own, beside) is None)
    ]


OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")
POWERS_OF_TWO = ("num_warps", "num_ctas")
"""Options of Triton's compiler that a build may set, beside the constexprs of the function."""

REGISTERS = "maxnreg"  # The option that limits registers per thread
NO_LIMIT = 0  # Its value for no limit, beside configurations that have one

INSTALL = "pip install 'triton>=3.6'"
MISSING = f"triton is missing: {INSTALL}"


@dataclass(frozen=True)
class Parameter:
    """A parameter of a function of Triton."""

    name: str
    is_constexpr: bool  # whether its value is fixed by a compilation
    has_default: bool  # whether the file gives it a value
    # Whether Triton compiles the function anew for the integer 1, and for multiples of 16.
    equals_one: bool = True
    is_aligned: bool = True


@dataclass(frozen=True)
class TritonFunction:
    name: str
    parameters: tuple[Parameter, ...]
    prints: tuple[int, ...] = ()  # lines on which its file prints
    keys: frozenset[str] = frozenset()  # names in the `key` of its `@triton.autotune`

    @property
    def constexprs(self) -> list[Parameter]:
        """Parameters that a build fixes."""
        return [each for each in self.parameters if each.is_constexpr]

    @property
    def given(self) -> list[Parameter]:
        """Parameters that get the arguments of a launch, in their order."""
        return [each for each in self.parameters if not each.is_constexpr]


def triton_function(path: Path, name: str) -> TritonFunction:
    """The function ``name`` of a file. Raises UserError when the file is no Python, or has no
    ``@triton.jit`` function of that name."""
    changed = path.stat().st_mtime_ns if path.is_file() else 0
    functions = _functions(path, changed)
    if name not in functions:
        message = unknown("@triton.jit function", name, functions)
        raise UserError(path, "", message)
    return functions[name]


@lru_cache(maxsize=64)
def _functions(path: Path, changed: int) -> dict[str, TritonFunction]:
    try:
        tree = ast.parse(source_text(path))
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        said = getattr(error, "msg", None) or str(error)
        raise UserError(path, f"line {line}" if line else "", f"SyntaxError: {said}") from error
    defined = [
        (node, decorator)
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        for decorator in node.decorator_list
        if last_name(decorator) == "jit"
    ]
    inner = (each for node, _ in defined for part in node.body for each in ast.walk(part))
    calls = [each for each in inner if isinstance(each, ast.Call)]
    named = [each.lineno for each in calls if last_name(each) in ("device_print", "print")]
    prints = tuple(sorted(named))
    return {
        node.name: TritonFunction(
            node.name, tuple(_parameters(node, decorator)), prints, _keys(node)
        )
        for node, decorator in defined
    }


def _keys(function: ast.FunctionDef) -> frozenset[str]:
    """Texts that ``@triton.autotune(configs, key)`` lists as they are."""
    found: set[str] = set()
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call) and last_name(decorator) == "autotune":
            named = [each.value for each in decorator.keywords if each.arg == "key"]
            for node in (*named, *decorator.args[1:2]):
                found |= {each for each in _listed(node) if isinstance(each, str)}
    return frozenset(found)


def _parameters(function: ast.FunctionDef, decorator: ast.AST) -> Iterator[Parameter]:
    given = function.args
    listed = [*given.posonlyargs, *given.args]
    defaults = [*[None] * (len(listed) - len(given.defaults)), *given.defaults, *given.kw_defaults]
    general, unaligned = (
        {one for key in getattr(decorator, "keywords", ()) if key.arg == name
         for one in _listed(key.value)}
        for name in ("do_not_specialize", "do_not_specialize_on_alignment")
    )  # fmt: skip
    for place, each in enumerate([*listed, *given.kwonlyargs]):
        is_general, is_unaligned = ({each.arg, place} & one for one in (general, unaligned))
        is_constexpr = each.annotation is not None and last_name(each.annotation) == "constexpr"
        has_default = defaults[place] is not None
        is_aligned = not (is_general or is_unaligned)
        yield Parameter(each.arg, is_constexpr, has_default, not is_general, is_aligned)


def _listed(node: ast.AST) -> set[str | int]:
    found = (each.value for each in ast.walk(node) if isinstance(each, ast.Constant))
    return {each for each in found if isinstance(each, str | int)}
