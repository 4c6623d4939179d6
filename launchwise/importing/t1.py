"""Reads T1 of the Auto-Tuning Association: the space of a kernel.

T1 states tunables whose values are a *text* with a Python list, and conditions that are Python
expressions; both are read without executing anything.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from simpleeval import EvalWithCompoundTypes, InvalidExpression

from launchwise.base.arithmetic import OPERATORS
from launchwise.base.errors import UserError, unknown
from launchwise.base.expressions import evaluate, names_in
from launchwise.importing.foreign_sweep import as_value, problem_of
from launchwise.importing.opening import MEMORY, MOST_BYTES, memory_limit, parse_json, read_text
from launchwise.workloads.parts import Value

_FAILURES = (
    *(ValueError, TypeError, KeyError, AttributeError, ArithmeticError),
    *(RecursionError, MemoryError),
)


def is_t1(content: object) -> bool:
    return isinstance(content, Mapping) and "ConfigurationSpace" in content


class Space:
    """Space of a T1 file. ``tunables``: tunable to its values, in the order of the file.
    ``constraints``: conditions that launchwise can evaluate. ``unread``: conditions that it cannot,
    each with the reason: the space is then that of the listed configurations. ``defaults``: default
    of some tunables. ``problem``: problem of the kernel's specification; empty where there is
    none."""

    def __init__(self, content: Mapping[str, Any], path: str | Path) -> None:
        space = _mapping(content, "ConfigurationSpace", path)
        kernel = _mapping(content, "KernelSpecification", path)
        self.kernel_name = str(kernel.get("KernelName") or "").strip()
        self.problem = problem_of(kernel.get("ProblemSize"))
        self.tunables: dict[str, list[Value]] = {}
        self.defaults: dict[str, Value] = {}
        for number, entry in enumerate(_entries(space, "TuningParameters", path)):
            key = f"ConfigurationSpace.TuningParameters.{number}"
            if not isinstance(entry, Mapping) or not entry.get("Name"):
                raise UserError(path, f"{key}.Name", "is missing")
            name = str(entry["Name"])
            self.tunables[name] = _listed_values(entry.get("Values"), path, f"{key}.Values")
            if entry.get("Default") is not None:
                self.defaults[name] = as_value(entry["Default"])
        self.constraints: list[str] = []
        self.unread: dict[str, str] = {}
        for entry in _entries(space, "Conditions", path):
            text = str(entry.get("Expression", "") if isinstance(entry, Mapping) else entry)
            try:
                self.constraints.append(readable_condition(text, self.tunables))
            except ValueError as error:
                self.unread[text] = str(error)


def _mapping(content: Mapping[str, Any], key: str, path: str | Path) -> Mapping[str, Any]:
    found = content.get(key) or {}
    if not isinstance(found, Mapping):
        raise UserError(path, key, "must map names to values")
    return found


def _entries(space: Mapping[str, Any], name: str, path: str | Path) -> list[Any]:
    found = space.get(name) or []
    if not isinstance(found, list):
        raise UserError(path, f"ConfigurationSpace.{name}", "must be a list")
    return found


def read_t1(path: str | Path, most: int = MOST_BYTES) -> Space:
    """Space in a T1 file of at most ``most`` bytes, unpacked. Raises UserError when it is no T1, or
    a list of values is none that can be read."""
    with memory_limit(path, MEMORY * most):
        content, _ = parse_json(read_text(path, most), path)
    if not is_t1(content):
        raise UserError(path, "ConfigurationSpace", "is missing: not a T1 file")
    return Space(content, path)


def readable_condition(text: str, tunables: Mapping[str, Any]) -> str:
    """``text``, Python or C, as an expression of launchwise over ``tunables``. Raises ValueError
    when it is none: why."""
    plain = text.replace("&&", " and ").replace("||", " or ")
    plain = re.sub(r"\s+", " ", re.sub(r"!(?!=)", " not ", plain)).strip()
    names = names_in(plain)
    if strange := sorted(names - set(tunables)):
        raise ValueError(unknown("tunable", strange[0], tunables))
    try:
        evaluate(plain, dict.fromkeys(names, 1))
    except ValueError as error:
        # A value of 1 may divide by zero where real ones do not.
        if "cannot be evaluated" not in str(error):
            raise
    return plain


def _listed_values(values: object, path: str | Path, key: str) -> list[Value]:
    listed = values
    if isinstance(values, str):
        listed = _evaluated(values)
        if listed is None:
            message = f"{values!r} is no list of values that can be read without running it"
            raise UserError(path, key, message)
    if not isinstance(listed, list | tuple) or not listed:
        raise UserError(path, key, "must be a list of values")
    return list(dict.fromkeys(as_value(value) for value in listed))


MOST_VALUES = 100_000  # Most values of a tunable: a file must not fill the memory

MOST_CHARACTERS = 1_000
"""Longest text of values that are computed; a list of literals may be longer."""


def _evaluated(text: str) -> Any:
    """Value of literals, ranges, sums of lists and comprehensions; None for all else. Nothing is
    executed: simpleeval walks the tree."""
    left = MOST_VALUES

    def counted(values: Sequence[Any]) -> list[Any]:
        nonlocal left
        left -= len(values)
        if left < 0:
            raise ValueError("too many values")
        return list(values)

    def added(one: Any, other: Any) -> Any:
        if isinstance(one, list) and isinstance(other, list):
            return counted(one + other)
        return OPERATORS[ast.Add](one, other)

    functions = {"range": lambda *limits: counted(range(*limits)), "sorted": sorted}
    try:
        if len(text) > MOST_CHARACTERS:
            return ast.literal_eval(text.strip())
        known = {**OPERATORS, ast.Add: added}
        return EvalWithCompoundTypes(operators=known, functions=functions).eval(text)
    except (InvalidExpression, SyntaxError, *_FAILURES):
        return None
