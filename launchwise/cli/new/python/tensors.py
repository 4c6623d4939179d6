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

_KINDS = {"half": "float16", "float": "float32", "double": "float64", "int": "int32"}
_KINDS |= {"short": "int16", "long": "int64"}
_BYTES = {"bool": 1, "bfloat16": 2}
_BYTES |= {f"{kind}{8 * size}": size for kind in ("int", "uint") for size in (1, 2, 4, 8)}
_BYTES |= {f"float{8 * size}": size for size in (2, 4, 8)}


@dataclass(frozen=True)
class Symbol:
    """What a name in an expression stands for. ``size``, ``stride`` or ``length`` of a shape, a
    ``free`` parameter of the host, a ``literal`` that the host names, or a parameter of the kernel
    in its ``meta``."""

    kind: str
    shape: Shape | None = None
    place: int = 0
    known: Any = None


@dataclass
class Names:
    """What a run of the host says."""

    symbols: dict[str, Symbol] = field(default_factory=dict)  # What names in expressions are,
    called: dict[str, str] = field(default_factory=dict)  # and the names that the host gives them.
    tensors: dict[str, Tensor] = field(default_factory=dict)  # In the order of their making.
    usual_bytes: int = 4  # Of an element whose type the file does not say.

    def symbol(self, name: str, symbol: Symbol) -> Value:
        self.symbols.setdefault(name, symbol)
        return Value(ast.Name(name), known=symbol.known)

    def tensor(self, key: str, shape: Shape | None = None, kind: Kind | None = None) -> Tensor:
        while key in self.tensors:
            key += "'"
        self.tensors[key] = Tensor(key, shape or Shape(key, self), kind or Kind())
        return self.tensors[key]


NOW: list[Names] = [Names()]  # Those of the run that goes on, last


class Shape:
    """What the host says of the sizes of tensors that share them."""

    def __init__(self, key: str, names: Names) -> None:
        self.key, self._names = key, names  # The key of the tensor that had them first.
        self.sizes: dict[int, Value] = {}  # Dimension, counted from the end where negative.
        self.rank = 0  # Least number of dimensions,
        self.is_whole = False  # or their number.
        self.length: Value | None = None  # Number of elements, where the host asks for that.

    def become(self, other: Shape) -> None:
        """From now on both are one."""
        self.__dict__ = other.__dict__

    def size(self, place: int) -> Value:
        place = place % self.rank if self.is_whole and -self.rank <= place < 0 else place
        if place not in self.sizes:
            symbol = Symbol("size", self, place)
            self.sizes[place] = self._names.symbol(f"{self.key}.shape[{place}]", symbol)
        self.rank = max(self.rank, place + 1, -place)
        return self.sizes[place]

    def stride(self, place: int) -> Value:
        self.rank = max(self.rank, place + 1, -place)
        return self._names.symbol(f"{self.key}.stride({place})", Symbol("stride", self, place))

    def elements(self) -> Value:
        if self.length is None:
            self.length = self._names.symbol(f"{self.key}.numel()", Symbol("length", self))
        return self.length

    def of_rank(self, rank: int) -> list[Value]:
        """All sizes."""
        self.rank, self.is_whole = rank, True
        self.sizes = {one % rank if one < 0 else one: size for one, size in self.sizes.items()}
        return [self.size(place) for place in range(rank)]

    def known(self) -> list[Value | None]:
        """Sizes, None for those that the host does not say."""
        if not self.sizes and self.length is not None:
            return [self.length]
        rank = max([self.rank, *(one + 1 if one >= 0 else -one for one in self.sizes)])
        given = {one % rank if one < 0 else one: size for one, size in self.sizes.items()}
        return [given.get(place) for place in range(rank)]


@dataclass(eq=False)
class Kind:
    """Type of the elements of tensors that share it; '' if unknown."""

    name: str = ""


@dataclass(eq=False)
class Tensor:
    """What the host says of a tensor."""

    key: str
    shape: Shape
    kind: Kind


def tensor_of(value: Value) -> Tensor:
    if value._tensor is None:
        key = written(value._node)
        known = NOW[-1].tensors.get(key)
        value._tensor = known if known is not None else NOW[-1].tensor(key)
    found: Tensor = value._tensor
    return found


def is_tensor(value: Any) -> bool:
    return isinstance(value, Value) and (
        value._tensor is not None or written(value._node) in NOW[-1].tensors
    )


def shape_of(value: Value) -> Shape:
    """The sizes of the tensor that a value is."""
    return tensor_of(value).shape


class Places:
    """``x.shape`` or ``x.stride``: what a tensor has per dimension."""

    def __init__(self, shape: Shape, ask: Callable[[int], Value]) -> None:
        self.shape, self._ask = shape, ask

    def __call__(self, dim: Any = None) -> Any:
        return self if dim is None else self._ask(int(dim))

    def __getitem__(self, place: Any) -> Any:
        if not isinstance(place, slice):
            return self._ask(int(place))
        return tuple(self)[place] if self.shape.is_whole else (Value(self._node()),)

    def __len__(self) -> int:
        return self.shape.rank or 2

    def __iter__(self) -> Iterator[Value]:
        self.shape.of_rank(len(self))
        return map(self._ask, range(len(self)))

    def __eq__(self, other: object) -> Any:
        node = other._node() if isinstance(other, Places) else node_of(other)
        return Value(ast.Compare(self._node(), [ast.Eq()], [node]))

    def __ne__(self, other: object) -> Any:
        return ~(self == other)

    def __hash__(self) -> int:
        return id(self.shape)

    def _node(self) -> ast.expr:
        return ast.Name(f"{self.shape.key}.shape")

    def numel(self) -> Value:
        return self.shape.elements()


