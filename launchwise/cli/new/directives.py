"""Directives of the preprocessor in a CUDA file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from launchwise.cli.new.tokens import Code, Macro, cleaned, is_name, tokenised

_DEFINE = re.compile(r"define\s+(\w+)(\([^)]*\))?\s*(.*)", re.DOTALL)


def split(text: str) -> Code:
    """Tokens and directives of a CUDA file."""
    return directives(cleaned(text))


def directives(text: str, optional: bool = True) -> Code:
    """Tokens and directives of a cleaned text.

    Parameters
    ----------
    optional
        Whether what stands below ``#ifdef X`` counts where the file does not define X.
    """
    return _Reader(text.split("\n"), optional).code()


class _Reader:
    """A reader of the lines of a file."""

    def __init__(self, lines: Sequence[str], optional: bool) -> None:
        self._lines = lines
        self._optional = optional
        self._groups = _groups(lines)
        self._branches, self._ranges = _Branches(), _Ranges()
        self._tokens: list[str] = []
        self._macros: dict[str, Macro] = {}
        self._optional_macros: dict[str, Macro] = {}
        self._conditions: set[str] = set()
        self._tested: set[str] = set()
        self._compared: dict[str, set[int]] = {}
        self._unrolled: set[str] = set()
        self._includes: list[str] = []

    def code(self) -> Code:
        for place, line in enumerate(self._lines):
            if line.lstrip().startswith("#"):
                self._directive(place, line.lstrip()[1:].strip())
            elif not self._is_hidden():
                self._tokens += tokenised(line)
        guards = dict.fromkeys(self._groups.values())
        macros = {**self._optional_macros, **self._macros}
        return Code(
            tuple(self._tokens),
            macros,
            frozenset(self._conditions | self._unrolled),
            frozenset(self._tested - self._conditions),
            tuple(self._includes),
            tuple(name for name in guards if name in macros and not macros[name].value),
            {name: frozenset(numbers) for name, numbers in self._compared.items()},
            frozenset(self._unrolled),
            {name: tuple(found) for name, found in self._ranges.found.items()},
        )

    def _is_hidden(self, outer: bool = False) -> bool:
        """Whether a branch is dead, or meant for those who define a name of their own.

        ``outer`` leaves the innermost branch out.
        """
        count = len(self._branches.dead) - outer
        unset = not self._optional and any(self._branches.unset[:count])
        return unset or any(self._branches.dead[:count])

    def _directive(self, place: int, directive: str) -> None:
        word = directive.split(maxsplit=1)[0] if directive else ""
        word = re.split(r"\W", word)[0]
        condition = directive[len(word) :].strip()
        if word == "endif":
            self._branches.leave()
            self._ranges.leave(len(self._tokens))
        elif word in ("elif", "else"):
            self._branches.turn(word, condition, self._macros)
            if not self._is_hidden(outer=True) and not self._branches.is_dead():
                self._condition(word, condition)
        elif word in ("if", "ifdef", "ifndef"):
            hidden = self._is_hidden()
            self._branches.enter(word, condition, self._macros)
            self._ranges.enter(word == "ifndef", len(self._tokens))
            if not hidden and not self._branches.is_dead():
                self._condition(word, condition)
        elif self._is_hidden():
            return
        elif word == "define" and (match := _DEFINE.match(directive)):
            self._define(place, match)
        elif word == "include" and '"' in directive:
            self._includes.append(directive.split('"')[1])
        elif word == "pragma":
            names = list(filter(is_name, tokenised(condition)))
            read = names[1:] if names[:1] == ["unroll"] else []
            self._unrolled.update(read)
            self._ranges.stands(read, len(self._tokens))

    def _condition(self, word: str, condition: str) -> None:
        """Names that a condition reads."""
        names = list(filter(is_name, tokenised(condition)))
        if word in ("ifdef", "ifndef"):
            self._tested.update(names[:1])
            self._ranges.read(names[:1])
        elif word in ("if", "elif"):
            asked = set(re.findall(r"\bdefined\s*\(?\s*(\w+)", condition))
            self._tested |= asked
            self._conditions |= set(names) - asked - {"defined"}
            self._ranges.read(names)
            for name, number in re.findall(r"\b([A-Za-z_]\w*)\s*[=!]=\s*(\d+)", condition):
                self._compared.setdefault(name, set()).add(int(number))

    def _define(self, place: int, match: re.Match[str]) -> None:
        """Keep a macro; the first definition counts: the others belong to other branches."""
        own, parameters = tuple(tokenised(match[3])), tokenised(match[2] or "")
        macro = Macro(
            tuple(_without(own, parameters)),
            match[1] in self._branches.missing or place in self._groups,
            own,
            tuple(filter(is_name, parameters)) if match[2] else None,
        )
        # What stands below `#ifdef X` is meant for those who define X.
        apart = any(self._branches.unset)
        (self._optional_macros if apart else self._macros).setdefault(match[1], macro)


class _Branches:
    """Which branches of ``#if`` enclose a line.

    ``missing`` names what a branch finds undefined; ``#if 0`` makes a branch ``dead``; ``unset``
    says of a branch that it is taken only where a name is defined that the file does not define.
    """

    def __init__(self) -> None:
        self.missing: list[str] = []
        self.dead: list[bool] = []
        self.unset: list[bool] = []
        self._first: list[tuple[str, str]] = []

    def is_dead(self) -> bool:
        """Whether the innermost branch is dead."""
        return bool(self.dead) and self.dead[-1]

    def enter(self, word: str, condition: str, macros: Mapping[str, Macro]) -> None:
        """Begin ``#if``, ``#ifdef`` or ``#ifndef``."""
        negated = re.match(r"!\s*defined\s*\(?\s*(\w+)", condition)
        named = re.match(r"\w+", condition)
        name = named[0] if named else ""
        whole = negated is not None and re.fullmatch(r"\W*", condition[negated.end() :])
        missing = name if word == "ifndef" else negated[1] if word == "if" and negated else ""
        self.missing.append(missing)
        self.dead.append(word == "if" and condition in ("0", "false"))
        asked = name if word == "ifdef" else _asked(word, condition)
        self.unset.append(_is_unset(asked, macros))
        # The other branch of `#ifndef X` is that of those who define X.
        other = missing if (word == "ifndef" or whole) and _is_unset(missing, macros) else ""
        self._first.append((condition, other))

    def turn(self, word: str, condition: str, macros: Mapping[str, Macro]) -> None:
        """Take ``#else`` or ``#elif``."""
        if self.dead:
            first, other = self._first[-1]
            self.missing[-1] = ""
            self.unset[-1] = bool(other) or _is_unset(_asked(word, condition), macros)
            self.dead[-1] = word == "else" and first in ("1", "true")

    def leave(self) -> None:
        if self.dead:
            for each in (self.missing, self.dead, self.unset, self._first):
                each.pop()


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


def _is_unset(name: str, macros: Mapping[str, Macro]) -> bool:
    """Whether neither a file nor a compiler for CUDA defines a name."""
    return bool(name) and name not in macros and not name.startswith(("__", "CUDA", "NV"))


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
