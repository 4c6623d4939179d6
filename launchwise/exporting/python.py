"""A table of answers as a Python module that needs nothing but Python."""

from __future__ import annotations

from launchwise.exporting.conditions import python_expression
from launchwise.exporting.rendering import rendered
from launchwise.exporting.table import AnswerTable


def python_module(table: AnswerTable) -> str:
    """Text of the module."""
    derived = dict(table.formulas.derived)
    return rendered(
        "answers.py.txt",
        table,
        formula=lambda text: f"lambda names: {python_expression(text, derived)}",
        measured={one.name: one.measured for one in table.devices},
        devices=[one.names for one in table.devices],
        conditions=" and ".join(f"({one})" for one in table.limits.texts) or "True",
    )
