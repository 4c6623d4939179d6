"""Answers in C and C++: a table as a header of C++17, and one answer as macros."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from launchwise.base.literals import cpp_comment, cpp_text, visible
from launchwise.base.names import assigned
from launchwise.exporting.conditions import cpp_expression
from launchwise.exporting.cpp_names import cpp_name
from launchwise.exporting.rendering import rendered
from launchwise.exporting.table import AnswerTable
from launchwise.learning.answers import BASES, Answer
from launchwise.workloads.spec import Spec


def cpp_header(table: AnswerTable) -> str:
    """The header: ``launchwise::<study>::recommend(device, problem)``."""
    members = {name: f"asked.{cpp_name(name)}" for name in table.parameters}
    conditions = _conditions(table, members)
    members |= {name: f"chosen.{cpp_name(name)}" for name in table.tunables}
    members |= {name: f"derived_{cpp_name(name)}()" for name, _ in table.formulas.derived}
    return rendered(
        "answers.hpp",
        table,
        formula=lambda text: cpp_expression(text, members, _view),
        conditions=conditions,
        most_kernels=max([1, *map(len, table.formulas.launches.values())]),
    )


def _view(text: str) -> str:
    return f"std::string_view({cpp_text(text)})"


def _conditions(table: AnswerTable, members: Mapping[str, str]) -> list[str]:
    """What holds of a problem that some configuration may run."""
    found = []
    for one in table.limits.ranges:
        own = members[one.parameter]
        if one.values is not None:
            listed = (cpp_text(each) if isinstance(each, str) else str(each) for each in one.values)
            found.append(f"({' || '.join(f'{own} == {each}' for each in listed)})")
        if one.minimum is not None:
            found.append(f"{own} >= {one.minimum}")
        if one.maximum is not None:
            found.append(f"{own} <= {one.maximum}")
    return [*found, *(cpp_expression(each, members, cpp_text) for each in table.limits.conditions)]


def macros_text(answer: Answer, spec: Spec) -> str:
    """Macros of the first suggestion: numbers as they are, the variant by its name.

    Kernels of a workload without host code are built with macros that are named as its tunables,
    and with ``macros`` of the spec. Host code has names of its own, and macros are in capitals.
    """
    configuration = answer.suggestions[0].configuration
    problem = assigned(answer.problem)
    about = cpp_comment(f"{problem} on {answer.gpu}: {BASES[answer.basis]}")
    lines = [f"// {about}", "#pragma once"]
    for name, value in configuration.items():
        if isinstance(value, str) and (name == "variant" or spec.has_host_code):
            lines.append(f"#define {macro_name(name)}_{macro_name(value)} 1")
        else:
            lines.append(_defined(macro_name(name) if spec.has_host_code else name, value))
    whole = {**spec.neutral, **configuration}
    for name, text in spec.macros.items():
        lines.append(_defined(name, spec.value(text, answer.problem, whole)))
    return "\n".join(lines) + "\n"


def _defined(name: str, value: Any) -> str:
    # A text of the spec neither ends the line nor goes on in the next one.
    text = visible(" ".join(str(value).split())).rstrip("\\")
    return f"#define {name} {text}"


def macro_name(name: str) -> str:
    """A name in capitals, of letters, digits and underscores."""
    return re.sub(r"\W", "_", name, flags=re.ASCII).upper()
