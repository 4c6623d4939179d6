"""Tensors of host code: their shapes and types, as calls of PyTorch make and ask for them."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from launchwise.cli.new.triton_files import last_name
from launchwise.workloads.element_types import TYPES

LIKE: tuple[str, ...] = (
    "empty_like",
    "zeros_like",
    "ones_like",
    "rand_like",
    "randn_like",
    "full_like",
    "clone",
)
LIKE += ("contiguous", "detach")
_MADE = ("empty", "zeros", "ones", "rand", "randn", "randint", "full", "randperm", "arange")
_NEW = ("new_empty", "new_zeros", "new_ones", "new_full")
DEEPEST = 12
"""Most names that stand for one another."""

SIZED = ("float16", "float32", "float64", "int8", "int16", "int32", "int64")
"""Types whose size NumPy knows."""


@dataclass
class Tensor:
    """What the host says of a tensor.

    Parameters
    ----------
    sizes
        Dimension to its size, an expression; counted from the end where negative.
    rank
        Least number of dimensions; 0 if unknown.
    length
        Number of elements, where the host asks for that.
    like
        Another tensor with the same shape.
    typed_like
        Another tensor with the same type, where that is not the one with the same shape.
    made_of
        Sizes as the host's code has them.
    is_whole
        Whether ``rank`` is the number of dimensions, not the least one.
    """

    sizes: dict[int, str] = field(default_factory=dict)
    rank: int = 0
    length: str = ""
    like: str = ""
    dtype: str = ""
    typed_like: str = ""
    made_of: list[ast.expr] = field(default_factory=list)
    is_whole: bool = False

    def shape(self) -> list[str | None]:
        """Sizes, None for those that the host does not say."""
        if not self.sizes and self.length:
            return [self.length]
        rank = max([self.rank, *(one + 1 if one >= 0 else -one for one in self.sizes)])
        given = {one % rank if one < 0 else one: text for one, text in self.sizes.items()}
        return [given.get(place) for place in range(rank)]


class Tensors(dict[str, Tensor]):
    """Tensors of a host by name."""

    def size(self, owner: str, place: int) -> str | None:
        """Size of a dimension, which counts from the end where negative; None if unknown."""
        name = owner
        for _ in range(DEEPEST):
            tensor = self.get(name)
            if tensor is None:
                return None
            shape = tensor.shape()
            if place in tensor.sizes:
                return tensor.sizes[place]
            is_known = -len(shape) <= place < len(shape) and (place >= 0 or tensor.rank > 0)
            if is_known and shape[place] is not None:
                return shape[place]
            if not tensor.like:
                return None
            name = tensor.like
        return None

    def length(self, owner: str) -> str | None:
        """Number of elements; None if unknown."""
        tensor = self.get(owner)
        if tensor is None:
            return None
        if tensor.length:
            return tensor.length
        shape = tensor.shape()
        if not shape and tensor.like:
            return self.length(tensor.like)
        return " * ".join(map(str, shape)) if shape and None not in shape else None

    def stride(self, owner: str, place: int | None) -> str | None:
        """Stride of a contiguous tensor, in elements; None where its dimensions are not known."""
        shape = self.whole(owner)
        rank = len(shape)
        if place is None or not rank or not -rank <= place < rank:
            return None
        after = shape[place % rank + 1 :]
        if None in after:
            return None
        return " * ".join(str(one) for one in after) or "1"

    def whole(self, owner: str) -> list[str | None]:
        """Sizes of a tensor, or of the one that has the same shape."""
        tensor = self.get(owner)
        for _ in range(DEEPEST):
            if tensor is None or None not in (tensor.shape() or [None]) or not tensor.like:
                break
            tensor = self.get(tensor.like)
        return tensor.shape() if tensor is not None else []

    def dtype(self, name: str, usual: str) -> str:
        """Type of the elements; ``usual`` where the host does not say it."""
        tensor = self.get(name)
        for _ in range(DEEPEST):
            if tensor is None or tensor.dtype or not (tensor.typed_like or tensor.like):
                break
            tensor = self.get(tensor.typed_like or tensor.like)
        return (tensor.dtype if tensor is not None else "") or usual


def integer(node: ast.expr | None) -> int | None:
    """A whole number that is written as such; None for others."""
    match node:
        case ast.Constant(value=int(value)):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))):
            return -value
    return None


def shape_of(node: ast.expr) -> str:
    """``x`` of ``x.shape`` and ``x.size()``."""
    match node:
        case ast.Attribute(value=ast.Name(id=name), attr="shape"):
            return name
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="size"), args=[]):
            return name
    return ""


def size_of(node: ast.AST) -> tuple[str, int | None] | None:
    """Tensor and dimension of ``x.shape[0]`` and ``x.size(0)``; None for ``x.numel()``."""
    match node:
        case ast.Subscript(value=value, slice=place) if owner := shape_of(value):
            number = integer(place)
            return (owner, number) if number is not None else None
        case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr="size"), args=[place]):
            number = integer(place)
            return (owner, number) if number is not None else None
        case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr="numel"), args=[]):
            return owner, None
        case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=owner)]):
            return owner, 0
    return None


def stride_of(node: ast.AST) -> tuple[str, int | None] | None:
    """Tensor and dimension of ``x.stride(0)`` and ``x.stride()[0]``."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr="stride"), args=[place]):
            return owner, integer(place)
        case ast.Subscript(
            value=ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr="stride"), args=[]),
            slice=place,
        ):
            return owner, integer(place)
    return None


