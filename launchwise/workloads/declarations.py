"""Declarations of a CUDA C++ text outside of functions: functions, classes, variables.

A scanner of braces, not a parser: it says nothing where they do not match.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

CALLS = re.compile(
    r"<<<|\bcuda[A-Z]\w*\s*\(|\b(?:cublas|cufft|curand|cusparse|cusolver|cudnn|nvtx)[A-Z]\w*\s*\("
)
"""A launch, or a call of the CUDA runtime or of a library of CUDA's."""

_TOKEN = re.compile(
    r'R"(?P<raw>[^()\\\s]*)\(.*?\)(?P=raw)"'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<!\w)'(?:\\.|[^'\\\n])+'"
    r"|^[ \t]*\#[^\n]*"
    r"|\b(?:public|private|protected)\s*:(?!:)"
    r"|[{}();]",
    re.DOTALL | re.MULTILINE,
)
_LINE = re.compile(r"^[ \t]*#[^\n]*", re.MULTILINE)
_LITERAL = re.compile(r'"(?:\\.|[^"\\\n])*"')
_WORD = re.compile(r"[A-Za-z_]\w*")
_DEVICE = re.compile(r"\b__(?:device|global|constant|shared|managed)__\b")
_FREE = re.compile(r"(?<![\w.])(?<!->)[A-Za-z_]\w*")
_CALLED = re.compile(r"(?<![\w.])(?<!->)([A-Za-z_]\w*)\s*(?:<[\w\s,:*]*>\s*)?\(")
_TYPE = (
    r"\b(?!(?:return|else|case|goto|throw|new|delete|sizeof|do|not|typename|struct|class|enum|union)\b)"
    r"[A-Za-z_]\w*"
)
_LOCAL = re.compile(rf"{_TYPE}\s+([A-Za-z_]\w*)\s*(?:=(?!=)|[;,)\[{{])")
"""A variable behind its type: two words in a row are nothing else."""
_VARIABLE = re.compile(
    rf"(?:{_TYPE}[\s*&]+|[>\]][\s*&]*)\b([A-Za-z_]\w*)\s*[=;,)\[{{:>]"
    r"|(?<![\w.])(?<!->)([A-Za-z_]\w*)\s*(?:[-+*/%&|^]|<<|>>)?=(?!=)"
)
"""What is no function: declared behind its type, or assigned to."""
_ATTRIBUTES = re.compile(
    r"\b(?:__attribute__|alignas|decltype|noexcept|__declspec|explicit)\s*"
    r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)|\[\[.*?\]\]",
    re.DOTALL,
)
_SPACE = re.compile(r'\s*(?:inline\s+)?namespace\b[\w:\s]*$|\s*extern\s*"[^"]*"\s*$')
_CLASS = re.compile(r"^(?:[\w\s]*?)\b(?:class|struct|union)\b\s*(?P<name>\w+)?")
_INITIALISER = re.compile(r"\)\s*(?:noexcept\s*)?:(?!:)")
_NAME = re.compile(r"(?P<name>operator\b[^(]*\(\)|operator\b[^(]*|[\w:~]+)\s*(?:<[^()]*>\s*)?\(")
_TYPES = frozenset(
    _WORD.findall(
        "static const extern inline unsigned signed void bool char short int long float double "
        "auto size_t std struct class"
    )
)
_MEANT_OTHERWISE = frozenset(
    _WORD.findall(
        "using namespace typedef template static_assert friend operator constexpr enum union"
    )
)


@dataclass(frozen=True)
class Item:
    """A declaration or definition outside of functions.

    Parameters
    ----------
    kind
        ``function`` (with its body), ``class`` or ``declaration``.
    head
        Its text before the body, without templates and attributes.
    body
        Place of the brace that opens its body; -1 without one.
    """

    kind: str
    start: int
    end: int
    body: int
    head: str
    text: str
    of_class: bool

    @cached_property
    def words(self) -> frozenset[str]:
        """Every identifier in it."""
        return frozenset(_WORD.findall(self.text))

    @cached_property
    def foreign(self) -> frozenset[str]:
        """Its identifiers without those of its own variables."""
        return self.words - set(() if self.kind == "class" else _LOCAL.findall(self.text))

    @cached_property
    def functions(self) -> frozenset[str]:
        """Identifiers that may mean a function: no members, and no variables of its own."""
        own = {name for found in _VARIABLE.findall(self.text) for name in found}
        return frozenset(_FREE.findall(self.text)) - (own - set(_CALLED.findall(self.text)))

    @property
    def name(self) -> str:
        """What it declares, '' if that is not known."""
        if self.kind == "class":
            found = _CLASS.match(self.head)
            return (found["name"] or "") if found else ""
        named = _NAME.search(self.head)
        return named["name"].strip() if named and "=" not in self.head[: named.start()] else ""

    @property
    def of_device(self) -> bool:
        """Whether any of it is marked for the GPU."""
        return bool(_DEVICE.search(self.head if self.kind == "function" else self.text))

    @property
    def droppable(self) -> bool:
        """Whether it may be left out when nothing names it."""
        if self.of_class or self.of_device:
            return False
        if self.kind == "declaration":
            return not _MEANT_OTHERWISE & self.words
        plain = bool(re.fullmatch(r"[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*", self.name))
        special = "constexpr" in self.head or re.match(r"\s*template\s*<\s*>", self.text)
        return plain and not special

    def used_by(self, named: set[str], functions: set[str]) -> bool:
        """Whether one of these names may mean it: of a declaration, any word counts.

        Parameters
        ----------
        named
            Identifiers.
        functions
            Those that may mean a function.
        """
        if self.kind == "declaration":
            return bool((self.words - _TYPES) & named)
        *outer, name = self.name.split("::")
        # A method is named as a member.
        return name in (functions if self.kind == "function" and not outer else named)


