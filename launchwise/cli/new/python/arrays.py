"""Tensors of host code: shapes and types, as calls of PyTorch make them and ask for them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from launchwise.cli.new.python.values import (
    ATTRIBUTES,
    Value,
    line_now,
    node_of,
    value_of,
    written,
)

KINDS = {"half": "float16", "float": "float32", "double": "float64", "int": "int32"}
KINDS |= {"short": "int16", "long": "int64"}
_BITS = {"bool": 1, "bfloat16": 2}
_BITS |= {f"{kind}{8 * size}": size for kind in ("int", "uint") for size in (1, 2, 4, 8)}
_BITS |= {f"float{8 * size}": size for size in (2, 4, 8)}


@dataclass(frozen=True)
class Symbol:
    """What a name in an expression stands for.

    Parameters
    ----------
    kind
        ``size``, ``stride`` or ``length`` of an array, a ``free`` parameter of the host, a
        ``literal`` that the host names, or a parameter of the kernel in its ``meta``.
    """

    kind: str
    array: Array | None = None
    place: int = 0
    known: Any = None


@dataclass
class Names:
    """What a run of the host says.

    Parameters
    ----------
    symbols
        Name in expressions to what it stands for.
    called
        Symbol to the name that the host gives it.
    arrays
        In the order in which they are made.
    usual_bytes
        Of an element whose type the file does not say.
    """

    symbols: dict[str, Symbol] = field(default_factory=dict)
    called: dict[str, str] = field(default_factory=dict)
    arrays: dict[str, Array] = field(default_factory=dict)
    usual_bytes: int = 4

    def symbol(self, name: str, symbol: Symbol) -> Value:
        """Value of a symbol."""
        self.symbols.setdefault(name, symbol)
        return Value(ast.Name(name), known=symbol.known)

    def array(self, key: str, **facts: Any) -> Array:
        """A new array."""
        while key in self.arrays:
            key += "'"
        self.arrays[key] = Array(key, self, **facts)
        return self.arrays[key]


NOW: list[Names] = [Names()]
"""Those of the run that goes on."""


@dataclass(eq=False)
class Array:
    """What the host says of a tensor.

    Parameters
    ----------
    sizes
        Dimension to its size, counted from the end where negative.
    rank
        Least number of dimensions, or their number where ``is_whole``.
    length
        Number of elements, where the host asks for that.
    like, typed_like
        Arrays with the same shape and the same type.
    """

    key: str
    names: Names
    sizes: dict[int, Value] = field(default_factory=dict)
    rank: int = 0
    is_whole: bool = False
    length: Value | None = None
    like: Array | None = None
    dtype: str = ""
    typed_like: Array | None = None

    def size(self, place: int) -> Value:
        """Size of a dimension."""
        place = self._place(place)
        if self.like is not None and not self.sizes:
            return self.like.size(place)
        if place not in self.sizes:
            symbol = Symbol("size", self, place)
            self.sizes[place] = self.names.symbol(f"{self.key}.shape[{place}]", symbol)
        self.rank = max(self.rank, place + 1, -place)
        return self.sizes[place]

    def stride(self, place: int) -> Value:
        """Stride of a dimension."""
        root = self
        while root.like is not None and not root.sizes:
            root = root.like
        root.rank = max(root.rank, place + 1, -place)
        if place == 0 and not root.is_whole and root.length is None:
            root.rank = max(root.rank, 2)  # Who passes the stride of rows has columns, too.
        return self.names.symbol(f"{self.key}.stride({place})", Symbol("stride", self, place))

    def elements(self) -> Value:
        """Number of elements."""
        if self.like is not None and not self.sizes:
            return self.like.elements()
        if self.length is None:
            self.length = self.names.symbol(f"{self.key}.numel()", Symbol("length", self))
        return self.length

    def of_rank(self, rank: int) -> list[Value]:
        """All sizes."""
        if self.like is not None and not self.sizes:
            return self.like.of_rank(rank)
        self.rank, self.is_whole = rank, True
        self.sizes = {self._place(place): one for place, one in self.sizes.items()}
        return [self.size(place) for place in range(rank)]

    def kind(self) -> str:
        """Type of the elements; '' if unknown."""
        source: Array | None = self
        for _ in range(12):
            if source is None or source.dtype:
                break
            source = source.typed_like or source.like
        return source.dtype if source is not None else ""

    def _place(self, place: int) -> int:
        return place % self.rank if self.is_whole and -self.rank <= place < 0 else place

    def shape(self) -> list[Value | None]:
        """Sizes, None for those that the host does not say."""
        if not self.sizes and self.length is not None:
            return [self.length]
        if not self.sizes and self.like is not None:
            return self.like.shape()
        rank = max([self.rank, *(one + 1 if one >= 0 else -one for one in self.sizes)])
        given = {one % rank if one < 0 else one: size for one, size in self.sizes.items()}
        return [given.get(place) for place in range(rank)]


class Places:
    """``x.shape`` or ``x.stride``: what a tensor has per dimension."""

    def __init__(self, array: Array, ask: Callable[[int], Value]) -> None:
        self.array, self._ask = array, ask

    def __call__(self, place: Any = None, dim: Any = None) -> Any:
        given = place if place is not None else dim
        return self if given is None else self._ask(int(given))

    def __getitem__(self, place: Any) -> Any:
        if not isinstance(place, slice):
            return self._ask(int(place))
        return tuple(self)[place] if self.array.is_whole else (Value(self._node()),)

    def __len__(self) -> int:
        return self.array.rank or 2

    def __iter__(self) -> Iterator[Value]:
        self.array.of_rank(len(self))
        return map(self._ask, range(len(self)))

    def __eq__(self, other: object) -> Any:
        node = other._node() if isinstance(other, Places) else node_of(other)
        made = Value(ast.Compare(self._node(), [ast.Eq()], [node]))
        made._given = ((self.array, other.array) if isinstance(other, Places) else (), {})
        return made

    def __ne__(self, other: object) -> Any:
        return not self == other

    def __hash__(self) -> int:
        return id(self.array)

    def _node(self) -> ast.expr:
        return ast.Name(f"{self.array.key}.shape")

    def numel(self) -> Value:
        """Number of elements."""
        return self.array.elements()


class Size(Value):
    """``x.size``: the number of elements of CuPy, and the method of PyTorch."""

    def __call__(self, place: Any = None, dim: Any = None) -> Any:
        return _shape(self)(place, dim)


def _size(value: Value) -> Value:
    array = array_of(value)
    name = f"{array.key}.numel()"
    array.names.symbols.setdefault(name, Symbol("length", array))
    size = Size(ast.Name(name))
    size._array = array
    return size


def _shape(value: Value) -> Places:
    return Places(array_of(value), array_of(value).size)


def array_of(value: Value) -> Array:
    """The tensor that a value is."""
    if value._array is None:
        key = written(value._node)
        known = NOW[-1].arrays.get(key)
        value._array = known if known is not None else NOW[-1].array(key)
    found: Array = value._array
    return found


def is_tensor(value: Any) -> bool:
    """Whether a value is used as a tensor."""
    return isinstance(value, Value) and (
        value._array is not None or written(value._node) in NOW[-1].arrays
    )


def made(array: Array) -> Value:
    """A value that is a tensor."""
    value = Value(ast.Name(array.key))
    value._array = array
    return value


def _certain(value: Value) -> bool | None:
    """Whether a condition holds as no size is zero; None where that does not tell."""
    node, size = value._node, value._name
    sign: ast.cmpop | None = None
    match node:
        case ast.Compare(ast.Name(id=size), [sign], [ast.Constant(0)]):
            pass
    symbol = NOW[-1].symbols.get(size)
    if symbol is None or symbol.kind not in ("size", "length"):
        return None
    return not isinstance(sign, ast.Eq | ast.Lt | ast.LtE)


Value.certain = staticmethod(_certain)


def kind_of(value: Any) -> tuple[str, Array | None]:
    """Type of ``torch.float16``, or the tensor of ``x.dtype``."""
    if not isinstance(value, Value):
        return "", None
    if value._name == "dtype" and value._owner is not None:
        return "", array_of(value._owner)
    name = KINDS.get(value._name, value._name)
    return (name if name in _BITS else ""), None


def _key(name: str) -> str:
    return f"{name}:{line_now()}"


def _sizes(given: Sequence[Any], named: dict[str, Any]) -> list[Any]:
    sizes: Any = named.get("size", given)
    if len(sizes) == 1 and isinstance(sizes[0], tuple | list | Places):
        sizes = sizes[0]
    return list(sizes)


def _new(name: str, sizes: Sequence[Any], kind: str, like: Array | None) -> Value:
    array = NOW[-1].array(_key(name), dtype=kind, typed_like=None if kind else like)
    array.rank, array.is_whole = len(sizes), bool(sizes)
    for place, one in enumerate(sizes):
        size = value_of(one)
        if size._known != -1 and not size._name.endswith(".shape"):
            array.sizes[place] = size
    return made(array)


def _alike(name: str, array: Array, kind: str = "", like: Array | None = None) -> Value:
    """A tensor of the same shape; of the same type, too, where nothing else is said."""
    return made(NOW[-1].array(_key(name), like=array, dtype=kind, typed_like=like))


def _filled(name: str, usual: str) -> Callable[..., Any]:
    def make(owner: Value, *given: Any, **named: Any) -> Any:
        kind, like = kind_of(named.get("dtype"))
        if name.endswith("_like"):
            return _alike(name, array_of(value_of(given[0])), kind, like)
        like = like or (array_of(owner) if name.startswith("new_") else None)
        kind = kind or ("" if like is not None or "dtype" in named else usual)
        places: Sequence[Any] = given[:1] if "full" in name else given
        if name in ("randint", "arange", "randperm"):
            tuples = [one for one in given if isinstance(one, tuple | list | Places)]
            places = tuples[:1] or given[-1:]
        if places and isinstance(places[0], Places) and not places[0].array.is_whole:
            return _alike(name, places[0].array, kind, like)
        return _new(name, _sizes(places, named), kind, like)

    return make


def _viewed(owner: Value, *given: Any, **named: Any) -> Any:
    array = array_of(owner)
    sizes = _sizes(given, {})
    if len(sizes) == 1 and value_of(sizes[0])._known == -1:
        sizes = [array.elements()]
    view = _new(f"{array.key}.view", sizes, "", array)
    if not array.is_whole and array.like is None and array.length is None:
        array.like = view._array
    return view


def _converted(owner: Value, *given: Any, **named: Any) -> Any:
    kinds = (kind_of(one) for one in (*given, *named.values()))
    kind, like = next((one for one in kinds if any(one)), ("", None))
    return _alike("to", array_of(owner), kind, like) if kind or like is not None else owner


def _cast(kind: str) -> Callable[..., Any]:
    def cast(owner: Value, *given: Any, **named: Any) -> Any:
        is_cast = not (given or named) and is_tensor(owner)
        return _alike(kind, array_of(owner), kind) if is_cast else NotImplemented

    return cast


def _itself(owner: Value, *given: Any, **named: Any) -> Value:
    return owner


HOST_CALLS: dict[str, Callable[..., Any]] = {
    **{name: _filled(name, "float32") for name in ("empty", "zeros", "ones", "rand", "randn")},
    **{name: _filled(name, "int64") for name in ("randint", "arange", "randperm")},
    **{f"{name}_like": _filled(f"{name}_like", "") for name in ("empty", "zeros", "ones", "rand")},
    **{name: _filled(name, "") for name in ("randn_like", "full_like", "randint_like")},
    **{f"new_{name}": _filled(f"new_{name}", "") for name in ("empty", "zeros", "ones", "full")},
    **{"full": _filled("full", "float32"), "view": _viewed, "reshape": _viewed},
    **{"to": _converted, "type": _converted},
    **{name: _cast(kind) for name, kind in (KINDS | {"bfloat16": "bfloat16"}).items()},
    **{name: _itself for name in ("contiguous", "cuda", "cpu", "detach", "data_ptr")},
    "requires_grad_": _itself,
    "clone": lambda owner, *given, **named: _alike("clone", array_of(owner)),
    "flatten": lambda owner, *given, **named: NotImplemented if given else _viewed(owner, -1),
    "is_contiguous": lambda owner, *given, **named: True,
    "numel": lambda owner: array_of(owner).elements(),
    "element_size": lambda owner: _BITS.get(array_of(owner).kind(), NOW[-1].usual_bytes),
}
"""Functions and methods of PyTorch that make tensors, or that ask for their sizes."""

ATTRIBUTES |= {
    "shape": _shape,
    "size": _size,
    "stride": lambda value: Places(array_of(value), array_of(value).stride),
    "is_cuda": lambda value: True,
}
