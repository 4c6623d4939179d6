"""How a kernel uses its arrays: what it reads and writes, and where."""

from __future__ import annotations

from dataclasses import dataclass

from tree_sitter import Node

from launchwise.cli.new.body import Body, Frame, Polynomial, add, uncast
from launchwise.cli.new.signature import Parameter
from launchwise.cuda_text.syntax import child, plain, text_of, walk
from launchwise.cuda_text.types import elements

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
    """Uses of the arrays of a kernel."""

    def __init__(self, body: Body) -> None:
        self._body = body
        self._arrays = {one.name for one in body.kernel.parameters if one.pointer}
        self._found: dict[str, list[Access]] = {}
        self._places: dict[tuple[int, int, frozenset[str]], tuple[str, Polynomial | None]] = {}
        for frame, node in body.nodes("identifier"):
            self._read(node, frame)

    def of(self, array: str) -> list[Access]:
        """Uses of an array, in the order of the text, those of called functions last."""
        return self._found.get(array, [])

    def place(
        self, node: Node | None, frame: Frame, keep: frozenset[str] = frozenset(), depth: int = 0
    ) -> tuple[str, Polynomial | None]:
        """The array that a pointer points into, '' for none of the kernel's, and how far from its
        beginning; None if that is unclear."""
        if node is None or depth > 20:
            return "", None
        key = (node.id, id(frame), keep)
        if key not in self._places:
            self._places[key] = self._place(node, frame, keep, depth)
        return self._places[key]

    def _place(
        self, node: Node, frame: Frame, keep: frozenset[str], depth: int
    ) -> tuple[str, Polynomial | None]:
        outer, node = node, uncast(node)
        array, offset = "", None
        if node.type == "identifier":
            array, offset = self._variable(node, frame, keep, depth)
        elif node.type == "pointer_expression" and text_of(node).startswith("&"):
            element = child(node, "argument")
            inner, index = child(element, "argument"), child(element, "indices")
            if inner is not None and index is not None:
                array, start = self.place(inner, frame, keep, depth + 1)
                more = self._body.value(index.named_children[0], frame, keep)
                offset = None if start is None else add(start, more)
        elif node.type == "binary_expression" and text_of(child(node, "operator")) in "+-":
            sign = 1 if text_of(child(node, "operator")) == "+" else -1
            other = child(node, "right")
            array, start = self.place(child(node, "left"), frame, keep, depth + 1)
            if array and start is not None and other is not None:
                offset = add(start, self._body.value(other, frame, keep), sign)
        # Elements of a pointer to others, ``(float4 *)x``, lie elsewhere.
        vectors = walk(outer, "type_descriptor") if node != outer else ()
        is_recast = any(elements(text_of(each).rstrip(" *"), {})[1] > 1 for each in vectors)
        return array, None if is_recast else offset

    def _variable(
        self, node: Node, frame: Frame, keep: frozenset[str], depth: int
    ) -> tuple[str, Polynomial | None]:
        """What a variable or a parameter points to."""
        name = text_of(node)
        every = self._body.defined.get((frame, name), [])
        earlier = [one for one in every if one.place <= node.start_byte]
        for one in earlier:
            if one.operator == "=":
                array, offset = self.place(one.value, frame, keep, depth + 1)
                if array:
                    once = len(every) == 1 and name not in self._body.changed
                    return array, offset if once else None
        if name in frame.given and not earlier:
            given, outer = frame.given[name]
            return self.place(given, outer, keep, depth + 1)
        own = frame.depth == 0 and name in self._arrays
        own = own and all(one.operator != "=" for one in earlier)
        return (name, {}) if own else ("", None)

    def index(self, one: Access, keep: frozenset[str] = frozenset()) -> Polynomial | None:
        """Element of an array that is used; None where that is unclear."""
        start = self.place(one.pointer, one.frame, keep)[1]
        if start is None or one.index is None:
            return start
        return add(start, self._body.value(one.index, one.frame, keep))

    def _read(self, node: Node, frame: Frame) -> None:
        """Note the use of an array by its name, or by that of a pointer into it."""
        if array := self.place(node, frame)[0]:
            self._found.setdefault(array, []).append(self._access(node, frame))

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
        """A use by a name."""
        pointer = self._pointer(node, frame)
        parent = pointer.parent
        element = parent if child(parent, "argument") == pointer else None
        listed = child(element, "indices")
        index = listed.named_children[0] if listed is not None and listed.named_children else None
        if element is None or not (
            index is not None or text_of(element).startswith("*") or "field" in element.type
        ):
            atomic = _atomic(parent)
            return Access(frame, pointer, None, "rw" if atomic else _given(pointer), atomic)
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
        elif holder is not None and holder.type == "argument_list":
            atomic = _atomic(holder)
            use = "rw" if atomic else "r"
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
            return ("inout", "also read: in and out?") if "r" in uses else ("output", "")
        if "r" in uses and "?" not in uses:
            return "input", "not const but only read"
        return "output", "output or input"

    def atomics(self, array: str) -> list[Access]:
        return [one for one in self.of(array) if one.atomic]

    def is_single(self, array: str) -> bool:
        """Whether a kernel reaches the first element only: ``*flag = 1``, ``x[0]``."""
        every = self.of(array)
        first = [
            one.use not in ("", "?")
            and not one.atomic
            and one.pointer.type == "identifier"
            and (one.index is None or text_of(one.index) == "0")
            for one in every
        ]
        return bool(every) and all(first)

    def reaches_next(self, array: str) -> bool:
        """Whether a kernel reads a range of an array's elements: ``x[v + 1] - x[v]``."""
        texts = {"".join(plain(one.index).split()) for one in self.of(array) if one.index}
        return any(f"{text}+1" in texts for text in texts if text.isidentifier())


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
