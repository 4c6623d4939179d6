"""Finds code that may store the text of an error that it caught.

Such a text can become a result: the ``reason`` of a row that failed, a section of the report that
could not be made. A handler that only raises another error, or logs, stores nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

from launchwise.workflow.code_names import OTHER_ERRORS, PURE_CALLS
from launchwise.workflow.code_text import (
    BARE,
    BUILTIN,
    FUNCTIONS,
    MESSAGE_ERRORS,
    MESSAGES,
    USER_ERROR,
    assigned,
    is_log,
    is_text,
    last_name,
    quiet,
)

_TRACES = {"exc_info", "format_exc", "format_exception", "print_exc", "TracebackException"}
_HANDLERS = ("__exit__", "__aexit__")
_BUILTIN_ERRORS = (MESSAGE_ERRORS - {USER_ERROR}) | OTHER_ERRORS
"""Errors that no ``UserError`` is one of."""
_MORE_CALLS = PURE_CALLS | {"getattr", "next"}


def kept_messages(
    nodes: Iterable[ast.AST],
    logs: Collection[str],
    groups: Mapping[str, ast.expr] = MappingProxyType({}),
) -> int:
    """Which messages may be stored, printed or returned by a statement, as a level of detail.

    ``BARE``: none; ``BUILTIN``: of Python's own errors; ``MESSAGES``: of any error.

    Parameters
    ----------
    nodes
        Every node of the statement.
    logs
        Names of the pipeline's log.
    groups
        Values of the module's names: a handler may name a tuple of errors.
    """
    return max((_kept_by(each, logs, groups) for each in nodes), default=BARE)


def _kept_by(node: ast.AST, logs: Collection[str], groups: Mapping[str, ast.expr]) -> int:
    if isinstance(node, ast.ExceptHandler) and node.name:
        own = _builtin_only(node.type, groups)
        if _keeps(node.body, node.name, logs):
            return BUILTIN if own else MESSAGES
        if not own and _becomes_another(node.body, node.name):
            return MESSAGES
    elif isinstance(node, FUNCTIONS) and node.name in _HANDLERS:
        given = [argument.arg for argument in node.args.args]
        if len(given) < 3 or _becomes_another(node.body, given[2]):
            return MESSAGES
        if _uses(node.body, given[2], logs) and not _only_fails(node.body, logs):
            return MESSAGES
    elif isinstance(node, ast.Attribute | ast.Name) and last_name(node) in _TRACES:
        return MESSAGES
    elif isinstance(node, ast.Call) and last_name(node.func) == "exception":
        # Of a future, not of the log.
        return BARE if is_log(node, logs) else MESSAGES
    return BARE


def _builtin_only(caught: ast.expr | None, groups: Mapping[str, ast.expr]) -> bool:
    if isinstance(caught, ast.Name):
        caught = groups.get(caught.id, caught)
    kinds = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    return all(kind is not None and last_name(kind) in _BUILTIN_ERRORS for kind in kinds)


def _becomes_another(body: Iterable[ast.stmt], name: str) -> bool:
    """Whether the text of a caught ``UserError`` may become that of an error of another type."""
    for statement in body:
        for each in ast.walk(statement):
            if isinstance(each, ast.Raise) and isinstance(each.exc, ast.Call):
                what = last_name(each.exc.func)
                given = [*each.exc.args, *(word.value for word in each.exc.keywords)]
                if what == USER_ERROR or what.endswith("error"):
                    continue
                # A status alone, such as that of SystemExit, is no text.
                if not all(isinstance(value, ast.Constant) for value in given):
                    return True
    return False


def _keeps(body: list[ast.stmt], name: str, logs: Collection[str]) -> bool:
    if not _uses(body, name, logs):
        return False
    return not (isinstance(body[-1], ast.Raise) and _only_fails(body, logs))


def _only_fails(body: Iterable[ast.stmt], logs: Collection[str]) -> bool:
    """Whether statements do nothing but compose a message, log, raise, or let an error pass."""
    for each in body:
        if isinstance(each, ast.Raise | ast.Pass) or is_text(each):
            continue
        if isinstance(each, ast.Return) and each.value is None:
            continue
        if isinstance(each, ast.Expr) and is_log(each.value, logs):
            continue
        if isinstance(each, ast.If) and quiet(each.test):
            if _only_fails(each.body, logs) and _only_fails(each.orelse, logs):
                continue
        elif _assigns_locally(each):
            continue
        return False
    return True


def _assigns_locally(node: ast.stmt) -> bool:
    value = getattr(node, "value", None)
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
        if not all(isinstance(each, ast.Name) for each in node.targets[0].elts):
            return False
    elif not assigned(node):
        return False
    return value is not None and quiet(value, calls=_MORE_CALLS)


def _uses(body: Iterable[ast.AST], name: str, logs: Collection[str]) -> bool:
    """Whether a caught error is used for more than its type, a log, or another error."""
    return any(_uses_in(each, name, logs) for each in body)


def _uses_in(node: ast.AST, name: str, logs: Collection[str]) -> bool:
    if isinstance(node, ast.Raise) or is_log(node, logs):
        return False
    if isinstance(node, ast.Call) and last_name(node.func) in ("isinstance", "type"):
        return False
    if isinstance(node, ast.Compare) and last_name(node.left) == name:
        # `error is None`
        return _uses(node.comparators, name, logs)
    if isinstance(node, ast.Name):
        return node.id == name
    return _uses(ast.iter_child_nodes(node), name, logs)