# Functions and methods of PyTorch


def _kind_of(value: Any) -> Kind | None:
    """Type of ``torch.float16``, or of the tensor of ``x.dtype``."""
    if not isinstance(value, Value):
        return None
    if value._name == "dtype" and value._owner is not None:
        return tensor_of(value._owner).kind
    name = _KINDS.get(value._name, value._name)
    return Kind(name) if name in _BYTES else None


def _made(name: str, shape: Shape | None, kind: Kind | None) -> Value:
    tensor = NOW[-1].tensor(f"{name}:{line_now()}", shape, kind)
    value = Value(ast.Name(tensor.key))
    value._tensor = tensor
    return value


def _new(name: str, sizes: Sequence[Any], kind: Kind | None) -> Value:
    made = _made(name, None, kind)
    shape = made._tensor.shape
    shape.rank, shape.is_whole = len(sizes), bool(sizes)
    for place, one in enumerate(sizes):
        size = value_of(one)
        if size._known != -1 and not size._name.endswith(".shape"):
            shape.sizes[place] = size
    return made


def _sizes(given: Sequence[Any]) -> list[Any]:
    is_one = len(given) == 1 and isinstance(given[0], tuple | list | Places)
    return list(given[0] if is_one else given)


def _filled(name: str, usual: str) -> Callable[..., Any]:
    def make(owner: Value, *given: Any, **named: Any) -> Any:
        kind = _kind_of(named.get("dtype"))
        if name.endswith("_like"):
            like = tensor_of(value_of(given[0]))
            return _made(name, like.shape, kind or like.kind)
        if kind is None and name.startswith("new_"):
            kind = tensor_of(owner).kind
        if kind is None and "dtype" not in named:
            kind = Kind(usual)
        places: Sequence[Any] = given[:1] if "full" in name else named.get("size", given)
        if name in ("randint", "arange", "randperm"):
            tuples = [one for one in given if isinstance(one, tuple | list | Places)]
            places = tuples[:1] or given[-1:]
        if places and isinstance(places[0], Places) and not places[0].shape.is_whole:
            return _made(name, places[0].shape, kind)
        return _new(name, _sizes(places), kind)

    return make


def _viewed(owner: Value, *given: Any, **named: Any) -> Any:
    tensor, sizes = tensor_of(owner), _sizes(given)
    if len(sizes) == 1 and value_of(sizes[0])._known == -1:
        sizes = [tensor.shape.elements()]
    view, own = _new(f"{tensor.key}.view", sizes, tensor.kind), tensor.shape
    if not own.is_whole and own.length is None:
        own.become(view._tensor.shape)
    return view


def _converted(owner: Value, *given: Any, **named: Any) -> Any:
    kinds = (_kind_of(one) for one in (*given, *named.values()))
    kind = next((one for one in kinds if one is not None), None)
    return owner if kind is None else _made("to", shape_of(owner), kind)


_SAME = ("contiguous", "cuda", "cpu", "detach", "data_ptr", "requires_grad_")

CALLS: dict[str, Callable[..., Any]] = {
    **{name: _filled(name, "float32") for name in ("empty", "zeros", "ones", "rand", "randn")},
    **{name: _filled(name, "int64") for name in ("randint", "arange", "randperm")},
    **{f"{name}_like": _filled(f"{name}_like", "") for name in ("empty", "zeros", "ones", "rand")},
    **{name: _filled(name, "") for name in ("randn_like", "full_like", "randint_like")},
    **{f"new_{name}": _filled(f"new_{name}", "") for name in ("empty", "zeros", "ones", "full")},
    **{"full": _filled("full", "float32"), "view": _viewed, "reshape": _viewed},
    **{"to": _converted, "type": _converted},
    **{name: lambda owner, *given, **named: owner for name in _SAME},
    "clone": lambda owner, *given, **named: _made("clone", shape_of(owner), tensor_of(owner).kind),
    "flatten": lambda owner, *given, **named: NotImplemented if given else _viewed(owner, -1),
    "is_contiguous": lambda owner, *given, **named: True,
    "size": lambda owner, dim=None: Places(shape_of(owner), shape_of(owner).size)(dim),
    "numel": lambda owner: shape_of(owner).elements(),
    "element_size": lambda owner: _BYTES.get(tensor_of(owner).kind.name, NOW[-1].usual_bytes),
}
"""Functions and methods of PyTorch that make tensors, or that ask for their sizes."""

ATTRIBUTES |= {
    "shape": lambda value: Places(shape_of(value), shape_of(value).size),
    "stride": lambda value: Places(shape_of(value), shape_of(value).stride),
    "is_cuda": lambda value: True,
}
