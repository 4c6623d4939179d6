"""A Python file with functions of Triton: its functions, and the part of it that a build needs."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeGuard

from launchwise.base.errors import UserError, unknown
from launchwise.cli.new.constant_names import Dotted
from launchwise.cli.new.constants import Constants
from launchwise.cli.new.python_calls import MOST_BYTES
from launchwise.workloads.sources import source_text

_HARMLESS = ("triton", "math", "itertools", "functools", "typing", "enum", "dataclasses")
"""Packages that a machine which compiles has, and that need no GPU."""

_TUNERS = ("autotune", "heuristics")


@dataclass(frozen=True)
class TritonFile:
    """A file that has functions of Triton.

    Parameters
    ----------
    functions
        Its ``@triton.jit`` functions, by name.
    kernels
        Those that no other one calls; the ones that the file launches come first.
    """

    path: Path
    text: str
    tree: ast.Module
    constants: Constants
    functions: dict[str, ast.FunctionDef]
    kernels: tuple[str, ...]

    def kernel(self, name: str | None) -> ast.FunctionDef:
        """The function of that name, or the first kernel.

        Raises
        ------
        UserError
            When there is none.
        """
        if name is not None and name not in self.functions:
            message = unknown("@triton.jit function", name, self.functions)
            raise UserError(self.path, "--kernel", message)
        return self.functions[name or self.kernels[0]]

    def needed(self, kernel: ast.FunctionDef) -> tuple[str, list[str]]:
        """Text of the file that a build of a kernel needs, and modules that must be copied.

        Host code may import PyTorch and ask for a GPU, which the machine that compiles lacks. A
        file without such code is kept as it is.
        """
        if all(map(_is_harmless, self.tree.body)):
            return self.text, []
        kept = self._kept_statements(kernel)
        own = [one for one in kept if isinstance(one, ast.ImportFrom) and one.level]
        lines = [f"# What {kernel.name} of {self.path.name} needs."]
        places = self._imports(kept)
        lines += places
        for statement in kept:
            if not isinstance(statement, ast.Import | ast.ImportFrom):
                is_function = isinstance(statement, ast.FunctionDef)
                lines += (
                    ["", "", self._text_of(statement)]
                    if is_function
                    else [self._text_of(statement)]
                )
        for one in own:
            lines.insert(1, ast.unparse(one))
        return "\n".join(lines) + "\n", [f"{'.' * one.level}{one.module or ''}" for one in own]

    def _kept_statements(self, kernel: ast.FunctionDef) -> list[ast.stmt]:
        """Statements at the top that a kernel reads, in their order."""
        wanted = _read(kernel) | {kernel.name}
        kept: set[int] = set()
        while True:
            before = len(kept)
            for number, statement in enumerate(self.tree.body):
                if number not in kept and _given_by(statement) & wanted:
                    kept.add(number)
                    wanted |= _read(statement)
            if len(kept) == before:
                return [self.tree.body[number] for number in sorted(kept)]

    def _imports(self, kept: list[ast.stmt]) -> list[str]:
        """Imports of Triton under the names of the file, and others that are harmless."""
        found: dict[str, None] = {}
        for statement in kept:
            if isinstance(statement, ast.ImportFrom) and statement.level:
                continue
            if not isinstance(statement, ast.Import | ast.ImportFrom):
                continue
            if _is_harmless(statement):
                found[ast.unparse(statement)] = None
                continue
            for name in _given_by(statement):
                value = self.constants.top.names.get(name)
                if isinstance(value, Dotted) and value.name.split(".")[0] == "triton":
                    found[f"import {value.name}" + (f" as {name}" if name != "triton" else "")] = (
                        None
                    )
        return list(found)

    def _text_of(self, statement: ast.stmt) -> str:
        """Text of a statement; of a function without the decorators that choose configurations."""
        lines = self.text.splitlines()
        first = statement.lineno
        if isinstance(statement, ast.FunctionDef):
            kept = [one for one in statement.decorator_list if last_name(one) not in _TUNERS]
            above = [ast.get_source_segment(self.text, one) or "" for one in kept]
            return "\n".join(
                [*(f"@{one}" for one in above), *lines[first - 1 : statement.end_lineno]]
            )
        return "\n".join(lines[first - 1 : statement.end_lineno])


def read_triton(path: Path) -> TritonFile | None:
    """A file that has functions of Triton; None for another Python file.

    Raises
    ------
    UserError
        When it cannot be read, is no Python, or has such functions below other code alone.
    """
    text = source_text(path, MOST_BYTES)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None  # The reader of other Python files says why.
    functions = {one.name: one for one in tree.body if _is_jit(one)}
    if not functions:
        if below := next((one for one in ast.walk(tree) if _is_jit(one)), None):
            message = "a @triton.jit function below other code is not read: move it to the left"
            raise UserError(path, f"line {below.lineno}", message)
        return None
    # Called, or given away as tl.associative_scan and tl.reduce take a function.
    read = {
        node.id
        for one in functions.values()
        for statement in one.body
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and node.id != one.name
    }
    free = [name for name in functions if name not in read] or [*functions]
    launched = {name for name, _, _ in launches(tree)}
    kernels = sorted(free, key=lambda name: name not in launched)
    return TritonFile(path, text, tree, Constants(tree), functions, tuple(kernels))


def launches(tree: ast.Module) -> Iterator[tuple[str, ast.Call, ast.FunctionDef | None]]:
    """Calls ``kernel[grid](...)``: name, call, and the function of the host that it stands in."""
    inside: dict[int, ast.FunctionDef] = {}
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            inside |= {id(node): function for node in ast.walk(function)}
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Subscript)
        and isinstance(node.func.value, ast.Name)
    ]
    for call in sorted(found, key=lambda one: (one.lineno, one.col_offset)):
        assert isinstance(call.func, ast.Subscript)
        assert isinstance(call.func.value, ast.Name)
        yield call.func.value.id, call, inside.get(id(call))


def last_name(node: ast.expr) -> str:
    """``jit`` of ``triton.jit``, ``jit`` and ``triton.jit(...)``."""
    if isinstance(node, ast.Call):
        return last_name(node.func)
    return getattr(node, "attr", getattr(node, "id", ""))


def _is_jit(node: ast.AST) -> TypeGuard[ast.FunctionDef]:
    return isinstance(node, ast.FunctionDef) and any(
        last_name(one) == "jit" for one in node.decorator_list
    )


def _is_harmless(statement: ast.stmt) -> bool:
    """Whether an import of the file by launchwise may run a statement at its top."""
    match statement:
        case ast.Import(names=names):
            return all(one.name.split(".")[0] in _HARMLESS for one in names)
        case ast.ImportFrom(module=module, level=level):
            known = (module or "").split(".")[0]
            return level == 0 and (known in _HARMLESS or known == "__future__")
        case ast.FunctionDef(decorator_list=decorators):
            return all(last_name(one) in ("jit", *_TUNERS) for one in decorators)
        case ast.Assign(value=value) | ast.AnnAssign(value=value):
            calls = [one for one in ast.walk(value or ast.Constant(0)) if isinstance(one, ast.Call)]
            return all(last_name(one) in ("Config", "range", "constexpr", "cdiv") for one in calls)
        case ast.Expr(value=ast.Constant()):
            return True
    return False


def _given_by(statement: ast.stmt) -> set[str]:
    """Names that a statement at the top binds."""
    match statement:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return {one.asname or one.name.partition(".")[0] for one in names}
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
            return {
                node.id
                for node in ast.walk(statement)
                if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
            }
    return set()


def _read(statement: ast.stmt) -> set[str]:
    """Names that a statement reads, without decorators that choose configurations."""
    nodes: list[ast.AST] = [statement]
    if isinstance(statement, ast.FunctionDef):
        decorators = [one for one in statement.decorator_list if last_name(one) not in _TUNERS]
        nodes = [*decorators, statement.args, *statement.body]
    return {node.id for part in nodes for node in ast.walk(part) if isinstance(node, ast.Name)}
