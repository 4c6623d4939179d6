"""Macros that paste tokens: ``#define at(A, i) offset_##A[i]``.

The names that they put together are no names of the file, so they are expanded before it is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from launchwise.cli.new.tokens import Code, Macro, at_commas, closing, is_name

_DEEPEST = 6


def without_pasting(code: Code) -> Code:
    """A file whose tokens and macros use no macro that pastes tokens."""
    pasting = {
        name: one
        for name, one in code.macros.items()
        if one.parameters is not None and "# #" in " ".join(one.text)
    }
    if not pasting:
        return code
    macros = {
        # Its own text holds halves of names.
        name: replace(one, value=()) if name in pasting else _expanded_macro(one, pasting)
        for name, one in code.macros.items()
    }
    return replace(code, tokens=tuple(_expanded(code.tokens, pasting, 0)), macros=macros)


def _expanded_macro(one: Macro, pasting: Mapping[str, Macro]) -> Macro:
    text = tuple(_expanded(one.text, pasting, 0))
    if text == one.text:
        return one
    parameters = one.parameters or ()
    value = tuple(token for token in text if token not in parameters)
    return replace(one, text=text, value=value)


def _expanded(tokens: Sequence[str], pasting: Mapping[str, Macro], depth: int) -> list[str]:
    found: list[str] = []
    place = 0
    while place < len(tokens):
        macro = pasting.get(tokens[place])
        is_call = macro is not None and tuple(tokens[place + 1 : place + 2]) == ("(",)
        if macro is None or not is_call or depth > _DEEPEST:
            found.append(tokens[place])
            place += 1
            continue
        end = closing(tokens, place + 1)
        given = at_commas(tokens[place + 2 : end])
        named = dict(zip(macro.parameters or (), given, strict=False))
        found += _expanded(_pasted(macro.text, named), pasting, depth + 1)
        place = end + 1
    return found


def _pasted(text: Sequence[str], named: Mapping[str, Sequence[str]]) -> list[str]:
    """A macro's text with its arguments; what stands on both sides of ``##`` is one token."""
    found: list[str] = []
    place, joined = 0, False
    while place < len(text):
        if tuple(text[place : place + 2]) == ("#", "#"):
            place, joined = place + 2, True
            continue
        tokens = list(named.get(text[place], [text[place]]))
        if joined and found and tokens and is_name(found[-1]):
            found[-1] += tokens.pop(0)
        found += tokens
        place, joined = place + 1, False
    return found
