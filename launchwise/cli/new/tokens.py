"""Tokens of CUDA C++: comments removed, directives of the preprocessor apart."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

_COMMENT = re.compile(
    r"""R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"       # raw text
      | (?<!\w)\d(?:'?[\w.])*                            # number: 1'000'000
      | //[^\n]* | /\*.*?\*/
      | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'
    """,
    re.DOTALL | re.VERBOSE,
)
_TOKEN = re.compile(
    r"""[A-Za-z_]\w*                                  # name
      | (?:\d|\.\d)(?:[eEpP][+-]|['\w.])*             # number
      | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'     # text
      | <<= | >>= | -> | :: | \+\+ | -- | && | \|\|   # operators of several characters
      | [-+*/%&|^!=<>]=
      | \S
    """,
    re.VERBOSE,
)
_CLOSING = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True)
class Macro:
    """A macro that the file defines.

    Parameters
    ----------
    value
        Tokens of its text; of a function-like macro without the parameters.
    replaceable
        Whether the file defines it only where nothing else did (``#ifndef``), alone or as one of a
        guarded group.
    text
        Tokens of its text with the parameters.
    parameters
        Of a function-like macro; None for others.
    """

    value: tuple[str, ...]
    replaceable: bool
    text: tuple[str, ...] = ()
    parameters: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Code:
    """A CUDA file, split.

    Parameters
    ----------
    tokens
        Everything but comments and directives.
    macros
        By name.
    conditions
        Names that ``#if``, ``#elif`` and ``#pragma unroll`` read as values.
    unrolled
        Those of ``#pragma unroll``.
    asking
        Names to the tokens, from one place to another, between each ``#if`` that reads them and its
        ``#endif``; guards around definitions alone are left out.
    tested
        Names that are only asked to be defined: ``#ifdef``, ``defined(…)``.
    includes
        Files that are included with quotation marks.
    switches
        Names without a value that guard a group of macros: whoever defines them defines the group.
    compared
        Names to the integers with which ``#if`` compares them.
    """

    tokens: tuple[str, ...]
    macros: dict[str, Macro]
    conditions: frozenset[str]
    tested: frozenset[str]
    includes: tuple[str, ...]
    switches: tuple[str, ...] = ()
    compared: Mapping[str, frozenset[int]] = field(default_factory=dict)
    unrolled: frozenset[str] = frozenset()
    asking: Mapping[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)


def cleaned(text: str) -> str:
    """A text without comments, with one line per directive."""
    text = re.sub(r"\r\n?", "\n", text)
    text = re.sub(r"\\[ \t]*\n", " ", text)
    return _COMMENT.sub(_uncommented, text)


def _uncommented(match: re.Match[str]) -> str:
    if match[0].startswith("R"):
        return '""'
    return " " if match[0][0] == "/" else match[0]


def tokenised(text: str) -> list[str]:
    """Tokens of a text without comments."""
    return _TOKEN.findall(text)


def is_name(token: str) -> bool:
    """Whether a token is an identifier or a keyword."""
    return token[0].isalpha() or token[0] == "_"


def closing(tokens: Sequence[str], start: int) -> int:
    """Place of the bracket that closes the one at ``start``; the end where none does."""
    opened, closed = tokens[start], _CLOSING[tokens[start]]
    depth = 0
    for place in range(start, len(tokens)):
        depth += (tokens[place] == opened) - (tokens[place] == closed)
        if depth == 0:
            return place
    return len(tokens)


def at_commas(tokens: Sequence[str]) -> list[list[str]]:
    """Tokens between the commas that no bracket holds; nothing for no tokens."""
    parts: list[list[str]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token in "([{<") - (token in ")]}>")
        if token == "," and depth <= 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts if tokens else []
