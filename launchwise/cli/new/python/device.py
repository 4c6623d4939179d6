"""A kernel of Triton, run with values: loads, stores, atomics, bounds and grid."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from launchwise.cli.new.python.facts import TYPES
from launchwise.cli.new.python.values import (
    COMPARISONS,
    TRACES,
    UNKNOWN,
    Value,
    explore,
    line_now,
    value_of,
)

_SAME = {
    *("multiple_of", "max_contiguous", "max_constancy", "cast", "advance", "make_block_ptr"),
    *("make_tensor_descriptor", "broadcast_to", "expand_dims", "to", "reshape", "broadcast"),
}
"""Functions whose result is the pointer that they are given first."""

_LINEAR = {
    "constant",
    "item",
    "loop",
    "name",
    "negative",
    "+",
    "-",
    "*",
    *_SAME,
}  # How addresses are made of indices

_OF_THE_DEVICE = (
    "a tensor descriptor made on the device needs scratch memory of Triton's launcher, which there "
    "is none of: load by pointers"
)
ROWS = "rows"  # Problem parameter for a size that nothing says
_OF_THE_HOST = "a tensor descriptor of the host, which no launch here makes: load by pointers"


Ordered = dict[str, None]  # Names, each once, in the order in which they are met


@dataclass
class Use:
    """How a kernel uses a pointer."""

    ways: set[str] = field(default_factory=set)  # Names of functions, such as load and atomic_add.
    stored_as: str = ""  # Type that a value is converted to before it is stored.
    indexes: Ordered = field(default_factory=dict)  # Pointers whose address it is loaded for.
    sizes: list[str] = field(default_factory=list)  # Of what it points to; '' for unknown ones.
    # What indices are multiplied by, to their dimension.
    strides: dict[str, int] = field(default_factory=dict)
    is_bare: bool = True  # Whether only the pointer itself is an address,
    is_guess: bool = False  # and whether sizes are those of the grid.

    @property
    def atomics(self) -> bool:
        return bool(self.ways - {"load", "store"})

    @property
    def role(self) -> str:
        return "output" if self.ways == {"store"} else "inout" if self.ways - {"load"} else "input"


class Trace:
    """What runs of a kernel did; names are those of its parameters."""

    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel
        self.uses: dict[str, Use] = {}
        self.bounding: Ordered = {}  # Compared, a divisor, or an end of a loop.
        self.counted: Ordered = {}  # A range, loop or bound of an index ends there.
        self.texts: dict[str, Ordered] = {}  # Compared with these texts.
        self.bounds: list[Ordered] = []  # Per axis of the grid, what its index is below,
        self.steps: list[Ordered] = []  # and what it is multiplied by.
        # Blocks that nothing steps by, to what bounds their elements.
        self.held: dict[str, Ordered] = {}
        self.has_dot = self.has_tiles = self.has_loop = False  # A tile is a pointer of two ranges.
        self.notes: dict[str, int] = {}  # What no launch here can do, to its line.
        self._compares: list[tuple[Value, Value]] = []
        self._accesses: list[tuple[str, Value]] = []
        self._operands: set[str] = set()
        self._ranges: list[Value] = []

    @property
    def sizes(self) -> list[str]:
        """Numbers that it compares, divides or counts to."""
        given = [one for one in self._kernel.given if one not in self.uses]
        return [one for one in given if one in self.bounding]

    def compared(self, sign: str, left: Value, right: Value) -> None:
        """An operator with two sides."""
        self._operands |= {one._name for one in (left, right) if one._sign == "parameter"}
        bounds = self._in_order(right._names())
        if sign in ("%", "//"):
            self.bounding |= bounds
        if sign not in COMPARISONS:
            return
        self._compares.append((left, right))
        self.bounding |= bounds
        for one, other in ((left, right), (right, left)):
            parts = other._parts if other._sign == "tuple" else [other]
            texts = [one._known for one in parts if isinstance(one._known, str)]
            for name in one._names() if texts else ():
                self.texts.setdefault(name, {}).update(dict.fromkeys(texts))
        signs = {"pid" if isinstance(one._sign, int) else one._sign for one in left._walk()}
        if signs & {"pid", "arange"}:
            self.counted |= bounds
        elif "load" not in signs:
            self.bounding |= self._in_order(left._names())

    def count(self, *values: Value) -> None:
        """Ends of loops, and what is divided for them."""
        for names in (self._in_order(one._names()) for one in values):
            self.bounding |= names
            self.counted |= names
            self._operands |= names.keys()

    def loop(self, *given: Any) -> Iterator[Any]:
        """What a loop counts, twice."""
        values = [value_of(one) for one in given]
        self.has_loop = True
        self.count(*values)
        first = values[0] if len(values) > 1 else value_of(0)
        for axis in (one._sign for one in first._walk() if isinstance(one._sign, int)):
            self.bounds[axis] |= self._in_order(values[1]._names())
        for _ in range(2):
            made = Value(UNKNOWN, "loop", [first])
            made._bases = first._bases
            yield made

    def program(self, axis: int) -> Value:
        """Index of the grid along an axis."""
        while len(self.bounds) <= axis:
            self.bounds.append({})
            self.steps.append({})
        return Value(UNKNOWN, axis)

    def arange(self, end: Value) -> Value:
        self.counted |= self._in_order(end._names())
        self._ranges.append(Value(UNKNOWN, "arange", [end]))
        return self._ranges[-1]

    def access(self, name: str, pointer: Value, value: Any) -> None:
        """A load, a store or an atomic operation."""
        steps = [*pointer._walk()]
        loaded = {base for one in steps if one._sign == "load" for base in one._parts[0]._bases}
        self.has_tiles |= len({id(one) for one in steps if one._sign == "arange"}) > 1
        for base in self._in_order(pointer._bases):
            use = self.uses.setdefault(base, Use())
            use.is_bare &= pointer._sign == "parameter"
            use.ways.add(name)
            if name != "load" and isinstance(value, Value):
                use.stored_as = use.stored_as or value._cast
            for other in sorted(loaded - {base}):
                self.uses.setdefault(other, Use()).indexes[base] = None
            self._accesses.append((base, pointer))

    def _in_order(self, names: Iterable[str]) -> Ordered:
        several = {*names}
        return dict.fromkeys(one for one in self._kernel.parameters if one in several)

    def _size_uses(self) -> None:
        """Sizes of what each pointer points to: of indices that are multiplied, then of others."""
        blocks = {name for one in self._ranges for name in one._parts[0]._names()}
        compared = {name for _, right in self._compares for name in right._names()}
        fixed = {*self._kernel.constexprs} - compared
        strides: dict[str, dict[str, str]] = {name: {} for name in self.uses}
        units: dict[str, Ordered] = {name: {} for name in self.uses}
        for base, pointer in self._accesses:
            products = [one for one in pointer._walk(_LINEAR) if one._sign == "*"]
            inner = {id(each) for one in products for part in one._parts for each in part._walk()}
            for product in products:
                for index, factor in (product._parts, product._parts[::-1]):
                    name, known = factor._name, strides[base]
                    is_size = name in compared if id(product) in inner else name not in fixed
                    if factor._sign == "parameter" and is_size and name not in blocks:
                        known[name] = known.get(name) or self._size_of(index, blocks)
            for one in pointer._walk(_LINEAR - {"*"}):
                if one._sign not in _LINEAR | {"parameter"}:
                    size, grid = self._size_of(one, blocks), self._axis(one)
                    units[base][size or grid] = None
                    self.uses[base].is_guess |= bool(grid and not size)
        for base, use in self.uses.items():
            ordered = self._in_order(strides[base])
            use.strides = {name: place for place, name in enumerate(ordered)}
            use.sizes = [*(strides[base][name] for name in ordered), *filter(None, units[base])]

    def _size_of(self, index: Value, blocks: set[str]) -> str:
        """Parameter that bounds an index; '' where nothing says it."""
        keys = _keys(index)
        for one in index._walk():
            if one._sign in ("%", "//") and keys & {*map(id, one._walk())}:
                by = one._parts[1]
                return by._name if one._sign == "%" and by._sign == "parameter" else ""
        for left, right in self._compares:
            names = [name for name in self._in_order(right._names()) if name not in blocks]
            is_loaded = any(one._sign == "load" for one in right._walk())
            if names and not is_loaded and keys & _keys(left):
                return names[0]
        return ""

    def _axis(self, index: Value) -> str:
        """What an axis of the grid is below, for an index that is one of the grid."""
        bounds = self.bounds[index._sign] if isinstance(index._sign, int) else {}
        return next((name for name in bounds if name in self.sizes), "")

    def finish(self) -> None:
        """What is said when all has run."""
        self.program(0)
        for left, right in self._compares:
            bounds = self._in_order(right._names())
            for one in left._walk():
                if isinstance(one._sign, int):
                    self.bounds[one._sign] |= bounds
                blocks = one._parts[0]._names() if one._sign == "arange" else set()
                for block in blocks - self._operands:
                    self.held.setdefault(block, {}).update(bounds)
        compared = [one for pair in self._compares for one in pair if [*_steps(one)]]
        # A kernel without bounds steps by what its pointers do.
        for value in compared or [pointer for _, pointer in self._accesses]:
            for axis, block in _steps(value):
                self.steps[axis][block] = None
        self.steps = [self._in_order(one) for one in self.steps]
        self._size_uses()

    def grid(self) -> tuple[bool, list[str]]:
        """Program instances per axis by the bounds of its indices, and whether all have one."""
        grid, is_clear = [], True
        for bounds, steps in zip(self.bounds, self.steps, strict=True):
            bound = next((one for one in bounds if one in self.sizes), "")
            blocks = [one for one in steps if one in self._kernel.constexprs]
            is_clear &= bool(bound)
            grid.append(f"ceil_div({bound}, {blocks[0]})" if bound and blocks else bound or ROWS)
        return is_clear, grid


def _keys(index: Value) -> set[int]:
    """What makes an index differ: ranges, else indices of the grid, else what is loaded."""
    found: dict[Any, set[int]] = {}
    for one in index._walk():
        found.setdefault("pid" if isinstance(one._sign, int) else one._sign, set()).add(id(one))
    return found.get("arange") or found.get("pid") or found.get("load") or set()


def _steps(value: Value) -> Iterator[tuple[int, str]]:
    """Axes of the grid, and parameters that their indices are multiplied by."""
    for product in (one for one in value._walk() if one._sign == "*"):
        for one, block in (product._parts, product._parts[::-1]):
            axes = [each._sign for each in one._walk() if isinstance(each._sign, int)]
            yield from ((axis, block._name) for axis in axes if block._sign == "parameter")


def trace(kernel: Any) -> Trace:
    """What a kernel does with its parameters."""
    found = Trace(kernel)
    values = {name: Value(name, "parameter") for name in kernel.parameters}
    for name, one in values.items():
        one._bases = frozenset([name])  # Each may be a pointer.
    TRACES.append(found)
    for _ in explore(lambda: kernel.fn(**values), is_covering=True):
        continue
    TRACES.pop()
    found.finish()
    return found


# Functions of Triton's language


def _program(owner: Any, axis: Any = 0, **named: Any) -> Value:
    return TRACES[-1].program(axis if isinstance(axis, int) else 0)


def _arange(owner: Any, start: Any = 0, end: Any = 0, **named: Any) -> Value:
    return TRACES[-1].arange(value_of(end))


def _accessing(name: str) -> Callable[..., Any]:
    def access(owner: Any, *given: Any, **named: Any) -> Any:
        pointer = given[0] if given else named.get("pointer")
        if owner is not None and owner._bases:  # A method of a descriptor.
            pointer = owner
            if owner._sign == "parameter":
                TRACES[-1].notes.setdefault(_OF_THE_HOST, line_now())
        if not isinstance(pointer, Value):
            return Value(UNKNOWN)
        value = named.get("value", named.get("val", given[1] if len(given) > 1 else None))
        TRACES[-1].access(name, pointer, value)
        return Value(UNKNOWN, "load", [pointer])

    return access


def _dot(owner: Any, *given: Any, **named: Any) -> Value:
    TRACES[-1].has_dot = True
    return Value(UNKNOWN)


def _descriptor(owner: Any, *given: Any, **named: Any) -> Any:
    TRACES[-1].notes.setdefault(_OF_THE_DEVICE, line_now())
    return others(owner, "make_tensor_descriptor", given, named)


def _loop(owner: Any, *given: Any, **named: Any) -> Any:
    return TRACES[-1].loop(*given)


def others(owner: Value | None, name: str, given: tuple[Any, ...], named: dict[str, Any]) -> Value:
    """What other functions return: it comes from all that they are given."""
    flat = [one for part in given for one in (part if isinstance(part, tuple | list) else [part])]
    values = [one for one in (owner, *flat, *named.values()) if isinstance(one, Value)]
    made = Value(UNKNOWN, name, values)
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
}
"""Functions of Triton's language that say something."""
