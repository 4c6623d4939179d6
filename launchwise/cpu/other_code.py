"""Code of a CUDA source that no launch needs: above all that of the host.

A ``.cu`` file of everyday use holds kernels, functions that launch them, and a ``main``. The CPU
device needs the kernels and what they use.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
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
class _Item:
    """A declaration or definition outside of functions.

    Parameters
    ----------
    kind
        ``function`` (with its body), ``class`` or ``declaration``.
    head
        Its text before the body, without templates and attributes.
    """

    kind: str
    start: int
    end: int
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
    items: list[_Item] = field(default_factory=list)

    def read(self) -> list[_Item]:
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
        self.items.append(_Item(kind, start, end, head, text, of_class))


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


def other_code(
    text: str, asked: Iterable[str] = (), refused: re.Pattern[str] | None = None
) -> list[tuple[int, int, str]]:
    """Parts of a source that no launch needs: start, end and the name that they define.

    These are functions that launch kernels, call the CUDA runtime or name one that does, and
    functions, classes and variables that nothing marked ``__device__`` or ``__global__`` uses. Of
    device code, functions that cannot run and that no kernel of those asked uses.

    Parameters
    ----------
    text
        Preprocessed CUDA C++, without the compiler's own headers.
    asked
        Names of kernels; without any, all of them are.
    refused
        What cannot run.
    """
    every = _Reader(text).read()
    unasked = _unasked(every, set(asked), refused) if asked and refused else set()
    items = [item for item in every if id(item) not in unasked]
    host = [item for item in items if not item.of_device]
    calling = {id(item) for item in host if CALLS.search(item.text) and item.kind != "class"}
    calling |= {id(item) for item in host if item.kind == "function" and item.name == "main"}
    while True:
        names = {
            item.name
            for item in host
            if id(item) in calling and not item.of_class and item.kind != "declaration"
        } - {""}
        # A class that is kept keeps its methods' bodies, so they need what they name.
        more = {
            id(item)
            for item in host
            if item.kind != "class" and id(item) not in calling and names & item.functions
        }
        if not more:
            break
        calling |= more
    dropped = unasked | calling | _unused([item for item in items if id(item) not in calling])
    found = [(item.start, item.end, item.name) for item in every if id(item) in dropped]
    return _outermost(found)


def _unasked(items: list[_Item], asked: set[str], refused: re.Pattern[str]) -> set[int]:
    """Device functions that cannot run, or use one such, and that no kernel of those asked uses."""
    functions = [item for item in items if item.kind == "function" and item.of_device]
    used, waiting = set(), asked
    while waiting:
        used |= waiting
        words = [item.words for item in functions if item.name in waiting]
        waiting = set().union(*words) - used
    unused = [item for item in functions if item.name not in used]
    dropped = {id(item): item for item in unused if refused.search(item.text)}
    while more := [
        item
        for item in unused
        if id(item) not in dropped and item.words & {each.name for each in dropped.values()}
    ]:
        dropped |= {id(item): item for item in more}
    return set(dropped)


def _unused(items: list[_Item]) -> set[int]:
    """Functions and classes of the host that nothing of the rest names."""
    open_items = {id(item): item for item in items if item.droppable}
    classes = [item for item in open_items.values() if item.kind == "class"]
    named: set[str] = set()
    functions: set[str] = set()

    def use(item: _Item) -> None:
        # A prototype does not use what it declares.
        own = {item.name} if item.kind == "declaration" and not item.of_device else set()
        named.update(item.foreign - own)
        functions.update(item.functions - own)

    for item in items:
        inside = any(each.start <= item.start and item.end <= each.end for each in classes)
        if id(item) not in open_items and not inside:
            use(item)
    while used := [key for key, item in open_items.items() if item.used_by(named, functions)]:
        for key in used:
            use(open_items.pop(key))
    return set(open_items)


def _outermost(parts: Iterable[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """Parts that lie in no other."""
    kept: list[tuple[int, int, str]] = []
    for start, end, name in sorted(parts, key=lambda part: (part[0], -part[1])):
        if not kept or start >= kept[-1][1]:
            kept.append((start, end, name))
    return kept
