"""Functions that launch a kernel, run with values: grid, arguments, shapes and types."""

from __future__ import annotations

import ast
import copy
import inspect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import CodeType, FunctionType
from typing import Any

from launchwise.cli.new.python import facts
from launchwise.cli.new.python.stand_ins import LAUNCHES, WANTED, Given, Kernel, Launch, Launched
from launchwise.cli.new.python.tensors import (
    NOW,
    Names,
    Shape,
    Symbol,
    Tensor,
    is_tensor,
    tensor_of,
)
from launchwise.cli.new.python.texts import Texts, merged
from launchwise.cli.new.python.values import NotKnown, Run, Value, explore, limited, node_of

_SECONDS = 1.5  # Most CPU time for all runs of a function

Attempt = tuple[Run, Names, Launch]


def functions_of(space: Mapping[str, Any]) -> list[tuple[FunctionType, tuple[Any, ...]]]:
    """Functions and methods of a file by their lines, with what is given before their arguments."""
    found: dict[FunctionType, tuple[Any, ...]] = {}
    for value in space.values():
        if isinstance(value, FunctionType) and value.__globals__ is space:
            found.setdefault(value, ())
        elif isinstance(value, type) and value.__module__ == space["__name__"]:
            for member in vars(value).values():
                plain = getattr(member, "__func__", member)
                if isinstance(plain, FunctionType) and plain.__globals__ is space:
                    own = Value(ast.Name("self")) if plain is member else value
                    found[plain] = () if isinstance(member, staticmethod) else (own,)
    return sorted(found.items(), key=lambda one: one[0].__code__.co_firstlineno)


def names_read(code: CodeType) -> set[str]:
    inner = (one for one in code.co_consts if isinstance(one, CodeType))
    return set(code.co_names).union(*map(names_read, inner))


def attempts(
    function: FunctionType, before: tuple[Any, ...], usual_bytes: int, is_covering: bool
) -> list[tuple[Run, Names, list[Launch]]]:
    """Runs of a function that end at a launch of the kernel that is wanted, or at its end."""

    def run() -> tuple[Names, list[Launch]]:
        names = Names({**NOW[0].symbols}, {**NOW[0].called}, usual_bytes=usual_bytes)
        NOW.append(names)
        LAUNCHES.clear()
        try:
            function(*before, **dict(_arguments(function, len(before), names)))
        except Launched:
            pass
        except Exception:
            if not LAUNCHES:
                raise
        finally:
            NOW.pop()
        return names, [*LAUNCHES]

    found = []
    with limited(_SECONDS):
        for taken, result in explore(run, is_covering):
            if isinstance(result, tuple):
                found.append((taken, *result))
    return found


def _arguments(function: FunctionType, count: int, names: Names) -> Iterator[tuple[str, Any]]:
    for one in list(inspect.signature(function).parameters.values())[count:]:
        if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD, one.POSITIONAL_ONLY):
            continue
        if one.default is one.empty or one.default is None:
            yield one.name, names.symbol(one.name, Symbol("free"))
        elif type(one.default) is int:
            literal = Symbol("literal", known=one.default)
            yield one.name, names.symbol(f"{one.name}={one.default}", literal)


def read_host(
    kernel: Kernel,
    reading: facts.Reading,
    space: Mapping[str, Any],
    top: Sequence[Launch],
    taken: Collection[str],
) -> facts.Host:
    """What the first function that launches a kernel says. ``space`` has the names of the file,
    ``top`` the launches while it ran. No problem parameter may have a name of ``taken``."""
    usual = 2 if reading.has_dot else 4
    own = {name for name, value in space.items() if value is kernel}
    seen = [one for one in top if one.kernel is kernel]
    WANTED[:] = [kernel]
    found: list[Attempt] = []
    functions = functions_of(space)
    for function, before in sorted(
        functions, key=lambda one: not own & names_read(one[0].__code__)
    ):
        is_first = not found
        for run, names, launches in attempts(function, before, usual, is_covering=not is_first):
            launches = [one for one in launches if one.kernel is kernel]
            seen += launches
            found += [(run, names, one) for one in launches[:1] if is_first]
    found = found or [(Run(), NOW[0], one) for one in seen[:1]]
    if not found:
        return facts.Host()
    return _Merged(kernel, reading, found, taken).read(_kinds(seen), space)


