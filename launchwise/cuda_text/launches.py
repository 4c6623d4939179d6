"""Launches of kernels in the host code of a CUDA text, and instantiations of templates."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from tree_sitter import Node

from launchwise.cuda_text.declarations import Item
from launchwise.cuda_text.syntax import above, child, declarator, declarators, plain, text_of, walk

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


@dataclass(frozen=True)
class _Set:
    """A place where host code gives a name a value: ``=``, ``+=``, or ``(`` for a constructor."""

    place: int
    operator: str
    values: tuple[str, ...]


class HostCode:
    """Host code of a text."""

    def __init__(self, root: Node, items: Sequence[Item]) -> None:
        self._root, self._items = root, items

    @cached_property
    def launches(self) -> list[Launch]:
        """In the order of the text."""
        found = []
        for call in walk(self._root, "call_expression"):
            for given in call.children:
                if given.type == "kernel_call_syntax":
                    name, template = _named(child(call, "function"))
                    found.append(Launch(name, template, tuple(given.named_children), call))
        return found

    def template_arguments(self, kernel: str) -> list[tuple[str, ...]]:
        """Those with which the text launches or instantiates a kernel, in its order."""
        return [template for _, template in self._templates(kernel)]

    def _templates(self, kernel: str) -> list[tuple[Node, tuple[str, ...]]]:
        """Launches and instantiations of a kernel that is a template."""
        named = [one for one in self.launches if one.kernel == kernel and one.template]
        found = [(one.node, one.template) for one in named]
        for item in self._items:
            own = item.declarator
            if item.inner.type == "template_instantiation" and own.name == kernel:
                found.append((item.node, _listed(child(own.node, "arguments"))))
        return sorted(found, key=lambda each: each[0].start_byte)

    def template_values(self, kernel: str, place: int) -> list[str]:
        """Texts that the host gives a parameter of a kernel's template, each once. Also through a
        function of its own that is a template: ``launch<64>(...)``."""
        found: list[str] = []
        for at, template in self._templates(kernel):
            text = template[place] if place < len(template) else ""
            found += self._through(at, text) if text.isidentifier() else [text]
        return list(dict.fromkeys(found))

    def _through(self, node: Node, name: str) -> list[str]:
        """What is given to the template parameter ``name`` of the function around a node."""
        for item in self._items:
            names = [one.name for one in item.template]
            if name in names and item.node in list(above(node)):
                own, place = item.declarator.name, names.index(name)
                calls = [_named(each) for each in walk(self._root, "template_function")]
                return [each[place] for one, each in calls if one == own and place < len(each)]
        return self.value(name, node.start_byte) or [name]

    @cached_property
    def _sets(self) -> dict[str, list[_Set]]:
        found: dict[str, list[_Set]] = {}
        for node in walk(self._root, "init_declarator", "assignment_expression", "declaration"):
            for name, one in _values(node):
                found.setdefault(name, []).append(one)
        return found

    def value(self, name: str, before: int) -> list[str]:
        """Texts that add up to a variable where it is set before a place; none where it is not."""
        found: list[str] = []
        for one in self._sets.get(name, ()):
            if one.place < before and (one.operator in ("=", "+=") or len(one.values) == 1):
                begins = one.operator != "+=" or found in ([], ["0"])
                found = [*([] if begins else found), *one.values]
        return found

    def sides(self, node: Node, before: int) -> list[str]:
        """Sizes in x, y and z of an expression: a number, a ``dim3``, or the name of one."""
        text = plain(node)
        earlier = [one for one in self._sets.get(text, ()) if one.place < before]
        if not earlier or earlier[-1].operator != "(":
            return _constructed(node) or [text]
        if earlier[-1].values:
            return list(earlier[-1].values)
        # A `dim3` that is set member by member: `block.x = 32;`.
        members = [" + ".join(self.value(f"{text}.{axis}", before)) for axis in "xyz"]
        while members and not members[-1]:
            members.pop()
        return [each or "1" for each in members]


def _named(node: Node | None) -> tuple[str, tuple[str, ...]]:
    """Name of a function without namespaces, and its template arguments."""
    while node is not None and node.type in ("qualified_identifier", "parenthesized_expression"):
        node = child(node, "name") or node.named_children[0]
    if node is not None and node.type == "template_function":
        return text_of(child(node, "name")), _listed(child(node, "arguments"))
    return text_of(node), ()


def _listed(node: Node | None) -> tuple[str, ...]:
    return tuple(plain(each) for each in node.named_children) if node is not None else ()


def _constructed(node: Node | None) -> list[str]:
    """Parts of ``dim3(a, b)``, ``dim3{a, b}`` or ``{a, b}``; none of anything else."""
    if node is not None and node.type in ("initializer_list", "argument_list"):
        return list(_listed(node))
    if text_of(child(node, "function") or child(node, "type")) == "dim3":
        return list(_listed(child(node, "arguments") or child(node, "value")))
    return []


def _values(node: Node) -> Iterator[tuple[str, _Set]]:
    if node.type != "declaration":
        value = child(node, "right") or child(node, "value")
        parts = tuple(_constructed(value))
        operator = "(" if parts else text_of(child(node, "operator")) or "="
        name = plain(child(node, "left")) or declarator(node).name
        yield name, _Set(node.start_byte, operator, parts or (plain(value),))
    elif text_of(child(node, "type")) == "dim3":
        # `dim3 block(A, B);` reads like a function that takes types.
        nodes = node.children_by_field_name("declarator")
        for part, one in zip(nodes, declarators(node), strict=True):
            if part.type != "init_declarator":
                yield one.name, _Set(node.start_byte, "(", _listed(one.arguments))
