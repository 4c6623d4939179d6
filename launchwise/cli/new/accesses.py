"""How a kernel uses its arrays: what it reads and writes, and where."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tree_sitter import Node

from launchwise.cli.new.body import Body, Frame
from launchwise.cli.new.indices import Comparison
from launchwise.cli.new.polynomials import Polynomial, add, uncast
from launchwise.cli.new.signature import Parameter
from launchwise.cuda_text.syntax import above, child, plain, text_of, walk
from launchwise.cuda_text.types import elements

_ATOMIC = ("atomic", "red_", "__nv_atomic")
_COUNT = ("atomicAdd", "atomicInc", "atomicSub", "atomicDec", "fetch_add", "fetch_sub")
_LEAVES = ("return_statement", "continue_statement", "break_statement")
_BRANCHES = ("if_statement", "while_statement", "for_statement")


@dataclass(frozen=True, eq=False)
class Access:
    """A use of an array: r for read, w for written, ? for given away; '' where a pointer moves.

    ``index`` is what stands in its brackets, None where nothing does; ``pointer`` what it is
    indexed through. ``atomic`` is the function of an atomic operation.
    """

    node: Node
    frame: Frame
    pointer: Node
    index: Node | None
    use: str
    atomic: str = ""


class Accesses:
    """Uses of the arrays of a kernel."""

    def __init__(self, body: Body) -> None:
        self._body = body
        self._arrays = {one.name for one in body.kernel.parameters if one.pointer}
        self._found: dict[str, list[Access]] = {}
        for frame, node in body.nodes("identifier"):
            parent = node.parent
            if parent is None or (parent.type.endswith("declarator") and parent.type[:4] != "init"):
                continue
            if parent.type == "init_declarator" and child(parent, "declarator") == node:
                continue
            array = self.array(node, frame)
            if array and not self._sets_alias(node, frame):
                self._found.setdefault(array, []).append(self._access(node, frame))
        for frame, node in body.nodes("type_identifier"):
            # `Random random(seeds[i]);` reads like a function that takes types.
            if frame.depth == 0 and text_of(node) in self._arrays:
                array = text_of(node)
                self._found.setdefault(array, []).append(Access(node, frame, node, None, "r"))

    def of(self, array: str) -> list[Access]:
        """Uses of an array, in the order of the text, those of called functions last."""
        return self._found.get(array, [])

    def array(self, node: Node | None, frame: Frame, depth: int = 0) -> str:
        """The array that a pointer points into; '' for none of the kernel's."""
        node = uncast(node) if node is not None else None
        if node is None or depth > 20:
            return ""
        if node.type == "identifier":
            name = text_of(node)
            defined = self._body.defined.get((frame, name), [])
            earlier = [one for one in defined if one.place <= node.start_byte]
            for one in earlier:
                if one.operator == "=" and (found := self.array(one.value, frame, depth + 1)):
                    return found
            if name in frame.given and not earlier:
                given, outer = frame.given[name]
                return self.array(given, outer, depth + 1)
            own = frame.depth == 0 and name in self._arrays
            return name if own and all(one.operator != "=" for one in earlier) else ""
        if node.type == "pointer_expression" and text_of(node).startswith("&"):
            element = child(node, "argument")
            if element is not None and element.type == "subscript_expression":
                return self.array(child(element, "argument"), frame, depth + 1)
        if node.type == "binary_expression" and text_of(child(node, "operator")) in "+-":
            left = self.array(child(node, "left"), frame, depth + 1)
            return left or self.array(child(node, "right"), frame, depth + 1)
        return ""

    def offset(self, node: Node, frame: Frame, keep: frozenset[str]) -> Polynomial | None:
        """Elements between the beginning of an array and a pointer; None if unclear."""
        if _is_recast(node):
            return None
        node = uncast(node)
        if node.type == "identifier":
            name = text_of(node)
            every = self._body.defined.get((frame, name), [])
            if not every and name in frame.given:
                return self.offset(*frame.given[name], keep)
            if not [one for one in every if one.operator == "="]:
                return {}
            if len(every) != 1 or name in self._body.changed:
                return None
            return self.offset(every[0].value, frame, keep)
        if node.type == "pointer_expression":
            element = child(node, "argument")
            inner, index = child(element, "argument"), child(element, "indices")
            if inner is None or index is None:
                return None
            start = self.offset(inner, frame, keep)
            more = self._body.value(index.named_children[0], frame, keep)
            return None if start is None else add(start, more)
        left, right = child(node, "left"), child(node, "right")
        if left is None or right is None:
            return None
        sign = 1 if text_of(child(node, "operator")) == "+" else -1
        pointer, other = (left, right) if self.array(left, frame) else (right, left)
        start = self.offset(pointer, frame, keep)
        return None if start is None else add(start, self._body.value(other, frame, keep), sign)

    def index(self, one: Access, keep: frozenset[str] = frozenset()) -> Polynomial | None:
        """Element of an array that is used; None where that is unclear."""
        start = self.offset(one.pointer, one.frame, keep)
        if start is None:
            return None
        return (
            start if one.index is None else add(start, self._body.value(one.index, one.frame, keep))
        )

    def _sets_alias(self, node: Node, frame: Frame) -> bool:
        """Whether an array is named to set a pointer into it, or to call a known function."""
        here: Node | None = node
        while here is not None and here.parent is not None:
            parent = here.parent
            if parent.type == "init_declarator":
                return bool(self.array(here, frame))
            if parent.type == "assignment_expression":
                left = child(parent, "left")
                to_name = left is not None and left != here and left.type == "identifier"
                return to_name and bool(self.array(here, frame))
            if parent.type == "argument_list":
                call = parent.parent
                known = call is not None and self._body.calls(call, frame)
                return known and bool(self.array(here, frame))
            if parent.type == "subscript_expression" and child(parent, "argument") != here:
                return False
            if parent.type not in _POINTING:
                return False
            here = parent
        return False

    def _pointer(self, node: Node, frame: Frame) -> Node:
        """The largest expression around a name that is still a pointer into its array."""
        here = node
        while (parent := here.parent) is not None:
            sums = parent.type == "binary_expression" and bool(self.array(parent, frame))
            if parent.type == "argument_list" and _is_cast(parent.parent):
                here = parent.parent or parent
            elif sums or parent.type in ("parenthesized_expression", "cast_expression"):
                here = parent
            else:
                break
        return here

    def _access(self, node: Node, frame: Frame) -> Access:
        here = self._pointer(node, frame)
        parent = here.parent
        listed = child(parent, "indices") if child(parent, "argument") == here else None
        if parent is not None and listed is not None and listed.named_children:
            return self._used(node, frame, here, listed.named_children[0], parent)
        dereferenced = text_of(parent).startswith("*") or "field" in getattr(parent, "type", "")
        if parent is not None and dereferenced and child(parent, "argument") == here:
            return self._used(node, frame, here, None, parent)
        atomic = _atomic(parent)
        if atomic:
            return Access(node, frame, here, None, "rw", atomic)
        moves = parent is not None and (
            parent.type == "update_expression"
            or (parent.type == "assignment_expression" and child(parent, "left") == here)
        )
        return Access(node, frame, here, None, "" if moves else "?")

    def _used(
        self, node: Node, frame: Frame, pointer: Node, index: Node | None, element: Node
    ) -> Access:
        """A use of an element."""
        here, parent = element, element.parent
        while parent is not None and (
            parent.type == "parenthesized_expression"
            or (parent.type == "field_expression" and child(parent, "argument") == here)
            or (parent.type == "subscript_expression" and child(parent, "argument") == here)
        ):
            here, parent = parent, parent.parent
        use, atomic = "r", ""
        if parent is not None and parent.type == "assignment_expression":
            if child(parent, "left") == here:
                use = "w" if text_of(child(parent, "operator")) == "=" else "rw"
        elif parent is not None and parent.type == "update_expression":
            use = "rw"
        elif parent is not None and parent.type == "pointer_expression":
            use, atomic = "rw", _atomic(parent.parent)
        elif parent is not None and parent.type == "argument_list":
            atomic = _atomic(parent)
            use = "rw" if atomic or self._body.changes(parent, here) else "r"
        return Access(node, frame, pointer, index, use, atomic)

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
        """Atomic operations on an array."""
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

    def is_counted(self, array: str) -> bool:
        """Whether a kernel writes an array where the result of an atomic counter says."""
        return any(
            "w" in one.use and one.index is not None and self._counts(one.index, one.frame)
            for one in self.of(array)
        )

    def _counts(self, node: Node, frame: Frame, depth: int = 0) -> bool:
        for each in walk(node, "identifier", "field_identifier"):
            name = text_of(each)
            if name.removesuffix("_block") in _COUNT:
                return True
            if depth < 8:
                function = self._body.function(name)
                if function is not None and self._counts(function.body, frame, 8):
                    return any(True for _ in walk(function.body, "return_statement"))
                values = [one.value for one in self._body.defined.get((frame, name), ())]
                if any(self._counts(value, frame, depth + 1) for value in values if value != node):
                    return True
        return False

    def guards_writes(self, comparison: Comparison, arrays: Iterable[str]) -> bool:
        """Whether all writes happen only if a comparison holds: ``if (i < n - 1) x[i] = 1;``.

        Or only if it does not, where it leaves the kernel: ``if (i >= n - 1) return;``.
        """
        start, end = _guarded(comparison.node)
        written = [
            one.node.start_byte if one.frame is comparison.frame else one.frame.call
            for array in arrays
            for one in self.of(array)
            if "w" in one.use
        ]
        return bool(written) and all(start <= place < end for place in written)


