"""Texts of somebody else: as literals of other languages, and the numbers that they are.

A text of a workload, a sweep or a product reaches another language (a literal, a cell, a comment)
through these functions alone, one per language, so that it stays a text there. JSON is written by
:mod:`json`, and Python by ``repr``; the report's scripts write snippets by ``launchwiseLiteral``
and commands by ``launchwiseWord`` of ``templates/literals.js``.

Numbers on command lines and in files of others have one strict reader, :func:`whole` and
:func:`real`. Python itself reads more: ``1_0`` as 10, digits of every script, spaces around them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

if TYPE_CHECKING:
    import pandas as pd


_UNSEEN = (
    "\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f\\xad\\u061c\\u180e\\u200b-\\u200f\\u2028-\\u202e"
    "\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb\\ud800-\\udfff\\U000e0000-\\U000e007f"
)
"""Control characters, marks that change the direction of a text, characters without a width."""

_IN_LINE = re.compile(f"[{_UNSEEN}\\n\\t\\r]")
_IN_LINES = re.compile(f"[{_UNSEEN}]")

_FORMULA = re.compile(r"""(^|[;\t\r\n])(?=[\s"]*[=+\-@\uff1d\uff0b\uff0d\uff20])|^(?=[\t\r\n])""")
"""Where a formula may begin: programs split at semicolons or tabs, too, and take wide signs."""

_NUMBER = re.compile(r"[+-]?(\d[\d\s]*)?\.?\d+(e[-+]?\d+)?", re.IGNORECASE)


def visible(text: str) -> str:
    r"""A text of one line in which nothing hides: what cannot be seen stands as ``\u202e``."""
    return _IN_LINE.sub(_escape, text)


def visible_lines(text: str) -> str:
    """:func:`visible` of a text that may have several lines."""
    return text if text.isprintable() else _IN_LINES.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    number = ord(found[0])
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def visible_json(text: str) -> str:
    """JSON whose texts hide nothing, wherever a page shows them."""
    # Its control characters are escapes.
    return text if text.isascii() else _IN_LINES.sub(lambda found: "\\" + _escape(found), text)


def cpp_text(text: str) -> str:
    """A literal of C++: what is no plain character is written byte by byte."""
    content = text.encode("utf-8", "backslashreplace")
    literal = f'"{"".join(map(_character, content))}"'
    # A view of a plain literal would end at its first zero.
    return f"std::string_view({literal}, {len(content)})" if 0 in content else literal


def _character(byte: int) -> str:
    plain = chr(byte)
    # Question marks: ??/ is a backslash to older compilers.
    return plain if 32 <= byte < 127 and plain not in '"\\?' else f"\\{byte:03o}"


def cpp_comment(text: str) -> str:
    """Words behind ``//``: they neither end the comment nor join the next line to it."""
    seen = visible(text)
    # A line that ends in a backslash, or in the ??/ that means one, goes on.
    return f"{seen}." if seen.endswith(("\\", "??/")) else seen


def csv_cell(value: Any) -> Any:
    """A cell of CSV: what a spreadsheet would take for a formula begins with an apostrophe, and
    nothing hides."""
    if not isinstance(value, str) or _NUMBER.fullmatch(value):
        return value
    return _FORMULA.sub(r"\1'", visible_lines(value))


def csv_table(table: pd.DataFrame) -> pd.DataFrame:
    """A table whose texts and names of columns are cells (:func:`csv_cell`)."""

    def cells(column: pd.Series) -> pd.Series:
        return column if column.dtype.kind in "iufb" else column.map(csv_cell)

    return table.apply(cells).rename(columns=csv_cell)


def html_text(text: str) -> str:
    """A text in HTML or SVG, between tags or in quotation marks; markup stays."""
    return str(escape(visible_output(text)))


def visible_output(value: Any) -> Any:
    """What a template of HTML writes before it escapes it: texts hide nothing, markup stays."""
    plain = isinstance(value, str) and not isinstance(value, Markup)
    return visible_lines(value) if plain else value


LARGEST = 2**63 - 1  # Largest magnitude of an integer in a file

_WHOLE = re.compile(r"[+-]?[0-9]{1,400}")
_REAL = re.compile(
    r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|nan|inf|infinity)",
    re.IGNORECASE | re.ASCII,
)


def whole(text: str) -> int | None:
    """The integer that a text is: a sign and digits of ASCII alone; None where it is none."""
    return int(text) if _WHOLE.fullmatch(text) else None


def real(text: str) -> float | None:
    """The number that a text is, NaN and infinities among them; None where it is none."""
    return float(text) if _REAL.fullmatch(text) else None
