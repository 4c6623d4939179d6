"""Shapes and grid that a kernel alone tells, where no host code of its file launches it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from launchwise.cli.new.python.facts import Reading

ROWS = "rows"
"""Problem parameter for what a program instance per row is launched for."""

_STRIDE = re.compile(
    r"stride_?(?P<tensor>[a-z])(?:_(?P<long>[a-z0-9]+)|(?P<short>[a-z0-9]{1,2}))", re.IGNORECASE
)
"""``stride_am``, ``stride_qbs`` and ``stride_x_row``; no word, such as ``stride_page``."""


def strides_of(names: Iterable[str]) -> dict[str, dict[str, str]]:
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


def sizes_by_stride(names: Sequence[str], sizes: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Strides, and the parameters that are the sizes of their dimensions by their names."""
    known = {one.lower(): one for one in sizes}
    for strides in strides_of(names).values():
        for dimension, stride in strides.items():
            if dimension in known:
                yield stride, known[dimension]


def is_stride(name: str) -> bool:
    """Whether a parameter is a stride by its name."""
    return "stride" in name.lower() or name.lower() in ("lda", "ldb", "ldc")


class Layout:
    """Sizes by the names and masks of the kernel alone.

    Parameters
    ----------
    sizes
        Parameters that are sizes, in their order.
    pointers
        Parameters that are pointers.
    """

    def __init__(
        self, reading: Reading, names: Sequence[str], sizes: Sequence[str], pointers: Sequence[str]
    ) -> None:
        self._reading, self._sizes, self._pointers = reading, sizes, pointers
        self._strides = strides_of(names)

    def shape(self, pointer: str) -> list[str]:
        """Sizes of the array of a pointer."""
        if strides := self._strides.get(pointer.lower()[0]):
            return [self._size(dimension) for dimension in strides]
        use = self._reading.uses.get(pointer)
        if use is None:
            return [self._rows([])]
        if use.is_bare and not use.indexes:
            return ["1"]
        if wrapped := [one for one in use.remainders if one in self._sizes]:
            return wrapped[:1]
        bounds = [name for name in use.bounds if name in self._sizes]
        if len(bounds) == 1 and any(is_stride(one) or one in bounds for one in use.factors):
            return [self._rows(bounds), *bounds]
        return bounds or [self._rows(bounds)]

    def stride(self, name: str) -> str:
        """Value of a stride; '1' where nothing says more."""
        for strides in self._strides.values():
            if name not in strides.values():
                continue
            after = [*strides][[*strides.values()].index(name) + 1 :]
            return " * ".join(self._size(one) for one in after) or "1"
        for pointer in self._pointers:
            use = self._reading.uses.get(pointer)
            if use and name in use.factors:
                return self.shape(pointer)[-1]
        return self._sizes[-1] if self._sizes else "1"

    def held(self, block: str) -> str:
        """The size that a block holds whole, as no loop and no grid steps by it; '' for none."""
        bounds = [one for one in self._reading.held.get(block, []) if one in self._sizes]
        return bounds[0] if len(bounds) == 1 and block not in self._reading.computed else ""

    def grid(self) -> tuple[list[str], bool]:
        """Sizes of the grid, and whether a person must look at them."""
        pairs = [pair.split() for pair in self._reading.divisions]
        pairs = [pair for pair in pairs if pair[0] in self._sizes]
        axes = len(self._reading.bounds)
        if axes == 1 and len(pairs) > 1:
            return [" * ".join(f"ceil_div({size}, {block})" for size, block in pairs)], False
        found, unclear = [], False
        for bounds, steps in zip(self._reading.bounds, self._reading.steps, strict=True):
            bound = next((one for one in bounds if one in self._sizes), None)
            blocks = [one for one in steps if not is_stride(one) and one not in self._sizes]
            unclear |= bound is None
            text = f"ceil_div({bound}, {blocks[0]})" if bound and blocks else bound
            found.append(text or self._rows([]))
        return found, unclear

    def _size(self, dimension: str) -> str:
        same = [one for one in self._sizes if one.lower() == dimension]
        return same[0] if same else f"size_{dimension}"

    def _rows(self, bounds: Sequence[str]) -> str:
        known = [one for one in self._sizes if re.search(r"rows?$|^m$", one.lower())]
        return next((one for one in known if one not in bounds), ROWS)
