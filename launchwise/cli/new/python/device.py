"""A kernel of Triton, run with values: loads, stores, atomics, bounds and grid."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from launchwise.cli.new.python.facts import TYPES, Reading, Use
from launchwise.cli.new.python.values import (
    TRACES,
    UNKNOWN,
    Mark,
    Value,
    bases,
    called,
    explore,
    gives_missing,
    line_now,
    value_of,
)

_SAME: tuple[str, ...] = (
    "multiple_of",
    "max_contiguous",
    "max_constancy",
    "cast",
    "advance",
    "make_block_ptr",
)
_SAME += ("make_tensor_descriptor", "broadcast_to", "expand_dims", "to", "reshape", "broadcast")
"""Functions whose result is the pointer that they are given first."""


@dataclass
class Trace:
    """What runs of a kernel did.

    Parameters
    ----------
    compares
        Left and right sides of comparisons.
    """

    parameters: list[str]
    reading: Reading = field(default_factory=Reading)
    compares: list[tuple[Value, Value]] = field(default_factory=list)

    def compared(self, sign: type[ast.AST], left: Value, right: Value) -> None:
        """An operator with two sides."""
        reading = self.reading
        for one in (left, right):
            if isinstance(one._node, ast.Name) and one._names():
                reading.computed[one._name] = None
        if issubclass(sign, ast.Mod | ast.FloorDiv):
            reading.bounding |= dict.fromkeys(right._names())
        if not issubclass(sign, ast.cmpop):
            return
        for one, other in ((left, right), (right, left)):
            for part in getattr(other._node, "elts", [other._node]):
                text = getattr(part, "value", None)
                for name in one._names() if isinstance(text, str) else ():
                    texts = reading.texts.setdefault(name, [])
                    if text not in texts:
                        texts.append(str(text))
        self.compares.append((left, right))
        walked = {mark[0] for mark in left._marks} & {"pid", "arange", "loaded"}
        if walked & {"pid", "arange"}:
            reading.counted |= dict.fromkeys(right._names())
        reading.bounding |= dict.fromkeys(right._names() | (set() if walked else left._names()))

    def divided(self, size: Value, block: Value) -> None:
        """``tl.cdiv(size, block)``."""
        names = {size._name, block._name}
        self.reading.bounding |= dict.fromkeys(size._names() | block._names())
        self.reading.computed |= dict.fromkeys(size._names() | block._names())
        self.reading.counted |= dict.fromkeys(size._names() | block._names())
        pair = (size._name, block._name)
        if names <= {*self.parameters} and pair not in self.reading.divisions:
            self.reading.divisions.append(pair)

    def loop(self, *given: Any) -> Iterator[Any]:
        """What a loop counts, twice."""
        values = [value_of(one) for one in given]
        self.reading.has_loop = True
        for one in values:
            self.reading.counted |= dict.fromkeys(one._names())
            self.reading.bounding |= dict.fromkeys(one._names())
            self.reading.computed |= dict.fromkeys(one._names())
        first = values[0] if len(values) > 1 else value_of(0)
        for _ in range(2):
            yield Value(ast.Name(UNKNOWN), first._marks | {("loop",)})

    def accessed(self, name: str, pointer: Value, value: Any, mask: Any) -> None:
        """A load, a store or an atomic operation."""
        pointers = [mark[1] for mark in bases(pointer)]
        indexing = {mark[1] for mark in pointer._marks if mark[0] == "loaded"}
        for base in (one for one in self.parameters if one in pointers):
            use = self.reading.uses.setdefault(base, Use())
            use.is_bare &= isinstance(pointer._node, ast.Name) and pointer._name == base
            for kind, names in (("times", use.factors), ("mod", use.remainders)):
                names |= dict.fromkeys(self._marked(pointer, kind))
            if isinstance(mask, Value):
                use.bounds |= dict.fromkeys(self._marked(mask, "bound"))
            use.is_loaded |= name == "load"
            use.is_stored |= name == "store"
            if name not in ("load", "store"):
                use.atomics = True
            if name != "load" and isinstance(value, Value):
                use.stored_as = use.stored_as or value._cast
            for other in sorted(indexing - {base}):
                self.reading.uses.setdefault(other, Use(is_bare=True)).indexes[base] = None

    def _marked(self, value: Value, kind: str) -> list[str]:
        found = {mark[1] for mark in value._marks if mark[0] == kind}
        return [one for one in self.parameters if one in found]

    def axes(self) -> None:
        """Per axis of the grid the size that bounds it and the block by which it steps."""
        for axis in range(max(self.reading.axes, default=0) + 1):
            bounds: list[str] = []
            blocks: list[str] = []
            for left, right in self.compares:
                if ("pid", axis) in left._marks:
                    bounds += self._marked(right, "name")
                for one in (left, right):
                    blocks += [mark[2] for mark in one._marks if mark[:2] == ("step", axis)]
            self.reading.bounds.append(list(dict.fromkeys(bounds)))
            self.reading.steps.append(sorted(dict.fromkeys(blocks), key=self.parameters.index))
        for left, right in self.compares:
            for block in (mark[1] for mark in left._marks if mark[0] == "arange"):
                held = self.reading.held.setdefault(block, [])
                held += [one for one in self._marked(right, "name") if one not in held]


def trace(kernel: Any) -> Reading:
    """What a kernel does with its parameters."""
    found = Trace(kernel.parameters)
    TRACES.append(found)
    values = {name: parameter(name) for name in kernel.parameters}
    space = kernel.fn.__globals__
    try:
        while any(
            gives_missing(result, space)
            for _, result in explore(lambda: kernel.fn(**values), is_covering=True)
            if isinstance(result, NameError)
        ):
            continue
    finally:
        TRACES.pop()
    found.axes()
    return found.reading


def parameter(name: str) -> Value:
    """A parameter of the kernel, which may be a pointer."""
    return Value(ast.Name(name), frozenset([("name", name), ("base", name)]))


# Functions of Triton's language


def _program(owner: Any, axis: Any = 0, **named: Any) -> Value:
    number = axis if isinstance(axis, int) else 0
    TRACES[-1].reading.axes[number] = None
    return Value(ast.Name(UNKNOWN), frozenset([("pid", number)]))


def _arange(owner: Any, start: Any = 0, end: Any = 0, **named: Any) -> Value:
    end = value_of(end)
    marks: set[Mark] = {("arange", one) for one in end._names()}
    TRACES[-1].reading.counted |= dict.fromkeys(end._names())
    return Value(ast.Name(UNKNOWN), frozenset(marks | {("arange", "")}))


def _pointer(owner: Value | None, given: tuple[Any, ...]) -> tuple[Value | None, Any]:
    """Pointer, and the value or mask after it; also of a descriptor's method."""
    if owner is not None and bases(owner):
        if isinstance(owner._node, ast.Name) and owner._name in TRACES[-1].parameters:
            reading = TRACES[-1].reading
            reading.descriptor_line = reading.descriptor_line or line_now()
        return owner, given
    pointer = given[0] if given and isinstance(given[0], Value) else None
    return pointer, given


