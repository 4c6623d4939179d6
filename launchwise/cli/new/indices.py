"""What a kernel's indices say: sides of the block, elements per block, bounds, strides."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from launchwise.cli.new.expansion import reads
from launchwise.cli.new.polynomials import (
    Expand,
    Polynomial,
    add,
    coefficient,
    multiply,
    names_of,
    read,
    written,
)
from launchwise.cli.new.scopes import changed_names, loop_places, scope_ends
from launchwise.cli.new.tokens import closing, is_name
from launchwise.cuda_text.syntax import tokens_of

_MIRROR = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "==": "==", "!=": "!="}
_DEEPEST = 40
MOST_COMPARISONS = 2_000
MOST_TOKENS = 20_000


@dataclass(frozen=True)
class Comparison:
    """A comparison of an index with a bound: ``index < bound``.

    Parameters
    ----------
    name
        The index where it is one name; else empty.
    index
        What the index stands for, with everything expanded.
    bound
        The first value that it may not have.
    length
        The same for ``name``: of ``i / 32 < n`` the index is i, the bound 32 n, the length n.
    place
        Of the operator in the kernel's tokens.
    """

    name: str
    index: Polynomial
    bound: Polynomial
    length: Polynomial
    place: int = 0


@dataclass
class Indices:
    """Indices of a kernel.

    Parameters
    ----------
    axes
        Axes of ``blockIdx`` and of ``threadIdx`` that the kernel reads.
    comparisons
        Bounds of indices, in order.
    steps
        Variables that a loop increases, to their step.
    tokens
        Of the kernel, expanded.
    """

    tokens: list[str]
    axes: dict[str, set[str]] = field(default_factory=dict)
    comparisons: list[Comparison] = field(default_factory=list)
    steps: dict[str, Polynomial] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._definitions: dict[str, list[tuple[int, list[str]]]] = {}
        self._ends = scope_ends(self.tokens)
        self._known: dict[int, Polynomial] = {}
        self._depth = 0
        self._changed = changed_names(self.tokens)
        for place, name, text in _assigned(self.tokens):
            self._definitions.setdefault(name, []).append((place, text))
        for variable in ("blockIdx", "threadIdx", "blockDim"):
            self.axes[variable] = reads(self.tokens, variable)
        self._read_steps()
        for place, left, operator, right in _compared(self.tokens):
            self._compare(place, left, operator, right)

    def value(
        self, tokens: Sequence[str], place: int, keep: frozenset[str] = frozenset()
    ) -> Polynomial:
        """What an expression at a place stands for; names in ``keep`` stand for themselves."""

        def expand(name: str) -> Polynomial | None:
            if name in keep:
                return None
            earlier = [each for each in self._definitions.get(name, ()) if each[0] < place]
            if not earlier or self._depth > _DEEPEST:
                return None
            # A variable of a loop hides an outer one only there.
            visible = [each for each in earlier if place <= self._ends.get(each[0], place)]
            start, text = (visible or earlier)[-1]
            if keep:
                self._depth += 1
                found = self.value(text, start, keep)
                self._depth -= 1
                return found
            if start not in self._known:
                self._depth += 1
                self._known[start] = self.value(text, start)
                self._depth -= 1
            return self._known[start]

        return read(tokens, expand, divisors=self._unchanged(expand))

    def _unchanged(self, expand: Expand) -> Expand:
        """The same for names that have one value: a sum divides by its end, not by its start."""
        return lambda name: None if name in self._changed else expand(name)

    def definitions(self, keep: frozenset[str] = frozenset()) -> Iterator[Polynomial]:
        """What variables of the kernel are set to; names in ``keep`` stand for themselves."""
        for starts in self._definitions.values():
            for place, text in starts:
                if len(text) < 200:
                    yield self.value(text, place, keep)

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

    def is_side_of_all(self, name: str) -> bool:
        """Whether blocks are ``name`` elements apart along x and y, in indices of the threads."""
        found = {
            axis
            for axis in "xy"
            for one, factor in self.placed(axis)
            if factor == {(name,): 1} and coefficient(one, f"threadIdx.{axis}") == {(): 1}
        }
        return len(found) == 2

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
        starts = [self.value(text, place) for place, text in self._definitions.get(name, ())]
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
        for place, token in list(enumerate(self.tokens))[:MOST_TOKENS]:
            if token == "[" and place and is_name(self.tokens[place - 1]):
                inside = self.tokens[place + 1 : closing(self.tokens, place)]
                if len(inside) < 60:
                    yield self.value(inside, place)

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

    def _read_steps(self) -> None:
        for place, token in enumerate(self.tokens[:-1]):
            if self.tokens[place + 1] == "+=" and is_name(token):
                text = _until(self.tokens, place + 2, (";", ")", ","))
                self.steps[token] = self.value(text, place)
            elif "++" in (self.tokens[place + 1], self.tokens[place - 1] if place else ""):
                if is_name(token):
                    self.steps.setdefault(token, {(): 1})
            elif self.tokens[place + 1 : place + 4] == ["=", token, "+"] and is_name(token):
                text = _until(self.tokens, place + 4, (";", ")", ","))
                self.steps[token] = self.value(text, place)

    def _compare(self, place: int, left: list[str], operator: str, right: list[str]) -> None:
        one, other = self.value(left, place), self.value(right, place)
        if _depends(other) and not _depends(one):
            left, right, one, other = right, left, other, one
            operator = _MIRROR[operator]
        elif _depends(other):
            return
        if not _depends(one) and not (len(left) == 1 and left[0] in self.steps):
            return
        if operator in ("==", "!="):
            return
        # `i <= last` and `i > last` exclude what comes after last.
        bound = dict(other)
        if operator in ("<=", ">"):
            bound[()] = bound.get((), 0) + 1
        length = {term: factor for term, factor in bound.items() if factor}
        # `i + width < n` as `i < n - width`.
        offset = {term: factor for term, factor in one.items() if _is_fixed(term)}
        if len(left) > 1 or set(offset) == {()}:
            one = {term: factor for term, factor in one.items() if term not in offset}
            bound = add(bound, offset, -1)
        bound = {term: factor for term, factor in bound.items() if factor}
        name = left[0] if len(left) == 1 else ""
        one, bound = _undivided(one, bound)
        self.comparisons.append(Comparison(name, one, bound, length, place))


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
            inner = read(tokens_of(match[1]), lambda name: None)
            divisor = read(tokens_of(match[2]), lambda name: None)
            return inner, multiply(bound, divisor)
    return one, bound


def _until(tokens: Sequence[str], start: int, ends: Sequence[str]) -> list[str]:
    """Tokens up to the first of some that no bracket holds."""
    place = start
    while place < len(tokens) and tokens[place] not in ends and tokens[place] not in ")]}":
        place = closing(tokens, place) + 1 if tokens[place] in ("(", "[", "{") else place + 1
    return list(tokens[start:place])


def _assigned(tokens: Sequence[str]) -> Iterator[tuple[int, str, list[str]]]:
    """Places where a variable gets a value: place, name, expression.

    One that is computed from itself is left out, unless a thread's place is added outside of loops:
    ``i = i * blockDim.x + threadIdx.x``.
    """
    loops = loop_places(tokens)
    for place, token in enumerate(tokens[:-1]):
        if not is_name(token) or (place and tokens[place - 1] in (".", "->", "]", "*")):
            continue
        if tokens[place + 1] == "=":
            text = _until(tokens, place + 2, (";", ","))
            adds = place not in loops and "threadIdx" in text
            if text and "?" not in text and (adds or not _reads(text, token)):
                yield place, token, text
        elif tokens[place + 1] in ("*=", "+=") and place not in loops:
            # `i *= blockDim.x; i += threadIdx.x;`
            text = _until(tokens, place + 2, (";", ","))
            if {*text} & {"threadIdx", "blockIdx", "blockDim"} and "?" not in text:
                yield place, token, [token, tokens[place + 1][0], "(", *text, ")"]
        elif tokens[place + 1] in ("(", "{") and place and tokens[place - 1] in _INTEGERS:
            inside = list(tokens[place + 2 : closing(tokens, place + 1)])
            if inside:
                yield place, token, inside


def _reads(tokens: Sequence[str], name: str) -> bool:
    """Whether an expression reads a variable, not only a member of its name."""
    return any(
        token == name and (not place or tokens[place - 1] not in (".", "->"))
        for place, token in enumerate(tokens)
    )


_INTEGERS = ("int", "unsigned", "size_t", "long", "auto", "int64_t", "uint32_t")
_BREAKS = ("&&", "||", ";", ",", "!", "?", ":", "{", "}", "return", "=", "and", "or", "not")


def _compared(tokens: Sequence[str]) -> Iterator[tuple[int, list[str], str, list[str]]]:
    """Comparisons: place, left side, operator, right side."""
    count = 0
    for place in range(1, len(tokens) - 1):
        token = tokens[place]
        if token not in _MIRROR or count > MOST_COMPARISONS:
            continue
        if token in "<>" and token in (tokens[place - 1], tokens[place + 1]):
            continue  # A shift.
        left, right = _left(tokens, place), _right(tokens, place)
        if left and right and len(left) + len(right) < 120:
            count += 1
            yield place, left, token, right


def _left(tokens: Sequence[str], place: int) -> list[str]:
    start, depth = place, 0
    while start > 0:
        token = tokens[start - 1]
        depth += (token in (")", "]")) - (token in ("(", "["))
        if depth < 0 or (depth == 0 and (token in _BREAKS or token in _MIRROR)):
            break
        start -= 1
    found = list(tokens[start:place])
    return found[1:] if found[:1] in (["if"], ["while"]) else found


def _right(tokens: Sequence[str], place: int) -> list[str]:
    end, depth = place + 1, 0
    while end < len(tokens):
        token = tokens[end]
        depth += (token in ("(", "[")) - (token in (")", "]"))
        if depth < 0 or (depth == 0 and (token in _BREAKS or token in _MIRROR)):
            break
        end += 1
    return list(tokens[place + 1 : end])


def accesses(indices: Indices, array: str) -> Iterator[tuple[int, list[str]]]:
    """Places and index expressions of an array; several brackets give several."""
    tokens = indices.tokens
    for place, token in enumerate(tokens[:-1]):
        if token == array and tokens[place + 1] == "[":
            yield place, list(tokens[place + 2 : closing(tokens, place + 1)])
