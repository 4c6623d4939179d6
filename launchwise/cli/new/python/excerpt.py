"""The part of a Python file that a build of one of its functions of Triton needs."""

from __future__ import annotations

import ast
import builtins
import copy
import dis
from collections.abc import Iterator
from types import CodeType
from typing import TypeGuard

from launchwise.base.names import last_name

_HARMLESS = ("triton", "math", "itertools", "functools", "typing", "enum", "dataclasses")
"""Packages that a machine which compiles has, and that need no GPU."""

_USUAL = {
    "triton": "import triton as {}",
    "tl": "import triton.language as {}",
    "jit": "from triton import jit as {}",
}
"""Names under which projects hand Triton on."""

_COMPOUND = ast.Try | ast.If | ast.For | ast.While | ast.With
"""Statements that are not copied: a person copies what they set."""


class Excerpt:
    """The part of a file that a build of a kernel needs. Host code may import PyTorch and ask for a
    GPU, which the machine that compiles lacks. A file without such code is kept as it is."""

    def __init__(self, name: str, kernel: str, text: str) -> None:
        self.text = ""  # Empty where the file is kept.
        self.modules: dict[str, None] = {}  # Files beside it that must be copied, too.
        self.missing: list[str] = []  # What the copy reads and nothing defines, with its import.
        self._source = text.splitlines()
        self._imports: list[str] = []
        self._lines: list[str] = []
        self._body = ast.parse(text).body
        if not all(map(_is_harmless, self._body)):
            self._take(kernel)
            lines = [f"# What {kernel} of {name} needs.", *self._imports, *self._lines]
            self.text = "\n".join(lines) + "\n"

    def _take(self, kernel: str) -> None:
        names = [(one, *_names(one)) for one in self._body]
        wanted, size = {kernel}, 0
        while len(wanted) > size:
            size = len(wanted)
            for statement, bound, read in names:
                if bound & wanted and not isinstance(statement, _COMPOUND):
                    wanted |= read
        for statement, bound, _ in names:
            is_copied = not isinstance(statement, ast.Import | ast.ImportFrom | _COMPOUND)
            if is_copied and bound & wanted:
                wanted -= bound
                self._copy(statement)
        defined = {name for _, bound, _ in names for name in bound}
        for name in sorted(wanted, key=lambda one: (one not in defined, one)):
            self._define(name, [*self._imports_of(name)] or [*self._imports_of("*")])

    def _copy(self, statement: ast.stmt) -> None:
        """A function has of its decorators that of Triton alone."""
        if isinstance(statement, ast.FunctionDef):
            kept = [one for one in statement.decorator_list if last_name(one) == "jit"]
            self._lines += ["", "", *(f"@{ast.unparse(one)}" for one in kept)]
        self._lines += self._source[statement.lineno - 1 : statement.end_lineno]

    def _define(self, name: str, found: list[tuple[str, str, str]]) -> None:
        """Import a name as the file does, if Triton or Python has it."""
        module, original, text = (
            found[0] if found else ("", "", "defined nowhere at the top, or in a branch")
        )
        if own := [text for module, _, text in found if _is_triton(module)]:
            self._imports += _one_of(own)
        elif original in _USUAL:
            text = _USUAL[original].format(name)
            self._imports.append(text.replace(f"import {name} as {name}", f"import {name}"))
        elif module.startswith(".") and not module.startswith(".."):
            self._imports.append(text)
            self.modules[module] = None
        else:
            self.missing.append(f"{name} ({text})")

    def _imports_of(self, name: str) -> Iterator[tuple[str, str, str]]:
        """Module, name there, and statement, wherever the file imports a name."""
        for node in ast.walk(ast.Module(self._body, [])):
            if not isinstance(node, ast.Import | ast.ImportFrom):
                continue
            for one in (each for each in node.names if _bound_by(each) == name):
                if isinstance(node, ast.Import):
                    yield one.name, "", ast.unparse(ast.Import([one]))
                else:
                    text = ast.unparse(ast.ImportFrom(node.module, [one], node.level))
                    yield "." * node.level + (node.module or ""), one.name, text


def _bound_by(name: ast.alias) -> str:
    return name.asname or name.name.partition(".")[0]


def _one_of(imports: list[str]) -> list[str]:
    """Imports of which the first that succeeds counts."""
    *others, last = dict.fromkeys(imports)
    lines = [last]
    for text in reversed(others):
        inner = [f"    {line}" for line in lines]
        lines = ["try:", f"    {text}", "except ImportError:", *inner]
    return lines


def _is_triton(module: str) -> bool:
    return module.partition(".")[0] in _HARMLESS


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


_LOADS = ("LOAD_NAME", "LOAD_GLOBAL")


def _names(statement: ast.stmt) -> tuple[set[str], set[str]]:
    """Names that a statement at the top binds and reads, of its decorators with ``jit`` alone."""
    kept = copy.copy(statement)
    if isinstance(kept, ast.FunctionDef):
        kept.decorator_list = [one for one in kept.decorator_list if last_name(one) == "jit"]
    if isinstance(kept, ast.ImportFrom):
        return {*map(_bound_by, kept.names)}, set()
    code = compile(ast.Module([kept], []), "", "exec", dont_inherit=True)
    bound = {one.argval for one in dis.get_instructions(code) if one.opname == "STORE_NAME"}
    return bound, names_read(code) - {*vars(builtins)}


def names_read(code: CodeType) -> set[str]:
    """Global names that code reads, also in functions inside."""
    inner = (one for one in code.co_consts if isinstance(one, CodeType))
    loads = (one for one in dis.get_instructions(code) if one.opname in _LOADS)
    return {one.argval for one in loads}.union(*map(names_read, inner))
