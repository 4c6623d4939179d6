"""What a CUDA text defines: kernels with their namespaces and lines, names, macros.

The text is read as it stands, all branches of ``#if`` included; what macros make is not found.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache

from tree_sitter import Node

from launchwise.cuda_text.declarations import Item, items
from launchwise.cuda_text.directives import without_directives
from launchwise.cuda_text.names import declared_names
from launchwise.cuda_text.syntax import has_word, parse, walk

_BOUNDS = re.compile(r"__launch_bounds__\s*\((?:[^()]|\([^()]*\))*\)|__\w+__\s*\([^()]*\)")


@dataclass(frozen=True)
class Definition:
    """A kernel in a CUDA text. ``name`` has its namespaces, ``mine::axpy``, but for anonymous ones;
    ``line`` is that of its name, from 1. ``is_local`` says that it is ``static`` or in an anonymous
    namespace: nvcc drops it unless it is used."""

    name: str
    line: int
    is_template: bool
    is_local: bool


@lru_cache(maxsize=64)
def _root(text: str) -> Node:
    return parse(without_directives(text))


def definitions(text: str, kernel: str | None = None) -> list[Definition]:
    """Kernels that a text without comments defines or declares; those of one name only.

    ``kernel``: name, with or without namespaces; all kernels when left out.
    """
    found = [
        _definition(item)
        for item in items(_root(text))
        if item.is_kernel and item.is_function and item.inner.type != "template_instantiation"
    ]
    if kernel is None:
        return found
    return [each for each in found if each.name == kernel or each.name.endswith(f"::{kernel}")]


def _definition(item: Item) -> Definition:
    named = item.declarator
    node = named.node or item.node
    return Definition(
        name="::".join([*filter(None, item.scope), named.name]),
        line=node.start_point[0] + 1,
        is_template=item.node.type == "template_declaration",
        is_local="" in item.scope or has_word(item.inner, "static"),
    )


def without_bounds(text: str) -> str:
    """A text with blanks for ``__launch_bounds__(...)`` and attributes of that kind."""
    return _BOUNDS.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def template_parameters(text: str) -> set[str]:
    """Names of parameters in the ``template <...>`` heads of a text."""
    lists = walk(_root(text), "template_parameter_list")
    return declared_names(each for each in lists)


def declares(text: str, name: str) -> bool:
    """Whether a text declares a type, a constant or a macro of that name outside of functions."""
    if re.search(rf"^[ \t]*#[ \t]*define[ \t]+{re.escape(name)}\b", text, re.MULTILINE):
        return True
    every = items(_root(text), members=True)
    named = any(name in item.names for item in every if not item.is_function or item.is_constant)
    return named or any(name in item.scope for item in every)


@lru_cache(maxsize=64)
def _variables(text: str) -> frozenset[str]:
    return frozenset(declared_names([_root(text)]))


def is_macro(name: str, text: str) -> bool:
    """Whether a C++ text uses a name without declaring it as a variable or parameter."""
    return re.search(rf"\b{name}\b", text) is not None and name not in _variables(text)


def overriding_line(name: str, text: str, macros: Collection[str] = ()) -> int:
    """Line that defines or undefines a macro under no condition; 0 where none does. A guard of the
    file (``#ifndef FILE_H``, then ``#define FILE_H``) is no condition, unless it is one of the
    ``macros`` that the build defines: then what it guards is left out."""
    for number, word, rest in _unconditional(text, macros):
        named = "".join(rest.split()[:1]).partition("(")[0] == name
        if word in ("define", "undef") and named:
            return number
    return 0


def declaring_line(name: str, text: str, macros: Collection[str] = ()) -> int:
    """Line that declares a name as a constant or an enumerator under no condition; 0 for none. A
    macro of that name would stand in its declaration: ``const int 64 = 128;``. Conditions are those
    of :func:`overriding_line`."""
    if name not in text:
        return 0
    kept = {number: line for number, word, line in _unconditional(text, macros) if not word}
    plain = "\n".join(kept.get(number, "") for number in range(1, text.count("\n") + 2))
    own = re.escape(name)
    constant = rf"\bconst(?:expr|init)?\b[^;(){{}}=]*?\b(?P<name>{own})\s*[={{\[;]"
    further = rf"\bconst(?:expr)?\s[^;(){{}}]*,\s*(?P<other>{own})\s*[={{]"
    one_of = rf"\benum\b[^;{{}}()]*\{{(?:[^{{}};]*,)?\s*(?P<one>{own})\s*[=,}}]"
    for pattern in (constant, further, one_of):
        if match := re.search(pattern, plain):
            return plain.count("\n", 0, match.start(match.lastindex or 0)) + 1
    return 0


def _unconditional(text: str, macros: Collection[str]) -> Iterator[tuple[int, str, str]]:
    """Lines under no condition: number, word of a directive and its rest, or nothing and all."""
    conditions: list[str] = []
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        match = re.match(r"[ \t]*#[ \t]*(\w+)(.*)", line)
        word, rest = (match[1], match[2].split()) if match else ("", [])
        if word in ("if", "ifdef", "ifndef"):
            following = lines[number].split() if number < len(lines) else []
            guards = word == "ifndef" and rest and following[:2] == ["#define", rest[0]]
            guards = guards and rest[0] not in macros
            # The name of a guard has no value.
            conditions.append("guard" if guards and len(following) == 2 else word)
        elif word == "endif" and conditions:
            conditions.pop()
        elif not set(conditions) - {"guard"}:
            yield number, word, match[2] if match else line
