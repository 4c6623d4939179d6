"""Code of a CUDA source that no launch needs: above all that of the host.

A ``.cu`` file of everyday use holds kernels, functions that launch them, and a ``main``. The CPU
device needs the kernels and what they use.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property

from launchwise.cuda_text.declarations import (
    IDENTIFIERS,
    Item,
    declared_names,
    identifiers,
    is_clear,
    items,
)
from launchwise.cuda_text.host_code import CALLS
from launchwise.cuda_text.syntax import child, parse, text_of, walk

_KEPT = (
    *("using_declaration", "template_instantiation", "static_assert_declaration"),
    "friend_declaration",
)
_LITERAL = re.compile(r'"(?:\\.|[^"\\\n])*"')
_PLAIN = re.compile(r"[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*")


class _Part:
    """A declaration, with the names that it uses."""

    def __init__(self, item: Item) -> None:
        self.item = item
        around = item.node.parent
        # Without braces, `extern "C"` belongs to this declaration alone.
        alone = around is not None and around.type == "linkage_specification"
        self.start = (around if alone and around else item.node).start_byte
        self.end = item.node.end_byte
        self.is_function = item.is_function and item.body is not None
        if not self.is_function:
            self.end += text_of(item.node.next_sibling) == ";"
        self.name = item.declarator.name

    @cached_property
    def words(self) -> set[str]:
        """Names that it uses, without variables of its own."""
        return identifiers([self.item.node]) - self._variables

    @cached_property
    def functions(self) -> set[str]:
        """Those of them that may mean a function: no members."""
        plain = {text_of(each) for each in walk(self.item.node, *IDENTIFIERS[:2])}
        return plain - self._variables

    @cached_property
    def _variables(self) -> set[str]:
        calls = (child(each, "function") for each in walk(self.item.node, "call_expression"))
        called = identifiers(each for each in calls if each is not None)
        return declared_names([self.item.node]) - self.item.names - called

    @property
    def is_plain(self) -> bool:
        return self.is_function and "::" not in self.name

    @property
    def calls(self) -> bool:
        """Whether it is host code that launches a kernel or calls the CUDA runtime."""
        text = _LITERAL.sub('""', text_of(self.item.node))
        return CALLS.search(text) is not None or (self.is_function and self.name == "main")

    def is_used(self, asked: Collection[str]) -> bool:
        """Whether launches of some kernels, or of all without any, need it though nothing names
        it, as far as its kind tells."""
        if self.is_function and self.item.of_device:
            return not asked or self.name in asked or not _PLAIN.fullmatch(self.name)
        if self.is_function:
            return not _PLAIN.fullmatch(self.name)  # An operator, a destructor.
        return self.item.inner.type in _KEPT or self.item.of_device


def other_code(text: str, kernels: Iterable[str]) -> list[tuple[int, int, str]]:
    """Parts of a source that no launch needs: start, end and the name that they define. These are
    functions that launch kernels, call the CUDA runtime or name one that does, and all that neither
    a kernel names nor what it names. ``text``: preprocessed CUDA C++, without the compiler's own
    headers. ``kernels``: those that are launched, with template arguments; without any, all."""
    root, asked = parse(text), set(re.findall(r"\w+", " ".join(kernels)))
    every = [_Part(item) for item in items(root, members=True)] if is_clear(root) else []
    calling = _calling([part for part in every if part.item.structure is None])
    left = [part for part in every if part not in calling and not part.item.of_class]
    used = {part for part in left if part.is_used(asked)}
    named, functions, seen, new = set(asked), set(asked), set[_Part](), used
    while new:
        seen |= new
        named = named.union(*(part.words for part in new))
        functions = functions.union(*(part.functions for part in new))
        new = {
            part
            for part in left
            # A method is named as a member.
            if part not in seen and part.item.names & (functions if part.is_plain else named)
        }
    dropped = [part for part in every if part in calling or (part in left and part not in seen)]
    return _outermost((part.start, part.end, part.name) for part in dropped)


def _calling(parts: Sequence[_Part]) -> set[_Part]:
    """Host code that calls the CUDA runtime, or that names a function which does."""
    host = [part for part in parts if not part.item.of_device]
    calling = more = {part for part in host if part.calls}
    while more:
        names = {part.name for part in more if part.is_function and not part.item.of_class} - {""}
        more = {part for part in host if part not in calling and names & part.functions}
        calling |= more
    return calling


def _outermost(parts: Iterable[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    kept: list[tuple[int, int, str]] = []
    for start, end, name in sorted(parts, key=lambda part: (part[0], -part[1])):
        if not kept or start >= kept[-1][1]:
            kept.append((start, end, name))
    return kept
