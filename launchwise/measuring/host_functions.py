"""Functions of the host in a source for nvcc, which gets them without bodies that launch.

``launch<64>(...)`` in a function of the host makes nvcc compile ``kernel<64>`` into every build,
whatever the build's own macros and template arguments are: that takes time, and a kernel that does
not fit there makes nvcc refuse the build.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from launchwise.cuda_text.declarations import Item, is_clear, items
from launchwise.cuda_text.launches import CALLS
from launchwise.cuda_text.syntax import parse, text_of

_COMMENT = re.compile(
    r'//(?:\\\r?\n|[^\n])*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.DOTALL
)
_UNREADABLE = re.compile(r"\bu?8?[RLU]*R\"|\d'\d")
"""A raw string, or digits in groups: then quotation marks do not say where a text ends."""
_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(?P<name>\w*)(?:\\\r?\n|[^\n])*", re.MULTILINE)
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)((?:\\\r?\n|[^\n])*)", re.MULTILINE)
_WORD = re.compile(r"[A-Za-z_]\w*")
_GPU = re.compile(r"\b__(?:device|global|constant|shared|managed|grid_constant)__\b")
_GPU_ATTRIBUTE = re.compile(r"\b(?:device|global)\b")
_LIBRARY = re.compile(r"\b(?:thrust|cub)\s*::")
_KNOWN = {"__host__", "__forceinline__", "__inline__", "__noinline__", "__restrict__", "__inline"}
_KEPT = {"auto", "constexpr", "consteval", "try", "operator"}
"""Words in the head of a function that stays: its body says its type, or the GPU may run it."""


def macros_in(text: str) -> dict[str, str]:
    """Macros that a text without comments defines, to what follows their names."""
    found: dict[str, str] = {}
    for name, value in _MACRO.findall(text):
        found[name] = f"{found.get(name, '')} {value}"
    return found


def without_host_bodies(content: str, macros: Mapping[str, str], kernels: Collection[str]) -> str:
    """A file whose functions of the host do not launch; every line keeps its number.

    A function keeps its body if it is not certain that the GPU never runs it, and all of them do if
    the file's braces are hard to follow. ``macros``: what :func:`macros_in` found in the file and
    in those that it includes. ``kernels``: names of kernels: a function that names one is one that
    launches.
    """
    if "{" not in content or _UNREADABLE.search(content):
        return content
    file = _File.of(content)
    root = parse(file.code)
    every = items(root, members=True) if is_clear(root) else []
    functions = [_Body.of(each) for each in every if each.is_function and each.body is not None]
    if not all(file.is_whole(each) for each in functions):
        return content
    launching = _launching(macros, kernels)
    pieces, done = [], 0
    for each in functions:
        body = file.code[each.body : each.end]
        if each.body >= done and _launches(body, launching) and _is_of_host(each, file, macros):
            pieces += [content[done : each.body], file.emptied(each)]
            done = each.end
    return "".join([*pieces, content[done:]])


@dataclass(frozen=True)
class _Body:
    """Places of a function, and of the brace that opens its body; its text before that."""

    start: int
    body: int
    end: int
    head: str

    @classmethod
    def of(cls, item: Item) -> _Body:
        """The places of a function with a body."""
        node, body = item.node, item.body
        opening = body.start_byte if body is not None else node.end_byte
        head = text_of(item.inner)[: opening - item.inner.start_byte]
        return cls(node.start_byte, opening, node.end_byte, head)


@dataclass(frozen=True)
class _File:
    """A file as it is read here; each text has the places of the file."""

    bare: str  # without comments
    code: str  # without comments, the insides of literals and lines of the preprocessor
    directives: Sequence[re.Match[str]]  # those lines

    @classmethod
    def of(cls, content: str) -> _File:
        """The file of a content."""
        bare = _COMMENT.sub(
            lambda found: _blank(found[0]) if found[0][0] == "/" else found[0], content
        )
        code = _COMMENT.sub(lambda found: found[0][0] + _blank(found[0][1:-1]) + found[0][-1], bare)
        directives = list(_DIRECTIVE.finditer(bare))
        return cls(bare, _DIRECTIVE.sub(lambda found: _blank(found[0]), code), directives)

    def inside(self, item: _Body) -> list[re.Match[str]]:
        """Lines of the preprocessor in a function's body."""
        return [each for each in self.directives if item.body <= each.start() < item.end]

    def is_whole(self, item: _Body) -> bool:
        """Whether every branch of ``#if`` in a body closes the braces that it opens."""
        depths: list[int] = []
        for each in self.inside(item):
            before = self.code[item.body : each.start()]
            depth = before.count("{") - before.count("}")
            if each["name"].startswith("if"):
                depths.append(depth)
            elif each["name"] in ("else", "elif", "endif"):
                if not depths or depths[-1] != depth:
                    return False
                if each["name"] == "endif":
                    depths.pop()
        return not depths

    def emptied(self, item: _Body) -> str:
        """A body that does nothing, with the macros that it defines for what follows it."""
        kept = [each for each in self.inside(item) if each["name"] != "pragma"]
        if not any(each["name"] in ("define", "undef") for each in kept):
            kept = []
        pieces, done = ["{"], item.body
        for each in kept:
            pieces += ["\n" * self.bare.count("\n", done, each.start()), each[0]]
            done = each.end()
        return "".join([*pieces, "\n" * self.bare.count("\n", done, item.end), "}"])


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def _launching(macros: Mapping[str, str], kernels: Collection[str]) -> set[str]:
    """Kernels, and macros that stand for a launch."""
    found = set(kernels)
    while more := {
        name for name, value in macros.items() if name not in found and _launches(value, found)
    }:
        found |= more
    return found


def _launches(text: str, launching: Collection[str]) -> bool:
    if CALLS.search(text) or _LIBRARY.search(text):
        return True
    return not set(launching).isdisjoint(_WORD.findall(text))


def _is_of_host(item: _Body, file: _File, macros: Mapping[str, str]) -> bool:
    """Whether the GPU never runs a function, and its type does not depend on its body."""
    before = file.code[item.start : item.body]
    if _GPU_ATTRIBUTE.search(before) or _GPU.search(file.code[item.start : item.end]):
        return False
    if any(each["name"].startswith("include") for each in file.inside(item)):
        return False
    head = item.head
    while (shorter := re.sub(r"\([^()]*\)|<[^<>]*>", " ", head)) != head:
        head = shorter
    words = set(_WORD.findall(head))
    unknown = {
        word
        for word in words
        if (word in macros and not re.fullmatch(r"[a-z\s*&]*", macros[word]))
        or (word.startswith("__") and word not in _KNOWN)
        or (len(word) > 1 and word.isupper())
    }
    return not unknown and words.isdisjoint(_KEPT)
