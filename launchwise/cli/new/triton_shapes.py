"""Shapes and grid of a function of Triton that no host code of its file launches."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from launchwise.cli.new.triton_files import last_name
from launchwise.cli.new.triton_pointers import Flow

ROWS = "rows"
"""Problem parameter for what a program instance per row is launched for."""

_STRIDE = re.compile(
    r"stride_?(?P<tensor>[a-z])(?:_(?P<long>[a-z0-9]+)|(?P<short>[a-z0-9]{1,2}))", re.IGNORECASE
)
"""``stride_am``, ``stride_qbs`` and ``stride_x_row``; no word, such as ``stride_page``."""


def _strides(names: Iterable[str]) -> dict[str, dict[str, str]]:
    """First letter of a tensor to its dimensions and their strides."""
    found: dict[str, dict[str, str]] = {}
    for name in names:
        if match := _STRIDE.fullmatch(name):
            dimension = match["long"] or match["short"]
            found.setdefault(match["tensor"].lower(), {})[dimension.lower()] = name
    # Two letters alone are the end of a word: `stride_row`, `stride_out`.
    alone = re.compile(r"stride_?[a-z]{3}", re.IGNORECASE)
    return {
        tensor: strides
        for tensor, strides in found.items()
        if len(strides) > 1 or not any(map(alone.fullmatch, strides.values()))
    }


def is_stride(name: str) -> bool:
    """Whether a parameter is a stride by its name."""
    return "stride" in name.lower() or name.lower() in ("lda", "ldb", "ldc")


class Layout:
    """Sizes by the names and masks of the function alone.

    Parameters
    ----------
    function, flow
        Of Triton.
    sizes
        Parameters that are sizes, in their order.
    pointers
        Parameters that are pointers.
    """

    def __init__(
        self,
        function: ast.FunctionDef,
        flow: Flow,
        sizes: Sequence[str],
        pointers: Sequence[str],
    ) -> None:
        self._function, self._flow = function, flow
        self._sizes, self._pointers = sizes, pointers
        self._strides = _strides(flow.parameters)

    def shape(self, pointer: str) -> list[str]:
        """Sizes of the array of a pointer."""
        if strides := self._strides.get(pointer.lower()[0]):
            return [self._size(dimension) for dimension in strides]
        use = self._flow.reading.uses.get(pointer)
        if use and {getattr(one, "id", "") for one in use.addresses} == {pointer}:
            return ["1"]
        if use and (wrapped := [*self._remainders(use.addresses)]):
            return wrapped[:1]
        bounds = [name for name in (use.bounds if use else ()) if name in self._sizes]
        factors = {
            name for address in (use.addresses if use else ()) for name in self._factors(address)
        }
        if len(bounds) == 1 and any(is_stride(one) or one in bounds for one in factors):
            return [self._rows(bounds), *bounds]
        return bounds or [self._rows(bounds)]

    def by_strides(self) -> Iterator[tuple[str, str]]:
        """Strides, and the parameters that are the sizes of their dimensions by their names."""
        known = {one.lower(): one for one in self._sizes}
        for strides in self._strides.values():
            for dimension, stride in strides.items():
                if dimension in known:
                    yield stride, known[dimension]

    def stride(self, name: str) -> str:
        """Value of a stride; '1' where nothing says more."""
        for strides in self._strides.values():
            if name not in strides.values():
                continue
            after = [*strides][[*strides.values()].index(name) + 1 :]
            return " * ".join(self._size(one) for one in after) or "1"
        for pointer in self._pointers:
            use = self._flow.reading.uses.get(pointer)
            if use and any(name in self._factors(address) for address in use.addresses):
                return self.shape(pointer)[-1]
        return self._sizes[-1] if self._sizes else "1"

    def held(self, block: str) -> str:
        """The size that a block holds whole, as no loop and no grid steps by it; '' for none."""
        for node in ast.walk(self._function):
            parts: list[ast.expr] = []
            if isinstance(node, ast.BinOp):
                parts = [node.left, node.right]
            elif isinstance(node, ast.Call) and last_name(node.func) != "arange":
                parts = [*node.args, *(one.value for one in node.keywords)]
            if any(isinstance(one, ast.Name) and one.id == block for one in parts):
                return ""
        bounds = self._bounds(self._ranging(block))
        return bounds[0] if len(set(bounds)) == 1 else ""

    def _ranging(self, block: str) -> set[str]:
        """Variables that go through a block: ``tl.arange(0, BLOCK)``."""

        def goes(call: ast.Call) -> bool:
            ends = {one.id for one in call.args if isinstance(one, ast.Name)}
            return last_name(call.func) == "arange" and block in ends

        return self._following(goes)

    def _following(self, begins: Callable[[ast.Call], bool]) -> set[str]:
        """Variables that follow from calls."""
        found: set[str] = set()
        for _ in range(4):
            for name, value in self._flow.values.items():
                if any(
                    node.id in found if isinstance(node, ast.Name) else begins(node)
                    for node in ast.walk(value)
                    if isinstance(node, ast.Name | ast.Call)
                ):
                    found.add(name)
        return found

    def _bounds(self, names: set[str]) -> list[str]:
        """Sizes that variables are compared with."""
        return [
            name.id
            for node in ast.walk(self._function)
            if isinstance(node, ast.Compare)
            if {one.id for one in ast.walk(node.left) if isinstance(one, ast.Name)} & names
            for side in node.comparators
            for name in ast.walk(side)
            if isinstance(name, ast.Name) and name.id in self._sizes
        ]

    def grid(self) -> tuple[list[str], bool]:
        """Sizes of the grid, and whether a person must look at them."""
        axes = max(self._flow.reading.axes, default=0) + 1
        pairs = list(dict.fromkeys(self._divisions()))
        if axes == 1 and len(pairs) > 1:
            return [" * ".join(f"ceil_div({size}, {block})" for size, block in pairs)], False
        found, unclear = [], False
        for axis in range(axes):
            text = self._axis(axis)
            unclear |= text is None
            found.append(text or self._rows([]))
        return found, unclear

    def _axis(self, axis: int) -> str | None:
        names = self._from_program(axis)
        block = next(
            (
                side.id
                for value in (self._flow.values[one] for one in names if one in self._flow.values)
                for node in ast.walk(value)
                if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)
                for side in (node.left, node.right)
                if isinstance(side, ast.Name) and side.id in self._flow.parameters
                if not is_stride(side.id) and side.id not in self._sizes
            ),
            None,
        )
        bound = next(iter(self._bounds(names)), None)
        if bound is None:
            return None
        return f"ceil_div({bound}, {block})" if block else bound

    def _from_program(self, axis: int) -> set[str]:
        """Variables that follow from the index of a program instance."""

        def is_index(call: ast.Call) -> bool:
            given = [*call.args, *(one.value for one in call.keywords)]
            of_axis = getattr(given[0] if given else None, "value", 0) == axis
            return last_name(call.func) == "program_id" and of_axis

        return self._following(is_index)

    def _divisions(self) -> Iterator[tuple[str, str]]:
        """Sizes that the function itself divides by a block: ``tl.cdiv(M, BLOCK_M)``."""
        for value in self._flow.values.values():
            for node in ast.walk(value):
                match node:
                    case ast.Call(func=func, args=[ast.Name(id=size), ast.Name(id=block)]):
                        if last_name(func) == "cdiv" and size in self._sizes:
                            yield size, block

    def _factors(self, address: ast.expr, depth: int = 0) -> Iterator[str]:
        """Names that an address multiplies."""
        for node in ast.walk(address):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
                for side in (node.left, node.right):
                    yield from (one.id for one in ast.walk(side) if isinstance(one, ast.Name))
            elif isinstance(node, ast.Name) and depth < 4:
                value = self._flow.values.get(node.id)
                for one in [*([value] if value else ()), *self._flow.added.get(node.id, ())]:
                    yield from self._factors(one, depth + 1)

    def _remainders(self, addresses: Sequence[ast.expr]) -> Iterator[str]:
        """Sizes that an index is reduced to: ``hist + value % bins``."""
        for node in (one for address in addresses for one in ast.walk(address)):
            match node:
                case ast.BinOp(op=ast.Mod(), right=ast.Name(id=size)) if size in self._sizes:
                    yield size

    def _size(self, dimension: str) -> str:
        same = [one for one in self._sizes if one.lower() == dimension]
        return same[0] if same else f"size_{dimension}"

    def _rows(self, bounds: Sequence[str]) -> str:
        known = [one for one in self._sizes if re.search(r"rows?$|^m$", one.lower())]
        return next((one for one in known if one not in bounds), ROWS)
