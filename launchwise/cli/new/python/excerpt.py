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
        self.modules: list[str] = []  # Files beside it that must be copied, too.
        self.missing: list[str] = []  # What the copy reads and nothing defines, with its import.
        body = ast.parse(text).body
        if all(map(_is_harmless, body)):
            return
        names = [(one, *_names(one)) for one in body]
        wanted, size = {kernel}, 0
        while len(wanted) > size:
            size = len(wanted)
            for statement, bound, read in names:
                if bound & wanted and not isinstance(statement, _COMPOUND):
                    wanted |= read
        lines = []
        for statement, bound, _ in names:
            is_copied = not isinstance(statement, ast.Import | ast.ImportFrom | _COMPOUND)
            if is_copied and bound & wanted:
                wanted -= bound
                lines += _copied(statement, text.splitlines())
        defined = {name for _, bound, _ in names for name in bound}
        imports: list[str] = []
        for one in sorted(wanted, key=lambda one: (one not in defined, one)):
            imports += self._imports(one, [*_imports_of(body, one)] or [*_imports_of(body, "*")])
        self.text = "\n".join([f"# What {kernel} of {name} needs.", *imports, *lines]) + "\n"

    def _imports(self, name: str, found: list[tuple[str, str, str]]) -> list[str]:
        """Import a name as the file does, if Triton or Python has it."""
        nowhere = ("", "", "defined nowhere at the top, or in a branch")
        module, original, text = found[0] if found else nowhere
        if own := [text for module, _, text in found if _is_triton(module)]:
            return _one_of(own)
        if original in _USUAL:
            usual = _USUAL[original].format(name)
            return [usual.replace(f"import {name} as {name}", f"import {name}")]
        if module.startswith(".") and not module.startswith(".."):
            self.modules += [module] if module not in self.modules else []
            return [text]
        self.missing.append(f"{name} ({text})")
        return []


def _copied(statement: ast.stmt, source: list[str]) -> list[str]:
    """Lines of a statement; a function has of its decorators that of Triton alone."""
    lines = source[statement.lineno - 1 : statement.end_lineno]
    if not isinstance(statement, ast.FunctionDef):
        return lines
    kept = [one for one in statement.decorator_list if last_name(one) == "jit"]
    return ["", "", *(f"@{ast.unparse(one)}" for one in kept), *lines]


def _imports_of(body: list[ast.stmt], name: str) -> Iterator[tuple[str, str, str]]:
    """Module, name there, and statement, wherever the file imports a name."""
    for node in ast.walk(ast.Module(body, [])):
        for one in node.names if isinstance(node, ast.Import | ast.ImportFrom) else ():
            if _bound_by(one) == name and isinstance(node, ast.ImportFrom):
                text = ast.unparse(ast.ImportFrom(node.module, [one], node.level))
                yield "." * node.level + (node.module or ""), one.name, text
            elif _bound_by(one) == name:
                yield one.name, "", ast.unparse(ast.Import([one]))


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
