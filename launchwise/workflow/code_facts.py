"""Facts about one Python file: its definitions, what they read, and what its imports stand for.

A *part* of a module is a definition (a function, a class, an assigned name), the module's *rest*
(statements that do more than define names when it is imported) or its main block. Comments,
docstrings, calls of the pipeline's log, texts of ``assert`` and positional arguments of ``raise``
are left out: a wording is no result. Facts are JSON-able and depend on the file's content alone.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator
from typing import Any, TypedDict

from launchwise.base.places import PACKAGE
from launchwise.base.storage import digest

REST, MAIN = "", "__main__"
"""Names of the parts that are no definition."""

Target = list[Any]
"""``[level, module, name]`` of an import: `name` of a module, or, with an empty name, the module;
with ``*`` a module whose attributes cannot be told apart."""


class Part(TypedDict):
    """Digest of what a part does, and what it reads: ``name``, or ``name.attribute``."""

    text: str
    reads: list[str]


class Facts(TypedDict):
    """A module.

    ``binds``: names that its rest defines. ``imports``: a name to what it stands for, inside
    functions too. ``loads``: what is imported at once.
    """

    parts: dict[str, Part]
    binds: list[str]
    imports: dict[str, list[Target]]
    loads: list[Target]


DYNAMIC = {"__import__", "exec_module", "import_module", "run_module", "run_path"}
"""Functions that import what no name in the code tells."""

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINITIONS = (*_FUNCTIONS, ast.ClassDef)
_IMPORTS = (ast.Import, ast.ImportFrom)
_LOGS = {"debug", "info", "warning", "error", "exception", "critical"}
_PLAIN_ATTRIBUTES = {"format", "get", "items", "join", "keys", "lower", "split", "upper", "values"}
_PLAIN_ATTRIBUTES |= {"deleter", "getter", "setter"}
_EFFECTS = {"__import__", "delattr", "eval", "exec", "filter", "map", "setattr"}
_BUILTINS = set(dir(builtins)) - _EFFECTS
_LEFT_OUT = {"ctx", "kind", "type_comment"}
"""Fields of the syntax tree that say nothing, or not in every version of Python."""


def facts_of(source: str) -> Facts:
    """Facts about a Python file.

    Raises
    ------
    SyntaxError
        When it is no Python.
    """
    tree = _Cleaner().visit(ast.parse(source))
    body = [each for each in tree.body if not _is_if(each, "TYPE_CHECKING")]
    nodes = [*ast.walk(tree)]
    imports: dict[str, list[Target]] = {}
    for name, target in (pair for each in nodes for pair in _bindings(each)):
        if target not in imports.setdefault(name, []):
            imports[name].append(target)
    foreign = {name for name, targets in imports.items() if not any(map(_is_ours, targets))}
    statements: dict[str, list[ast.stmt]] = {}
    for node in body:
        names = {REST} if _has_effect(node, _BUILTINS | foreign) else _defined(node)
        if _is_if(node, "__name__ == '__main__'"):
            names = {MAIN}
        for name in names:
            statements.setdefault(name, []).append(node)
    loads = [(name, target) for node in _at_once(body) for name, target in _bindings(node)]
    # What nobody uses is imported for its effects.
    used = {"annotations"} | {each.id for each in nodes if isinstance(each, ast.Name)}
    unused = sorted(str(target) for name, target in loads if name not in used)
    rest = statements.setdefault(REST, []) if unused else statements.get(REST, [])
    return Facts(
        parts={
            name: _part(said, imports, [] if name else unused) for name, said in statements.items()
        },
        binds=sorted({name for node in rest for name in _defined(node)}),
        imports=imports,
        loads=[target for _, target in loads],
    )


class _Cleaner(ast.NodeTransformer):
    """Removes what is there for readers alone."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        if getattr(node, "body", None) == [] and not isinstance(node, ast.Module):
            node.body = [ast.Pass()]  # type: ignore[attr-defined]
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        """Remove texts, and calls of the log."""
        value = node.value
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            return None
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            owner = value.func.value
            if isinstance(owner, ast.Name) and owner.id == "log" and value.func.attr in _LOGS:
                return None
        return self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        """Keep the type of an error, and what is given by name: ``fatal=True`` is no text."""
        if isinstance(node.exc, ast.Call):
            node.exc.args = []
        return self.generic_visit(node)

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        """Remove the text."""
        node.msg = None
        return self.generic_visit(node)


def _part(nodes: list[ast.stmt], imports: dict[str, list[Target]], more: list[str]) -> Part:
    reads = {name for node in nodes for name in _reads(node)}
    roots = {name.partition(".")[0] for name in reads}
    # What is imported in a function, and not used there, is imported for its effects.
    bound = {name for node in nodes for each in ast.walk(node) for name, _ in _bindings(each)}
    reads |= bound - roots
    roots |= bound
    meant = [[name, imports[name]] for name in sorted(roots & imports.keys())]
    return Part(text=digest([[_text(each) for each in nodes], meant, more]), reads=sorted(reads))


