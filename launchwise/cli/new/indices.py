"""What a kernel's indices say: sides of the block, bounds; how it uses its arrays."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from launchwise.cli.new.body import (
    Body,
    Frame,
    Polynomial,
    add,
    coefficient,
    multiply,
    names_of,
    uncast,
)
from launchwise.cli.new.signature import Parameter
from launchwise.cuda_text.syntax import above, child, text_of

AXES = "xyz"
_MIRROR = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
_MOST_COMPARISONS = 2_000
_LEAVES = {"return_statement", "continue_statement", "break_statement"}
_AROUND = ("parenthesized_expression", "condition_clause")


@dataclass(frozen=True)
class Comparison:
    """A comparison of an index with a bound: ``index < bound``."""

    frame: Frame
    span: range  # bytes of the body where it holds, as that of a branch or a loop
    index: Polynomial  # what depends on threads, blocks and variables, with everything expanded
    bound: Polynomial  # the first value that it may not have
    walking: Polynomial  # the same where variables that loops change stand for themselves,
    limit: Polynomial  # and its bound


class Indices:
    def __init__(self, body: Body) -> None:
        self.body = body
        # variables that a loop increases, to their step
        self.steps: dict[str, Polynomial] = {}
        self.comparisons: list[Comparison] = []
        for frame, node in body.nodes("assignment_expression", "update_expression"):
            self._read_step(frame, node)
        self.kept = frozenset(self.steps) - {*body.arrays}
        self._locals = {name for _, name in body.defined} | {"threadIdx", "blockIdx"}
        for frame, node in body.nodes("binary_expression"):
            left, right = child(node, "left"), child(node, "right")
            operator = text_of(child(node, "operator"))
            if operator in _MIRROR and left is not None and right is not None:
                self.comparisons += self._compared(frame, node, operator, left, right)
            if len(self.comparisons) > _MOST_COMPARISONS:
                break

    def sides(self, axis: str) -> tuple[list[Polynomial], list[Polynomial]]:
        """What lies between neighbouring turns of a loop, and between neighbouring blocks, in
        indices whose threads along an axis are neighbours."""
        turns, blocks = [], []
        subscripts = (one for _, one in self.subscripts(self.kept))
        for one in (*self.body.definitions(keep=self.kept), *subscripts):
            if coefficient(one, f"threadIdx.{axis}") == {(): 1}:
                loops = names_of(one) & self.kept
                turns += [multiply(coefficient(one, each), self.steps[each]) for each in loops]
                if not loops:
                    blocks += [coefficient(one, f"blockIdx.{each}") for each in AXES]
        for name, step in self.steps.items():
            starts = [*self.body.definitions(name)]
            axes = {each for start in starts for each in AXES if (f"threadIdx.{each}",) in start}
            turns += [step] if axes == {axis} else []
        return turns, [*filter(None, blocks)]

    def held_by_threads(self, axis: str) -> str:
        """An array in shared memory of which each thread along an axis has an element; or ''."""
        shared = self.body.shared_arrays()
        thread = (f"threadIdx.{axis}",)
        names = (name.partition("[")[0] for name, one in self.subscripts() if thread in one)
        return next((name for name in names if name in shared), "")

    def subscripts(self, keep: frozenset[str] = frozenset()) -> Iterator[tuple[str, Polynomial]]:
        for frame, node in self.body.nodes("subscript_expression"):
            array, listed = child(node, "argument"), child(node, "indices")
            if array is not None and listed is not None and listed.named_child_count == 1:
                index = listed.named_children[0]
                if len(text_of(index)) < 240:
                    yield text_of(uncast(array)), self.body.value(index, frame, keep)

    def bounds(self, axis: str) -> list[Comparison]:
        """Comparisons of indices that depend on ``blockIdx`` along an axis alone."""
        found = []
        for one in self.comparisons:
            terms = (term for term in one.index if not any("gridDim" in name for name in term))
            plain = {name for term in terms for name in term}
            others = {each for each in AXES if f"blockIdx.{each}" in plain} - {axis}
            if f"blockIdx.{axis}" in names_of(one.index) and not others:
                found.append(one)
        return found

    def guards(self, frame: Frame, node: Node) -> Iterator[Comparison]:
        """Comparisons that hold wherever a node of a body runs, without those of a caller whose
        names the body has for something else."""
        hidden: set[str] = set()
        while True:
            for one in self.comparisons:
                is_clear = hidden.isdisjoint(names_of(one.walking))
                if one.frame is frame and is_clear and node.start_byte in one.span:
                    yield one
            if frame.caller is None:
                return
            hidden |= {*frame.given} | {name for own, name in self.body.defined if own is frame}
            node, frame = frame.caller

    def strides_over_grid(self, axis: str) -> bool:
        """Whether a loop goes on by the size of the grid along an axis."""
        names = {name for step in self.steps.values() for name in names_of(step)}
        return any(f"gridDim.{axis}" in name for name in names)

    def _read_step(self, frame: Frame, node: Node) -> None:
        name = text_of(child(node, "left") or child(node, "argument"))
        right, operator = child(node, "right"), text_of(child(node, "operator"))
        if operator == "++":
            self.steps.setdefault(name, {(): 1})
        elif right is not None and operator == "+=":
            self.steps[name] = self.body.value(right, frame)

    def _compared(
        self, frame: Frame, node: Node, operator: str, left: Node, right: Node
    ) -> Iterator[Comparison]:
        if self._moves(self.body.value(right, frame, self.kept)):
            left, right, operator = right, left, _MIRROR[operator]
        sides = []
        for keep in (frozenset[str](), self.kept):
            one, other = (self.body.value(each, frame, keep) for each in (left, right))
            # `i <= last` and `i > last` exclude what comes after last; `i + w < n` as `i < n - w`.
            offset = {term: n for term, n in one.items() if not self._moves({term: n})}
            after = add(add(other, {(): int(operator in ("<=", ">"))}), offset, -1)
            sides += [add(one, offset, -1), after]
        if sides[2] and not self._moves(sides[3]):
            yield Comparison(frame, _span(node, operator[0] == "<"), *sides)

    def _moves(self, one: Polynomial) -> bool:
        """Whether an expression depends on the thread, the block or a variable."""
        text = " ".join(re.sub(r"\.\w+", "", name) for name in names_of(one))
        return not self._locals.isdisjoint(re.findall(r"\w+", text))


def _span(node: Node, is_below: bool) -> range:
    """Bytes of a text where a comparison holds: in the branch or the loop whose condition it is, or
    behind a branch that leaves what lies around it."""
    inner = node
    for outer in above(node):
        then, body, other = (child(outer, one) for one in ("consequence", "body", "alternative"))
        inside, around = then or body, outer.parent
        sign = text_of(child(outer, "operator"))
        if inside is not None and is_below and child(outer, "condition") == inner:
            return range(inside.start_byte, inside.end_byte)
        if inside is not None and around is not None and child(outer, "condition") == inner:
            leaves = {each.type for each in (inside, *inside.named_children)} & _LEAVES
            return range(outer.end_byte, around.end_byte) if leaves and not other else range(0)
        if outer.type not in _AROUND and sign != ("&&" if is_below else "||"):
            break
        inner = outer
    return range(0)


# Uses of arrays

_ATOMIC = ("atomic", "red_", "__nv_atomic")
_LISTS = ("argument_list", "initializer_list")


@dataclass(frozen=True, eq=False)
class Access:
    """A use of an array: r for read, w for written, ? for given away; '' where it sets or moves a
    pointer."""

    frame: Frame
    pointer: Node  # what it is indexed through
    index: Node | None  # what stands in its brackets, None where nothing does
    use: str
    atomic: str = ""  # the function of an atomic operation


class Accesses:
    def __init__(self, body: Body) -> None:
        self._body = body
        self._found: dict[str, list[Access]] = {}
        self.recast: set[str] = set()  # arrays that are read as another type
        self.indexing: set[str] = set()  # arrays whose elements index another
        for frame, node in body.nodes("identifier"):
            # By its name, or by that of a pointer into it.
            if array := self.place(node, frame)[0]:
                self._found.setdefault(array, []).append(self._access(node, frame))
        for frame, node in body.nodes("subscript_argument_list"):
            index = body.value(node.named_children[0], frame) if node.named_children else {}
            self.indexing |= {
                one for one in body.arrays for name in names_of(index) if f"{one}[" in name
            }
        for frame, node in body.nodes("cast_expression", "call_expression"):
            inner = uncast(node)
            if inner != node and "*" in text_of(node)[: inner.start_byte - node.start_byte]:
                self.recast.add(self.place(inner, frame)[0])

    def of(self, array: str) -> list[Access]:
        """Uses of an array, in the order of the text, those of called functions last."""
        return self._found.get(array, [])

    def place(
        self, node: Node, frame: Frame, keep: frozenset[str] = frozenset()
    ) -> tuple[str, Polynomial | None]:
        """The array that a pointer points into, '' for none of the kernel's, and how far from its
        beginning; None if that is unclear."""
        value = self._body.value(node, frame, keep)
        arrays = [name for name in self._body.arrays if value.get((name,)) == 1]
        if len(arrays) != 1:
            return "", None
        (array,) = arrays
        return array, {term: factor for term, factor in value.items() if term != (array,)}

    def index(self, one: Access, keep: frozenset[str] = frozenset()) -> Polynomial | None:
        start = self.place(one.pointer, one.frame, keep)[1]
        if start is None or one.index is None:
            return start
        return add(start, self._body.value(one.index, one.frame, keep))

    def _pointer(self, node: Node, frame: Frame) -> Node:
        """The largest expression around a pointer that is still one into the same array."""
        while (parent := node.parent) is not None:
            sums = parent.type == "binary_expression" and bool(self.place(parent, frame)[0])
            call = parent.parent if parent.type == "argument_list" else None
            if call is not None and call.type == "call_expression" and uncast(call) != call:
                node = call
            elif sums or parent.type in ("parenthesized_expression", "cast_expression"):
                node = parent
            else:
                break
        return node

    def _access(self, node: Node, frame: Frame) -> Access:
        pointer = self._pointer(node, frame)
        parent = pointer.parent
        element = parent if child(parent, "argument") == pointer else None
        listed = child(element, "indices")
        index = listed.named_children[0] if listed is not None and listed.named_children else None
        if element is None or not (
            index is not None or text_of(element).startswith("*") or "field" in element.type
        ):
            atomic = _atomic(parent)
            is_followed = (
                parent is not None
                and (parent.parent and parent.parent.id, frame) in self._body.calls
            )
            given = "" if is_followed else _given(pointer)
            return Access(frame, pointer, None, "rw" if atomic else given, atomic)
        while (holder := element.parent) is not None and (
            holder.type == "parenthesized_expression"
            or (
                holder.type in ("field_expression", "subscript_expression")
                and child(holder, "argument") == element
            )
        ):
            element = holder
        use, atomic = "r", ""
        if holder is not None and holder.type == "assignment_expression":
            if child(holder, "left") == element:
                use = "w" if text_of(child(holder, "operator")) == "=" else "rw"
        elif holder is not None and holder.type == "update_expression":
            use = "rw"
        elif holder is not None and holder.type == "pointer_expression":
            address = self._pointer(holder, frame)
            use, atomic = "rw" if _given(address) else "", _atomic(address.parent)
        return Access(frame, pointer, index, use, atomic)

    # Questions

    def role(self, parameter: Parameter) -> tuple[str, str]:
        """Role of an array, and a question where the kernel's body leaves it open."""
        if parameter.const:
            return "input", ""
        every = self.of(parameter.name)
        uses = "".join(one.use for one in every)
        if self.atomics(parameter.name):
            return "inout", "an atomic operation adds to what is there: begins as zeros?"
        if "w" in uses:
            if "r" in uses:
                return "inout", "also read: in and out?"
            # What is loaded says where it writes.
            places = (self.index(one) or {} for one in every if one.use == "w")
            is_loaded = any("[" in name for place in places for name in names_of(place))
            return "output", "is every element written? Else inout" if is_loaded else ""
        if "r" in uses and "?" not in uses:
            return "input", "not const but only read"
        return "output", "output or input"

    def atomics(self, array: str) -> list[Access]:
        return [one for one in self.of(array) if one.atomic]


def _given(pointer: Node) -> str:
    """The use of a pointer that is given to a function; '' of one that sets another, or moves."""
    return "?" if pointer.parent is not None and pointer.parent.type in _LISTS else ""


def _atomic(node: Node | None) -> str:
    """The atomic function whose first argument lies in a list, or what holds one of its kind."""
    holder = node.parent if node is not None else None
    if node is None or holder is None or node.type not in _LISTS:
        return ""
    name = text_of(child(holder, "function")).partition("<")[0].rpartition("::")[2]
    return name if name.startswith(_ATOMIC) else ""
