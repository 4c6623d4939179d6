"""Host code of a CUDA text: launches of kernels, template instantiations, bodies that launch.

nvcc gets functions of the host without bodies that launch: ``launch<64>(...)`` in one makes it
compile ``kernel<64>`` into every build, whatever the build's own macros and template arguments are.
That takes time, and a kernel that does not fit there makes nvcc refuse the build.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tree_sitter import Node

from launchwise.cuda_text.declarations import Item, is_clear, items
from launchwise.cuda_text.syntax import (
    above,
    child,
    condition_of,
    declarator,
    declarators,
    in_place,
    is_whole,
    joined,
    parse,
    plain,
    text_of,
    walk,
    without_directives,
)

CALLS = re.compile(
    r"<<<|\bcuda[A-Z]\w*\s*\(|\b(?:cublas|cufft|curand|cusparse|cusolver|cudnn|nvtx)[A-Z]\w*\s*\("
)
"""A launch, or a call of the CUDA runtime or of a library of CUDA's."""


@dataclass(frozen=True)
class Launch:
    """``kernel<template><<<grid, block, shared>>>(arguments)``."""

    kernel: str
    template: tuple[str, ...]
    configuration: tuple[Node, ...]
    node: Node


class HostCode:
    def __init__(self, root: Node, items: Sequence[Item]) -> None:
        self._root, self._items = root, items

    @cached_property
    def launches(self) -> list[Launch]:
        found = []
        for call in walk(self._root, "call_expression"):
            for given in call.children:
                if given.type == "kernel_call_syntax":
                    name, template = _named(child(call, "function"))
                    found.append(Launch(name, template, tuple(given.named_children), call))
        return found

    def template_values(self, kernel: str, place: int) -> list[str]:
        """Texts that launches and instantiations give a parameter of a kernel's template, each
        once. Also through a function of its own that is a template: ``launch<64>(...)``."""
        given = [(one.node, one.template) for one in self.launches if one.kernel == kernel]
        for item in self._items:
            own = item.declarator
            if item.inner.type == "template_instantiation" and own.name == kernel:
                given.append((item.node, _listed(child(own.node, "arguments"))))
        found: list[str] = []
        for at, template in sorted(given, key=lambda each: each[0].start_byte):
            for text in template[place : place + 1]:
                found += self._through(at, text) if text.isidentifier() else [text]
        return list(dict.fromkeys(found))

    def specialised(self, kernel: str, place: int) -> list[str]:
        """What explicit specialisations of a kernel (``template <>``) give a parameter."""
        own = [each for each in self._items if each.is_kernel and each.instantiates]
        named = [each.declarator.node for each in own if each.declarator.name == kernel]
        return [text for node in named for text in _listed(child(node, "arguments"))[place:][:1]]

    def _through(self, node: Node, name: str) -> list[str]:
        """What is given to the template parameter ``name`` of the function around a node."""
        for item in self._items:
            names = [one.name for one in item.template]
            if name in names and item.node in list(above(node)):
                own, place = item.declarator.name, names.index(name)
                calls = [_named(each) for each in walk(self._root, "template_function")]
                return [each[place] for one, each in calls if one == own and place < len(each)]
        return [*self.value(name, node.start_byte)] or [name]

    @cached_property
    def _sets(self) -> dict[str, list[tuple[int, tuple[str, ...]]]]:
        """Names to the places that set them and to what: one text, or those of a constructor. None
        where a value is added to the one before."""
        found: dict[str, list[tuple[int, tuple[str, ...]]]] = {}
        for node in walk(self._root, "init_declarator", "assignment_expression", "declaration"):
            for name, values in _values(node):
                found.setdefault(name, []).append((node.start_byte, values))
        return found

    def value(self, name: str, before: int) -> tuple[str, ...]:
        """Texts to which a variable is set before a place; none where nothing says them."""
        earlier = [values for place, values in self._sets.get(name, ()) if place < before]
        return earlier[-1] if earlier else ()

    def sides(self, node: Node, before: int) -> tuple[str, ...]:
        """Sizes in x, y and z of an expression: a number, a ``dim3``, or the name of one."""
        return _constructed(node) or self.value(plain(node), before) or (plain(node),)


def _named(node: Node | None) -> tuple[str, tuple[str, ...]]:
    """Name of a function without namespaces, and its template arguments."""
    while node is not None and node.type in ("qualified_identifier", "parenthesized_expression"):
        node = child(node, "name") or node.named_children[0]
    if node is not None and node.type == "template_function":
        return text_of(child(node, "name")), _listed(child(node, "arguments"))
    return text_of(node), ()


def _listed(node: Node | None) -> tuple[str, ...]:
    return tuple(plain(each) for each in node.named_children) if node is not None else ()


def _constructed(node: Node | None) -> tuple[str, ...]:
    """Parts of ``dim3(a, b)``, ``dim3{a, b}`` or ``{a, b}``; none of anything else."""
    if node is not None and node.type in ("initializer_list", "argument_list"):
        return _listed(node)
    if text_of(child(node, "function") or child(node, "type")) == "dim3":
        return _listed(child(node, "arguments") or child(node, "value"))
    return ()


def _values(node: Node) -> Iterator[tuple[str, tuple[str, ...]]]:
    if node.type != "declaration":
        value = child(node, "right") or child(node, "value")
        is_set = text_of(child(node, "operator")) in ("", "=")
        name = plain(child(node, "left")) or declarator(node).name
        yield name, (_constructed(value) or (plain(value),)) if is_set else ()
    elif text_of(child(node, "type")) == "dim3":
        # `dim3 block(A, B);` reads like a function that takes types.
        nodes = node.children_by_field_name("declarator")
        for part, one in zip(nodes, declarators(node), strict=True):
            if part.type != "init_declarator":
                yield one.name, _listed(one.arguments)


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
    """A file whose functions of the host do not launch; every line keeps its number. A function
    keeps its body if it is not certain that the GPU never runs it, and all of them do if the file's
    braces are hard to follow. ``macros``: what :func:`macros_in` found in the file and in those
    that it includes. ``kernels``: names of kernels: a function that names one is one that
    launches."""
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
