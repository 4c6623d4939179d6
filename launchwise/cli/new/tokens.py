"""Tokens of CUDA C++: comments removed, directives of the preprocessor apart."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
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
_DEFINE = re.compile(r"define\s+(\w+)(\([^)]*\))?\s*(.*)", re.DOTALL)
_CLOSING = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True)
class Macro:
    """A macro that the file defines.

    Parameters
    ----------
    value
        Tokens of its text; of a function-like macro without the parameters.
    replaceable
        Whether the file defines it only where nothing else did (``#ifndef``).
    """

    value: tuple[str, ...]
    replaceable: bool


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
    tested
        Names that are only asked to be defined: ``#ifdef``, ``defined(…)``.
    includes
        Files that are included with quotation marks.
    """

    tokens: tuple[str, ...]
    macros: dict[str, Macro]
    conditions: frozenset[str]
    tested: frozenset[str]
    includes: tuple[str, ...]


def split(text: str) -> Code:
    """Tokens and directives of a CUDA file."""
    text = text.replace("\r\n", "\n").replace("\\\n", " ")
    text = _COMMENT.sub(lambda match: match[0] if match[0][0] in "\"'" else " ", text)
    plain: list[str] = []
    macros: dict[str, Macro] = {}
    conditions: set[str] = set()
    tested: set[str] = set()
    includes: list[str] = []
    missing: list[str] = []
    for line in text.split("\n"):
        if not line.lstrip().startswith("#"):
            plain.append(line)
            continue
        directive = line.lstrip()[1:].strip()
        word = directive.split(maxsplit=1)[0] if directive else ""
        names = [token for token in tokenised(directive)[1:] if is_name(token)]
        if word == "define" and (match := _DEFINE.match(directive)):
            # The first definition counts: the others belong to other branches.
            value = _without(tokenised(match[3]), tokenised(match[2] or ""))
            macros.setdefault(match[1], Macro(tuple(value), match[1] in missing))
        elif word == "include" and '"' in directive:
            includes.append(directive.split('"')[1])
        elif word in ("ifdef", "ifndef"):
            tested.update(names)
            missing.append(names[0] if names and word == "ifndef" else "")
        elif word == "pragma":
            conditions.update(names[1:] if names[:1] == ["unroll"] else [])
        elif word in ("if", "elif"):
            asked = set(re.findall(r"\bdefined\s*\(?\s*(\w+)", directive))
            tested |= asked
            conditions |= set(names) - asked - {"defined"}
            if word == "if":
                negated = re.match(r"if\s*!\s*defined\s*\(?\s*(\w+)", directive)
                missing.append(negated[1] if negated else "")
        elif word == "endif" and missing:
            missing.pop()
    return Code(
        tuple(tokenised("\n".join(plain))),
        macros,
        frozenset(conditions),
        frozenset(tested - conditions),
        tuple(includes),
    )


def _without(tokens: Sequence[str], names: Sequence[str]) -> list[str]:
    return [token for token in tokens if not (is_name(token) and token in names)]


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
