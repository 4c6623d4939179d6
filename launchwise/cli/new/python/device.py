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

_LINEAR = {None, ast.Add, ast.Sub, ast.Mult, *_SAME}  # How addresses are made of indices

_OF_THE_DEVICE = (
    "a tensor descriptor made on the device needs scratch memory of Triton's launcher, which there "
    "is none of: load by pointers"
)
_OF_THE_HOST = "a tensor descriptor of the host, which no launch here makes: load by pointers"


class Trace:
    """What runs of a kernel did."""

    def __init__(self, kernel: Any) -> None:
        self.parameters: list[str] = kernel.parameters
        self._constexprs = kernel.constexprs
        self.reading = Reading()
        self._compares: list[tuple[Value, Value]] = []
        self._accesses: list[tuple[str, Value]] = []
        self._operands: set[str] = set()
        self.ranges: list[Value] = []
        self.axes = 1  # Of the grid.

    def compared(self, sign: type[ast.AST], left: Value, right: Value) -> None:
        """An operator with two sides."""
        reading = self.reading
        self._operands |= {one._name for one in (left, right) if one._sign == "parameter"}
        if sign in (ast.Mod, ast.FloorDiv):
            reading.bounding |= self._in_order(right._names())
        if not issubclass(sign, ast.cmpop):
            return
        self._compares.append((left, right))
        for one, other in ((left, right), (right, left)):
            parts = getattr(other._node, "elts", [other._node])
            texts = [one.value for one in parts if isinstance(getattr(one, "value", 0), str)]
            for name in one._names() if texts else ():
                reading.texts.setdefault(name, {}).update(dict.fromkeys(texts))
        signs = {"pid" if isinstance(one._sign, int) else one._sign for one in left._walk()}
        bounds = self._in_order(right._names())
        reading.bounding |= bounds
        if signs & {"pid", "arange"}:
            reading.counted |= bounds
        elif "load" not in signs:
            reading.bounding |= self._in_order(left._names())

    def counted(self, *values: Value) -> None:
        """Ends of loops, and what is divided for them."""
        for names in (self._in_order(one._names()) for one in values):
            self.reading.bounding |= names
            self.reading.counted |= names
            self._operands |= names.keys()

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

    def accessed(self, name: str, pointer: Value, value: Any) -> None:
        """A load, a store or an atomic operation."""
        steps = [*pointer._walk()]
        loaded = {base for one in steps if one._sign == "load" for base in one._parts[0]._bases}
        self.reading.has_tiles |= len({id(one) for one in steps if one._sign == "arange"}) > 1
        for base in (one for one in self.parameters if one in pointer._bases):
            use = self.reading.uses.setdefault(base, Use())
            use.is_bare &= pointer._sign == "parameter"
            use.is_loaded |= name == "load"
            use.is_stored |= name == "store"
            use.atomics |= name not in ("load", "store")
            if name != "load" and isinstance(value, Value):
                use.stored_as = use.stored_as or value._cast
            for other in sorted(loaded - {base}):
                self.reading.uses.setdefault(other, Use()).indexes[base] = None
            self._accesses.append((base, pointer))

    def _in_order(self, names: Iterable[str]) -> dict[str, None]:
        several = {*names}
        return dict.fromkeys(one for one in self.parameters if one in several)

    def _sizes(self) -> None:
        """Sizes of what each pointer points to: of indices that are multiplied, then of others."""
        blocks = {name for one in self.ranges for name in one._parts[0]._names()}
        compared = {name for _, right in self._compares for name in right._names()}
        fixed = {*self._constexprs} - compared
        strides: dict[str, dict[str, str]] = {name: {} for name in self.reading.uses}
        units: dict[str, dict[str, None]] = {name: {} for name in self.reading.uses}
        for base, pointer in self._accesses:
            products = [one for one in pointer._walk(_LINEAR) if one._sign is ast.Mult]
            inner = {id(each) for one in products for part in one._parts for each in part._walk()}
            for product in products:
                for index, factor in (product._parts, product._parts[::-1]):
                    name, known = factor._name, strides[base]
                    is_size = name in compared if id(product) in inner else name not in fixed
                    if factor._sign == "parameter" and is_size and name not in blocks:
                        known[name] = known.get(name) or self._size_of(index, blocks)
            for one in pointer._walk(_LINEAR - {ast.Mult}):
                if one._sign not in _LINEAR | {"parameter"}:
                    units[base][self._size_of(one, blocks)] = None
        for base, use in self.reading.uses.items():
            ordered = self._in_order(strides[base])
            use.strides = {name: place for place, name in enumerate(ordered)}
            use.sizes = [*(strides[base][name] for name in ordered), *filter(None, units[base])]

    def _size_of(self, index: Value, blocks: set[str]) -> str:
        """Parameter that bounds an index; '' where nothing says it."""
        keys = _keys(index)
        for one in index._walk():
            if one._sign in (ast.Mod, ast.FloorDiv) and keys & {*map(id, one._walk())}:
                by = one._parts[1]
                return by._name if one._sign is ast.Mod and by._sign == "parameter" else ""
        for left, right in self._compares:
            names = [name for name in self._in_order(right._names()) if name not in blocks]
            is_loaded = any(one._sign == "load" for one in right._walk())
            if names and not is_loaded and keys & _keys(left):
                return names[0]
        return ""

    def finish(self) -> Reading:
        """What is said when all has run."""
        reading = self.reading
        reading.bounds = [{} for _ in range(self.axes)]
        reading.steps = [{} for _ in range(self.axes)]
        for left, right in self._compares:
            bounds = self._in_order(right._names())
            for one in left._walk():
                if isinstance(one._sign, int):
                    reading.bounds[one._sign] |= bounds
                blocks = one._parts[0]._names() if one._sign == "arange" else set()
                for block in blocks - self._operands:
                    reading.held.setdefault(block, {}).update(bounds)
            for axis, block in (*_steps(left), *_steps(right)):
                reading.steps[axis][block] = None
        # A kernel without bounds steps by what its pointers do.
        for _, pointer in self._accesses if not any(reading.steps) else ():
            for axis, block in _steps(pointer):
                reading.steps[axis][block] = None
        reading.steps = [self._in_order(one) for one in reading.steps]
        self._sizes()
        return reading


