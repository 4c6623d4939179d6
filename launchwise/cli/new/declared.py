"""Names that C++ declares: variables, parameters, types, enumerators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from launchwise.cli.new.templates import angle
from launchwise.cli.new.tokens import closing, is_name
from launchwise.cli.new.types import QUALIFIERS, TYPES, VECTORS, WORDS, words

_NO_TYPE = words("return else case goto new delete do throw sizeof")
_BEFORE_A_DECLARATION = frozenset(";{}(),<>:")
_AFTER_A_NAME = frozenset("=;,[({:)>")


def declared(tokens: Sequence[str], types: frozenset[str] = frozenset()) -> Iterator[str]:
    """Names of variables, parameters, types and enumerators that the tokens declare.

    ``types`` are names of types beside those of CUDA.
    """
    types |= TYPES.keys() | VECTORS.keys() | WORDS
    for place, token in enumerate(tokens):
        before = tokens[place - 1] if place else ";"
        if token in ("struct", "class", "union", "enum", "typename", "using", "namespace"):
            yield from (each for each in tokens[place + 1 : place + 3] if is_name(each))
            if token == "enum" and "{" in tokens[place : place + 10]:
                start = tokens.index("{", place)
                yield from filter(is_name, tokens[start : closing(tokens, start)])
        elif token == "typedef" and ";" in tokens[place:]:
            yield tokens[tokens.index(";", place) - 1]
        if before in _BEFORE_A_DECLARATION and is_name(token):
            yield from _declarators(tokens, place, before, types)
        if token == "auto":
            start = place + 1 + (tuple(tokens[place + 1 : place + 2]) in (("&",), ("&&",)))
            if tuple(tokens[start : start + 1]) == ("[",):
                yield from filter(is_name, tokens[start : closing(tokens, start)])


def _declarators(
    tokens: Sequence[str], start: int, before: str, types: frozenset[str]
) -> Iterator[str]:
    """Names that a declaration at ``start`` declares, if one begins there."""
    place, parts, sure = start, 0, False
    while place < len(tokens) and is_name(tokens[place]):
        token = tokens[place]
        if token in _NO_TYPE:
            return
        after = tokens[place + 1] if place + 1 < len(tokens) else ";"
        if token in QUALIFIERS or token in types or token == "auto":
            sure = sure or token not in QUALIFIERS
        elif parts and after in _AFTER_A_NAME:
            break
        elif after == "::":
            place += 1
        elif after == "<" and (end := angle(tokens[: place + 40], place + 1)) < place + 40:
            if end >= len(tokens) or {*tokens[place:end]} & {";", "&&", "||", "{"}:
                return
            place = end
        parts += 1
        place += 1
        # A product is no declaration: `f(a * b)`. At the beginning of a statement it may be one.
        while (
            place < len(tokens) and tokens[place] in ("*", "&", "&&") and (sure or before in ";{}")
        ):
            place += 1
    if not parts or place >= len(tokens) or not is_name(tokens[place]):
        return
    if place + 1 < len(tokens) and tokens[place + 1] not in _AFTER_A_NAME:
        return
    yield tokens[place]
    yield from _further(tokens, place + 1)


def _further(tokens: Sequence[str], place: int) -> Iterator[str]:
    """Names after the commas of a declaration: ``a = f(x, y), b[3], *c;``."""
    while place < len(tokens) and tokens[place] not in ";)}":
        if tokens[place] in "([{":
            place = closing(tokens, place)
        elif tokens[place] == ",":
            while place + 1 < len(tokens) and tokens[place + 1] in "*&":
                place += 1
            if place + 1 < len(tokens) and is_name(tokens[place + 1]):
                yield tokens[place + 1]
        place += 1
