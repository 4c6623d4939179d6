"""Directives of the preprocessor in a CUDA file."""

from __future__ import annotations

import re
from collections.abc import Sequence

from launchwise.cli.new.tokens import Code, Macro, cleaned, is_name, tokenised

_DEFINE = re.compile(r"define\s+(\w+)(\([^)]*\))?\s*(.*)", re.DOTALL)


def split(text: str) -> Code:
    """Tokens and directives of a CUDA file."""
    return directives(cleaned(text))


class _Branches:
    """Which branches of ``#if`` enclose a line.

    ``missing`` names what a branch finds undefined; ``#if 0`` makes a branch dead. ``asked`` names
    what ``#ifdef`` or ``defined()`` wants to be defined.
    """

    def __init__(self) -> None:
        self.missing: list[str] = []
        self.dead: list[bool] = []
        self.asked: list[str] = []

    def enter(self, word: str, condition: str) -> None:
        """Begin ``#if``, ``#ifdef`` or ``#ifndef``."""
        negated = re.match(r"!\s*defined\s*\(?\s*(\w+)", condition)
        named = re.match(r"\w+", condition)
        name = named[0] if named else ""
        missing = negated[1] if word == "if" and negated else ""
        self.missing.append(name if word == "ifndef" else missing)
        self.dead.append(word == "if" and condition in ("0", "false"))
        self.asked.append(name if word == "ifdef" else _asked(word, condition))

    def turn(self, word: str, first: str, condition: str) -> None:
        """Take ``#else`` or ``#elif``; ``first`` is the condition of its ``#if``."""
        if self.dead:
            self.missing[-1] = ""
            self.asked[-1] = _asked(word, condition)
            self.dead[-1] = word == "else" and first in ("1", "true")

    def leave(self) -> None:
        if self.dead:
            self.missing.pop()
            self.dead.pop()
            self.asked.pop()


class _Ranges:
    """Tokens between ``#if`` and ``#endif``, by the names that the conditions read."""

    def __init__(self) -> None:
        self.found: dict[str, list[tuple[int, int]]] = {}
        self._open: list[tuple[bool, int, list[str]]] = []

    def enter(self, guards: bool, place: int) -> None:
        self._open.append((guards, place, []))

    def read(self, names: Sequence[str]) -> None:
        if self._open:
            self._open[-1][2].extend(names)

    def stands(self, names: Sequence[str], place: int) -> None:
        """Names that a directive without an end reads."""
        for name in names:
            self.found.setdefault(name, []).append((place, place))

    def leave(self, place: int) -> None:
        guards, start, names = self._open.pop() if self._open else (False, 0, [])
        if not (guards and start == place):
            for name in names:
                self.found.setdefault(name, []).append((start, place))


def _asked(word: str, condition: str) -> str:
    """The name that a branch wants to be defined: ``#if defined(X)``, ``#elif defined(X)``."""
    match = re.match(r"defined\s*\(?\s*(\w+)", condition)
    return match[1] if match and word in ("if", "elif") and "||" not in condition else ""


def directives(text: str) -> Code:
    """Tokens and directives of a cleaned text."""
    tokens: list[str] = []
    macros: dict[str, Macro] = {}
    optional: dict[str, Macro] = {}
    conditions: set[str] = set()
    tested: set[str] = set()
    compared: dict[str, set[int]] = {}
    unrolled: set[str] = set()
    includes: list[str] = []
    branches, opened, ranges = _Branches(), [""], _Ranges()
    lines = text.split("\n")
    groups = _groups(lines)
    for place, line in enumerate(lines):
        if not line.lstrip().startswith("#"):
            tokens += [] if any(branches.dead) else tokenised(line)
            continue
        directive = line.lstrip()[1:].strip()
        word = directive.split(maxsplit=1)[0] if directive else ""
        word = re.split(r"\W", word)[0]
        condition = directive[len(word) :].strip()
        if word in ("elif", "else"):
            branches.turn(word, opened[-1], condition)
        elif word == "endif":
            branches.leave()
            ranges.leave(len(tokens))
            opened = opened[:-1] or [""]
            continue
        if word in ("if", "ifdef", "ifndef"):
            opened.append(condition)
            branches.enter(word, condition)
            ranges.enter(word == "ifndef", len(tokens))
        if any(branches.dead):
            continue
        names = [token for token in tokenised(condition) if is_name(token)]
        if word == "define" and (match := _DEFINE.match(directive)):
            # The first definition counts: the others belong to other branches.
            own, parameters = tuple(tokenised(match[3])), tokenised(match[2] or "")
            macro = Macro(
                tuple(_without(own, parameters)),
                match[1] in branches.missing or place in groups,
                own,
                tuple(filter(is_name, parameters)) if match[2] else None,
            )
            # What stands below `#ifdef X` is meant for those who define X.
            unset = [each for each in branches.asked if each and each not in macros]
            apart = any(not each.startswith("__") for each in unset)
            (optional if apart else macros).setdefault(match[1], macro)
        elif word == "include" and '"' in directive:
            includes.append(directive.split('"')[1])
        elif word in ("ifdef", "ifndef"):
            tested.update(names[:1])
            ranges.read(names[:1])
        elif word == "pragma":
            read = names[1:] if names[:1] == ["unroll"] else []
            unrolled.update(read)
            ranges.stands(read, len(tokens))
        elif word in ("if", "elif"):
            asked = set(re.findall(r"\bdefined\s*\(?\s*(\w+)", condition))
            tested |= asked
            conditions |= set(names) - asked - {"defined"}
            ranges.read(names)
            for name, number in re.findall(r"\b([A-Za-z_]\w*)\s*[=!]=\s*(\d+)", condition):
                compared.setdefault(name, set()).add(int(number))
    return Code(
        tuple(tokens),
        {**optional, **macros},
        frozenset(conditions | unrolled),
        frozenset(tested - conditions),
        tuple(includes),
        tuple(
            name
            for name in dict.fromkeys(groups.values())
            if name in macros and not macros[name].value
        ),
        {name: frozenset(numbers) for name, numbers in compared.items()},
        frozenset(unrolled),
        {name: tuple(found) for name, found in ranges.found.items()},
    )


_GUARDED = re.compile(r"\s*#\s*ifndef\s+(\w+)")
_PLAIN_DEFINE = re.compile(r"\s*#\s*define\s+(\w+)(?:\s+(.*))?$")


def _groups(lines: Sequence[str]) -> dict[int, str]:
    """Lines of guarded groups to the name that guards them.

    A group is an ``#ifndef`` with nothing but definitions of its name and of others. What guards a
    header has code, or is alone.
    """
    found: dict[int, str] = {}
    guard, defined = "", dict[int, str]()
    for place, line in enumerate(lines):
        if match := _GUARDED.match(line):
            guard, defined = match[1], {}
        elif match := _PLAIN_DEFINE.match(line):
            defined[place] = match[1]
        elif re.match(r"\s*#\s*endif", line):
            names = list(defined.values())
            header = re.search(r"_(H|CUH|HPP|INCLUDED)_*$", guard.upper())
            if guard and names[:1] == [guard] and len(names) > 1 and not header:
                found |= dict.fromkeys(defined, guard)
            guard = ""
        elif line.strip():
            guard = ""
    return found


def _without(tokens: Sequence[str], names: Sequence[str]) -> list[str]:
    return [token for token in tokens if not (is_name(token) and token in names)]
