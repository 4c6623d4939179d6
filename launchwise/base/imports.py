"""Files of the library that code stands on, found by following imports without running anything."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

PACKAGE = "launchwise"
ROOT = Path(__file__).resolve().parents[2]


def library_files(start: Iterable[Path], lazy: bool = True) -> list[Path]:
    """Files of the library that ``start`` imports, near or far; sorted.

    A file of ``start`` that belongs to the library itself is among them.

    Parameters
    ----------
    lazy
        Whether imports inside functions count.
    """
    queue = list(start)
    found = {path for path in queue if path.is_relative_to(ROOT / PACKAGE)}
    while queue:
        for module in _imports(queue.pop(), lazy):
            for file in _files_of(ROOT, module):
                if file not in found:
                    found.add(file)
                    queue.append(file)
    return sorted(found)


@cache
def _imports(path: Path, lazy: bool) -> frozenset[str]:
    """Names of this package that a file imports."""
    names: set[str] = set()
    for node in _nodes(ast.parse(path.read_text(encoding="utf-8")), lazy):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
            # `from package import name`: the name may be a module of its own.
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(name for name in names if name.split(".")[0] == PACKAGE)


def _nodes(tree: ast.AST, lazy: bool) -> Iterator[ast.AST]:
    """Every node; unless ``lazy``, without what stands in functions."""
    for node in ast.iter_child_nodes(tree):
        yield node
        if lazy or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from _nodes(node, lazy)


@cache
def _files_of(root: Path, module: str) -> list[Path]:
    """The file of a module and the ``__init__`` of every package above it."""
    parts = module.split(".")
    files = [root.joinpath(*parts[:depth], "__init__.py") for depth in range(1, len(parts) + 1)]
    files.append(root.joinpath(*parts).with_suffix(".py"))
    return [path for path in files if path.is_file()]