def guessed_stride(node: ast.AST, guessed: Collection[str]) -> str:
    """Question for an expression with a stride of a tensor whose shape is guessed; or ''."""
    owners = [found[0] for each in ast.walk(node) if (found := stride_of(each)) is not None]
    asked = next((owner for owner in owners if owner in guessed), None)
    return f"stride: the file does not say all sizes of {asked}" if asked else ""


def made_tensor(node: ast.expr, constants: Any) -> tuple[str, list[ast.expr] | str, str] | None:
    """Function, shape (or the tensor with the same one) and type of a tensor that is made."""
    if not isinstance(node, ast.Call):
        return None
    name = last_name(node.func)
    dtypes = [one.value for one in node.keywords if one.arg == "dtype"]
    dtype = element_type(dtypes[0]) if dtypes else ""
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    if name in LIKE:
        first = owner if name in ("clone", "contiguous", "detach") else next(iter(node.args), None)
        return (name, first.id, dtype) if isinstance(first, ast.Name) else None
    if name not in (*_MADE, *_NEW):
        return (made[0], made[1], made[2]) if (made := _of_chain(node, constants)) else None
    sizes = list(node.args)
    if sizes and (like := shape_of(sizes[0])):
        return name, like, dtype
    tuples = [one for one in sizes if isinstance(one, ast.Tuple | ast.List)]
    if tuples:
        sizes = list(tuples[0].elts)
    elif name in ("randint", "full", "arange", "randperm"):
        sizes = sizes[-1:] if name != "full" else []
    named = [one.value for one in node.keywords if one.arg == "size"]
    if named and isinstance(named[0], ast.Tuple):
        sizes = list(named[0].elts)
    usual = {"randint": "int64", "arange": "int64", "randperm": "int64"}.get(name, "float32")
    kind = dtype or ("" if dtypes or name in _NEW else usual)
    return name, sizes, kind


def _of_chain(node: ast.Call, constants: Any) -> tuple[str, list[ast.expr] | str, str] | None:
    """``torch.randn(...).to(torch.float16)``, ``.half()``, ``.cuda()``."""
    if not isinstance(node.func, ast.Attribute) or not isinstance(node.func.value, ast.Call):
        return None
    made = made_tensor(node.func.value, constants)
    if made is None:
        return None
    name = node.func.attr
    dtype = {"half": "float16", "bfloat16": "bfloat16", "int": "int32", "float": "float32"}.get(
        name, ""
    )
    if name == "to" and node.args:
        dtype = element_type(node.args[0])
    return made[0], made[1], dtype or made[2]


def typed_like(node: ast.expr, assigned: Mapping[str, ast.expr]) -> str:
    """Tensor whose type a tensor is made with: ``dtype=x.dtype``, ``x.new_empty``; '' for none.

    Parameters
    ----------
    assigned
        What names of the host stand for.
    """
    if not isinstance(node, ast.Call):
        return ""
    given = [one.value for one in node.keywords if one.arg == "dtype"]
    name = last_name(node.func)
    if name in ("to", "type") and node.args:
        given = node.args[:1]
    kind = given[0] if given else None
    if isinstance(kind, ast.Name):
        kind = assigned.get(kind.id, kind)
    match kind, node.func:
        case ast.Attribute(value=ast.Name(id=owner), attr="dtype"), _:
            return owner
        case None, ast.Attribute(value=ast.Name(id=owner)) if name in _NEW:
            return owner
    return ""


def element_type(node: ast.expr) -> str:
    """Type of ``spec.yaml`` of ``torch.float16`` and the like; '' for others."""
    name = last_name(node)
    name = {"half": "float16", "float": "float32", "int": "int32", "long": "int64"}.get(name, name)
    return name if name in TYPES and re.fullmatch(r"[a-z]+\d*", name) else ""


def is_name(node: ast.expr, name: str = "") -> TypeGuard[ast.Name]:
    """Whether a node is a name, or that one."""
    return isinstance(node, ast.Name) and name in ("", node.id)


def literal(value: Any) -> str | None:
    """A number or a text as an expression has it."""
    if isinstance(value, bool | int | float | str):
        return repr(int(value) if isinstance(value, bool) else value)
    return None


def positional(call: ast.Call) -> list[ast.expr]:
    """Arguments by place, also of ``*(a, b)``; up to the first that are unknown."""
    found: list[ast.expr] = []
    for node in call.args:
        if not isinstance(node, ast.Starred):
            found.append(node)
            continue
        inside = node.value.body if isinstance(node.value, ast.IfExp) else node.value
        if not isinstance(inside, ast.Tuple | ast.List):
            break
        found += inside.elts
    return found


def viewed_by(node: ast.expr) -> tuple[str, list[ast.expr]] | None:
    """A tensor of which another view is made, with its sizes: the launch knows that one alone."""
    match node:
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id=name), attr="view" | "reshape"), args=sizes
        ):
            if len(sizes) == 1 and isinstance(sizes[0], ast.Tuple | ast.List):
                sizes = sizes[0].elts
            is_plain = not any(isinstance(one, ast.Starred | ast.Name) for one in sizes[:1])
            return name, list(sizes) if len(sizes) > 1 or is_plain else []
    return None
