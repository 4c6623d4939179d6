"""What a kernel runs: its own body and those of functions that it calls, with their values.

Values are integer sums of products of names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import takewhile

from tree_sitter import Node

from launchwise.cli.new.signature import Kernel, Source
from launchwise.cuda_text.syntax import above, child, declarator, has_word, text_of, walk
from launchwise.cuda_text.types import integer, is_type

Term = tuple[str, ...]
Polynomial = dict[Term, int]
"""Product of names, sorted, to its factor; the empty product is the constant."""

Expand = Callable[[Node], "Polynomial | None"]
"""What a name, a member or a call stands for; None where it stands for itself."""

_MOST_TERMS, _MOST_FACTORS, _DEEPEST_TREE, _LONGEST = 64, 16, 40, 2_000
_CASTS = ("static_cast", "reinterpret_cast", "const_cast", "dynamic_cast")


def add(one: Polynomial, other: Polynomial, sign: int = 1) -> Polynomial:
    found = dict(one)
    for term, factor in other.items():
        found[term] = found.get(term, 0) + sign * factor
    return {term: factor for term, factor in found.items() if factor}


def multiply(one: Polynomial, other: Polynomial) -> Polynomial:
    found: Polynomial = {}
    for left, factor in one.items():
        for right, other_factor in other.items():
            term = tuple(sorted(left + right))
            found[term] = found.get(term, 0) + factor * other_factor
    return {term: factor for term, factor in found.items() if factor}


def divided(one: Polynomial, other: Polynomial) -> Polynomial | None:
    """``one / other`` where ``other`` is one product that divides all of ``one``; else None."""
    if len(other) != 1 or 0 in other.values():
        return None
    ((term, factor),) = other.items()
    found: Polynomial = {}
    for each, own in one.items():
        rest = Counter(each)
        rest.subtract(term)
        if own % factor or min(rest.values(), default=0) < 0:
            return None
        found[tuple(sorted(rest.elements()))] = own // factor
    return found


def coefficient(one: Polynomial, name: str) -> Polynomial:
    """What ``name`` is multiplied by in a polynomial that is linear in it."""
    return {
        tuple(each for each in term if each != name): factor
        for term, factor in one.items()
        if term.count(name) == 1
    }


def names_of(one: Polynomial) -> set[str]:
    return {name for term in one for name in term}


def written(one: Polynomial) -> str:
    text = ""
    for term, factor in sorted(one.items(), key=lambda pair: (not pair[0], pair[1] < 0)):
        size = abs(factor)
        product = " * ".join([*term, *([str(size)] if size != 1 or not term else [])])
        sign = "-" if factor < 0 else "+"
        text += f" {sign} {product}" if text else product if factor > 0 else f"-{product}"
    return text or "0"


def length_of(bound: Polynomial, names: Mapping[str, str]) -> str:
    """A bound as an expression over problem parameters, by their names in the kernel; '' where it
    reads other names."""
    found: Polynomial = {}
    for term, factor in bound.items():
        known = tuple(names.get(name) or _quotient(name, names) for name in term)
        if "" in known:
            return ""
        found = add(found, {known: factor})
    return written(found) if names_of(found) else ""


def _quotient(name: str, names: Mapping[str, str]) -> str:
    """``n / 4`` as an expression of a spec; '' for anything else."""
    parts = re.fullmatch(r"\? (\w+) / (\d+)", name)
    size = names.get(parts[1], "") if parts else ""
    return f"({size} // {parts[2]})" if parts and size else ""


def uncast(node: Node) -> Node:
    """What stands in brackets, casts and constructors of numbers."""
    while True:
        inner: Node | None = None
        if node.type == "parenthesized_expression" and node.named_child_count == 1:
            inner = node.named_children[0]
        elif node.type == "cast_expression":
            inner = child(node, "value")
        elif node.type == "call_expression":
            called, given = child(node, "function"), child(node, "arguments")
            by_name = called is not None and called.type == "template_function"
            name = text_of(child(called, "name")) if by_name else text_of(called)
            casts = (by_name and name in _CASTS) or is_type(name)
            if casts and given is not None and given.named_child_count == 1:
                inner = given.named_children[0]
        if inner is None:
            return node
        node = inner


def read(node: Node, expand: Expand, depth: int = 0) -> Polynomial:
    """Polynomial of an expression, which may be a pointer; what is no sum or product becomes one
    name of its own."""
    node = uncast(node)

    def of(name: str) -> Polynomial:
        part = child(node, name)
        return read(part, expand, depth + 1) if part is not None else {}

    unclear: Polynomial = {(f"? {text_of(node)[:_LONGEST]}",): 1}
    if depth > _DEEPEST_TREE:
        return unclear
    operator = text_of(child(node, "operator"))
    if node.type == "number_literal":
        number = integer(text_of(node))
        return unclear if number is None else {(): number} if number else {}
    if node.type == "unary_expression" and operator in ("+", "-"):
        return multiply(of("argument"), {(): -1 if operator == "-" else 1})
    if node.type == "binary_expression" and operator in ("/", "%", "<<", ">>"):
        return {(f"? {written(of('left'))} {operator} {written(of('right'))}",): 1}
    if node.type == "binary_expression" and operator in ("+", "-", "*"):
        left, right = of("left"), of("right")
        sign = -1 if operator == "-" else 1
        found = multiply(left, right) if operator == "*" else add(left, right, sign)
        if len(found) <= _MOST_TERMS and max(map(len, found), default=0) <= _MOST_FACTORS:
            return found
    elif node.type == "pointer_expression" and operator == "&":
        element = child(node, "argument")
        array, index = child(element, "argument"), child(element, "indices")
        if array is not None and index is not None:
            start = read(array, expand, depth + 1)
            return add(start, read(index.named_children[0], expand, depth + 1))
    elif node.type in ("identifier", "field_expression", "call_expression"):
        known = expand(node)
        if known is not None:
            return known
        owner = child(node, "argument")
        member = owner is not None and owner.type == "identifier" and "->" not in text_of(node)
        if node.type == "identifier" or member:
            return {("".join(text_of(node).split()),): 1}
    return unclear


_DEEPEST, _MOST_STEPS, _MOST_FRAMES, _MOST_NODES = 6, 30, 64, 100_000
_LOOPS = ("for_statement", "while_statement", "do_statement", "for_range_loop")
_ASSIGNING = ("init_declarator", "assignment_expression")
BUILT_IN = re.compile(r"\b(?:threadIdx|blockIdx|blockDim)\b")


@dataclass(frozen=True, eq=False)
class Frame:
    """A body that runs: that of the kernel, or of a function with what it is given."""

    body: Node
    given: Mapping[str, tuple[Node, Frame]] = field(default_factory=dict)
    caller: tuple[Node, Frame] | None = None  # the call, and where it stands
    depth: int = 0


@dataclass(frozen=True)
class Definition:
    """A place from which on a variable has a value."""

    place: int
    operator: str  # ``=``, ``+=`` or ``*=``
    value: Node
    # whether it is one for the arithmetic of indices: not computed from itself, no choice of two
    known: bool
    sets: bool  # whether the value before does not matter
    loop: range  # bytes of the outermost loop around it


class Body:
    """Bodies that a kernel runs, and the values of their variables."""

    def __init__(self, source: Source, kernel: Kernel, fixed: Mapping[str, int]) -> None:
        self.functions, self._fixed = source.functions, fixed
        self.kernel = kernel
        self.arrays = [one.name for one in kernel.parameters if one.pointer]
        self.frames = [Frame(item.body) for item in kernel.items if item.body is not None]
        self.calls: dict[tuple[int, Frame], Frame] = {}
        self._depth = 0
        for frame in self.frames:
            for call in walk(frame.body, "call_expression"):
                if len(self.frames) < _MOST_FRAMES and (made := self._called(call, frame)):
                    self.calls[call.id, frame] = made
                    self.frames.append(made)
        self.defined: dict[tuple[Frame, str], list[Definition]] = {}
        self._values: dict[tuple[int, int, frozenset[str]], Polynomial] = {}
        for frame, node in self.nodes(*_ASSIGNING):
            self._define(frame, node)

    def nodes(self, *kinds: str) -> Iterator[tuple[Frame, Node]]:
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
        arguments = {each.name: (node, frame) for each, node in named}
        return Frame(known[1], arguments, (call, frame), frame.depth + 1)

    # Definitions

    def _define(self, frame: Frame, node: Node) -> None:
        if node.type == "init_declarator":
            name, value = declarator(child(node, "declarator")).name, child(node, "value")
            if value is not None and value.type in ("argument_list", "initializer_list"):
                value = value.named_children[0] if value.named_child_count == 1 else None
            self._keep(frame, node, name, "=", value)
        elif (left := child(node, "left")) is not None and left.type == "identifier":
            operator = text_of(child(node, "operator"))
            self._keep(frame, node, text_of(left), operator, child(node, "right"))

    def _keep(self, frame: Frame, node: Node, name: str, operator: str, value: Node | None) -> None:
        if value is None:
            return
        named = (each for each in walk(value, "identifier") if text_of(each) == name)
        # What an element or a function of it gives is another value.
        own = operator == "=" and any(not _is_looked_up(each, node) for each in named)
        known = not any(True for _ in walk(value, "conditional_expression"))
        loops = [each for each in above(node) if each.type in _LOOPS]
        if operator != "=" or own:
            known &= BUILT_IN.search(text_of(value)) is not None and not loops
            known &= operator in ("=", "+=", "*=")
        loop = range(loops[-1].start_byte, loops[-1].end_byte) if loops else range(0)
        sets = operator == "=" and not own
        definition = Definition(node.end_byte, operator, value, known, sets, loop)
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

    def value(self, node: Node, frame: Frame, keep: frozenset[str] = frozenset()) -> Polynomial:
        """What an expression stands for; names in ``keep`` stand for themselves."""
        key = (node.id, id(frame), keep)
        if key not in self._values:
            self._values[key] = read(node, lambda part: self._expand(part, frame, keep))
        return self._values[key]

    def _expand(self, node: Node, frame: Frame, keep: frozenset[str]) -> Polynomial | None:
        if node.type == "identifier":
            return self._variable(text_of(node), node.start_byte, frame, keep)
        made = self.calls.get((node.id, frame))
        returned = list(walk(made.body, "return_statement")) if made is not None else []
        if made is None or len(returned) != 1 or not returned[0].named_children:
            return None
        return self.value(returned[0].named_children[0], made, keep)

    def _variable(
        self, name: str, place: int, frame: Frame, keep: frozenset[str]
    ) -> Polynomial | None:
        if name == "warpSize":
            return {(): 32}
        if name in keep or self._depth > _MOST_STEPS:
            return None
        every = self.defined.get((frame, name), ())
        if any(not one.known and one.operator in ("*=", "/=", "<<=", ">>=") for one in every):
            return None  # A sum is read as its start, a product that a loop makes is not.
        known = [one for one in every if one.place <= place and one.known]
        if any(_replaces(one, known[-1:], place) for one in every):
            return None
        if known:
            return self._of_definition(frame, name, known[-1], keep)
        if name in frame.given:
            node, outer = frame.given[name]
            value = self.value(node, outer, keep)
            is_moved = every and any(value.get((array,)) for array in self.arrays)
            return add(value, {(f"? {name}",): 1}) if is_moved else value
        if name in self.arrays and (frame.depth or every):
            # Another one of that name, or the array behind a pointer that moves.
            unclear: Polynomial = {(f"? {name}",): 1}
            return unclear if frame.depth else add(unclear, {(name,): 1})
        return {(): self._fixed[name]} if name in self._fixed else None

    def _of_definition(
        self, frame: Frame, name: str, one: Definition, keep: frozenset[str]
    ) -> Polynomial:
        self._depth += 1
        value = self.value(one.value, frame, keep)
        self._depth -= 1
        if one.operator == "=":
            return value
        before = self._variable(name, one.value.start_byte, frame, keep - {name})
        earlier: Polynomial = {(name,): 1} if before is None else before
        return add(earlier, value) if one.operator == "+=" else multiply(earlier, value)

    def shared_arrays(self) -> set[str]:
        nodes = (node for _, node in self.nodes("declaration") if has_word(node, "__shared__"))
        each = (one for node in nodes for one in node.children_by_field_name("declarator"))
        return {declarator(one).name for one in each if declarator(one).sizes}


def _is_looked_up(name: Node, within: Node) -> bool:
    """Whether a name of an assignment is an index, or given to a function."""
    around = takewhile(lambda each: each.id != within.id, above(name))
    return any(each.type in ("subscript_argument_list", "argument_list") for each in around)


def _replaces(one: Definition, last: list[Definition], place: int) -> bool:
    """Whether a variable may have the value of a definition at a place, and not that of the last
    one before it that is known: a choice between them, or what a turn of a loop leaves."""
    begin = last[0].place if last else 0
    if one.place <= place:
        return one.sets and not one.known and one.place > begin
    return one.sets and place in one.loop and begin not in one.loop


def axes_in(nodes: Iterable[Node], variable: str) -> set[str]:
    """Axes of a built-in variable, such as ``blockIdx``, that some nodes read."""
    found: set[str] = set()
    for each in nodes:
        for node in walk(each, "identifier"):
            if text_of(node) == variable:
                member = text_of(child(node.parent, "field"))
                found |= {member} & {*"xyz"} if member else {*"xyz"}
    return found
