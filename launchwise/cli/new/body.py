"""What a kernel runs: its own body and those of the functions that it calls, with their values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from tree_sitter import Node

from launchwise.cli.new.polynomials import Polynomial, add, multiply, read, uncast
from launchwise.cli.new.signature import Kernel, Source
from launchwise.cuda_text.syntax import above, child, declarator, has_word, text_of, walk

_DEEPEST, _MOST_STEPS, _MOST_FRAMES, _MOST_NODES = 6, 30, 64, 100_000
_LOOPS = ("for_statement", "while_statement", "do_statement", "for_range_loop")
_SCOPES = ("compound_statement", "if_statement", *_LOOPS)
_ASSIGNING = ("init_declarator", "assignment_expression", "update_expression", "pointer_expression")
BUILT_IN = re.compile(r"\b(?:threadIdx|blockIdx|blockDim)\b")


@dataclass(frozen=True, eq=False)
class Frame:
    """A body that runs: that of the kernel, or of a function with what it is given."""

    body: Node
    given: Mapping[str, tuple[Node, Frame]] = field(default_factory=dict)
    call: int = -1  # place in the kernel's own body from which it is called; -1 for that body
    depth: int = 0

    def holds(self, node: Node) -> bool:
        return self.body.start_byte <= node.start_byte < self.body.end_byte


@dataclass(frozen=True)
class Definition:
    """A place where a variable gets a value, which counts from ``place`` to ``end``."""

    place: int
    end: int
    operator: str  # ``=``, ``+=`` or ``*=``
    value: Node
    # whether it is one for the arithmetic of indices: not computed from itself, no choice of two
    known: bool


class Body:
    """Bodies that a kernel runs, and the values of their variables."""

    def __init__(self, source: Source, kernel: Kernel, fixed: Mapping[str, int]) -> None:
        self.functions, self._fixed = source.functions, fixed
        self.kernel = kernel
        self.frames = [Frame(item.body) for item in kernel.items if item.body is not None]
        self._calls: dict[tuple[int, Frame], Frame] = {}
        self._depth = 0
        for frame in self.frames:
            for call in walk(frame.body, "call_expression"):
                if len(self.frames) < _MOST_FRAMES and (made := self._called(call, frame)):
                    self._calls[call.id, frame] = made
                    self.frames.append(made)
        self.changed: set[str] = set()
        self.defined: dict[tuple[Frame, str], list[Definition]] = {}
        self._values: dict[tuple[int, int, frozenset[str]], Polynomial] = {}
        for frame, node in self.nodes(*_ASSIGNING):
            self._define(frame, node)

    def nodes(self, *kinds: str) -> Iterator[tuple[Frame, Node]]:
        """Nodes of all bodies, of some kinds, with their bodies."""
        count = 0
        for frame in self.frames:
            for node in walk(frame.body, *kinds):
                count += 1
                if count > _MOST_NODES:
                    return
                yield frame, node

    def _called(self, call: Node, frame: Frame) -> Frame | None:
        """The body of the function that is called; None for one that is not known."""
        function = child(call, "function")
        name = child(function, "name") if function and function.type != "identifier" else function
        known = self.functions.get(text_of(name))
        given = child(call, "arguments")
        if known is None or given is None or frame.depth >= _DEEPEST:
            return None
        named = zip(known[0].parameters, given.named_children, strict=False)
        place = call.start_byte if frame.depth == 0 else frame.call
        arguments = {each.name: (node, frame) for each, node in named}
        return Frame(known[1], arguments, place, frame.depth + 1)

    def calls(self, call: Node | None, frame: Frame) -> bool:
        """Whether a call is that of a function whose body is here."""
        return call is not None and (call.id, frame) in self._calls

    # Definitions

    def _define(self, frame: Frame, node: Node) -> None:
        if node.type == "init_declarator":
            name, value = declarator(child(node, "declarator")).name, child(node, "value")
            if value is not None and value.type in ("argument_list", "initializer_list"):
                value = value.named_children[0] if value.named_child_count == 1 else None
            self._keep(frame, node, name, "=", value)
        elif node.type == "update_expression":
            self.changed.add(text_of(child(node, "argument")))
        elif node.type == "pointer_expression":
            if text_of(node).startswith("&") and node.parent and node.parent.type.endswith("_list"):
                self.changed.add(text_of(child(node, "argument")))
        elif (left := child(node, "left")) is not None and left.type == "identifier":
            operator = text_of(child(node, "operator"))
            self._keep(frame, node, text_of(left), operator, child(node, "right"))

    def _keep(self, frame: Frame, node: Node, name: str, operator: str, value: Node | None) -> None:
        if value is None:
            return
        in_loop = any(each.type in _LOOPS for each in above(node) if frame.holds(each))
        own = operator == "=" and name in {text_of(each) for each in walk(value, "identifier")}
        if operator != "=" or own:
            self.changed.add(name)
        known = not any(True for _ in walk(value, "conditional_expression"))
        if operator != "=" or own:
            known &= BUILT_IN.search(text_of(value)) is not None and not in_loop
            known &= operator in ("=", "+=", "*=")
        end = frame.body.end_byte
        if node.type == "init_declarator":
            end = next((each for each in above(node) if each.type in _SCOPES), frame.body).end_byte
        definition = Definition(node.end_byte, end, operator, value, known)
        self.defined.setdefault((frame, name), []).append(definition)

    def definitions(
        self, name: str | None = None, keep: frozenset[str] = frozenset()
    ) -> Iterator[Polynomial]:
        """What variables, or one of them, are set to; names in ``keep`` stand for themselves."""
        for (frame, own), every in self.defined.items():
            for one in every if name in (None, own) else ():
                if one.known and len(text_of(one.value)) < 800:
                    yield self._of_definition(frame, own, one, keep)

    # Values

    def value(
        self, node: Node, frame: Frame, keep: frozenset[str] = frozenset(), divides: bool = False
    ) -> Polynomial:
        """What an expression stands for; names in ``keep`` stand for themselves."""
        key = (node.id, id(frame), keep)
        if divides or key not in self._values:
            found = read(node, lambda part, inner: self._expand(part, frame, keep, inner), divides)
            if divides:
                return found
            self._values[key] = found
        return self._values[key]

    def _expand(
        self, node: Node, frame: Frame, keep: frozenset[str], divides: bool
    ) -> Polynomial | None:
        if node.type == "identifier":
            return self._variable(text_of(node), node.start_byte, frame, keep, divides)
        made = self._calls.get((node.id, frame))
        returned = list(walk(made.body, "return_statement")) if made is not None else []
        if made is None or len(returned) != 1 or not returned[0].named_children:
            return None
        return self.value(returned[0].named_children[0], made, keep, divides)

    def _variable(
        self, name: str, place: int, frame: Frame, keep: frozenset[str], divides: bool
    ) -> Polynomial | None:
        if name == "warpSize":
            return {(): 32}
        if name in keep or self._depth > _MOST_STEPS or (divides and name in self.changed):
            # A sum divides by its end, not by its start.
            return None
        known = [
            one for one in self.defined.get((frame, name), ()) if one.place <= place and one.known
        ]
        if known:
            # A variable of a loop hides an outer one only there.
            visible = [one for one in known if place < one.end]
            return self._of_definition(frame, name, (visible or known)[-1], keep, divides)
        if name in frame.given:
            node, outer = frame.given[name]
            return self.value(node, outer, keep, divides)
        return {(): self._fixed[name]} if name in self._fixed else None

    def _of_definition(
        self,
        frame: Frame,
        name: str,
        one: Definition,
        keep: frozenset[str],
        divides: bool = False,
    ) -> Polynomial:
        self._depth += 1
        value = self.value(one.value, frame, keep, divides)
        self._depth -= 1
        if one.operator == "=":
            return value
        before = self._variable(name, one.value.start_byte, frame, keep - {name}, divides)
        earlier: Polynomial = {(name,): 1} if before is None else before
        return add(earlier, value) if one.operator == "+=" else multiply(earlier, value)

    def shared_arrays(self) -> Iterator[tuple[str, list[Node], Frame]]:
        """Arrays in shared memory: names and lengths."""
        for frame, node in self.nodes("declaration"):
            for each in node.children_by_field_name("declarator"):
                sizes = [child(one, "size") for one in walk(each, "array_declarator")]
                lengths = [size for size in reversed(sizes) if size is not None]
                if lengths and has_word(node, "__shared__"):
                    yield declarator(each).name, lengths, frame

    def subscripts(self) -> Iterator[tuple[Frame, Node, Node]]:
        """Bodies, what is indexed and the index, of every pair of brackets."""
        for frame, node in self.nodes("subscript_expression"):
            array, index = child(node, "argument"), child(node, "indices")
            if array is not None and index is not None and index.named_child_count == 1:
                yield frame, uncast(array), index.named_children[0]


def axes_in(nodes: Iterable[Node], variable: str) -> set[str]:
    """Axes of a built-in variable, such as ``blockIdx``, that some nodes read."""
    found: set[str] = set()
    for each in nodes:
        for node in walk(each, "identifier"):
            if text_of(node) == variable:
                member = text_of(child(node.parent, "field"))
                found |= {member} & {*"xyz"} if member else {*"xyz"}
    return found