_POINTING = (
    *("parenthesized_expression", "cast_expression", "binary_expression", "pointer_expression"),
    *("subscript_expression", "call_expression"),
)


def _is_cast(node: Node | None) -> bool:
    return node is not None and node.type == "call_expression" and uncast(node) != node


def _is_recast(node: Node) -> bool:
    """Whether a pointer is cast to one to elements of another size: ``(float4 *)x``."""
    casts = walk(node, "type_descriptor") if uncast(node) != node else ()
    return any(elements(text_of(each).rstrip(" *"), {})[1] > 1 for each in casts)


def _atomic(node: Node | None) -> str:
    """The atomic function whose first argument lies in a list, or what holds one of its kind."""
    holder = node.parent if node is not None else None
    if node is None or holder is None or node.type not in ("argument_list", "initializer_list"):
        return ""
    name = text_of(child(holder, "function")).partition("<")[0].rpartition("::")[2]
    if holder.type == "init_declarator" and "atomic_ref" in text_of(child(holder.parent, "type")):
        return "atomic_ref"
    return name if name.startswith(_ATOMIC) else ""


def _guarded(node: Node) -> tuple[int, int]:
    """Places that a comparison guards; none where it stands in no condition, or in one of many."""
    branch = next((each for each in above(node) if each.type in _BRANCHES), None)
    condition = child(branch, "condition")
    if branch is None or condition is None:
        return 0, 0
    if not condition.start_byte <= node.start_byte < condition.end_byte:
        return 0, 0
    body = child(branch, "consequence") or child(branch, "body")
    if body is None:
        return 0, 0
    leaves = any(True for _ in walk(body, *_LEAVES))
    text = text_of(condition)
    if ("&&" if leaves else "||") in text or "!" in text.replace("!=", ""):
        return 0, 0
    if not leaves:
        return body.start_byte, body.end_byte
    holder = next((each for each in above(branch) if each.type == "compound_statement"), branch)
    return branch.end_byte, holder.end_byte
