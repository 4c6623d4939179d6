"""Which parts of a Python file decide a result: everything but comments, docstrings and messages.

Four levels of detail:

``BARE``
    Without docstrings, annotations of functions, messages of errors and log messages.
``BUILTIN``
    With the messages of Python's own errors: where some reached code stores the text of a
    ``ValueError`` that it caught, but of no ``UserError``.
``MESSAGES``
    With all messages: where some reached code stores the text of any error that it caught
    (``reason`` of a row, a section of the report that could not be made).
``FULL``
    Also with docstrings and annotations: where some reached code reads them.

Comments and the layout never count. A message is an argument of ``raise`` for one of
:data:`MESSAGE_ERRORS`, of ``assert``, or of a call of the pipeline's log, and the local names that
are used for nothing else. Arguments that may do more than compose a text always count.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from launchwise.workflow.code_names import PLAIN_DECORATORS, PURE_CALLS, PURE_METHODS

BARE, BUILTIN, MESSAGES, FULL = LEVELS = range(4)

USER_ERROR = "UserError"
MESSAGE_ERRORS = {
    USER_ERROR,
    "ValueError",
    "TypeError",
    "RuntimeError",
    "LookupError",
    "KeyError",
    "IndexError",
    "NotImplementedError",
}
"""Errors whose arguments are a message. Others have codes, or texts that become rows."""

LOG_LEVELS = {"debug", "info", "warning", "error", "exception", "critical"}
_EFFECTS = (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr, ast.Lambda)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
IMPORTS = (ast.Import, ast.ImportFrom)
_SCOPES_BY_NAME = {"locals", "eval", "exec", "vars"}


@dataclass
class Text:
    """What a statement says at one level of detail.

    Parameters
    ----------
    parts
        Its syntax tree, as text.
    uses
        Names that it uses: ``name``, or ``name.attribute`` where only an attribute is asked for.
    """

    parts: list[str] = field(default_factory=list)
    uses: set[str] = field(default_factory=set)


def text_of(
    statement: ast.stmt, level: int, logs: Collection[str], has_messages: bool = True
) -> Text:
    """What a statement of a module says at a level of detail.

    Parameters
    ----------
    logs
        Names of the pipeline's log in this module.
    has_messages
        Whether there is a ``raise``, an ``assert`` or a call of the log in it.
    """
    writer = _Writer(level, frozenset(logs), has_messages)
    writer.statements([statement])
    return writer.text


def decorators(node: ast.AST) -> list[str]:
    """Last part of the name of each decorator."""
    listed = getattr(node, "decorator_list", [])
    return [last_name(each.func if isinstance(each, ast.Call) else each) for each in listed]


def last_name(node: ast.AST) -> str:
    """``c`` of ``a.b.c``; empty where it is no name."""
    return getattr(node, "attr", None) or getattr(node, "id", None) or ""


def is_text(statement: ast.stmt) -> bool:
    """Whether a statement is a string alone, such as a docstring."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


