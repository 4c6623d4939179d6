"""A kernel of Triton, run with values: loads, stores, atomics, bounds and grid."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any

from launchwise.cli.new.python.kernels import TYPES, Kernel
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

# How addresses are made of indices.
_LINEAR = {*("constant", "item", "loop", "name", "negative", "+", "-", "*"), *_SAME}

_OF_THE_DEVICE = (
    "a tensor descriptor made on the device needs scratch memory of Triton's launcher, which there "
    "is none of: load by pointers"
)
_OF_THE_HOST = "a tensor descriptor of the host, which no launch here makes: load by pointers"
_ATOMICS = ("add", "max", "min", "and", "or", "xor", "xchg", "cas")
_ACCESSES = ("load", "store", *(f"atomic_{one}" for one in _ATOMICS))
_ROWS = "rows"  # Problem parameter for a size that nothing says


@dataclass
class Use:
    ways: set[str] = field(default_factory=set)  # Names of functions, such as load and atomic_add.
    stored_as: str = ""  # Type that a value is converted to before it is stored.
    indexes: dict[str, None] = field(default_factory=dict)  # Pointers that it is loaded to index.
    sizes: list[str] = field(default_factory=list)  # Of what it points to; '' for unknown ones.
    strides: dict[str, int] = field(default_factory=dict)  # Factors of indices, to dimensions.
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

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self.uses: dict[str, Use] = {}
        self.bounding: set[str] = set()  # Compared, a divisor, or an end of a loop.
        self.counted: set[str] = set()  # A range, loop or bound of an index ends there.
        self.texts: dict[str, dict[str, None]] = {}  # Compared with these texts.
        self.bounds: list[set[str]] = []  # Per axis of the grid, what its index is below,
        self.steps: list[set[str]] = []  # and what it is multiplied by.
        self.held: dict[str, set[str]] = {}  # Blocks that nothing steps by, to bounds of elements.
        self.has_dot = self.has_tiles = self.has_loop = False  # A tile is a pointer of two ranges.
        self._compares: list[tuple[Value, Value]] = []
        self._accesses: list[tuple[str, Value]] = []
        self._operands: set[str] = set()
        self._blocks: set[str] = set()  # Ends of ranges.
        # What makes the index of a bound differ, and the names of the bound.
        self._bounds_of_keys: list[tuple[set[int], set[str]]] = []
        # Functions of Triton that say something: of their owner, and of what they are given.
        self.calls: dict[str, Callable[..., Any]] = {
            **{"program_id": self._program, "arange": self._arange, "dot": self._dot},
            **{"dot_scaled": self._dot, "range": self.loop, "static_range": self.loop},
            **{name: partial(self._access, name) for name in _ACCESSES},
            "make_tensor_descriptor": self._descriptor,
        }
        values = {name: Value(name, "parameter") for name in kernel.parameters}
        for name, one in values.items():
            one._bases = frozenset([name])  # Each may be a pointer.
        TRACES.append(self)
        self._program(None)
        for _ in explore(lambda: kernel.fn(**values), is_covering=True):
            continue
        TRACES.pop()
        self._finish()

    @property
    def sizes(self) -> list[str]:
        """Numbers that it compares, divides or counts to, in their order."""
        given = [one for one in self._kernel.given if one not in self.uses]
        return [one for one in given if one in self.bounding]

    def compared(self, sign: str, left: Value, right: Value) -> None:
        self._operands |= {one._name for one in (left, right) if one._sign == "parameter"}
        if sign in ("%", "//"):
            self.count(right)
        if sign not in COMPARISONS:
            return
        self.bounding |= right._names()
        self._compares.append((left, right))
        for one, other in ((left, right), (right, left)):
            parts = other._parts if other._sign == "tuple" else [other]
            texts = [one._known for one in parts if isinstance(one._known, str)]
            for name in one._names() if texts else ():
                self.texts.setdefault(name, {}).update(dict.fromkeys(texts))
        if _axes(left) or any(one._sign == "arange" for one in left._walk()):
            self.counted |= right._names()

    def count(self, *values: Value) -> None:
        for names in (one._names() for one in values):
            self.bounding |= names
            self.counted |= names
            self._operands |= names

    def loop(self, owner: Any, *given: Any, **named: Any) -> Iterator[Any]:
        """What a loop counts, twice."""
        values = [value_of(one) for one in given]
        self.has_loop = True
        self.count(*values)
        first = values[0] if len(values) > 1 else value_of(0)
        for axis in _axes(first):
            self.bounds[axis] |= values[1]._names()
        for _ in range(2):
            made = Value(UNKNOWN, "loop", [first])
            made._bases = first._bases
            yield made

    def _program(self, owner: Any, axis: Any = 0, **named: Any) -> Value:
        axis = axis if isinstance(axis, int) else 0
        while len(self.bounds) <= axis:
            self.bounds.append(set())
            self.steps.append(set())
        return Value(UNKNOWN, axis)

    def _arange(self, owner: Any, start: Any = 0, end: Any = 0, **named: Any) -> Value:
        end = value_of(end)
        self.counted |= end._names()
        self._blocks |= end._names()
        return Value(UNKNOWN, "arange", [end])

    def _dot(self, owner: Any, *given: Any, **named: Any) -> Value:
        self.has_dot = True
        return Value(UNKNOWN)

    def _descriptor(self, owner: Any, *given: Any, **named: Any) -> Value:
        self._kernel.note(line_now(), _OF_THE_DEVICE)
        return self.other("make_tensor_descriptor", owner, given, named)

    def _access(self, way: str, owner: Value, *given: Any, **named: Any) -> Value:
        pointer = given[0] if given else named.get("pointer")
        if owner._bases:  # A method of a descriptor.
            pointer = owner
            if owner._sign == "parameter":
                self._kernel.note(line_now(), _OF_THE_HOST)
        if not isinstance(pointer, Value):
            return Value(UNKNOWN)
        value = named.get("value", named.get("val", given[1] if len(given) > 1 else None))
        steps = [*pointer._walk()]
        loaded = {base for one in steps if one._sign == "load" for base in one._parts[0]._bases}
        self.has_tiles |= len({id(one) for one in steps if one._sign == "arange"}) > 1
        for base in sorted(pointer._bases):
            use = self.uses.setdefault(base, Use())
            use.is_bare &= pointer._sign == "parameter"
            use.ways.add(way)
            if way != "load" and isinstance(value, Value):
                use.stored_as = use.stored_as or value._cast
            for other in sorted(loaded - {base}):
                self.uses.setdefault(other, Use()).indexes[base] = None
            self._accesses.append((base, pointer))
        return Value(UNKNOWN, "load", [pointer])

    def other(self, name: str, owner: Value | None, given: Sequence[Any], named: Any) -> Value:
        """What other functions return: it comes from all that they are given."""
        several = ([*one] if isinstance(one, tuple | list) else [one] for one in given)
        every = (owner, *chain.from_iterable(several), *named.values())
        values = [one for one in every if isinstance(one, Value)]
        made = Value(UNKNOWN, name, values)
        first = owner if name == "to" else given[0] if given else named.get("base")
        kept = given[1:] if name == "where" else [first] if name in _SAME else []
        made._bases = frozenset().union(*(one._bases for one in kept if isinstance(one, Value)))
        if name in ("to", "cast"):
            made._cast = next((one._name for one in values[1:] if one._name in TYPES), "")
        elif name in ("sum", "max", "min") and isinstance(first, Value):
            made._cast = first._cast
        return made

    def _finish(self) -> None:
        for left, right in self._compares:
            for axis in _axes(left):
                self.bounds[axis] |= right._names()
            for one in (each for each in left._walk() if each._sign == "arange"):
                for block in one._parts[0]._names() - self._operands:
                    self.held.setdefault(block, set()).update(right._names())
        compared = [one for pair in self._compares for one in pair if [*_steps(one)]]
        # A kernel without bounds steps by what its pointers do.
        for value in compared or [pointer for _, pointer in self._accesses]:
            for axis, block in _steps(value):
                self.steps[axis].add(block)
        self._bounds_of_keys = [
            (_keys(left), names)
            for left, right in self._compares
            if (names := right._names() - self._blocks)
            and not any(one._sign == "load" for one in right._walk())
        ]
        for base, use in self.uses.items():
            self._size(use, [pointer for own, pointer in self._accesses if own == base])

    def _size(self, use: Use, pointers: Sequence[Value]) -> None:
        """Sizes of what a pointer points to: of indices that are multiplied, then of others."""
        compared = {name for _, right in self._compares for name in right._names()}
        fixed = self._blocks | ({*self._kernel.constexprs} - compared)
        strides: dict[str, str] = {}
        units: dict[str, None] = {}
        for pointer in pointers:
            products = [one for one in pointer._walk(_LINEAR) if one._sign == "*"]
            for product in products:
                for index, factor in (product._parts, product._parts[::-1]):
                    name = factor._name
                    if factor._sign == "parameter" and name not in fixed:
                        strides[name] = strides.get(name) or self._size_of(index)
                    # Nothing says how far a quotient goes.
                    use.is_guess |= index._sign == "//"
            for one in pointer._walk(_LINEAR - {"*"}):
                if one._sign not in _LINEAR | {"parameter"}:
                    size, grid = self._size_of(one), self._axis(one)
                    units[size or grid] = None
                    use.is_guess |= bool(grid and not size)
        ordered = [name for name in self._kernel.parameters if name in strides]
        use.strides = {name: place for place, name in enumerate(ordered)}
        use.sizes = [*(strides[name] for name in ordered), *filter(None, units)]

    def _size_of(self, index: Value) -> str:
        """Parameter that bounds an index; '' where nothing says it."""
        keys = _keys(index)
        for one in index._walk():
            if one._sign in ("%", "//") and keys & {*map(id, one._walk())}:
                by = one._parts[1]
                return by._name if one._sign == "%" and by._sign == "parameter" else ""
        for known, names in self._bounds_of_keys:
            if keys & known:
                return min(names, key=self._kernel.parameters.index)
        return ""

    def _axis(self, index: Value) -> str:
        """What an axis of the grid is below, for an index that is one of the grid."""
        bounds = self.bounds[index._sign] if isinstance(index._sign, int) else set()
        return next((name for name in self.sizes if name in bounds), "")

    def grid(self) -> tuple[bool, list[str]]:
        """Program instances per axis by the bounds of its indices, and whether all have one."""
        grid, is_clear = [], True
        for bounds, steps in zip(self.bounds, self.steps, strict=True):
            bound = next((one for one in self.sizes if one in bounds), "")
            blocks = [one for one in self._kernel.constexprs if one in steps]
            is_clear &= bool(bound)
            grid.append(f"ceil_div({bound}, {blocks[0]})" if bound and blocks else bound or _ROWS)
        return is_clear, grid


def _axes(value: Value) -> list[int]:
    """Axes of the grid that a value comes from."""
    return [one._sign for one in value._walk() if isinstance(one._sign, int)]


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
            if block._sign == "parameter":
                yield from ((axis, block._name) for axis in _axes(one))
