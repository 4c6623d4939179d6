"""Tensors of host code: shapes and types, as calls of PyTorch make them and ask for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from launchwise.cli.new.python.values import (
    ATTRIBUTES,
    RUNS,
    Value,
    combined,
    line_now,
    value_of,
)
from launchwise.cuda_text.types import BYTES

_KINDS = {"half": "float16", "float": "float32", "double": "float64", "int": "int32"}
_KINDS |= {"short": "int16", "long": "int64"}
_USUAL_BYTES = 4  # Of an element whose type the file does not say


@dataclass
class Symbol:
    """What a name in an expression stands for: ``size``, ``stride`` or ``length`` of a shape, or a
    ``free`` parameter of the host."""

    kind: str
    shape: Shape | None = None
    place: int = 0
    called: str = ""  # The name that the host gives it, or that it gets for a problem parameter,
    is_guess: bool = False  # where nothing says it.
    same: Value | None = None  # What it stands for.


def symbol(name: str, kind: str, shape: Shape | None = None, place: int = 0) -> Value:
    RUNS[-1].symbols.setdefault(name, Symbol(kind, shape, place))
    return Value(name)


class Shape:
    """What the host says of the sizes of tensors that share them."""

    def __init__(self, key: str) -> None:
        self.key = key  # That of the tensor that had them first.
        self.sizes: dict[int, Value] = {}  # Dimension, counted from the end where negative.
        self.rank = 0  # Least number of dimensions,
        self.is_whole = False  # or their number.
        self.length: Value | None = None  # Number of elements, where the host asks for that.

    def become(self, other: Shape) -> None:
        """From now on both are one."""
        self.__dict__ = other.__dict__

    def size(self, place: int) -> Value:
        place = place % self.rank if self.is_whole and -self.rank <= place < 0 else place
        self.rank = max(self.rank, place + 1, -place)
        return self.sizes[place] if place in self.sizes else self.named(place)

    def named(self, place: int) -> Value:
        """A size that is nothing but that of this dimension."""
        self.sizes[place] = symbol(f"{self.key}.shape[{place}]", "size", self, place)
        return self.sizes[place]

    def stride(self, place: int) -> Value:
        self.rank = max(self.rank, place + 1, -place)
        return symbol(f"{self.key}.stride({place})", "stride", self, place)

    def elements(self) -> Value:
        if self.length is None:
            self.length = symbol(f"{self.key}.numel()", "length", self)
        return self.length

    def of_rank(self, rank: int) -> list[Value]:
        self.rank, self.is_whole = rank, True
        self.sizes = {one % rank if one < 0 else one: size for one, size in self.sizes.items()}
        return [self.size(place) for place in range(rank)]

    def known(self) -> list[Value | None]:
        """Sizes, None for those that the host does not say."""
        if not self.sizes and self.length is not None:
            return [self.length]
        given = {one % self.rank if one < 0 else one: size for one, size in self.sizes.items()}
        return [given.get(place) for place in range(self.rank)]


@dataclass(eq=False)
class Kind:
    """Type of the elements of tensors that share it; '' if unknown."""

    name: str = ""


@dataclass(eq=False)
class Tensor:
    key: str
    shape: Shape
    kind: Kind


def new_tensor(key: str, shape: Shape | None = None, kind: Kind | None = None) -> Tensor:
    """A tensor of the run that goes on; others may have its sizes and its type."""
    known = RUNS[-1].tensors
    while key in known:
        key += "'"
    found = known[key] = Tensor(key, shape or Shape(key), kind or Kind())
    return found


def tensor_of(value: Value) -> Tensor:
    if value._tensor is None:
        key = value._said()
        value._tensor = RUNS[-1].tensors.get(key) or new_tensor(key)
    found: Tensor = value._tensor
    return found


def is_tensor(value: Any) -> bool:
    return isinstance(value, Value) and (
        value._tensor is not None or value._said() in RUNS[-1].tensors
    )


def shape_of(value: Value) -> Shape:
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
        return tuple(self)[place] if self.shape.is_whole else (self._value(),)

    def __len__(self) -> int:
        return self.shape.rank or 2

    def __iter__(self) -> Iterator[Value]:
        self.shape.of_rank(len(self))
        return map(self._ask, range(len(self)))

    def __eq__(self, other: object) -> Any:
        one = other._value() if isinstance(other, Places) else value_of(other)
        return combined("==", None, self._value(), one)

    def __hash__(self) -> int:
        return id(self.shape)

    def _value(self) -> Value:
        return Value(f"{self.shape.key}.shape")


# Functions and methods of PyTorch


def _kind_of(value: Any) -> Kind | None:
    """Type of ``torch.float16``, or of the tensor of ``x.dtype``."""
    if not isinstance(value, Value):
        return None
    if value._name == "dtype" and value._owner is not None:
        return tensor_of(value._owner).kind
    name = _KINDS.get(value._name, value._name)
    return Kind(name) if name in BYTES else None


def _made(shape: Shape | None, kind: Kind | None) -> Value:
    tensor = new_tensor(f"tensor of line {line_now()}", shape, kind)
    value = Value(tensor.key)
    value._tensor = tensor
    return value


def _of_sizes(given: Sequence[Any], kind: Kind | None) -> Value:
    """A tensor whose sizes are the first tuple among what is given, else all of it."""
    several = (one for one in given if isinstance(one, tuple | list | Places))
    sizes = next(several, given)
    if isinstance(sizes, Places) and not sizes.shape.is_whole:
        return _made(sizes.shape, kind)
    sizes = [*map(value_of, sizes)]
    made = _made(None, kind)
    shape = made._tensor.shape
    shape.rank, shape.is_whole = len(sizes), bool(sizes)
    for place, size in enumerate(sizes):
        if size._known != -1 and not size._name.endswith(".shape"):
            shape.sizes[place] = size
    return made


def _filled(usual: str) -> Callable[..., Any]:
    """A function that makes a tensor of this type, or of that of the tensor whose method it is."""

    def make(owner: Value, *given: Any, **named: Any) -> Any:
        kind = _kind_of(named.get("dtype"))
        if "dtype" not in named:
            kind = Kind(usual) if usual else tensor_of(owner).kind
        return _of_sizes([*given, *([named["size"]] if "size" in named else [])], kind)

    return make


def _like(owner: Value, other: Any = None, *given: Any, **named: Any) -> Any:
    like = tensor_of(owner if other is None else value_of(other))
    return _made(like.shape, _kind_of(named.get("dtype")) or like.kind)


def _viewed(owner: Value, *given: Any, **named: Any) -> Any:
    own, kind = shape_of(owner), tensor_of(owner).kind
    is_flat = len(given) == 1 and value_of(given[0])._known == -1
    view = _of_sizes([own.elements()] if is_flat else given, kind)
    if not own.is_whole and own.length is None:
        own.become(shape_of(view))
    return view


def _converted(owner: Value, *given: Any, **named: Any) -> Any:
    kinds = (_kind_of(one) for one in (*given, *named.values()))
    kind = next((one for one in kinds if one is not None), None)
    return owner if kind is None else _made(shape_of(owner), kind)


_SAME = ("contiguous", "cuda", "cpu", "detach", "data_ptr", "requires_grad_")
_FILLS = ("empty", "zeros", "ones", "full", "rand", "randn")

CALLS: dict[str, Callable[..., Any]] = {
    **{name: _filled("float32") for name in _FILLS},
    **{f"new_{name}": _filled("") for name in _FILLS},
    **{f"{name}_like": _like for name in (*_FILLS, "randint")},
    **{"clone": _like, "randint": _filled("int64"), "randperm": _filled("int64")},
    **{"view": _viewed, "reshape": _viewed, "to": _converted, "type": _converted},
    **{name: lambda owner, *given, **named: owner for name in _SAME},
    "arange": lambda owner, *given, **named: _filled("int64")(owner, given[-1], **named),
    "flatten": lambda owner, *given, **named: NotImplemented if given else _viewed(owner, -1),
    "is_contiguous": lambda owner, *given, **named: True,
    "size": lambda owner, dim=None: Places(shape_of(owner), shape_of(owner).size)(dim),
    "numel": lambda owner: shape_of(owner).elements(),
    "element_size": lambda owner: BYTES.get(tensor_of(owner).kind.name, _USUAL_BYTES),
}
"""Functions and methods of PyTorch that make tensors, or that ask for their sizes."""

ATTRIBUTES |= {
    "shape": lambda value: Places(shape_of(value), shape_of(value).size),
    "stride": lambda value: Places(shape_of(value), shape_of(value).stride),
    "is_cuda": lambda value: True,
}
