"""Small faults in Python sources: one operator, number or statement changed at a time."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise
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

SKIPPED = frozenset({"annotation", "returns", "decorator_list", "bases"})
"""Fields of nodes without logic; of classes the keywords, too."""

Span = tuple[int, int]
Place = Callable[[ast.expr | ast.stmt], Span]  # begin and end of a node in the text


@dataclass(frozen=True)
class Mutant:
    """A source with one fault: ``new`` in the place of ``old``."""

    path: str  # relative to the project

    line: int
    lines: tuple[int, int]  # first and last line of its statement, or of the head of a compound one

    begin: int
    end: int
    old: str
    new: str
    at_import: bool  # whether the statement runs when the module is imported

    def of(self, text: str) -> str:
        """The faulty source, of the right one."""
        return text[: self.begin] + self.new + text[self.end :]


def mutants(path: str, text: str) -> list[Mutant]:
    """Every mutant of a source, in order."""
    place = _places(text)
    found = []
    for node, statement, at_import in _nodes(ast.parse(text), None, True):
        for (begin, end), new in _changes(node, place, text):
            line, lines = text.count("\n", 0, begin) + 1, (statement.lineno, _last_line(statement))
            made = Mutant(path, line, lines, begin, end, text[begin:end], new, at_import)
            try:
                ast.parse(made.of(text))
            except SyntaxError:
                continue
            found.append(made)
    return sorted(found, key=lambda one: (one.begin, one.end))


def _places(text: str) -> Place:
    """Where nodes stand in a text: they state lines, and columns in bytes."""
    lines = text.splitlines(keepends=True)
    starts = [0, *accumulate(map(len, lines))]

    def at(line: int, column: int) -> int:
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())

    def place(node: ast.expr | ast.stmt) -> Span:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return at(node.lineno, node.col_offset), at(node.end_lineno, node.end_col_offset)

    return place


def _nodes(
    node: ast.AST, statement: ast.stmt | None, at_import: bool
) -> Iterator[tuple[ast.expr | ast.stmt, ast.stmt, bool]]:
    """Statements and expressions with logic, the statement of each, and whether it runs at import.
    ``at_import`` tells whether ``statement`` does."""
    function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    skipped = SKIPPED | ({"keywords"} if isinstance(node, ast.ClassDef) else set())
    for name, value in ast.iter_fields(node):
        for child in () if name in skipped else value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(child, UNTOUCHED):
                continue
            if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
                continue
            of, inside = statement, at_import
            if isinstance(child, ast.stmt):
                of, inside = child, at_import and not function
            if isinstance(child, ast.stmt | ast.expr):
                assert of is not None
                yield child, of, inside
            yield from _nodes(child, of, inside)


def _last_line(statement: ast.stmt) -> int:
    """Last line of a statement, or of the head of a compound one."""
    body = getattr(statement, "body", None)
    last = statement.end_lineno or statement.lineno
    return max(statement.lineno, body[0].lineno - 1) if isinstance(body, list) else last


def _changes(node: ast.expr | ast.stmt, place: Place, text: str) -> Iterator[tuple[Span, str]]:
    """Span and replacement of each change of a node itself."""

    def operator(left: ast.expr, right: ast.expr, new: str) -> Iterator[tuple[Span, str]]:
        """The one among the blanks, brackets and comments between its sides."""
        begin, between = place(left)[1], text[place(left)[1] : place(right)[0]]
        stripped = between.strip(" ()\n")
        if "#" not in between and stripped:
            begin += between.index(stripped)
            yield (begin, begin + len(stripped)), new

    match node:
        case ast.Expr(value=ast.Call()):
            yield place(node), "pass"
        case ast.AugAssign(target=target, op=op, value=value) if type(op) in ARITHMETIC:
            yield from operator(target, value, ARITHMETIC[type(op)] + "=")
        case ast.Compare(left=left, ops=ops, comparators=others):
            for comparison, one, other in zip(ops, [left, *others], others, strict=False):
                yield from operator(one, other, COMPARISONS[type(comparison)])
        case ast.BinOp(left=left, op=op, right=right) if type(op) in ARITHMETIC:
            yield from operator(left, right, ARITHMETIC[type(op)])
        case ast.BoolOp(op=op, values=values):
            for one, other in pairwise(values):
                yield from operator(one, other, "or" if isinstance(op, ast.And) else "and")
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert(), operand=operand):
            yield (place(node)[0], place(operand)[0]), ""
        case ast.IfExp(test=test) if not isinstance(test, ast.Compare):
            yield place(test), f"not ({text[slice(*place(test))]})"
        case ast.Call(func=ast.Name(id=name) as called) if name in CALLS:
            yield place(called), CALLS[name]
        case ast.Constant(value=bool(value)):
            yield place(node), str(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield place(node), f"({value!r} + 1)"


def sources(root: Path, places: list[str]) -> dict[str, str]:
    """Path to text of some Python files, and of those in some folders, in order."""
    files = {
        path
        for place in places
        for path in ([root / place] if place.endswith(".py") else (root / place).rglob("*.py"))
    }
    return {path.relative_to(root).as_posix(): path.read_text() for path in sorted(files)}
