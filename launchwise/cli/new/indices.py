"""What a kernel's indices say: sides of the block, elements per block, bounds, strides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from launchwise.cli.new.body import (
    Body,
    Frame,
    Polynomial,
    add,
    coefficient,
    names_of,
    uncast,
)
from launchwise.cuda_text.syntax import child, text_of

AXES = "xyz"
_MIRROR = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
_MOST_COMPARISONS = 2_000


@dataclass(frozen=True)
class Comparison:
    """A comparison of an index with a bound: ``index < bound``."""

    name: str  # the index where it is one name, else empty
    index: Polynomial  # what it stands for, with everything expanded
    bound: Polynomial  # the first value that it may not have


class Indices:
    def __init__(self, body: Body) -> None:
        self.body = body
        # variables that a loop increases, to their step
        self.steps: dict[str, Polynomial] = {}
        self.comparisons: list[Comparison] = []
        for frame, node in body.nodes("assignment_expression", "update_expression"):
            self._read_step(frame, node)
        for frame, node in body.nodes("binary_expression"):
            left, right = child(node, "left"), child(node, "right")
            if text_of(child(node, "operator")) in _MIRROR and left is not None and right:
                self._compare(frame, text_of(child(node, "operator")), left, right)
        self._every = [
            *body.definitions(),
            *(one.index for one in self.comparisons),
            *self.steps.values(),
            *(index for _, index in self.subscripts()),
        ]

    def placed(self, axis: str) -> Iterator[tuple[Polynomial, Polynomial]]:
        """Indices that depend on ``blockIdx`` along an axis, and its factor in each."""
        for one in self._every:
            if factor := coefficient(one, f"blockIdx.{axis}"):
                yield one, factor

    def sides(self) -> dict[str, list[Polynomial]]:
        """Axis of threads to the distances of blocks in indices whose threads are neighbours; only
        in those that no loop changes, as loops may go on by the threads of the block."""
        found: dict[str, list[Polynomial]] = {axis: [] for axis in AXES}
        keep = frozenset(self.steps)
        every = (*self.body.definitions(keep=keep), *(one for _, one in self.subscripts(keep)))
        for one in (each for each in every if not names_of(each) & keep):
            for axis in AXES:
                if coefficient(one, f"threadIdx.{axis}") == {(): 1}:
                    factors = (coefficient(one, f"blockIdx.{other}") for other in AXES)
                    found[axis] += [factor for factor in factors if factor]
        return found

    def held_by_threads(self, axis: str) -> str:
        """An array in shared memory of which each thread along an axis has an element; or ''."""
        shared = self.body.shared_arrays()
        thread = (f"threadIdx.{axis}",)
        names = (name.partition("[")[0] for name, one in self.subscripts() if thread in one)
        return next((name for name in names if name in shared), "")

    def started_by(self, name: str) -> set[str]:
        """Axes of ``threadIdx`` on which the first value of a variable depends, each alone."""
        starts = list(self.body.definitions(name))
        return {axis for one in starts for axis in AXES if (f"threadIdx.{axis}",) in one}

    def pitches(self) -> set[str]:
        """Names by which indices of blocks are multiplied."""
        return {name for axis in AXES for _, one in self.placed(axis) for name in names_of(one)}

    def subscripts(self, keep: frozenset[str] = frozenset()) -> Iterator[tuple[str, Polynomial]]:
        """Names of what is indexed, and the index."""
        for frame, node in self.body.nodes("subscript_expression"):
            array, listed = child(node, "argument"), child(node, "indices")
            if array is not None and listed is not None and listed.named_child_count == 1:
                index = listed.named_children[0]
                if len(text_of(index)) < 240:
                    yield text_of(uncast(array)), self.body.value(index, frame, keep)

    def per_block(self, axis: str) -> list[Polynomial]:
        """Factors of ``blockIdx`` along an axis in indices, the most frequent first."""
        factors = [factor for _, factor in self.placed(axis)]
        known = [one for one in factors if not any(name[0] == "?" for name in names_of(one))]
        counted = Counter(tuple(sorted(one.items())) for one in known)
        return [dict(one) for one, _ in counted.most_common()]

    def bounds(self, axis: str) -> list[Comparison]:
        """Comparisons of indices that depend on ``blockIdx`` along an axis alone."""
        found = []
        for one in self.comparisons:
            terms = (term for term in one.index if not any("gridDim" in name for name in term))
            plain = {name for term in terms for name in term}
            others = {each for each in AXES if f"blockIdx.{each}" in plain} - {axis}
            if f"blockIdx.{axis}" in names_of(one.index) and not others:
                found.append(one)
        return found

    def strides_over_grid(self, axis: str) -> bool:
        """Whether a loop goes on by the size of the grid along an axis."""
        names = {name for step in self.steps.values() for name in names_of(step)}
        return any(f"gridDim.{axis}" in name for name in names)

    def _read_step(self, frame: Frame, node: Node) -> None:
        name = text_of(child(node, "left") or child(node, "argument"))
        right, operator = child(node, "right"), text_of(child(node, "operator"))
        if operator == "++":
            self.steps.setdefault(name, {(): 1})
        elif right is not None and operator == "+=":
            self.steps[name] = self.body.value(right, frame)

    def _compare(self, frame: Frame, operator: str, left: Node, right: Node) -> None:
        one, other = self.body.value(left, frame), self.body.value(right, frame)
        if _depends(other) and not _depends(one):
            left, one, other, operator = right, other, one, _MIRROR[operator]
        elif _depends(other) or len(self.comparisons) > _MOST_COMPARISONS:
            return
        name = text_of(left) if left.type == "identifier" else ""
        if not _depends(one) and name not in self.steps:
            return
        # `i <= last` and `i > last` exclude what comes after last.
        bound = add(other, {(): int(operator in ("<=", ">"))})
        # `i + width < n` as `i < n - width`.
        offset = {term: factor for term, factor in one.items() if _is_fixed(term)}
        if not name or set(offset) == {()}:
            one, bound = add(one, offset, -1), add(bound, offset, -1)
        self.comparisons.append(Comparison(name, one, bound))


def _depends(one: Polynomial) -> bool:
    """Whether an expression depends on the thread or the block."""
    return any(word in name for name in names_of(one) for word in ("threadIdx", "blockIdx"))


def _is_fixed(term: tuple[str, ...]) -> bool:
    """Whether a product depends on no thread, no block, and nothing unknown."""
    return not any("Idx" in name or "Dim" in name or name.startswith("?") for name in term)
