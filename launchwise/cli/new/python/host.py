"""Functions that launch a kernel, run with values: grid, arguments, shapes and types."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from types import FunctionType
from typing import Any

from launchwise.base.expressions import names_in
from launchwise.cli.new.python.interpreter import Trace, Use
from launchwise.cli.new.python.kernels import TYPES, Kernel, Launch, Literal
from launchwise.cli.new.python.tensors import (
    Shape,
    Tensor,
    is_tensor,
    shape_of,
    symbol,
    tensor_of,
)
from launchwise.cli.new.python.texts import Texts, merged
from launchwise.cli.new.python.values import (
    RUNS,
    NotKnown,
    Run,
    Value,
    explore,
    limited,
    value_of,
)

_IS_GIVEN = "the array is given; else nullptr among the arguments"
_SECONDS = 1.5  # Most CPU time for all runs of a function

Found = tuple[Run, Launch]


@dataclass
class Given:
    text: str | None = None  # Expression over problem parameters,
    problem: NotKnown | None = None  # or why there is none.
    literal: Literal = None
    is_own: bool = False  # A parameter of the host's function;
    is_choice: bool = False  # or an expression that reads one, in no size.
    is_macro: bool = False  # A type, or what a heuristic says.
    guessed: str = ""  # The tensor whose stride it is, where its sizes are guessed.
    shape: list[str] = field(default_factory=list)  # Of a tensor,
    kind: str = ""  # type of its elements,
    question: str = ""  # and one of its shape.


def functions_of(space: Mapping[str, Any]) -> dict[FunctionType, Callable[..., Any]]:
    """Functions and methods of a file by their lines, to how they are called."""
    found: dict[FunctionType, Callable[..., Any]] = {}
    for value in space.values():
        if isinstance(value, FunctionType) and value.__globals__ is space:
            found.setdefault(value, value)
        elif isinstance(value, type) and value.__module__ == space["__name__"]:
            for member in vars(value).values():
                plain = getattr(member, "__func__", member)
                if isinstance(plain, FunctionType) and plain.__globals__ is space:
                    own = Value("self") if plain is member else value
                    is_static = isinstance(member, staticmethod)
                    found[plain] = plain if is_static else partial(plain, own)
    return dict(sorted(found.items(), key=lambda one: one[0].__code__.co_firstlineno))


def attempts(call: Callable[..., Any], is_covering: bool) -> list[Run]:
    """Runs of a function; each ends at a launch of the kernel that is wanted, or at its end."""
    found: list[Run] = []
    with limited(_SECONDS):
        found.extend(explore(lambda: call(**dict(_arguments(call))), is_covering))
    return found


def _arguments(call: Callable[..., Any]) -> Iterator[tuple[str, Value]]:
    for one in inspect.signature(call).parameters.values():
        if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD, one.POSITIONAL_ONLY):
            continue
        if one.default is one.empty or one.default is None:
            yield one.name, symbol(one.name, "free")
        elif type(one.default) is int:
            yield one.name, Value(f"{one.name}={one.default}", "literal", known=one.default)


def _launches(kernel: Kernel, space: Mapping[str, Any]) -> tuple[list[Found], dict[str, str]]:
    """Runs of the first function that launches a kernel, and types of the tensors that any gives
    for its parameters. ``space`` has the names of the file."""
    top = [(RUNS[0], one) for one in RUNS[0].launches if one.kernel is kernel]
    kernel.ends_runs = True
    first: list[Found] = []
    seen = [*top]
    for call in functions_of(space).values():
        runs = attempts(call, is_covering=bool(first))
        found = [(run, one) for run in runs for one in run.launches if one.kernel is kernel]
        first, seen = first or found, seen + found
    kinds: dict[str, str] = {}
    for _, launch in seen:
        for name, value in launch.given.items():
            if isinstance(value, Value) and value._tensor is not None and value._tensor.kind.name:
                kinds.setdefault(name, value._tensor.kind.name)
    return first or top[:1], kinds


def _made_up(kernel: Kernel, trace: Trace) -> list[Found]:
    """Launches of a kernel that no host launches: its arguments are what it takes them for."""

    def launch() -> None:
        given = {name: symbol(name, "free") for name in kernel.given}
        for name, use in trace.uses.items():
            for stride, place in use.strides.items():
                if stride in given and stride not in trace.sizes:
                    given[stride] = shape_of(given[name]).stride(place)
        kernel[()](**given)

    return [(run, run.launches[0]) for run in explore(launch, is_covering=False)]


class Host:
    """All runs of a function that launch a kernel, as one. ``space`` has the names of the file, and
    no problem parameter has a name of ``taken``."""

    def __init__(
        self, kernel: Kernel, trace: Trace, space: Mapping[str, Any], taken: Collection[str]
    ) -> None:
        self._kernel, self._trace = kernel, trace
        self._found, kinds = _launches(kernel, space)
        self.is_there = bool(self._found)
        self._found = self._found or _made_up(kernel, trace)
        run, launch = self._found[0]
        RUNS.append(run)  # What is asked from now on belongs to it.
        self._given = {
            name: value_of(one) if is_tensor(one) else self._merged(lambda each: each.given[name])  # noqa: B023
            for name, one in launch.given.items()
        }
        self.tensors = {**dict(self._tensors())}
        self._texts = Texts(run, {*taken, *kernel.constexprs})
        self._unify()
        for name, value in self._given.items():
            if name not in self.tensors:
                self._texts.name_by(value, name)
        for name, tensor in self.tensors.items():
            self._give_sizes(trace.uses.get(name, Use()), tensor.shape, launch.given)
            own: Any = space.get(tensor.key)
            known = tensor_of(own).kind.name if is_tensor(own) else ""
            tensor.kind.name = tensor.kind.name or known or kinds.get(name, "")
        shapes = {name: one.shape for name, one in self.tensors.items()}
        self._texts.complete(shapes, self.is_there)
        self.given = {name: self._array(tensor) for name, tensor in self.tensors.items()}
        self.grid, self.question = self._grid(launch)
        sizes = [*self.grid, *(one for each in self.given.values() for one in each.shape)]
        self._sizes = {name for one in sizes for name in names_in(one)}
        for name in self._given.keys() - self.tensors.keys():
            self.given[name] = self._number(name, name in launch.derived)

    def of(self, name: str) -> Given:
        return self.given.get(name, Given())

    def _merged(self, get: Callable[[Launch], Any]) -> Value:
        # Where a launch does not state it, an autotuner does.
        known = []
        for run, launch in self._found:
            with suppress(KeyError):
                known.append((run.taken, value_of(get(launch))))
        return merged(known)

    def _tensors(self) -> Iterator[tuple[str, Tensor]]:
        for name in self._kernel.given:
            value = self._given.get(name, value_of(None))
            if name in self._trace.uses or is_tensor(value):
                is_there = value._sign != "constant" and value._known is None
                yield name, tensor_of(value if is_there else Value(name))

    def _unify(self) -> None:
        """Sizes are equal where without it there is no launch."""
        for condition, outcome in self._found[0][0].taken:
            others = (one for other, _ in self._found[1:] for one in other.taken)
            same = all(its is outcome for one, its in others if one._text == condition._text)
            if same and condition._sign == ("==" if outcome else "!="):
                self._texts.unify(*condition._parts)

    def _give_sizes(self, use: Use, shape: Shape, given: Mapping[str, Any]) -> None:
        """Sizes of the indices of the kernel, where the host does not say them."""
        said = self._texts.shape(shape)
        is_whole = shape.is_whole or shape.length is not None or len(said) >= len(use.sizes)
        if said and is_whole and (None not in said or len(said) != len(use.sizes)):
            return
        places = [*range(len(use.sizes))]
        for stride, place in use.strides.items():
            found = self._texts.symbol(given.get(stride))
            if found is not None and found.kind == "stride":
                places[place] = found.place
        shape.rank = max([1, shape.rank, *(place + 1 for place in places)])
        for place, size in zip(places, use.sizes, strict=True):
            if size in given and (place >= len(said) or said[place] is None):
                self._texts.give(shape, place, value_of(given[size]))
        if use.is_bare and not use.indexes and not shape.sizes:
            shape.sizes[0] = value_of(1)
        if use.is_guess or use.is_bare:
            self._texts.questions[shape.key] = "shape"

    def _array(self, tensor: Tensor) -> Given:
        shape = [one or "1" for one in self._texts.shape(tensor.shape)]
        asked = self._texts.questions.get(tensor.shape.key, "")
        # Sizes that follow from a number that is a constexpr of the launch, too.
        own = {one._text: name for name, one in self._given.items() if name not in self.tensors}
        sizes = [size for size in tensor.shape.known() if size is not None]
        named = [one for size in sizes for one in size._walk() if one._sign == "literal"]
        read = {own[one._text] for one in named if one._text in own}
        if read and not asked:
            asked = f"shape: for the {', '.join(sorted(read))} of this launch alone"
        return Given(shape=shape, kind=tensor.kind.name, question=asked)

    def _number(self, name: str, is_derived: bool) -> Given:
        texts, value = self._texts, self._given[name]
        found = Given(guessed=texts.guessed(value), literal=value._known)
        if value._name in TYPES and value._owner is not None:
            return Given(text=f"'tl.{value._name}'", is_macro=True)
        found.is_macro = is_derived
        own = texts.symbol(value)
        found.is_own = own is not None and own.kind == "free"
        try:
            found.text = texts.text(value)
        except NotKnown as error:
            found.problem = None if value._text == "None" else error
            return found
        is_free = any(one.kind == "free" for one in texts.reads(value))
        found.is_choice = is_free and not names_in(found.text) <= self._sizes
        found.question = "" if names_in(found.text) else _IS_GIVEN
        return found

    def _is_own(self, name: str, axis: int) -> bool:
        """Whether a constexpr stands for what it is given in the grid: the kernel steps by it along
        an axis, or it is a number that the host names, or no size."""
        given = self._given[name]
        is_step = axis < len(self._trace.steps) and name in self._trace.steps[axis]
        is_size = self._texts.symbol(given) is not None or given._sign == "constant"
        return given._known != 1 and (is_step or not is_size)

    def _grid(self, launch: Launch) -> tuple[list[str], str]:
        problem, grid = launch.problem, []
        own = [name for name in self._kernel.constexprs if name in self._given]
        try:
            for axis in range(min(len(one.grid) for _, one in self._found)):
                value = self._merged(lambda one: one.grid[axis])  # noqa: B023
                same = {self._given[name]._text: name for name in own if self._is_own(name, axis)}
                grid.append(self._texts.text(value, same))
        except NotKnown as error:
            problem = error
        if grid and problem is None:
            return grid, ""
        is_clear, grid = self._trace.grid()
        if problem is not None:
            return grid, f"line {problem.line}: {problem}"
        return grid, "" if is_clear and self.is_there else "program instances"
