"""How a kernel uses its arrays: what it reads and writes, and where."""

from __future__ import annotations

from dataclasses import dataclass

from tree_sitter import Node

from launchwise.cli.new.body import Body, Frame, Polynomial, add, names_of, uncast
from launchwise.cli.new.signature import Parameter
from launchwise.cuda_text.syntax import child, text_of

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
            return ("inout", "also read: in and out?") if "r" in uses else ("output", "")
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
