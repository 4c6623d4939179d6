"""What a kernel's indices say: sides of the block, elements per block, bounds, strides."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from launchwise.cli.new.body import Body, Frame
from launchwise.cli.new.polynomials import (
    Polynomial,
    add,
    coefficient,
    expression,
    multiply,
    names_of,
    read,
    written,
)
from launchwise.cuda_text.syntax import child, text_of

_MIRROR = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
MOST_COMPARISONS = 2_000


@dataclass(frozen=True)
class Comparison:
    """A comparison of an index with a bound: ``index < bound``.

    ``name`` is the index where it is one name, else empty; ``index`` what it stands for, with
    everything expanded; ``bound`` the first value that it may not have; ``length`` the same for
    ``name``: of ``i / 32 < n`` the index is i, the bound 32 n, the length n.
    """

    name: str
    index: Polynomial
    bound: Polynomial
    length: Polynomial
    node: Node
    frame: Frame


class Indices:
    """Indices of a kernel.

    ``axes`` are those of ``blockIdx``, ``threadIdx`` and ``blockDim`` that it reads;
    ``comparisons`` the bounds of indices, in order; ``steps`` the variables that a loop
    increases, to their step.
    """

    def __init__(self, body: Body) -> None:
        self.body = body
        self.axes = {name: body.axes(name) for name in ("blockIdx", "threadIdx", "blockDim")}
        self.steps: dict[str, Polynomial] = {}
        self.comparisons: list[Comparison] = []
        for frame, node in body.nodes("assignment_expression", "update_expression"):
            self._read_step(frame, node)
        for frame, node in body.nodes("binary_expression"):
            operator = text_of(child(node, "operator"))
            left, right = child(node, "left"), child(node, "right")
            if left is None or right is None or len(self.comparisons) > MOST_COMPARISONS:
                continue
            if operator in _MIRROR:
                self._compare(frame, node, left, operator, right)

    def definitions(self, keep: frozenset[str] = frozenset()) -> Iterator[Polynomial]:
        """What variables of the kernel are set to; names in ``keep`` stand for themselves."""
        return self.body.definitions(keep)

    def side(self, name: str) -> str:
        """Axis of the threads for whose index blocks are ``name`` elements apart; or ''."""
        found = set()
        for one in self._indices():
            for axis in "xyz":
                threads = coefficient(one, f"threadIdx.{axis}")
                for other in "xyz":
                    if threads == {(): 1} and coefficient(one, f"blockIdx.{other}") == {(name,): 1}:
                        found.add(axis)
        return found.pop() if len(found) == 1 else ""

    def is_square(self, name: str) -> bool:
        """Whether blocks are ``name`` elements apart along several axes."""
        found = set()
        for one in self._indices():
            for axis in "xyz":
                if name in names_of(coefficient(one, f"blockIdx.{axis}")):
                    found.add(axis)
        return len(found) > 1

    def started_by(self, name: str) -> set[str]:
        """Axes of ``threadIdx`` on which the first value of a variable depends, each alone."""
        starts = self.body.values_of(name)
        return {axis for one in starts for axis in "xyz" if (f"threadIdx.{axis}",) in one}

    def placed(self, axis: str) -> Iterator[tuple[Polynomial, Polynomial]]:
        """Indices that depend on ``blockIdx`` along an axis, and its factor in each."""
        for one in self._indices():
            if factor := coefficient(one, f"blockIdx.{axis}"):
                yield one, factor

    def loops(self) -> set[str]:
        """Names that bound no index of a thread or block."""
        found = {name for one in self.comparisons for name in names_of(one.bound)}
        threads = [one for one in self.comparisons if _depends(one.index)]
        return found - {name for one in threads for name in names_of(one.bound)}

    def pitches(self) -> set[str]:
        """Names by which indices of blocks are multiplied."""
        return {name for axis in "xyz" for _, one in self.placed(axis) for name in names_of(one)}

    def _indices(self) -> Iterator[Polynomial]:
        """Values of variables and of compared expressions that depend on the block."""
        yield from self.definitions()
        yield from (one.index for one in self.comparisons)
        yield from self.steps.values()
        yield from (index for _, index in self.subscripts())

    def subscripts(self, keep: frozenset[str] = frozenset()) -> Iterator[tuple[str, Polynomial]]:
        """Names of what is indexed, and the index."""
        for frame, array, index in self.body.subscripts():
            if len(text_of(index)) < 240:
                yield text_of(array), self.body.value(index, frame, keep)

    def per_block(self, axis: str) -> list[Polynomial]:
        """Factors of ``blockIdx`` along an axis in indices, the most frequent first."""
        counted: dict[str, tuple[int, Polynomial]] = {}
        for one in self._indices():
            factor = coefficient(one, f"blockIdx.{axis}")
            if factor and not any(name.startswith("?") for name in names_of(factor)):
                key = repr(sorted(factor.items()))
                counted[key] = (counted.get(key, (0, factor))[0] + 1, factor)
        return [factor for _, factor in sorted(counted.values(), key=lambda pair: -pair[0])]

    def bounds(self, axis: str) -> list[Comparison]:
        """Comparisons of indices that depend on ``blockIdx`` along an axis alone."""
        wanted = f"blockIdx.{axis}"
        others = {f"blockIdx.{each}" for each in "xyz"} - {wanted}
        return [
            one
            for one in self.comparisons
            if wanted in names_of(one.index)
            and not others & names_of({term: 1 for term in one.index if not _on_grid(term)})
        ]

    def goes_on(self, axis: str) -> bool:
        """Whether blocks along an axis go on where those along others end, in every index.

        ``blockIdx.y * gridDim.x + blockIdx.x`` does so along y.
        """
        factors = [factor for _, factor in self.placed(axis)]
        return bool(factors) and all(_on_grid(term) for one in factors for term in one)

    def strides_over_grid(self, axis: str) -> bool:
        """Whether a loop goes on by the size of the grid along an axis."""
        return any(
            f"gridDim.{axis}" in name for step in self.steps.values() for name in names_of(step)
        )

    def _read_step(self, frame: Frame, node: Node) -> None:
        name = text_of(child(node, "left") or child(node, "argument"))
        if not name.isidentifier():
            return
        right, operator = child(node, "right"), text_of(child(node, "operator"))
        if node.type == "update_expression":
            if operator == "++":
                self.steps.setdefault(name, {(): 1})
        elif right is not None and operator == "+=":
            self.steps[name] = self.body.value(right, frame)
        elif right is not None and operator == "=" and right.type == "binary_expression":
            step = child(right, "right")
            is_sum = text_of(child(right, "operator")) == "+"
            if is_sum and text_of(child(right, "left")) == name and step is not None:
                self.steps[name] = self.body.value(step, frame)

    def _compare(self, frame: Frame, node: Node, left: Node, operator: str, right: Node) -> None:
        one, other = self.body.value(left, frame), self.body.value(right, frame)
        if _depends(other) and not _depends(one):
            left, right, one, other = right, left, other, one
            operator = _MIRROR[operator]
        elif _depends(other):
            return
        name = text_of(left) if left.type == "identifier" else ""
        if not _depends(one) and name not in self.steps:
            return
        # `i <= last` and `i > last` exclude what comes after last.
        bound = dict(other)
        if operator in ("<=", ">"):
            bound[()] = bound.get((), 0) + 1
        length = {term: factor for term, factor in bound.items() if factor}
        # `i + width < n` as `i < n - width`.
        offset = {term: factor for term, factor in one.items() if _is_fixed(term)}
        if not name or set(offset) == {()}:
            one = {term: factor for term, factor in one.items() if term not in offset}
            bound = add(bound, offset, -1)
        bound = {term: factor for term, factor in bound.items() if factor}
        one, bound = _undivided(one, bound)
        self.comparisons.append(Comparison(name, one, bound, length, node, frame))


def _itself(node: Node, divides: bool) -> None:
    """A name that stands for itself."""


def _on_grid(term: tuple[str, ...]) -> bool:
    """Whether a product has a size of the grid as a factor."""
    return any(name.startswith("gridDim.") for name in term)


def _depends(one: Polynomial) -> bool:
    """Whether an expression depends on the thread or the block."""
    return any(word in name for name in names_of(one) for word in ("threadIdx", "blockIdx"))


def _is_fixed(term: tuple[str, ...]) -> bool:
    """Whether a product depends on no thread, no block, and nothing unknown."""
    return not any("Idx" in name or "Dim" in name or name.startswith("?") for name in term)


def _undivided(one: Polynomial, bound: Polynomial) -> tuple[Polynomial, Polynomial]:
    """``i / 32 < rows`` as ``i < rows * 32``; ``i * 16 < m`` as ``i < (m + 15) / 16``."""
    if len(one) == 1 and len(term := next(iter(one))) == 1:
        factor = one[term]
        if factor > 1 and len(bound) == 1 and set(bound.values()) == {1}:
            bound = {(f"? {written(bound)} + {factor - 1} / {factor}",): 1}
        elif factor != 1:
            return one, bound
        match = re.fullmatch(r"\? ([^?]+) / ([\w.]+)", term[0])
        if match:
            inner, divisor = (read(expression(text), _itself) for text in match.groups())
            return inner, multiply(bound, divisor)
    return one, bound
