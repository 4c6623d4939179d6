"""A Python file with functions of Triton, and the part of it that a build needs."""

from __future__ import annotations

import ast
import builtins
import symtable
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeGuard

from launchwise.base.errors import UserError, unknown
from launchwise.base.names import last_name
from launchwise.workloads.sources import source_text

MOST_BYTES = 256 << 10
"""Longest Python file, bytes: Python's own parser takes long, and cannot be stopped."""

_HARMLESS = ("triton", "math", "itertools", "functools", "typing", "enum", "dataclasses")
"""Packages that a machine which compiles has, and that need no GPU."""

_USUAL = {
    "triton": "import triton as {}",
    "tl": "import triton.language as {}",
    "jit": "from triton import jit as {}",
}
"""Names under which projects hand Triton on."""

_COMPOUND = ast.Try | ast.If | ast.For | ast.While | ast.With
"""Statements that are not copied: of the names that they bind, the values are."""


def python_text(path: Path) -> str:
    """Content of a Python file; raises :class:`UserError`."""
    return source_text(path, MOST_BYTES)


def parsed(path: Path, text: str) -> ast.Module:
    """Syntax of a Python file.

    Raises
    ------
    UserError
        When it is no Python.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Texts of other languages hold backslashes.
            tree = ast.parse(text)
            compile(tree, str(path), "exec", dont_inherit=True)
            return tree
    except SyntaxError as error:
        raise UserError(path, f"line {error.lineno or 1}", f"no Python: {error.msg}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        message = "cannot be read as Python: nested too deep, or no text"
        raise UserError(path, "", message) from error


def jit_functions(path: Path, tree: ast.Module) -> dict[str, ast.FunctionDef]:
    """Functions of Triton by name.

    Raises
    ------
    UserError
        When all of them stand below other code.
    """
    functions = {one.name: one for one in tree.body if is_jit(one)}
    if not functions and (below := next((one for one in ast.walk(tree) if is_jit(one)), None)):
        message = "a @triton.jit function below other code is not read: move it to the left"
        raise UserError(path, f"line {below.lineno}", message)
    return functions


def insist_on(path: Path, name: str, functions: Mapping[str, object]) -> None:
    """Insist that a function of Triton has this name; raises :class:`UserError`."""
    if name not in functions:
        raise UserError(path, "--kernel", unknown("@triton.jit function", name, functions))


class Excerpt:
    """The part of a file that a build of a kernel needs.

    Host code may import PyTorch and ask for a GPU, which the machine that compiles lacks. A file
    without such code is kept as it is.

    Parameters
    ----------
    name
        Of the file.
    values
        Names of the file to numbers and texts.
    """

    def __init__(self, name: str, kernel: str, text: str, values: Mapping[str, str]) -> None:
        self.text = text
        self.modules: dict[str, None] = {}  # Files beside it that must be copied, too.
        self.missing: list[str] = []  # What the copy reads and nothing defines, with its import.
        self._source, self._values = text.splitlines(), values
        self._imports: list[str] = []
        self._lines: list[str] = []
        tree = ast.parse(text)
        if not all(map(_is_harmless, tree.body)):
            self._take(tree, _names_needed(tree, kernel))
            lines = [f"# What {kernel} of {name} needs.", *self._imports, *self._lines]
            self.text = "\n".join(lines) + "\n"

    def _take(self, tree: ast.Module, names: set[str]) -> None:
        for statement in tree.body:
            own = {*_given_by(statement)} & names
            if own and not isinstance(statement, ast.Import | ast.ImportFrom | _COMPOUND):
                names -= own
                self._copy(statement)
        defined = {name for one in tree.body for name in _given_by(one)}
        for name in sorted(names, key=lambda one: (one not in defined, one)):
            self._define(name, [*_imports_of(tree, name)] or [*_imports_of(tree, "*")])

    def _copy(self, statement: ast.stmt) -> None:
        """A function has of its decorators that of Triton alone."""
        if isinstance(statement, ast.FunctionDef):
            kept = [one for one in statement.decorator_list if last_name(one) == "jit"]
            self._lines += ["", "", *(f"@{ast.unparse(one)}" for one in kept)]
        self._lines += self._source[statement.lineno - 1 : statement.end_lineno]

    def _define(self, name: str, found: list[tuple[str, str, str]]) -> None:
        """Import a name as the file does, if Triton or Python has it."""
        module, original, text = found[0] if found else ("", "", "defined nowhere at the top")
        if own := [text for module, _, text in found if _is_triton(module)]:
            self._imports += _one_of(own)
        elif original in _USUAL:
            text = _USUAL[original].format(name)
            self._imports.append(text.replace(f"import {name} as {name}", f"import {name}"))
        elif module.startswith("."):
            self._imports.append(text)
            self.modules[module] = None
        elif name in self._values:
            self._lines.insert(0, f"{name} = {self._values[name]}")
        else:
            self.missing.append(f"{name} ({text})")


def _one_of(imports: list[str]) -> list[str]:
    """Imports of which the first that succeeds counts."""
    several = list(dict.fromkeys(imports))
    lines = [several[-1]]
    for text in reversed(several[:-1]):
        inner = [f"    {line}" for line in lines]
        lines = ["try:", f"    {text}", "except ImportError:", *inner]
    return lines


def _imports_of(tree: ast.Module, name: str) -> Iterator[tuple[str, str, str]]:
    """Module, name there, and statement, wherever a file imports a name."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        for one in node.names:
            if (one.asname or one.name.partition(".")[0]) != name:
                continue
            if isinstance(node, ast.Import):
                yield one.name, "", ast.unparse(ast.Import([one]))
            else:
                module = "." * node.level + (node.module or "")
                text = ast.unparse(ast.ImportFrom(node.module, [one], node.level))
                yield module, one.name, text


