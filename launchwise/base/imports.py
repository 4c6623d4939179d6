"""Finds the library files that code imports, directly or indirectly, without running it."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from launchwise.base.places import PACKAGE, ROOT, is_module

_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
"""Where statements hold other statements; most nodes are expressions, which hold no import."""
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def library_files(start: Iterable[Path], lazy: bool = True) -> list[Path]:
    """Files of the library that ``start`` imports, directly or indirectly; sorted.

    Files of ``start`` that belong to the library are among them, and so are files that are imported
    relatively: those of a workload's own package.

    ``lazy``: whether imports inside functions and for type checkers alone count.
    """
    queue = list(start)
    found = {path for path in queue if is_module(path)}
    while queue:
        for file in _imported(queue.pop(), lazy):
            if file not in found:
                found.add(file)
                queue.append(file)
    return sorted(found)


@cache
def _imported(path: Path, lazy: bool) -> frozenset[Path]:
    found: set[Path] = set()
    for node in _nodes(ast.parse(path.read_text(encoding="utf-8")), lazy):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found.update(_files_of(ROOT, alias.name))
        elif isinstance(node, ast.ImportFrom) and node.level:
            base = path.parents[node.level - 1]
            for name in _modules(node):
                found.update(_relative_files(base, name))
        elif isinstance(node, ast.ImportFrom):
            for name in _modules(node):
                found.update(_files_of(ROOT, name))
    return frozenset(found)


def _modules(node: ast.ImportFrom) -> list[str]:
    """Dotted names that may be modules: `from package import name` may import a module `name`."""
    head = [node.module] if node.module else []
    return [*head, *(".".join([*head, alias.name]) for alias in node.names)]


def _nodes(tree: ast.AST, lazy: bool) -> Iterator[ast.AST]:
    """Every statement; those inside functions and for type checkers only if ``lazy``."""
    for name in _BLOCKS:
        for node in getattr(tree, name, ()):
            yield node
            typing_only = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
            if lazy or not (isinstance(node, _FUNCTIONS) or typing_only):
                yield from _nodes(node, lazy)


@cache
def _files_of(root: Path, module: str) -> list[Path]:
    """The file of a module of this package and the ``__init__`` of every package above it."""
    if not (module + ".").startswith(PACKAGE + "."):
        return []
    files, parts = _library(root), module.split(".")
    names = (".".join(parts[:depth]) for depth in range(1, len(parts) + 1))
    return [files[name] for name in names if name in files]


@cache
def _library(root: Path) -> dict[str, Path]:
    """Dotted name of every module of this package to its file, of a package to its ``__init__``."""
    found: dict[str, Path] = {}
    for folder, _, names in os.walk(root / PACKAGE):
        package = Path(folder).relative_to(root).parts
        for name in names:
            if name.endswith(".py"):
                inside = [] if name == "__init__.py" else [name.removesuffix(".py")]
                found[".".join([*package, *inside])] = Path(folder, name)
    return found


@cache
def _relative_files(base: Path, module: str) -> list[Path]:
    """The file of a module below ``base`` and the ``__init__`` of every package on the way."""
    parts = module.split(".")
    packages = [base.joinpath(*parts[:depth], "__init__.py") for depth in range(len(parts) + 1)]
    files = [*packages, base.joinpath(*parts).with_suffix(".py")]
    return [path for path in files if path.is_file()]
