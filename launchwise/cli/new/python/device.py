"""A kernel of Triton, run with values: loads, stores, atomics, bounds and grid."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from launchwise.cli.new.python.facts import TYPES, Reading, Use
from launchwise.cli.new.python.values import (
    TRACES,
    UNKNOWN,
    Value,
    called,
    explore,
    line_now,
    value_of,
)

_SAME = {
    *("multiple_of", "max_contiguous", "max_constancy", "cast", "advance", "make_block_ptr"),
    *("make_tensor_descriptor", "broadcast_to", "expand_dims", "to", "reshape", "broadcast"),
}
"""Functions whose result is the pointer that they are given first."""


class Trace:
    """What runs of a kernel did."""

    def __init__(self, parameters: list[str]) -> None:
        self.parameters = parameters
        self.reading = Reading()
        self._compares: list[tuple[Value, Value]] = []

    def compared(self, sign: type[ast.AST], left: Value, right: Value) -> None:
        """An operator with two sides."""
        reading = self.reading
        reading.computed |= dict.fromkeys(o._name for o in (left, right) if o._sign == "parameter")
        if issubclass(sign, ast.Mod | ast.FloorDiv):
            reading.bounding |= dict.fromkeys(right._names())
        if not issubclass(sign, ast.cmpop):
            return
        for one, other in ((left, right), (right, left)):
            parts = [
                getattr(part, "value", None) for part in getattr(other._node, "elts", [other._node])
            ]
            for text in (part for part in parts if isinstance(part, str)):
                for name in one._names():
                    reading.texts.setdefault(name, {})[text] = None
        self._compares.append((left, right))
        signs = {one._sign for one in left._walk()}
        steps = "arange" in signs or any(isinstance(one, int) for one in signs)
        if steps:
            reading.counted |= dict.fromkeys(right._names())
        own = set() if steps or "load" in signs else left._names()
        reading.bounding |= dict.fromkeys(right._names() | own)

    def counted(self, *values: Value) -> None:
        """Ends of loops, and what is divided for them."""
        for name in (name for one in values for name in sorted(one._names())):
            for known in (self.reading.bounding, self.reading.computed, self.reading.counted):
                known[name] = None

    def loop(self, *given: Any) -> Iterator[Any]:
        """What a loop counts, twice."""
        values = [value_of(one) for one in given]
        self.reading.has_loop = True
        self.counted(*values)
        first = values[0] if len(values) > 1 else value_of(0)
        for _ in range(2):
            made = Value(ast.Name(UNKNOWN), [first])
            made._bases = first._bases
            yield made

    def accessed(self, name: str, pointer: Value, value: Any, mask: Any) -> None:
        """A load, a store or an atomic operation."""
        steps = [*pointer._walk()]
        loaded = {base for one in steps if one._sign == "load" for base in one._parts[0]._bases}
        moduli = (one._parts[1] for one in steps if one._sign is ast.Mod)
        for base in (one for one in self.parameters if one in pointer._bases):
            use = self.reading.uses.setdefault(base, Use())
            use.is_bare &= pointer._sign == "parameter"
            products = [one for one in steps if one._sign is ast.Mult]
            use.factors |= self._in_order(name for one in products for name in one._names())
            use.remainders |= self._in_order(o._name for o in moduli if o._sign == "parameter")
            if isinstance(mask, Value):
                use.bounds |= self._in_order(_bounds(mask))
            use.is_loaded |= name == "load"
            use.is_stored |= name == "store"
            use.atomics |= name not in ("load", "store")
            if name != "load" and isinstance(value, Value):
                use.stored_as = use.stored_as or value._cast
            for other in sorted(loaded - {base}):
                self.reading.uses.setdefault(other, Use()).indexes[base] = None

    def _in_order(self, names: Iterable[str]) -> dict[str, None]:
        several = {*names}
        return dict.fromkeys(one for one in self.parameters if one in several)

    def finish(self) -> None:
        """Per axis of the grid the size that bounds it, and the block by which it steps."""
        reading = self.reading
        for axis in range(max(reading.axes, default=0) + 1):
            bounds: dict[str, None] = {}
            blocks: set[str] = set()
            for left, right in self._compares:
                if axis in {one._sign for one in left._walk()}:
                    bounds |= self._in_order(right._names())
                blocks |= {name for one in (left, right) for name in _steps(one, axis)}
            reading.bounds.append([*bounds])
            reading.steps.append([*self._in_order(blocks)])
        for left, right in self._compares:
            for one in (one for one in left._walk() if one._sign == "arange"):
                for block in one._parts[0]._names():
                    held = reading.held.setdefault(block, {})
                    held |= self._in_order(right._names())


def _bounds(mask: Value) -> Iterator[str]:
    for one in mask._walk():
        if isinstance(one._sign, type) and issubclass(one._sign, ast.cmpop):
            yield from one._parts[1]._names()


def _steps(value: Value, axis: int) -> Iterator[str]:
    """Parameters that an index of the grid is multiplied by."""
    for product in (one for one in value._walk() if one._sign is ast.Mult):
        left, right = product._parts
        for one, block in ((left, right), (right, left)):
            if block._sign == "parameter" and axis in {each._sign for each in one._walk()}:
                yield block._name


def trace(kernel: Any) -> Reading:
    """What a kernel does with its parameters."""
    found = Trace(kernel.parameters)
    values = {name: Value(ast.Name(name), sign="parameter") for name in kernel.parameters}
    for name, one in values.items():
        one._bases = frozenset([name])  # Each may be a pointer.
    TRACES.append(found)
    try:
        for _ in explore(lambda: kernel.fn(**values), is_covering=True):
            continue
    finally:
        TRACES.pop()
    found.finish()
    return found.reading


# Functions of Triton's language


def _program(owner: Any, axis: Any = 0, **named: Any) -> Value:
    number = axis if isinstance(axis, int) else 0
    TRACES[-1].reading.axes[number] = None
    return Value(ast.Name(UNKNOWN), sign=number)


def _arange(owner: Any, start: Any = 0, end: Any = 0, **named: Any) -> Value:
    end = value_of(end)
    TRACES[-1].reading.counted |= dict.fromkeys(end._names())
    return Value(ast.Name(UNKNOWN), [end], "arange")


def divided(size: Value, block: Value) -> None:
    """``tl.cdiv(size, block)``."""
    found = TRACES[-1]
    found.counted(size, block)
    if size._sign == block._sign == "parameter":
        found.reading.divisions[f"{size._name} {block._name}"] = None


def _accessing(name: str) -> Callable[..., Any]:
    first = 0 if name == "load" else 1

    def access(owner: Any, *given: Any, **named: Any) -> Any:
        if not given and "pointer" in named:
            given = (named["pointer"],)
        reading, after = TRACES[-1].reading, given[1:]
        pointer = given[0] if given and isinstance(given[0], Value) else None
        if owner is not None and owner._bases:  # A method of a descriptor.
            pointer = owner
            if owner._sign == "parameter":
                reading.descriptor_line = reading.descriptor_line or line_now()
        if pointer is None:
            return Value(ast.Name(UNKNOWN))
        mask = named.get("mask", after[first] if len(after) > first else None)
        value = named.get("value", named.get("val", after[0] if after else None))
        TRACES[-1].accessed(name, pointer, value, mask)
        return Value(ast.Name(UNKNOWN), [pointer], "load")

    return access


def _dot(owner: Any, *given: Any, **named: Any) -> Value:
    TRACES[-1].reading.has_dot = True
    return Value(ast.Name(UNKNOWN))


def _descriptor(owner: Any, *given: Any, **named: Any) -> Any:
    reading = TRACES[-1].reading
    reading.scratch_line = reading.scratch_line or line_now()
    return others(owner, "make_tensor_descriptor", given, named)


def _loop(owner: Any, *given: Any, **named: Any) -> Any:
    return TRACES[-1].loop(*given)


def _power(owner: Any, n: Any, **named: Any) -> Any:
    return called("next_power_of_2", n)


def others(owner: Value | None, name: str, given: tuple[Any, ...], named: dict[str, Any]) -> Value:
    """What other functions return: it comes from all that they are given."""
    flat = [one for part in given for one in (part if isinstance(part, tuple | list) else [part])]
    values = [one for one in (owner, *flat, *named.values()) if isinstance(one, Value)]
    made = Value(ast.Name(UNKNOWN), values)
    first = owner if name == "to" else given[0] if given else named.get("base")
    kept = given[1:] if name == "where" else [first] if name in _SAME else []
    made._bases = frozenset().union(*(one._bases for one in kept if isinstance(one, Value)))
    if name in ("to", "cast"):
        made._cast = next((one._name for one in values[1:] if one._name in TYPES), "")
    elif name in ("sum", "max", "min") and isinstance(first, Value):
        made._cast = first._cast
    return made


_ATOMICS = ("add", "max", "min", "and", "or", "xor", "xchg", "cas")
CALLS: dict[str, Callable[..., Any]] = {
    **{"program_id": _program, "arange": _arange, "dot": _dot, "dot_scaled": _dot},
    **{name: _accessing(name) for name in ("load", "store", *(f"atomic_{o}" for o in _ATOMICS))},
    **{"make_tensor_descriptor": _descriptor, "range": _loop, "static_range": _loop},
    "next_power_of_2": _power,
}
"""Functions of Triton's language that say something."""