def _kinds(launches: Sequence[Launch]) -> dict[str, str]:
    """Parameters to types of the tensors that any function of the file gives."""
    found: dict[str, str] = {}
    for launch in launches:
        for name, value in launch.given.items():
            if isinstance(value, Value) and value._tensor is not None and value._tensor.kind.name:
                found.setdefault(name, value._tensor.kind.name)
    return found


class _Merged:
    """All runs of a function that launch a kernel, as one."""

    def __init__(
        self,
        kernel: Kernel,
        reading: facts.Reading,
        found: Sequence[Attempt],
        taken: Collection[str],
    ) -> None:
        self.kernel, self.reading, self.found = kernel, reading, found
        run, self.names, self.launch = found[0]
        for _, names, _ in found[1:]:
            self.names.symbols = {**names.symbols, **self.names.symbols}
            self.names.called = {**names.called, **self.names.called}
        NOW.append(self.names)
        for name, value in self.launch.given.items():
            is_free = isinstance(value, Value) and value._known is None
            if name in reading.uses and is_free and isinstance(value._node, ast.Name):
                tensor_of(value)
        self.texts = Texts(self.names, taken, kernel.constexprs)
        for condition, outcome in run.taken:
            others = (one for other, _, _ in found[1:] for one in other.taken)
            same = str(condition)
            # Without it there is no launch: sizes or shapes are equal.
            if all(its is outcome for one, its in others if str(one) == same):
                wanted = ast.Eq if outcome else ast.NotEq
                match condition._node:
                    case ast.Compare(left, [sign], [right]) if type(sign) is wanted:
                        self.texts.unify(left, right)

    def node(self, get: Callable[[Launch], Any]) -> ast.expr:
        return merged([(run.taken, node_of(get(launch))) for run, _, launch in self.found])

    def read(self, kinds: Mapping[str, str], space: Mapping[str, Any]) -> facts.Host:
        launch, texts = self.launch, self.texts
        tensors: dict[str, Tensor] = {}
        for name, value in launch.given.items():
            if isinstance(value, Value) and is_tensor(value):
                tensors[name] = tensor_of(value)
            elif isinstance(value, Value) and value._name in self.names.symbols:
                texts.name_by(value._name, name)
        for name, tensor in tensors.items():
            self._give_sizes(self.reading.uses.get(name, facts.Use()), tensor.shape)
        texts.complete(one.shape for one in tensors.values())
        host = facts.Host(is_there=True)
        for name, tensor in tensors.items():
            own: Any = space.get(tensor.key)
            known = tensor_of(own).kind.name if is_tensor(own) else ""
            tensor.kind.name = tensor.kind.name or known or kinds.get(name, "")
        for name in launch.given:
            if name not in tensors:
                host.given[name] = self._given(name)
                continue
            shape = tensors[name].shape
            asked = texts.questions.get(shape.key) or self._asked(shape)
            host.given[name] = found = facts.Given(is_tensor=True, question=asked)
            found.shape, found.dtype = texts.shape(shape), tensors[name].kind.name
        self._grid(host)
        return host

    def _give_sizes(self, use: facts.Use, shape: Shape) -> None:
        """Sizes of the indices of the kernel, where the host does not say them."""
        if shape.length is not None or (shape.is_whole and shape.rank != len(use.sizes)):
            return
        places = [*range(len(use.sizes))]
        for stride, place in use.strides.items():
            given = self.launch.given.get(stride)
            symbol = self.names.symbols.get(given._name) if isinstance(given, Value) else None
            if symbol is not None and symbol.kind == "stride":
                places[place] = symbol.place
        shape.rank = max([shape.rank, *(place + 1 for place in places)])
        for place, size in zip(places, use.sizes, strict=True):
            known = self.launch.given.get(size)
            if known is not None and place - shape.rank not in shape.sizes:
                self.texts.give(shape, place, node_of(known))

    def _asked(self, shape: Shape) -> str:
        """A question for sizes that follow from a number that is a constexpr of the launch, too."""
        nodes = {name: node_of(self.launch.given.get(name)) for name in self.kernel.constexprs}
        own = {getattr(node, "id", ""): name for name, node in nodes.items()}
        sizes = [size._node for size in shape.known() if size is not None]
        symbols = [pair for node in sizes for pair in self.texts.reads(node)]
        read = {own[name] for name, one in symbols if one.kind == "literal" and name in own}
        return f"shape: for the {', '.join(sorted(read))} of this launch alone" if read else ""

    def _given(self, name: str) -> facts.Given:
        value = self.launch.given.get(name)
        node = self.node(lambda launch: launch.given.get(name))
        found = facts.Given(is_none=value is None)
        if isinstance(value, Given):
            found.asks = str(int(value._known))
        symbol = self.names.symbols.get(getattr(node, "id", ""))
        found.is_own = symbol is not None and symbol.kind == "free"
        found.is_free = any(one.kind == "free" for _, one in self.texts.reads(node))
        found.literal = symbol.known if symbol is not None else _literal(node)
        if isinstance(value, Value) and value._name in facts.TYPES and value._owner is not None:
            found.type = f"tl.{value._name}"
        found.guessed = self.texts.guessed(node)
        try:
            found.text = None if value is None else self.texts.text(node, self.launch.line)
        except NotKnown as error:
            found.problem = f"line {error.line}: {error}"
        return found

    def _is_own_block(self, node: ast.expr, is_step: bool) -> bool:
        """Whether a constexpr may stand for what it is given: no size, and no small number. A
        parameter of the host, or a number, is given for it where the kernel steps by it."""
        symbol = self.names.symbols.get(getattr(node, "id", ""))
        if symbol is not None:
            is_literal = symbol.kind == "literal" and symbol.known > 1
            return is_literal or (symbol.kind == "free" and is_step)
        if not isinstance(node, ast.Constant):
            return True
        return is_step and type(node.value) is int and node.value > 1

    def _grid(self, host: facts.Host) -> None:
        if self.launch.problem is not None:
            host.problem = f"line {self.launch.problem.line}: {self.launch.problem}"
            return
        own = [name for name in self.launch.given if name in self.kernel.constexprs]
        nodes = {one: self.node(lambda launch, one=one: launch.given.get(one)) for one in own}  # type: ignore[misc]
        try:
            for place in range(min(len(one.grid) for _, _, one in self.found)):
                node = self.node(lambda launch, place=place: launch.grid[place])  # type: ignore[misc]
                steps = self.reading.steps[place] if place < len(self.reading.steps) else []
                same = {
                    ast.dump(one): name
                    for name, one in nodes.items()
                    if self._is_own_block(one, name in steps)
                }
                node = _with_blocks(node, same)
                host.grid.append(self.texts.text(node, self.launch.line))
        except NotKnown as error:
            host.grid, host.problem = [], f"line {error.line}: {error}"


def _literal(node: ast.expr) -> facts.Literal:
    """A number or a text that the file has; None for others."""
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    return value if isinstance(value, bool | int | float | str) else None


def _with_blocks(node: ast.expr, same: Mapping[str, str]) -> ast.expr:
    """A grid over the constexprs that are given the same."""

    class Replace(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> Any:
            name = same.get(ast.dump(node)) if isinstance(node, ast.expr) else None
            return ast.Name(name) if name else self.generic_visit(node)

    found: ast.expr = Replace().visit(copy.deepcopy(node))
    return found