class _Writer:
    def __init__(self, level: int, logs: frozenset[str], has_messages: bool) -> None:
        self.text = Text()
        self.has_messages = has_messages
        self._level = level
        self._logs = logs
        self._messages: frozenset[str] = frozenset()
        self._function = 0

    def statements(self, body: Iterable[ast.stmt], plain: bool = True) -> None:
        """Write a block; imports of plain blocks count by what their names are used for."""
        for statement in body:
            if self._level < FULL and is_text(statement):
                continue
            if plain and isinstance(statement, IMPORTS):
                continue
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        if isinstance(node, FUNCTIONS):
            return self._define(node)
        if self._level <= BUILTIN:
            if isinstance(node, ast.Raise) and has_message(node, self._level):
                assert isinstance(node.exc, ast.Call)
                self._open("Raise")
                self._any(node.exc.func)
                return self._close()
            if has_reason(node, self._level):
                assert isinstance(node, ast.Assert)
                self._open("Assert")
                self._any(node.test)
                return self._close()
            if isinstance(node, ast.Expr) and is_log(node.value, self._logs):
                assert isinstance(node.value, ast.Call)
                for argument in (*node.value.args, *(k.value for k in node.value.keywords)):
                    if not quiet(argument):
                        self._any(argument)
                return None
            if (name := assigned(node)) in self._messages and name:
                return None
        return self._node(node)

    def _define(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        annotated = self._level == FULL or not PLAIN_DECORATORS.issuperset(decorators(node))
        before = self._messages
        if self._level <= BUILTIN and not self._function and self.has_messages:
            self._messages = message_names(node, self._logs, self._level)
        self._function += 1
        self._open(f"{type(node).__name__} {node.name}")
        for decorator in node.decorator_list:
            self._any(decorator)
        self._parameters(node.args, annotated)
        if annotated and node.returns is not None:
            self._annotation(node.returns)
        self._open("body")
        self.statements(node.body)
        self._close()
        self._close()
        self._function -= 1
        self._messages = before

    def _parameters(self, arguments: ast.arguments, annotated: bool) -> None:
        for kind in ("posonlyargs", "args", "vararg", "kwonlyargs", "kwarg"):
            given = getattr(arguments, kind)
            for each in given if isinstance(given, list) else [given] if given else []:
                self._open(f"{kind} {each.arg}")
                if annotated and each.annotation is not None:
                    self._annotation(each.annotation)
                self._close()
        for kind in ("kw_defaults", "defaults"):
            self._open(kind)
            for default in getattr(arguments, kind):
                self._any(default)
            self._close()

    def _annotation(self, node: Any) -> None:
        """Write an annotation; names in quotation marks are names, too."""
        self._any(node)
        for each in ast.walk(node):
            if isinstance(each, ast.Constant) and isinstance(each.value, str):
                for word in (
                    each.value.replace("[", " ").replace("]", " ").replace(",", " ").split()
                ):
                    self.text.uses.add(word.strip("|\"'. ").partition(".")[0])

    def _any(self, value: Any) -> None:
        if isinstance(value, ast.Name):
            self.text.uses.add(value.id)
            self.text.parts.append(f"{value.id};")
        elif isinstance(value, ast.Attribute):
            self._attribute(value)
        elif isinstance(value, ast.stmt):
            self._statement(value)
        elif isinstance(value, ast.AST):
            self._node(value)
        elif isinstance(value, list):
            if value and isinstance(value[0], ast.stmt):
                self.statements(value, plain=False)
            else:
                for each in value:
                    self._any(each)
        else:
            self.text.parts.append(f"{value!r};")

    def _attribute(self, node: ast.Attribute) -> None:
        if isinstance(node.value, ast.Name):
            self.text.uses.add(f"{node.value.id}.{node.attr}")
            self.text.parts.append(f"{node.value.id}.{node.attr};")
        else:
            self._open(f"Attribute {node.attr}")
            self._any(node.value)
            self._close()

    def _node(self, node: ast.AST) -> None:
        if isinstance(node, ast.AnnAssign) and self._function and self._level < FULL:
            fields: tuple[str, ...] = ("target", "value")
        else:
            fields = node._fields
        self._open(type(node).__name__)
        for name in fields:
            value = getattr(node, name, None)
            # Left out so that the text is the same with every version of Python.
            if name in ("ctx", "kind", "type_comment", "type_params") and not (
                name == "type_params" and value
            ):
                continue
            if (value is None and not isinstance(node, ast.Constant)) or value == []:
                continue
            self._open(name)
            if name == "annotation":
                self._annotation(value)
            else:
                self._any(value)
            self._close()
        self._close()

    def _open(self, what: str) -> None:
        self.text.parts.append(f"{what}(")

    def _close(self) -> None:
        self.text.parts.append(")")


def quiet(node: ast.AST, lenient: bool = False, calls: Collection[str] = PURE_CALLS) -> bool:
    """Whether an expression does nothing but compose a value.

    Parameters
    ----------
    lenient
        Whether a call of any function counts as such: in what is evaluated when a stage fails.
    calls
        Functions that do nothing else.
    """
    for each in ast.walk(node):
        if isinstance(each, _EFFECTS):
            return False
        if isinstance(each, ast.Call):
            if isinstance(each.func, ast.Name):
                if not lenient and each.func.id not in calls:
                    return False
            elif last_name(each.func) not in PURE_METHODS:
                return False
    return True


def has_message(node: ast.Raise, level: int = BARE) -> bool:
    """Whether what is raised has a message, which does not count, and no other argument."""
    error = node.exc
    if not (isinstance(error, ast.Call) and isinstance(error.func, ast.Name)):
        return False
    given = [*error.args, *(each.value for each in error.keywords)]
    cause = node.cause is None or isinstance(node.cause, ast.Name | ast.Constant)
    errors = MESSAGE_ERRORS if level == BARE else {USER_ERROR}
    return error.func.id in errors and cause and all(quiet(each, True) for each in given)


def has_reason(node: ast.AST, level: int) -> bool:
    """Whether a statement is an assertion with a message that does not count."""
    if level > BARE or not isinstance(node, ast.Assert) or node.msg is None:
        return False
    return quiet(node.msg, True)


def is_log(node: ast.AST, logs: Collection[str]) -> bool:
    """Whether an expression is a call of the pipeline's log."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id in logs
        and node.func.attr in LOG_LEVELS
    )


def assigned(node: ast.AST) -> str:
    """The one name that a statement assigns a value to; empty for any other statement."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target: ast.AST = node.targets[0]
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        target = node.target
    else:
        return ""
    return target.id if isinstance(target, ast.Name) else ""


def message_names(function: ast.AST, logs: Collection[str], level: int = BARE) -> frozenset[str]:
    """Local names of a function that hold messages, which do not count, and nothing else."""
    found = _Assignments(logs, level)
    found.walk(function, "")
    kept = {name for name, values in found.values.items() if all(map(quiet, values))}
    kept -= found.barred
    if found.uses_by_owner.get("", set()) & _SCOPES_BY_NAME:
        return frozenset()
    while True:
        # Used in messages, or in the values of names that are messages themselves.
        outside = {
            name
            for owner, names in found.uses_by_owner.items()
            if owner not in kept
            for name in names
        }
        if not kept & outside:
            return frozenset(kept & found.in_messages)
        kept -= outside


class _Assignments:
    """Names of a function: their values, and what uses them."""

    def __init__(self, logs: Collection[str], level: int) -> None:
        self._level = level
        self.values: dict[str, list[ast.expr]] = {}
        self.barred: set[str] = set()
        self.in_messages: set[str] = set()
        self.uses_by_owner: dict[str, set[str]] = {}
        self._logs = logs

    def walk(self, node: ast.AST, owner: str) -> None:
        """Collect; ``owner`` is the name whose value is being computed, if any."""
        if isinstance(node, ast.Raise) and has_message(node, self._level):
            assert isinstance(node.exc, ast.Call)
            return self._message([*node.exc.args, *(each.value for each in node.exc.keywords)])
        if has_reason(node, self._level):
            assert isinstance(node, ast.Assert)
            assert node.msg is not None
            self.walk(node.test, owner)
            return self._message([node.msg])
        if isinstance(node, ast.Expr) and is_log(node.value, self._logs):
            assert isinstance(node.value, ast.Call)
            for each in (*node.value.args, *(k.value for k in node.value.keywords)):
                if quiet(each):
                    self._message([each])
                else:
                    self.walk(each, owner)
            return None
        if name := assigned(node):
            value: Any = getattr(node, "value")  # noqa: B009
            self.values.setdefault(name, []).append(value)
            return self.walk(value, name)
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load):
                self.uses_by_owner.setdefault(owner, set()).add(node.id)
            else:
                self.barred.add(node.id)
        elif isinstance(node, ast.Global | ast.Nonlocal):
            self.barred.update(node.names)
        elif isinstance(node, ast.arg):
            self.barred.add(node.arg)
        for child in ast.iter_child_nodes(node):
            self.walk(child, owner)
        return None

    def _message(self, nodes: Iterable[ast.AST]) -> None:
        for node in nodes:
            names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
            self.in_messages |= names