def _is_triton(module: str) -> bool:
    return module.partition(".")[0] in _HARMLESS


def _names_needed(tree: ast.Module, kernel: str) -> set[str]:
    """Names of a file that a kernel reads, and those that they read in turn."""
    wanted = {kernel}
    while True:
        before = len(wanted)
        for statement in tree.body:
            if {*_given_by(statement)} & wanted and not isinstance(statement, _COMPOUND):
                wanted |= _read(statement)
        if len(wanted) == before:
            return wanted


def is_jit(node: ast.AST) -> TypeGuard[ast.FunctionDef]:
    """Whether a statement is a function of Triton."""
    return isinstance(node, ast.FunctionDef) and any(
        last_name(one) == "jit" for one in node.decorator_list
    )


def _is_harmless(statement: ast.stmt) -> bool:
    """Whether an import of the file by launchwise may run a statement at its top."""
    match statement:
        case ast.Import(names=names):
            return all(_is_triton(one.name) for one in names)
        case ast.ImportFrom(module=module, level=level):
            return level == 0 and (_is_triton(module or "") or module == "__future__")
        case ast.FunctionDef(decorator_list=decorators):
            return all(last_name(one) in ("jit", "autotune", "heuristics") for one in decorators)
        case ast.Assign(value=value) | ast.AnnAssign(value=value):
            calls = [one for one in ast.walk(value or ast.Constant(0)) if isinstance(one, ast.Call)]
            return all(last_name(one) in ("Config", "range", "constexpr", "cdiv") for one in calls)
        case ast.Expr(value=ast.Constant()):
            return True
    return False


def _given_by(statement: ast.stmt) -> Iterator[str]:
    """Names that a statement at the top binds, also inside other statements."""
    match statement:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            yield from (one.asname or one.name.partition(".")[0] for one in names)
        case _:
            for node in ast.walk(statement):
                if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                    yield node.id
                elif isinstance(node, ast.Import | ast.ImportFrom):
                    yield from _given_by(node)


def _read(statement: ast.stmt) -> set[str]:
    """Names that a statement reads, without decorators, which are not copied but for ``jit``."""
    nodes: list[ast.AST] = [statement]
    found: set[str] = set()
    if isinstance(statement, ast.FunctionDef):
        table = symtable.symtable(ast.unparse(statement), "", "exec")
        found = {name for one in table.get_children() for name in _globals(one)}
        decorators = [one for one in statement.decorator_list if last_name(one) == "jit"]
        nodes = [*decorators, statement.args]
    names = (node.id for part in nodes for node in ast.walk(part) if isinstance(node, ast.Name))
    return (found | {*names}) - {*vars(builtins)}


def _globals(table: symtable.SymbolTable) -> Iterator[str]:
    """Names of the file that a function reads."""
    yield from (one.get_name() for one in table.get_symbols() if one.is_global())
    for inner in table.get_children():
        yield from _globals(inner)
