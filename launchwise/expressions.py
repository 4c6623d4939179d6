"""Arithmetic and conditions from ``spec.yaml``, read without ``eval``.

simpleeval interprets the parsed tree itself: names, numbers, strings, comparisons, ``and``, ``or``,
``not``, ``a if b else c``, ``in (…)`` and the functions below; no attribute, no import, no call of
anything else.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from simpleeval import EvalWithCompoundTypes, InvalidExpression


def ceil_div(numerator: int, denominator: int) -> int:
    """Smallest integer not below ``numerator / denominator``."""
    return -(-numerator // denominator)


def round_up(value: int, multiple: int) -> int:
    """Smallest multiple of ``multiple`` not below ``value``."""
    return ceil_div(value, multiple) * multiple


FUNCTIONS = {
    "ceil_div": ceil_div,
    "round_up": round_up,
    "min": min,
    "max": max,
    "abs": abs,
    "log2": math.log2,
}


@lru_cache(maxsize=4096)
def _parsed(text: str) -> Any:
    return EvalWithCompoundTypes.parse(text)


@lru_cache(maxsize=4096)
def names_in(text: str) -> frozenset[str]:
    """Names that an expression reads, function names left out.

    Raises
    ------
    ValueError
        When ``text`` is no expression or calls a function that does not exist.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError as error:
        raise ValueError(f"{text!r} is no expression: {error.msg}") from error
    called = {node.func.id for node in ast.walk(tree) if _is_named_call(node)}  # type: ignore[attr-defined]
    if strange := sorted(called - FUNCTIONS.keys()):
        raise ValueError(f"{text!r} calls {strange[0]!r} (allowed: {', '.join(sorted(FUNCTIONS))})")
    forbidden = (ast.Attribute, ast.Subscript, ast.Lambda, ast.ListComp, ast.GeneratorExp)
    if any(isinstance(node, forbidden) for node in ast.walk(tree)):
        raise ValueError(f"{text!r} uses more than names, numbers, operators and functions")
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return frozenset(names - called)


def _is_named_call(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name)


def evaluate(text: str, names: Mapping[str, Any]) -> Any:
    """Value of the expression ``text`` with ``names`` bound.

    Raises
    ------
    ValueError
        When it cannot be evaluated: unknown name, division by zero, a result too large.
    """
    evaluator = EvalWithCompoundTypes(functions=FUNCTIONS, names=dict(names))
    try:
        return evaluator.eval(text, previously_parsed=_parsed(text))
    except (InvalidExpression, ArithmeticError, TypeError, ValueError) as error:
        raise ValueError(f"{text!r} cannot be evaluated: {error}") from error


class Formulas:
    """Expressions over raw names and over names derived from them, each value computed once.

    A sweep asks the same few questions of thousands of rows, so values are remembered by the raw
    names that an expression really reads.

    Parameters
    ----------
    derived
        Name to expression, each standing on raw names and on derived names before it.
    """

    def __init__(self, derived: Mapping[str, str]) -> None:
        self._derived = dict(derived)
        self._plans: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}
        self._values: dict[tuple[Any, ...], Any] = {}

    def _plan(self, text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Raw names that ``text`` reads, and the derived names to compute first, in order."""
        if text not in self._plans:
            wanted, raw = set(names_in(text)), set()
            steps: list[str] = []
            for name in reversed(self._derived):
                if name in wanted:
                    steps.insert(0, name)
                    wanted |= names_in(self._derived[name])
            raw = wanted - self._derived.keys()
            self._plans[text] = (tuple(sorted(raw)), tuple(steps))
        return self._plans[text]

    def value(self, text: str, names: Mapping[str, Any]) -> Any:
        """Value of ``text`` with the raw ``names`` bound.

        Raises
        ------
        ValueError
            When a name is missing or the expression cannot be evaluated.
        """
        raw, steps = self._plan(text)
        try:
            key = (text, *(names[name] for name in raw))
        except KeyError as error:
            raise ValueError(f"{text!r} needs {error.args[0]}") from None
        if key not in self._values:
            bound = {name: names[name] for name in raw}
            for step in steps:
                bound[step] = evaluate(self._derived[step], bound)
            self._values[key] = evaluate(text, bound)
        return self._values[key]
