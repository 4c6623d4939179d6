"""Arithmetic expressions and conditions of the YAML files, interpreted without ``eval``.

Names, numbers, strings, comparisons, ``and``, ``or``, ``not``, ``a if b else c``, ``in (…)`` and
the functions below; whatever else Python's grammar has (attributes, subscripts, comprehensions,
lambdas, other calls) is refused before it is interpreted. Each parsed tree becomes nested closures
once, because spaces evaluate the same few expressions a hundred thousand times: for single values
here, whose operators (:mod:`arithmetic`) refuse numbers and texts that are too large, and for whole
columns in :mod:`vectors`.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise
from operator import itemgetter
from typing import Annotated, Any

from pydantic import Field

from launchwise.base.arithmetic import (
    FUNCTIONS,
    OPERATORS,
    bounding,
    ceil_div,
    is_too_large,
    round_up,
)
from launchwise.base.errors import LONGEST_NAME, Misfit, unknown

__all__ = ["FUNCTIONS", "ceil_div", "evaluate", "names_in", "round_up"]

Expression = Annotated[str, Field(title="expression")]
"""An expression, as the typed models declare it."""

_ALLOWED = (
    *(ast.Expression, ast.Name, ast.Load, ast.Constant, ast.Tuple, ast.List, ast.Call),
    *(ast.IfExp, ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.Compare),
    *(ast.operator, ast.unaryop, ast.boolop, ast.cmpop),
)

_FAILURES = (ArithmeticError, TypeError, ValueError, RecursionError)

MOST_CHARACTERS = 50_000
"""Longest expression, also with derived names replaced by what they stand for."""

MOST_LEVELS = 100
"""Deepest nesting of an expression, as Python parses it: ``a + b + c`` has one level per sign."""

Closure = Callable[[Mapping[str, Any]], Any]
"""Computes the value of a node from the bound names; an unbound one is a ``KeyError``."""


def applied(function: Callable[..., Any], *operands: Closure) -> Closure:
    """A function of operands that are all computed."""
    if len(operands) == 1:
        (only,) = operands
        return lambda names: function(only(names))
    if len(operands) == 2:
        left, right = operands
        return lambda names: function(left(names), right(names))
    return lambda names: function(*[each(names) for each in operands])


@dataclass(frozen=True, eq=False)
class Arithmetic:
    """How nodes of an expression compute: on single values, or on whole columns."""

    operators: Mapping[type[ast.AST], Callable[..., Any]]
    functions: Mapping[str, Callable[..., Any]]
    # ``b if a else c`` of these three, in this order.
    choose: Callable[[Closure, Closure, Closure], Closure]
    every: Callable[[Sequence[Closure]], Closure]  # conditions joined by `and`
    some: Callable[[Sequence[Closure]], Closure]  # conditions joined by `or`


@lru_cache(maxsize=8192)
def compiled(text: str, arithmetic: Arithmetic) -> Closure:
    """An expression as nested functions, to be evaluated many times. Raises ValueError when
    ``text`` is not an expression."""
    names_in(text)  # Refuses what is more than arithmetic.
    return _compiled(parsed(text), arithmetic)


def _compiled(node: ast.expr, arithmetic: Arithmetic) -> Closure:
    operators = arithmetic.operators

    def of(part: ast.expr) -> Closure:
        return _compiled(part, arithmetic)

    match node:
        case ast.Constant(constant):
            return lambda names: constant
        case ast.Name(name):
            return itemgetter(name)
        case ast.Tuple(parts) | ast.List(parts):
            return applied(lambda *items: items, *map(of, parts))
        case ast.Call(ast.Name(name), parts):
            return applied(arithmetic.functions[name], *map(of, parts))
        case ast.IfExp(test, body, orelse):
            return arithmetic.choose(of(test), of(body), of(orelse))
        case ast.UnaryOp(kind, operand):
            return applied(operators[type(kind)], of(operand))
        case ast.BinOp(left, kind, right):
            return applied(operators[type(kind)], of(left), of(right))
        case ast.BoolOp(kind, parts):
            join = arithmetic.some if isinstance(kind, ast.Or) else arithmetic.every
            return join([of(part) for part in parts])
        case ast.Compare(left, kinds, parts):
            pairs = zip(kinds, pairwise([of(left), *map(of, parts)]), strict=True)
            steps = [applied(operators[type(kind)], *pair) for kind, pair in pairs]
            return steps[0] if len(steps) == 1 else arithmetic.every(steps)
    raise AssertionError(f"{ast.dump(node)} was let pass")


def _joined(stop: bool, conditions: Sequence[Closure]) -> Closure:
    """The first value whose truth is ``stop``, or the last; those after it are not computed."""

    def value(names: Mapping[str, Any]) -> Any:
        found = None
        for condition in conditions:
            found = condition(names)
            if bool(found) == stop:
                break
        return found

    return value


_SINGLE = Arithmetic(
    operators=OPERATORS,
    functions={name: bounding(function) for name, function in FUNCTIONS.items()},
    choose=lambda test, then, other: lambda names: then(names) if test(names) else other(names),
    every=partial(_joined, False),
    some=partial(_joined, True),
)

Extent = tuple[int, int]
"""Characters, with brackets, and levels of an expression with what its derived names stand for."""


def extent(text: str, derived: Mapping[str, Extent]) -> Extent:
    """Size of an expression, at most. Raises ValueError when it is not an expression, or too large
    for one: a dozen names, each twice the one before, stand for thousands."""
    names, levels = _read(text)
    inside = [derived[name] for name in names if name in derived]
    characters = len(text) + sum(each + len("()") for each, _ in inside)
    levels += max((each for _, each in inside), default=0)
    if characters > MOST_CHARACTERS or levels > MOST_LEVELS:
        allowed = f"more than {MOST_CHARACTERS:,} characters or {MOST_LEVELS} levels"
        raise _refused(text, f"has {allowed} with what its names stand for")
    return characters, levels


@lru_cache(maxsize=4096)
def names_in(text: str) -> frozenset[str]:
    """Names that an expression reads, without function names. Raises ValueError when ``text`` is
    not an expression or calls a function that does not exist."""
    return frozenset(_read(text)[0])


@lru_cache(maxsize=4096)
def _read(text: str) -> tuple[tuple[str, ...], int]:
    """Names as often as an expression reads them, without function names, and its levels."""
    if len(text) > MOST_CHARACTERS:
        raise _refused(text, f"is not an expression: longer than {MOST_CHARACTERS:,}")
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = getattr(error, "msg", None) or str(error) or "nested too deep"
        raise _refused(text, f"is not an expression: {reason}") from error
    nodes, levels, level = list[ast.AST](), 0, list[ast.AST]([tree])
    while level:
        nodes, levels = nodes + level, levels + 1
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        # Most readers are recursive.
        if levels > MOST_LEVELS:
            raise _refused(text, f"is not an expression: more than {MOST_LEVELS} levels deep")
    if not all(_is_allowed(node) for node in nodes):
        raise _refused(text, "uses more than names, numbers, operators and functions")
    signs = (node for node in nodes if isinstance(node, ast.operator | ast.unaryop | ast.cmpop))
    if strange_sign := next((type(each) for each in signs if type(each) not in OPERATORS), None):
        raise _refused(text, f"uses {_sign(strange_sign)}")
    called = {node.func.id for node in nodes if isinstance(node, ast.Call)}  # type: ignore[attr-defined]
    if strange := sorted(called - FUNCTIONS.keys()):
        raise _refused(text, f"calls {strange[0]!r} (allowed: {', '.join(sorted(FUNCTIONS))})")
    names = (node.id for node in nodes if isinstance(node, ast.Name))
    return tuple(name for name in names if name not in called), levels


def _is_allowed(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and not node.keywords
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float | str) and not is_too_large(node.value)
    return isinstance(node, _ALLOWED)


def _sign(kind: type[ast.AST]) -> str:
    """An operator that is none here, and what to write in its place."""
    signs = {"BitXor": "^", "BitOr": "|", "BitAnd": "&", "LShift": "<<", "RShift": ">>"}
    sign = {**signs, "Invert": "~", "MatMult": "@"}.get(kind.__name__, kind.__name__.lower())
    powers = {"^": ": a power is **", "<<": ": write * 2 **", ">>": ": write // 2 **"}
    return f"{sign}, which is no operator here{powers.get(sign, '')}"


def _refused(text: str, why: str) -> ValueError:
    shown = text if len(text) <= LONGEST_NAME else f"{text[:LONGEST_NAME]} …"
    return ValueError(f"{shown!r} {why}")


def parsed(text: str) -> ast.expr:
    """The tree of an expression, which the caller may change. Raises ValueError when it is none."""
    names_in(text)
    return ast.parse(text.strip(), mode="eval").body


def check_names(key: str, text: str, known: Collection[str]) -> None:
    """Insist that an expression reads ``known`` names only. Raises Misfit with ``key``: it is not
    an expression, or a name of it is unknown."""
    try:
        strange = sorted(names_in(text) - set(known))
    except ValueError as error:
        raise Misfit(key, str(error)) from error
    if strange:
        raise Misfit(key, f"{unknown('name', strange[0], known)} in {text!r}")


def substituted(text: str, values: Mapping[str, str]) -> str:
    """The expression with names replaced by other expressions. Raises ValueError when one of them
    is not an expression, or the result would be too long for one."""
    replaced = names_in(text) & values.keys()
    if not replaced:
        return text
    tree = parsed(text)
    read = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)]
    if len(text) + sum(len(values.get(name, "")) for name in read) > MOST_CHARACTERS:
        raise _refused(text, f"grows beyond {MOST_CHARACTERS:,} characters without its names")
    trees = {name: parsed(values[name]) for name in replaced}

    class Replace(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return trees.get(node.id, node)

    return ast.unparse(Replace().visit(tree))


def inlined(text: str, derived: Mapping[str, str]) -> str:
    """The expression with the expressions of derived names in their place; each of ``derived`` may
    read those before it. Raises ValueError when one of them is not an expression, or the result
    would be too long for one: a dozen names, each twice the one before, stand for thousands."""
    for name in reversed([*derived]):
        text = substituted(text, {name: derived[name]})
    names_in(text)
    return text


def evaluate(text: str, names: Mapping[str, Any]) -> Any:
    """Value of the expression ``text`` with ``names`` bound. Raises ValueError when ``text`` is not
    an expression or has no value: unknown name, division by zero, overflow."""
    value_of = compiled(text, _SINGLE)
    try:
        value = value_of(names)
    except KeyError as error:
        raise _refused(text, f"cannot be evaluated: unknown name {error}") from None
    except _FAILURES as error:
        raise _refused(text, f"cannot be evaluated: {error}") from error
    if isinstance(value, float) and not math.isfinite(value):
        raise _refused(text, f"cannot be evaluated: {value} is no number")
    return value


MAX_CACHED_VALUES = 200_000
"""Most cached values, about 40 MB: a large space must not fill the memory."""


class Formulas:
    """Evaluates expressions over raw and derived names; caches the values by the raw names that an
    expression reads, since a sweep evaluates the same few for thousands of rows. ``derived``: name
    to expression; each may read raw names and the derived names before it."""

    def __init__(self, derived: Mapping[str, str]) -> None:
        self._derived = dict(derived)
        self._plans: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}
        self._values: dict[tuple[Any, ...], Any] = {}

    def _plan(self, text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Raw names that ``text`` reads, and the derived names to compute first, in order."""
        if text not in self._plans:
            wanted, steps = set(names_in(text)), list[str]()
            for name in reversed(self._derived):
                if name in wanted:
                    steps.insert(0, name)
                    wanted |= names_in(self._derived[name])
            self._plans[text] = (tuple(sorted(wanted - self._derived.keys())), tuple(steps))
        return self._plans[text]

    def raw_names(self, text: str) -> tuple[str, ...]:
        """Names that ``text`` reads in the end, derived ones resolved; sorted."""
        return self._plan(text)[0]

    def value(self, text: str, names: Mapping[str, Any]) -> Any:
        """Value of ``text`` with the raw ``names`` bound. Raises ValueError when a name is missing
        or the expression cannot be evaluated."""
        raw, steps = self._plan(text)
        try:
            key = (text, *map(names.__getitem__, raw))
        except KeyError as error:
            raise ValueError(f"{text!r} needs {error.args[0]}") from None
        if key not in self._values:
            bound = {name: names[name] for name in raw}
            for step in steps:
                bound[step] = evaluate(self._derived[step], bound)
            if len(self._values) >= MAX_CACHED_VALUES:
                self._values.clear()
            self._values[key] = evaluate(text, bound)
        return self._values[key]
