"""Where variables that a kernel declares end, and which of them change."""

from __future__ import annotations

from collections.abc import Sequence

from launchwise.cli.new.tokens import closing, is_name

_CHANGES = ("+=", "-=", "*=", "/=", "%=", "<<=", ">>=", "&=", "|=", "^=")
_NO_TYPE = ("return", "else", "case", "goto", "throw")


def scope_ends(tokens: Sequence[str]) -> dict[int, int]:
    """Places of names that are declared with a value, to the end of their scope.

    That of a ``for`` is its body. Names of the outermost scope are left out.
    """
    found: dict[int, int] = {}
    opened: list[int] = []
    for place, token in enumerate(tokens[:-1]):
        while opened and place > opened[-1]:
            opened.pop()
        if token == "{":
            opened.append(min(closing(tokens, place), opened[-1] if opened else len(tokens)))
        elif token == "(" and place and tokens[place - 1] == "for":
            end = end_of_statement(tokens, closing(tokens, place) + 1)
            opened.append(min(end, opened[-1] if opened else len(tokens)))
        elif opened and is_name(token) and tokens[place + 1] in ("=", "(", "{"):
            before = tokens[place - 1]
            if is_name(before) and before not in _NO_TYPE:
                found[place] = opened[-1]
    return found


def loop_places(tokens: Sequence[str]) -> set[int]:
    """Places in loops, their heads included."""
    found: set[int] = set()
    end = 0
    for place, token in enumerate(tokens[:-1]):
        if token in ("for", "while") and tokens[place + 1] == "(":
            end = max(end, end_of_statement(tokens, closing(tokens, place + 1) + 1))
        elif token == "do":
            end = max(end, end_of_statement(tokens, place + 1))
        if place < end:
            found.add(place)
    return found


def changed_names(tokens: Sequence[str]) -> set[str]:
    """Variables that are computed from themselves, or whose address is given away."""
    found: set[str] = set()
    for place in range(1, len(tokens) - 1):
        token, before, after = tokens[place], tokens[place - 1], tokens[place + 1]
        if not is_name(token):
            continue
        counts = after in _CHANGES or "++" in (before, after) or "--" in (before, after)
        given = before == "&" and tokens[place - 2] in ("(", ",")
        value = tokens[place + 2 : end_of_statement(tokens, place + 2)] if after == "=" else ()
        if counts or given or token in value:
            found.add(token)
    return found


def end_of_statement(tokens: Sequence[str], start: int) -> int:
    """Place where the statement at ``start`` ends: its semicolon, or the bracket of its block."""
    place = start
    while place < len(tokens):
        if tokens[place] == "{":
            return closing(tokens, place)
        if tokens[place] == ";":
            return place
        place = closing(tokens, place) + 1 if tokens[place] in ("(", "[") else place + 1
    return place
