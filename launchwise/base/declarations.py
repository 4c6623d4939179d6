"""Reads constants of Python sources without running them: literals, and what is made of them."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import Any

from launchwise.base.places import ROOT


class Unreadable(Exception):
    """What a source text does not tell without being run."""


class _Unknown:
    def __repr__(self) -> str:
        return "a value that the source text does not tell"


UNREADABLE = _Unknown()
"""Stands for a value of a mapping whose keys are known."""


def module_constant(path: Path, name: str) -> Any:
    """Value of a module's constant, of this module or imported by it.

    Raises
    ------
    Unreadable
        When there is none, or its value cannot be told.
    """
    module = _module(path)
    for node in module.body:
        for target in _targets(node):
            if target == name:
                return _value(node.value, path)  # type: ignore[attr-defined]
    found = _origin(path, name)
    if found is None:
        raise Unreadable(f"{path}: {name}")
    return module_constant(*found)


def class_constant(path: Path, base: str, name: str) -> Any:
    """Value of an attribute of the one class in a module that descends from ``base``.

    Raises
    ------
    Unreadable
        When there is not one such class, or its value cannot be told.
    """
    classes = [node.name for node in _module(path).body if isinstance(node, ast.ClassDef)]
    descending = [each for each in classes if base in _lineage(path, each)]
    if len(descending) != 1:
        raise Unreadable(f"{path}: {len(descending)} classes are a {base}")
    return _attribute(path, descending[0], name)


def _lineage(path: Path, name: str) -> list[str]:
    """Names of the classes that a class descends from, as far as they can be told."""
    try:
        where, node = _class(path, name)
    except Unreadable:
        return [name]
    bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
    return [each for base in bases for each in (base, *_lineage(where, base))]


def _attribute(path: Path, name: str, attribute: str) -> Any:
    where, node = _class(path, name)
    for statement in node.body:
        if attribute in _targets(statement):
            return _value(statement.value, where)  # type: ignore[attr-defined]
    for base in node.bases:
        if isinstance(base, ast.Name):
            return _attribute(where, base.id, attribute)
    raise Unreadable(f"{where}: {name}.{attribute}")


def _class(path: Path, name: str) -> tuple[Path, ast.ClassDef]:
    for node in _module(path).body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            return path, node
    found = _origin(path, name)
    if found is None:
        raise Unreadable(f"{path}: class {name}")
    return _class(*found)


def _origin(path: Path, name: str) -> tuple[Path, str] | None:
    """File that a module imports a name from, and its name there; None if it cannot be told."""
    for node in _module(path).body:
        if not isinstance(node, ast.ImportFrom):
            continue
        for alias in node.names:
            if (alias.asname or alias.name) == name:
                above = path.parents[node.level - 1] if node.level else ROOT
                stem = above.joinpath(*(node.module or "").split("."))
                for file in (stem.with_suffix(".py"), stem / "__init__.py"):
                    if file.is_file() and file != path:
                        return file, alias.name
    return None


def _targets(node: ast.AST) -> list[str]:
    """Names that a statement assigns a value to."""
    if isinstance(node, ast.Assign):
        return [each.id for each in node.targets if isinstance(each, ast.Name)]
    if isinstance(node, ast.AnnAssign) and node.value and isinstance(node.target, ast.Name):
        return [node.target.id]
    return []


def _value(node: ast.AST, path: Path) -> Any:
    """Value of an expression of literals, constants and attributes of classes."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Dict):
        return _mapping(node, path)
    if isinstance(node, ast.List | ast.Tuple):
        found: list[Any] = []
        for each in node.elts:
            if isinstance(each, ast.Starred):
                found += _value(each.value, path)
            else:
                found.append(_value(each, path))
        return found if isinstance(node, ast.List) else tuple(found)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _value(node.operand, path)
        if isinstance(inner, int | float):
            return -inner
    if isinstance(node, ast.Name):
        return module_constant(path, node.id)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return _attribute(path, node.value.id, node.attr)
    raise Unreadable(f"{path}: line {getattr(node, 'lineno', 0)}")


def _mapping(node: ast.Dict, path: Path) -> dict[Any, Any]:
    """A mapping; values that cannot be told are :data:`UNREADABLE`."""
    found: dict[Any, Any] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            inner = _value(value, path)
            if not isinstance(inner, dict):
                raise Unreadable(f"{path}: line {value.lineno}")
            found |= inner
            continue
        name = _value(key, path)
        try:
            found[name] = _value(value, path)
        except Unreadable:
            found[name] = UNREADABLE
    return found


@cache
def _module(path: Path) -> ast.Module:
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, UnicodeDecodeError) as error:
        raise Unreadable(f"{path}: {error}") from error
