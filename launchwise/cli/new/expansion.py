"""The body of a kernel as one list of tokens, functions of the device in place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from launchwise.cli.new.signature import Function, Kernel, Source
from launchwise.cli.new.tokens import angle, at_commas, closing

MOST_TOKENS = 60_000
_DEEPEST = 6
_CASTS = ("static_cast", "reinterpret_cast", "const_cast", "dynamic_cast")


@dataclass(frozen=True)
class Inline:
    """A number, or a function of one expression with its parameters."""

    text: tuple[str, ...]
    parameters: tuple[str, ...] | None = None


def expanded(source: Source, kernel: Kernel, fixed: Mapping[str, int]) -> list[str]:
    """Tokens of a kernel for the analysis of its indices.

    Casts and the words of cooperative groups become plain arithmetic; ``fixed`` are constants. The
    bodies of functions that the kernel calls follow at the end, after assignments of their
    parameters.
    """
    texts = {name: Inline((str(number),)) for name, number in fixed.items()}
    texts["warpSize"] = Inline(("32",))
    texts |= {
        name: Inline(("(", *one.body[1:-1], ")"), one.parameters)
        for name, one in source.functions.items()
        if one.body[:1] == ("return",) and one.body.count(";") == 1
    }
    functions = {name: one for name, one in source.functions.items() if name not in texts}
    tokens = _replaced(_plain(kernel.body), texts, 0)
    return _called(_grouped(tokens), functions, texts, 0)


def _plain(tokens: Sequence[str]) -> list[str]:
    """Tokens without casts by name."""
    found: list[str] = []
    place = 0
    while place < len(tokens):
        if tokens[place] in _CASTS and tokens[place + 1 : place + 2] in (("<",), ["<"]):
            place = angle(tokens, place + 1) + 1
            continue
        found.append(tokens[place])
        place += 1
    return found


def _replaced(tokens: Sequence[str], texts: Mapping[str, Inline], depth: int) -> list[str]:
    """Tokens with numbers and functions of one expression in place."""
    found: list[str] = []
    place = 0
    while place < len(tokens):
        token = tokens[place]
        known = texts.get(token) if depth < _DEEPEST and len(found) < MOST_TOKENS else None
        if known is None or found[-1:] in (["."], ["->"]):
            found.append(token)
        elif known.parameters is None:
            found += known.text
        else:
            start = place + 1
            if tokens[start : start + 1] == ["<"]:
                start = angle(tokens, start) + 1
            if tokens[start : start + 1] != ["("]:
                found.append(token)
            else:
                end = closing(tokens, start)
                parts = at_commas(tokens[start + 1 : end])
                given = [_replaced(part, texts, depth + 1) for part in parts]
                named = dict(zip(known.parameters, given, strict=False))
                text = [each for one in known.text for each in named.get(one, [one])]
                rest = {name: one for name, one in texts.items() if name != token}
                found += _replaced(text, rest, depth + 1)
                place = end
        place += 1
    return found


def _called(
    tokens: Sequence[str],
    functions: Mapping[str, Function],
    texts: Mapping[str, Inline],
    depth: int,
) -> list[str]:
    """Tokens with the bodies of called functions at the end."""
    found = list(tokens)
    if depth >= _DEEPEST:
        return found
    for place, token in enumerate(tokens):
        function = functions.get(token)
        if function is None or len(found) > MOST_TOKENS:
            continue
        start = place + 1
        if tokens[start : start + 1] == ["<"]:
            start = angle(tokens, start) + 1
        if tokens[start : start + 1] != ["("]:
            continue
        parts = at_commas(tokens[start + 1 : closing(tokens, start)])
        found.append(";")
        for name, part in zip(function.parameters, parts, strict=False):
            found += [name, "=", *part, ";"] if name and [name] != part else []
        rest = {name: one for name, one in functions.items() if name != token}
        body = _grouped(_replaced(_plain(function.body), texts, 0))
        found += _called(body, rest, texts, depth + 1)
    return found


_GROUP_WORDS = {
    **{"thread_index": "threadIdx", "group_index": "blockIdx", "block_index": "blockIdx"},
    **{"group_dim": "blockDim", "dim_threads": "blockDim", "dim_blocks": "gridDim"},
}
_RANKS = {
    ("grid", "thread_rank"): "( blockIdx . x * blockDim . x + threadIdx . x )",
    ("block", "thread_rank"): "threadIdx . x",
    ("grid", "size"): "( gridDim . x * blockDim . x )",
    ("grid", "num_threads"): "( gridDim . x * blockDim . x )",
    ("block", "size"): "blockDim . x",
    ("block", "num_threads"): "blockDim . x",
    ("grid", "block_rank"): "blockIdx . x",
}


def _grouped(tokens: list[str]) -> list[str]:
    """Tokens with members of cooperative groups as built-in variables."""
    groups: dict[str, str] = {}
    for place, token in enumerate(tokens):
        if token in ("this_grid", "this_thread_block"):
            kind = "grid" if token == "this_grid" else "block"
            start = max(0, place - 5)
            named = [start + at for at, each in enumerate(tokens[start:place]) if each == "="]
            if named:
                groups[tokens[named[-1] - 1]] = kind
    if not groups:
        return tokens
    found: list[str] = []
    place = 0
    while place < len(tokens):
        kind = groups.get(tokens[place], "")
        member = tokens[place + 2] if place + 2 < len(tokens) else ""
        if kind and tokens[place + 1] == "." and tokens[place + 3 : place + 5] == ["(", ")"]:
            text = _RANKS.get((kind, member)) or _GROUP_WORDS.get(member)
            if text:
                found += text.split()
                place += 5
                continue
        found.append(tokens[place])
        place += 1
    return found


def reads(tokens: Sequence[str], variable: str) -> set[str]:
    """Axes of a built-in variable, such as ``blockIdx``, that tokens read."""
    found: set[str] = set()
    for place, token in enumerate(tokens):
        if token == variable:
            whole = tuple(tokens[place + 1 : place + 2]) != (".",)
            member = tokens[place + 2] if place + 2 < len(tokens) else ""
            found |= {*"xyz"} if whole else {member} & {*"xyz"}
    return found