def _keys(index: Value) -> set[int]:
    """What makes an index differ: ranges, else indices of the grid, else what is loaded."""
    found: dict[Any, set[int]] = {}
    for one in index._walk():
        found.setdefault("pid" if isinstance(one._sign, int) else one._sign, set()).add(id(one))
    return found.get("arange") or found.get("pid") or found.get("load") or set()


def _steps(value: Value) -> Iterator[tuple[int, str]]:
    """Axes of the grid, and parameters that their indices are multiplied by."""
    for product in (one for one in value._walk() if one._sign is ast.Mult):
        for one, block in (product._parts, product._parts[::-1]):
            axes = [each._sign for each in one._walk() if isinstance(each._sign, int)]
            yield from ((axis, block._name) for axis in axes if block._sign == "parameter")


def trace(kernel: Any) -> Reading:
    """What a kernel does with its parameters."""
    found = Trace(kernel)
    values = {name: Value(ast.Name(name), sign="parameter") for name in kernel.parameters}
    for name, one in values.items():
        one._bases = frozenset([name])  # Each may be a pointer.
    TRACES.append(found)
    try:
        for _ in explore(lambda: kernel.fn(**values), is_covering=True):
            continue
    finally:
        TRACES.pop()
    return found.finish()


# Functions of Triton's language


def _program(owner: Any, axis: Any = 0, **named: Any) -> Value:
    number = axis if isinstance(axis, int) else 0
    TRACES[-1].axes = max(TRACES[-1].axes, number + 1)
    return Value(ast.Name(UNKNOWN), sign=number)


def _arange(owner: Any, start: Any = 0, end: Any = 0, **named: Any) -> Value:
    end = value_of(end)
    TRACES[-1].reading.counted |= dict.fromkeys(end._names())
    TRACES[-1].ranges.append(Value(ast.Name(UNKNOWN), [end], "arange"))
    return TRACES[-1].ranges[-1]


def divided(size: Value, block: Value) -> None:
    """``tl.cdiv(size, block)``."""
    TRACES[-1].counted(size, block)


def _accessing(name: str) -> Callable[..., Any]:
    def access(owner: Any, *given: Any, **named: Any) -> Any:
        if not given and "pointer" in named:
            given = (named["pointer"],)
        reading, after = TRACES[-1].reading, given[1:]
        pointer = given[0] if given and isinstance(given[0], Value) else None
        if owner is not None and owner._bases:  # A method of a descriptor.
            pointer = owner
            if owner._sign == "parameter":
                reading.notes.setdefault(_OF_THE_HOST, line_now())
        if pointer is None:
            return Value(ast.Name(UNKNOWN))
        value = named.get("value", named.get("val", after[0] if after else None))
        TRACES[-1].accessed(name, pointer, value)
        return Value(ast.Name(UNKNOWN), [pointer], "load")

    return access


def _dot(owner: Any, *given: Any, **named: Any) -> Value:
    TRACES[-1].reading.has_dot = True
    return Value(ast.Name(UNKNOWN))


def _descriptor(owner: Any, *given: Any, **named: Any) -> Any:
    TRACES[-1].reading.notes.setdefault(_OF_THE_DEVICE, line_now())
    return others(owner, "make_tensor_descriptor", given, named)


def _loop(owner: Any, *given: Any, **named: Any) -> Any:
    return TRACES[-1].loop(*given)


def _power(owner: Any, n: Any, **named: Any) -> Any:
    return called("next_power_of_2", n)


def others(owner: Value | None, name: str, given: tuple[Any, ...], named: dict[str, Any]) -> Value:
    """What other functions return: it comes from all that they are given."""
    flat = [one for part in given for one in (part if isinstance(part, tuple | list) else [part])]
    values = [one for one in (owner, *flat, *named.values()) if isinstance(one, Value)]
    made = Value(ast.Name(UNKNOWN), values, name)
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
