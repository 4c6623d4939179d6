"""Exported files from templates: what is somebody else's reaches them through filters alone."""

from __future__ import annotations

from collections.abc import Callable
from pprint import pformat
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from launchwise.base.literals import cpp_comment, cpp_text
from launchwise.exporting.cpp_names import cpp_name, cpp_values
from launchwise.exporting.table import AnswerTable

FILTERS: dict[str, Callable[..., str]] = {
    "comment": cpp_comment,
    "name": cpp_name,
    "number": lambda value: repr(0 if value is None else value),
    "pformat": pformat,
    "repr": repr,
    "text": cpp_text,
    "values": cpp_values,
}


def rendered(
    template: str, table: AnswerTable, formula: Callable[[str], str] = str, **values: Any
) -> str:
    """A file of ``templates/`` for a table of answers.

    Parameters
    ----------
    formula
        Function, and filter, that writes an expression of the workload in the file's language.
    """
    environment = Environment(
        loader=PackageLoader("launchwise.exporting"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {**FILTERS, "formula": formula}
    found = environment.get_template(template)
    return found.render(table=table, formula=formula, **values)
