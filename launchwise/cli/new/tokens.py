"""Lists of tokens: brackets, commas, names."""

from __future__ import annotations

from collections.abc import Sequence

_CLOSING = {"(": ")", "[": "]", "{": "}"}


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


def angle(tokens: Sequence[str], start: int) -> int:
    """Place of the ``>`` that closes the ``<`` at ``start``; the end where none does."""
    depth = round_depth = 0
    for place in range(start, len(tokens)):
        token = tokens[place]
        round_depth += (token in ("(", "{", "[")) - (token in (")", "}", "]"))
        if round_depth == 0:
            depth += (token == "<") - (token == ">")
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
