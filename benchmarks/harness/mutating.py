"""Small faults in Python sources: one operator, number or statement changed at a time."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

COMPARISONS = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
}
ARITHMETIC = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "/",
    ast.Div: "*",
    ast.FloorDiv: "*",
    ast.Mod: "//",
    ast.BitAnd: "|",
    ast.BitOr: "&",
}
CALLS = {"min": "max", "max": "min", "any": "all", "all": "any"}

UNTOUCHED = (ast.Raise, ast.Assert, ast.Import, ast.ImportFrom, ast.JoinedStr)
"""What is told to the user or the reader, and no logic."""


@dataclass(frozen=True)
class Mutant:
    """A source with one fault.

    Parameters
    ----------
    path
        Relative to the project.
    line
        Of the fault, from 1.
    lines
        First and last line of its statement, or of the head of a compound one.
    begin, end
        What is replaced: places in the text.
    old, new
        What stands there, and what stands there instead.
    at_import
        Whether the statement runs when the module is imported.
    """

    path: str
    line: int
    lines: tuple[int, int]
    begin: int
    end: int
    old: str
    new: str
    at_import: bool

    def of(self, text: str) -> str:
        """The faulty source, of the right one."""
        return text[: self.begin] + self.new + text[self.end :]


def mutants(path: str, text: str) -> list[Mutant]:
    """Every mutant of a source, in order."""
    tree = ast.parse(text)
    places = _Places(text)
    found = []
    for statement, at_import in _statements(tree, True):
        last = _last_line(statement)
        for begin, end, new in _changes(statement, places):
            old = text[begin:end]
            line = text.count("\n", 0, begin) + 1
            lines = (statement.lineno, last)
            made = Mutant(path, line, lines, begin, end, old, new, at_import)
            try:
                ast.parse(made.of(text))
            except SyntaxError:
                continue
            found.append(made)
    return sorted(found, key=lambda one: (one.begin, one.end))


class _Places:
    """Places in a text by line and column in bytes, as nodes state them."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._lines = text.splitlines(keepends=True)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))

    def _at(self, line: int, column: int) -> int:
        return self._starts[line - 1] + len(self._lines[line - 1].encode()[:column].decode())

    def of(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Begin and end of a node."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        begin = self._at(node.lineno, node.col_offset)
        return begin, self._at(node.end_lineno, node.end_col_offset)


def _statements(node: ast.AST, at_import: bool) -> Iterator[tuple[ast.stmt, bool]]:
    """Statements with logic, and whether each runs at import."""
    inside = at_import and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    for child in ast.iter_child_nodes(node):
        if isinstance(child, UNTOUCHED) or _is_for_types(child):
            continue
        if isinstance(child, ast.stmt):
            yield child, inside
        if not isinstance(child, ast.expr):
            yield from _statements(child, inside)


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def _last_line(statement: ast.stmt) -> int:
    """Last line of a statement, or of the head of a compound one."""
    body = getattr(statement, "body", None)
    last = statement.end_lineno or statement.lineno
    return max(statement.lineno, body[0].lineno - 1) if isinstance(body, list) else last


def _changes(statement: ast.stmt, places: _Places) -> Iterator[tuple[int, int, str]]:
    """Begin, end and replacement of each change in a statement, without those in its body."""
    if isinstance(statement, ast.Expr):
        if isinstance(statement.value, ast.Constant):
            return  # a docstring
        if isinstance(statement.value, ast.Call):
            yield (*places.of(statement), "pass")
    if isinstance(statement, ast.AugAssign) and type(statement.op) in ARITHMETIC:
        between = places.of(statement.target)[1], places.of(statement.value)[0]
        yield from _operator(between, ARITHMETIC[type(statement.op)] + "=", places)
    for expression in _expressions(statement):
        yield from _of_expression(expression, places)


def _expressions(statement: ast.stmt) -> Iterator[ast.expr]:
    """Expressions of a statement that are no annotations, decorators or texts."""
    skipped = {"annotation", "returns", "decorator_list", "bases", "keywords"}
    for name, value in ast.iter_fields(statement):
        if name in skipped:
            continue
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, ast.expr):
                yield from _inside(each)
            elif isinstance(each, ast.arguments):
                for default in (*each.defaults, *filter(None, each.kw_defaults)):
                    yield from _inside(default)
            elif isinstance(each, ast.withitem):
                yield from _inside(each.context_expr)


def _inside(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, UNTOUCHED):
        return
    if isinstance(node, ast.expr):
        yield node
    for child in ast.iter_child_nodes(node):
        yield from _inside(child)


def _of_expression(node: ast.expr, places: _Places) -> Iterator[tuple[int, int, str]]:
    begin, end = places.of(node)
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        for operator, left, right in zip(node.ops, sides, sides[1:], strict=False):
            between = places.of(left)[1], places.of(right)[0]
            yield from _operator(between, COMPARISONS[type(operator)], places)
    elif isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        between = places.of(node.left)[1], places.of(node.right)[0]
        yield from _operator(between, ARITHMETIC[type(node.op)], places)
    elif isinstance(node, ast.BoolOp):
        new = "or" if isinstance(node.op, ast.And) else "and"
        for left, right in zip(node.values, node.values[1:], strict=False):
            yield from _operator((places.of(left)[1], places.of(right)[0]), new, places)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub | ast.Invert):
        yield begin, places.of(node.operand)[0], ""
    elif isinstance(node, ast.IfExp) and not isinstance(node.test, ast.Compare):
        test = places.of(node.test)
        yield (*test, f"not ({places.text[slice(*test)]})")
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CALLS:
        yield (*places.of(node.func), CALLS[node.func.id])
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield begin, end, str(not node.value)
        elif isinstance(node.value, int | float):
            yield begin, end, f"({node.value!r} + 1)"


def _operator(
    between: tuple[int, int], new: str, places: _Places
) -> Iterator[tuple[int, int, str]]:
    """The operator among the blanks, brackets and comments between its sides."""
    begin, end = between
    text = places.text[begin:end]
    stripped = text.strip(" ()\n")
    if "#" not in text and stripped:
        at = begin + text.index(stripped)
        yield at, at + len(stripped), new


def sources(root: Path, places: list[str]) -> dict[str, str]:
    """Path to text of some Python files, and of those in some folders, in order."""
    files = {
        path
        for place in places
        for path in ([root / place] if place.endswith(".py") else (root / place).rglob("*.py"))
    }
    return {path.relative_to(root).as_posix(): path.read_text() for path in sorted(files)}