def _accessing(name: str) -> Callable[..., Any]:
    def access(owner: Any, *given: Any, **named: Any) -> Any:
        if not given and "pointer" in named:
            given = (named["pointer"],)
        pointer, given = _pointer(owner, given)
        after = given[1:]
        first = 0 if name == "load" else 1
        mask = named.get("mask", after[first] if len(after) > first else None)
        value = named.get("value", named.get("val", after[0] if after else None))
        if pointer is None:
            return Value(ast.Name(UNKNOWN))
        TRACES[-1].accessed(name, pointer, value, mask)
        loaded = frozenset(("loaded", mark[1]) for mark in bases(pointer))
        return Value(ast.Name(UNKNOWN), loaded)

    return access


def _dot(owner: Any, *given: Any, **named: Any) -> Value:
    TRACES[-1].reading.has_dot = True
    return Value(ast.Name(UNKNOWN))


def _descriptor(owner: Any, *given: Any, **named: Any) -> Any:
    reading = TRACES[-1].reading
    reading.scratch_line = reading.scratch_line or line_now()
    return _others(owner, "make_tensor_descriptor", given, named)


def _loop(owner: Any, *given: Any, **named: Any) -> Any:
    return TRACES[-1].loop(*(one for one in given))


def _power(owner: Any, n: Any, **named: Any) -> Any:
    return called("next_power_of_2", n)


def _others(
    owner: Value | None, name: str, given: tuple[Any, ...], named: Mapping[str, Any]
) -> Any:
    """What other functions return: it comes from all that they are given."""
    flat = [one for part in given for one in (part if isinstance(part, tuple | list) else [part])]
    values = [one for one in (owner, *flat, *named.values()) if isinstance(one, Value)]
    first = owner if name == "to" else given[0] if given else named.get("base")
    kept = given[1:] if name == "where" else [first] if name in _SAME else []
    marks = {mark for one in kept for mark in bases(one)}
    made = Value.of(ast.Name(UNKNOWN), *values, marks=marks)
    if name in ("to", "cast"):
        kinds = [one._name for one in (*given, *named.values()) if isinstance(one, Value)]
        made._cast = next((one for one in kinds if one in TYPES), "")
    elif name in ("sum", "max", "min") and given and isinstance(given[0], Value):
        made._cast = given[0]._cast
    return made


_ATOMICS = ("add", "max", "min", "and", "or", "xor", "xchg", "cas")
DEVICE_CALLS: dict[str, Callable[..., Any]] = {
    **{"program_id": _program, "arange": _arange, "dot": _dot, "dot_scaled": _dot},
    **{"load": _accessing("load"), "store": _accessing("store")},
    **{f"atomic_{one}": _accessing(f"atomic_{one}") for one in _ATOMICS},
    **{"make_tensor_descriptor": _descriptor, "range": _loop, "static_range": _loop},
    "next_power_of_2": _power,
}
DEVICE_OTHERS = _others
