"""Functions of the host in a source for nvcc, which gets them without bodies that launch.

``launch<64>(...)`` in a function of the host makes nvcc compile ``kernel<64>`` into every build,
whatever the build's own macros and template arguments are: that takes time, and a kernel that does
not fit there makes nvcc refuse the build.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from launchwise.cuda_text.declarations import Item, is_clear, items
from launchwise.cuda_text.directives import (
    condition_of,
    in_place,
    is_whole,
    joined,
    without_directives,
)
from launchwise.cuda_text.launches import CALLS
from launchwise.cuda_text.syntax import parse, text_of

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
    if "{" not in content:
        return content
    bare, lines = in_place(content), in_place(content, literals=False)
    code = without_directives(lines)
    root = parse(code)
    every = items(root, members=True) if is_clear(root) else []
    functions = [
        (item, slice(braces.start_byte, braces.end_byte))
        for item in every
        if item.is_function and (braces := item.body) is not None
    ]
    if not all(is_whole(lines[body].split("\n")) for _, body in functions):
        return content
    launching = _launching(macros, kernels)
    pieces, done = [], 0
    for item, body in functions:
        if (
            body.start >= done
            and _launches(code[body], launching)
            and _is_of_host(item, code, body, macros)
            and not re.search(r"^[ \t]*#[ \t]*include", lines[body], re.MULTILINE)
        ):
            pieces += [content[done : body.start], _emptied(bare[body])]
            done = body.stop
    return "".join([*pieces, content[done:]])


def _emptied(body: str) -> str:
    """A body that does nothing, with the macros that it defines for what follows it."""
    lines = joined(body)
    words = [condition_of(line)[0] for line in lines]
    defines = not {"define", "undef"}.isdisjoint(words)
    kept = [
        line if defines and word not in ("", "pragma") else ""
        for line, word in zip(lines, words, strict=True)
    ]
    return "{" + "\n".join(kept) + "}"


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


def _is_of_host(item: Item, code: str, body: slice, macros: Mapping[str, str]) -> bool:
    """Whether the GPU never runs a function, and its type does not depend on its body."""
    start = item.node.start_byte
    if _GPU_ATTRIBUTE.search(code[start : body.start]) or _GPU.search(code[start : body.stop]):
        return False
    head = text_of(item.inner)[: body.start - item.inner.start_byte]
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
