"""Declarations and functions of a CUDA file, and those that a kernel reaches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from launchwise.cli.new.templates import angle
from launchwise.cli.new.tokens import Code, Macro, closing, is_name

Piece = tuple[tuple[str, ...], tuple[str, ...]]
"""Head and body of a declaration or of a function on the device."""


def pieces_of(tokens: Sequence[str]) -> Iterator[tuple[list[str], list[str]]]:
    """Declarations and functions: head and body; functions of the host without their body.

    Namespaces and ``extern "C" {`` are entered. A head that has a body ends with ``{``.
    """
    head: list[str] = []
    place = 0
    while place < len(tokens):
        token = tokens[place]
        if token == "{" and is_function(head):
            end = closing(tokens, place)
            device = "__global__" in head or "__device__" in head
            yield [*head, "{"], list(tokens[place + 1 : end]) if device else []
            head, place = [], end
        elif token == "{" and ("namespace" in head or head[:1] == ["extern"]) and "=" not in head:
            head = []
        elif token == "{":
            end = closing(tokens, place)
            head += tokens[place : end + 1]
            place = end
        elif token == "}":
            head = []
        elif token == ";":
            yield head, []
            head = []
        else:
            head.append(token)
        place += 1
    if head:
        yield head, []


def host_spans(tokens: Sequence[str]) -> list[tuple[int, int]]:
    """Places of the first token of each function of the host, and after its last one."""
    found: list[tuple[int, int]] = []
    place = start = 0
    while place < len(tokens):
        token = tokens[place]
        if token == "{":
            head = tokens[start:place]
            function = is_function(head)
            end = closing(tokens, place)
            if not function and ("namespace" in head or tuple(head[:1]) == ("extern",)):
                start, end = place + 1, place
            elif function:
                device = {*head} & {"__global__", "__device__", "constexpr"}
                found += [] if device else [(start, end + 1)]
                start = end + 1
            place = end
        elif token in (";", "}"):
            start = place + 1
        place += 1
    return found


def without_host_conditions(code: Code) -> Code:
    """A file without the names that ``#if`` reads around parts of the host's functions alone."""
    spans = host_spans(code.tokens)
    of_host = {name for name, ranges in code.asking.items() if _within(ranges, spans)}
    return replace(
        code,
        conditions=code.conditions - of_host,
        tested=code.tested - of_host,
        compared={name: one for name, one in code.compared.items() if name not in of_host},
        unrolled=code.unrolled - of_host,
    )


def _within(ranges: Sequence[tuple[int, int]], spans: Sequence[tuple[int, int]]) -> bool:
    """Whether spans that follow one another cover each range, and an empty one lies inside."""
    joined: list[tuple[int, int]] = []
    for start, end in spans:
        if joined and joined[-1][1] == start:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return bool(ranges) and all(
        any(
            first <= start and end <= last and (start < end or first < start < last)
            for first, last in joined
        )
        for start, end in ranges
    )


def is_function(head: Sequence[str]) -> bool:
    """Whether a body may follow: the head ends with parameters, and is no initial value."""
    outside: list[str] = []
    depth = 0
    while head[:1] == ["template"]:
        head = head[angle(head, 1) + 1 :]
    for token in head:
        depth += (token == "(") - (token == ")")
        if depth == 0 and token not in ("const", "noexcept"):
            outside.append(token)
    return outside[-1:] == [")"] and "=" not in outside


def reached(
    start: Sequence[str], pieces: Sequence[Piece], macros: Mapping[str, Macro]
) -> tuple[str, ...]:
    """Tokens of the pieces that some tokens name, of those that these name, and so on.

    Host functions and what only they use are left out, and so are methods of the host.
    """
    index: dict[str, list[int]] = {}
    for number, (head, _) in enumerate(pieces):
        for name in _names(head):
            index.setdefault(name, []).append(number)
    wanted: set[int] = set()
    seen: set[str] = set()
    waiting = list(start)
    while waiting:
        name = waiting.pop()
        if name in seen or not is_name(name):
            continue
        seen.add(name)
        waiting += macros[name].text if name in macros else ()
        for number in index.get(name, ()):
            if number not in wanted:
                wanted.add(number)
                waiting += _of_the_device(*pieces[number])
    return tuple(token for number in sorted(wanted) for token in _of_the_device(*pieces[number]))


_TYPES = ("struct", "class", "union", "enum")


def is_of_the_device(head: Sequence[str]) -> bool:
    """Whether a head is that of a device function or variable, or of a constant; none of a type."""
    if _type_place(_without_template(head)) >= 0:
        return False
    return bool({*head} & {"__device__", "__constant__"}) or (
        "constexpr" in head and not is_function(head)
    )


def _without_template(head: Sequence[str]) -> tuple[str, ...]:
    head = tuple(head)
    while head[:1] == ("template",):
        head = head[angle(head, 1) + 1 :]
    return head


def _type_place(head: Sequence[str]) -> int:
    """Place of the word ``struct`` or the like of a type that a head defines; -1 for none."""
    if "{" not in head:
        return -1
    before = head[: head.index("{")]
    places = [place for place, token in enumerate(before) if token in _TYPES]
    return places[0] if places and "=" not in before and not is_function(before) else -1


def _names(head: Sequence[str]) -> Iterator[str]:
    """Names that a head gives: of a function, a type and its enumerators, or variables."""
    head = _without_template(head)
    place = _type_place(head)
    if place >= 0:
        start = head.index("{")
        end = closing(head, start)
        yield from filter(is_name, (*head[place + 1 : start], *head[end + 1 :]))
        yield from filter(is_name, head[start:end] if head[place] == "enum" else ())
        return
    if head[-1:] == ("{",) or is_function(head):
        depth = 0
        for place, token in enumerate(head):
            if token == "(" and depth == 0 and place and head[place - 1] not in _ATTRIBUTES:
                yield head[place - 1]
                if "operator" in head[:place]:
                    yield "operator"
            depth += (token in "([") - (token in ")]")
        return
    if "using" in head or "typedef" in head:
        yield from filter(is_name, head)
        return
    depth = 0
    for token, after in pairwise((*head, ";")):
        depth += (token in "([{") - (token in ")]}")
        if depth == 0 and is_name(token) and after in (";", ",", "=", "[", "{", "("):
            yield token


_ATTRIBUTES = ("__launch_bounds__", "__align__", "alignas", "__attribute__", "noexcept")


def _of_the_device(head: Sequence[str], body: Sequence[str]) -> tuple[str, ...]:
    """Tokens of a piece, without methods of the host and without declarations of functions."""
    plain = _without_template(head)
    place = _type_place(plain)
    if place < 0 or plain[place] == "enum":
        declares = not body and plain[-1:] != ("{",) and is_function(plain)
        return () if declares and "__device__" not in head else (*head, ";", *body)
    start = plain.index("{")
    end = closing(plain, start)
    found = [*head[: len(head) - len(plain) + start + 1]]
    for inner, code in pieces_of(plain[start + 1 : end]):
        inner = inner[2:] if inner[1:2] == [":"] else inner
        if inner[-1:] != ["{"] or {*inner} & {"__device__", "constexpr"}:
            found += _of_the_device(inner, code)
    return (*found, "}", ";")