@dataclass
class _Reader:
    """Reads the declarations of a text."""

    text: str
    items: list[Item] = field(default_factory=list)

    def read(self) -> list[Item]:
        """All declarations outside of functions; none if the braces do not match."""
        try:
            end = self._declarations(0, False)
        except _Unbalanced:
            return []
        return self.items if end >= len(self.text) else []

    def _tokens(self, position: int) -> Iterator[re.Match[str]]:
        return _TOKEN.finditer(self.text, position)

    def _declarations(self, position: int, of_class: bool) -> int:
        """Declarations up to the brace that closes their scope; the place behind it."""
        while True:
            start, kind, head_end = position, "declaration", -1
            depth = 0
            while True:
                found = _TOKEN.search(self.text, position)
                if found is None:
                    return len(self.text)
                position = found.end()
                token = found[0]
                if token == "(":
                    depth += 1
                elif token == ")":
                    depth -= 1
                elif token.endswith(":") and not depth:
                    start = position
                elif token == "}" and not depth:
                    return position
                elif token == ";" and not depth:
                    self._add(kind, start, position, head_end, of_class)
                    break
                elif token == "{":
                    head = self._head(start, found.start())
                    what = "value" if depth else _opened(head, self.text[: found.start()])
                    if what == "space":
                        position = self._declarations(position, False)
                        break
                    if what == "class":
                        kind, head_end = "class", found.start()
                        position = self._declarations(position, True)
                        continue
                    position = self._closing(position)
                    if what == "function":
                        following = re.compile(r"[\s]*[,{]").match(self.text, position)
                        if following and _INITIALISER.search(head):
                            continue
                        self._add("function", start, position, found.start(), of_class)
                        break

    def _closing(self, position: int) -> int:
        """The place behind the brace that closes one before ``position``."""
        depth = 1
        for found in self._tokens(position):
            depth += {"{": 1, "}": -1}.get(found[0], 0)
            if not depth:
                return found.end()
        raise _Unbalanced

    def _head(self, start: int, end: int) -> str:
        return _without_templates(_ATTRIBUTES.sub(" ", _LINE.sub("", self.text[start:end])))

    def _add(self, kind: str, start: int, end: int, head_end: int, of_class: bool) -> None:
        head = self._head(start, end if head_end < 0 else head_end)
        text = _LITERAL.sub('""', _LINE.sub("", self.text[start:end]))
        self.items.append(Item(kind, start, end, head_end, head, text, of_class))


class _Unbalanced(Exception):
    """Braces do not match: the compiler says where."""


def _opened(head: str, before: str) -> str:
    """What a brace behind ``head`` opens: space, class, function or value."""
    if _SPACE.match(head):
        return "space"
    outside = re.sub(r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)", "()", head)
    if re.search(r"(?<![=!<>])=(?!=)", re.sub(r"\boperator\s*\S+?(?=\()", "operator", outside)):
        return "value"
    if re.search(r"\b(?:class|struct|union)\b", outside) and "()" not in outside:
        return "class"
    if re.search(r"\benum\b", outside) or "(" not in outside:
        return "value"
    return "function"


def _without_templates(head: str) -> str:
    """A head without ``template <...>`` before it."""
    while found := re.match(r"\s*template\s*<", head):
        depth, position = 1, found.end()
        while depth and position < len(head):
            depth += {"<": 1, ">": -1}.get(head[position], 0)
            position += 1
        head = head[position:]
    return head


def declarations(text: str) -> list[Item]:
    """Declarations outside of functions, in the order of their ends.

    Parameters
    ----------
    text
        CUDA C++ without comments.

    Returns
    -------
    None at all if the braces of the text do not match.
    """
    return _Reader(text).read()