def _text(value: Any) -> Any:
    """A syntax tree as JSON-able values: the same with every version of Python."""
    if isinstance(value, ast.AST):
        fields = (
            [name, _text(each)]
            for name, each in ast.iter_fields(value)
            if name not in _LEFT_OUT and each is not None and each != []
        )
        return [type(value).__name__, *fields]
    return [_text(each) for each in value] if isinstance(value, list) else repr(value)


def _reads(node: ast.AST, local: bool = False) -> Iterator[str]:
    """Names that a statement reads; annotations of functions and of local names are not run.

    Parameters
    ----------
    local
        Whether the statement belongs to a function.
    """
    skipped = set()
    if isinstance(node, (*_FUNCTIONS, ast.arg)) or (local and isinstance(node, ast.AnnAssign)):
        skipped = {"annotation", "returns"}
    if isinstance(node, ast.Name):
        if isinstance(node.ctx, ast.Load):
            yield node.id
    elif isinstance(node, ast.Attribute):
        if node.attr in DYNAMIC:
            yield node.attr
        if isinstance(node.value, ast.Name):
            yield f"{node.value.id}.{node.attr}"
            return
    inside = (local or isinstance(node, _FUNCTIONS)) and not isinstance(node, ast.ClassDef)
    for name, value in ast.iter_fields(node):
        if name not in skipped:
            for each in value if isinstance(value, list) else [value]:
                if isinstance(each, ast.AST):
                    yield from _reads(each, inside)


def _at_once(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Imports that run with a module: not those inside functions."""
    for node in body:
        if isinstance(node, _IMPORTS):
            yield node
        elif isinstance(node, ast.stmt | ast.ExceptHandler) and not isinstance(node, _FUNCTIONS):
            yield from _at_once(ast.iter_child_nodes(node))


def _bindings(node: ast.AST) -> Iterator[tuple[str, Target]]:
    """Names that an import binds, and what they stand for."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            dotted = "." in alias.name and not alias.asname
            name = alias.asname or alias.name.partition(".")[0]
            yield name, [0, alias.name, "*" if dotted else ""]
    elif isinstance(node, ast.ImportFrom):
        for alias in node.names:
            yield alias.asname or alias.name, [node.level, node.module or "", alias.name]


def _is_ours(target: Target) -> bool:
    """Whether an import is of the library, or of a workload."""
    return bool(target[0]) or target[1].partition(".")[0] in (PACKAGE, "kernels")


def _is_if(node: ast.stmt, *tests: str) -> bool:
    return isinstance(node, ast.If) and not node.orelse and ast.unparse(node.test) in tests


def _defined(node: ast.stmt) -> set[str]:
    """Names that a statement of a module defines."""
    if isinstance(node, _DEFINITIONS):
        return {node.name}
    inside = getattr(node, "targets", None) or [getattr(node, "target", node)]
    nodes = [each for one in inside for each in ast.walk(one)]
    names = {
        each.id
        for each in nodes
        if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)
    }
    return names | {each.name for each in nodes if isinstance(each, _DEFINITIONS)}


def _has_effect(node: ast.stmt, plain: set[str]) -> bool:
    """Whether a statement does more than define names: calls one of our functions, for example.

    Parameters
    ----------
    plain
        Names whose calls have no effect on our modules: of Python, and of other libraries.
    """
    run: list[ast.expr | None]
    if isinstance(node, _FUNCTIONS):
        run = [*node.args.defaults, *node.args.kw_defaults]
    elif isinstance(node, ast.ClassDef):
        if any(each.arg == "metaclass" for each in node.keywords) or any(
            _has_effect(each, plain) for each in node.body
        ):
            return True
        run = [*node.bases, *(each.value for each in node.keywords)]
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        parts = [each.elts if isinstance(each, ast.Tuple) else [each] for each in targets]
        if not all(isinstance(each, ast.Name) for group in parts for each in group):
            return True
        run = [node.value]
    elif isinstance(node, ast.Expr):
        return not isinstance(node.value, ast.Constant)
    else:
        return not isinstance(node, (ast.Pass, *_IMPORTS))
    called = [*getattr(node, "decorator_list", ()), *(each for one in run for each in _calls(one))]
    return not all(_is_plain(each, plain) for each in called)


def _calls(node: ast.AST | None) -> Iterator[ast.expr]:
    """What an expression calls when it is computed."""
    if isinstance(node, ast.Call):
        yield node.func
    if node is not None and not isinstance(node, ast.Lambda):
        for each in ast.iter_child_nodes(node):
            yield from _calls(each)


def _is_plain(function: ast.AST, plain: set[str]) -> bool:
    if isinstance(function, ast.Call):
        return _is_plain(function.func, plain)
    if isinstance(function, ast.Attribute):
        if "register" in function.attr:
            return False
        if function.attr in _PLAIN_ATTRIBUTES:
            return True
    while isinstance(function, ast.Attribute | ast.Call | ast.Subscript):
        function = function.func if isinstance(function, ast.Call) else function.value
    return function.id in plain if isinstance(function, ast.Name) else True
