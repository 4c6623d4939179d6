"""Code of a CUDA source that no launch needs: above all that of the host.

A ``.cu`` file of everyday use holds kernels, functions that launch them, and a ``main``. The CPU
device needs the kernels and what they use.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property

from tree_sitter import Node

from launchwise.cuda_text.declarations import (
    IDENTIFIERS,
    Item,
    declared_names,
    identifiers,
    is_clear,
    items,
)
from launchwise.cuda_text.host_code import CALLS
from launchwise.cuda_text.syntax import child, has_word, parse, text_of, walk

_KEPT = (
    *("using_declaration", "template_instantiation", "static_assert_declaration"),
    "friend_declaration",
)
_LITERAL = re.compile(r'"(?:\\.|[^"\\\n])*"')
_DEVICE = re.compile(r"\b__(?:device|global|constant|shared|managed)__\b")


class _Part:
    """A declaration, with the names that it gives and uses."""

    def __init__(self, item: Item) -> None:
        self.item = item
        around = item.node.parent
        # Without braces, `extern "C"` belongs to this declaration alone.
        alone = around is not None and around.type == "linkage_specification"
        self.start = (around if alone and around else item.node).start_byte
        self.end = item.node.end_byte
        if item.body is None or not item.is_function:
            self.end += text_of(item.node.next_sibling) == ";"
        self.text = _LITERAL.sub('""', text_of(item.node))
        self.is_function = item.is_function and item.body is not None
        kind = None if self.is_function else item.structure
        self.is_class = kind is not None and kind.type != "enum_specifier"
        # Of a function or class.
        self.name = text_of(child(kind, "name")) if self.is_class else item.declarator.name
        # Whether any of it is marked for the GPU.
        self.of_device = item.of_device if self.is_function else bool(_DEVICE.search(self.text))

    @cached_property
    def words(self) -> set[str]:
        return identifiers([self.item.node])

    @cached_property
    def _own(self) -> set[str]:
        return declared_names([self.item.node]) - self.item.names

    @cached_property
    def functions(self) -> set[str]:
        """Identifiers that may mean a function: no members, and no variables of its own."""
        plain = {text_of(each) for each in walk(self.item.node, *IDENTIFIERS[:2])}
        calls = (child(each, "function") for each in walk(self.item.node, "call_expression"))
        called = {text_of(_innermost(each)) for each in calls if each is not None}
        return plain - (self._own - called)

    @property
    def droppable(self) -> bool:
        """Whether it may be left out when nothing names it."""
        if self.item.of_class or self.of_device or self.item.inner.type in _KEPT:
            return False
        if not (self.is_function or self.is_class):
            return not self.item.template and not has_word(self.item.inner, "constexpr")
        plain = re.fullmatch(r"[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*", self.name)
        special = has_word(self.item.inner, "constexpr") or self.item.instantiates
        return plain is not None and not special

    def used_by(self, named: set[str], functions: set[str]) -> bool:
        """Whether one of these names may mean it; ``functions`` are those that may mean one."""
        if not (self.is_function or self.is_class):
            return bool((self.item.names | self._own) & named)
        *outer, name = self.name.split("::")
        # A method is named as a member.
        return name in (functions if self.is_function and not outer else named)


def _innermost(node: Node) -> Node:
    """The last name of a function that is called, without namespaces and template arguments."""
    while (inner := child(node, "name")) is not None:
        node = inner
    return node


def other_code(
    text: str, asked: Iterable[str], refused: re.Pattern[str]
) -> list[tuple[int, int, str]]:
    """Parts of a source that no launch needs: start, end and the name that they define.

    These are functions that launch kernels, call the CUDA runtime or name one that does, and
    functions, classes and variables that nothing marked ``__device__`` or ``__global__`` uses. Of
    device code, functions that cannot run and that no kernel of those asked uses. ``text``:
    preprocessed CUDA C++, without the compiler's own headers. ``asked``: names of kernels; without
    any, all of them are. ``refused``: what cannot run."""
    root = parse(text)
    every = [_Part(item) for item in items(root, members=True)] if is_clear(root) else []
    unasked = _unasked(every, set(asked), refused) if asked else set()
    host = [part for part in every if not (part.of_device or part.is_class)]
    calling = {part for part in host if CALLS.search(part.text)}
    calling |= {part for part in host if part.is_function and part.name == "main"}
    more = calling
    while more:
        names = {part.name for part in more if part.is_function and not part.item.of_class} - {""}
        # A class that is kept keeps its methods' bodies, so they need what they name.
        more = {part for part in host if part not in calling and names & part.functions}
        calling |= more
    dropped = unasked | calling
    dropped |= _unused([part for part in every if part not in dropped])
    return _outermost((part.start, part.end, part.name) for part in every if part in dropped)


def _unasked(parts: list[_Part], asked: set[str], refused: re.Pattern[str]) -> set[_Part]:
    """Device functions that cannot run, or use one such, and that no kernel of those asked uses."""
    functions = [part for part in parts if part.is_function and part.of_device]
    used, waiting = set[str](), asked
    while waiting:
        used |= waiting
        words = [part.words for part in functions if part.name in waiting]
        waiting = set[str]().union(*words) - used
    unused = [part for part in functions if part.name not in used]
    dropped = {part for part in unused if refused.search(part.text)}
    while more := {
        part
        for part in unused
        if part not in dropped and part.words & {each.name for each in dropped}
    }:
        dropped |= more
    return dropped


def _unused(parts: list[_Part]) -> set[_Part]:
    """Functions and classes of the host that nothing of the rest names."""
    unused = {part for part in parts if part.droppable}
    classes = [part for part in unused if part.is_class]
    named: set[str] = set()
    functions: set[str] = set()

    def inside(part: _Part) -> bool:
        return any(each.start <= part.start and part.end <= each.end for each in classes)

    used = {part for part in parts if part not in unused and not inside(part)}
    while used:
        unused -= used
        for part in used:
            # A prototype does not use what it declares.
            declares = not (part.is_function or part.is_class or part.of_device)
            own = part.item.names if declares else set()
            named |= part.words - (set() if part.is_class else part._own) - own
            functions |= part.functions - own
        used = {part for part in unused if part.used_by(named, functions)}
    return unused


def _outermost(parts: Iterable[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    kept: list[tuple[int, int, str]] = []
    for start, end, name in sorted(parts, key=lambda part: (part[0], -part[1])):
        if not kept or start >= kept[-1][1]:
            kept.append((start, end, name))
    return kept
