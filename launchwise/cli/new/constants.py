"""Values that a Python file computes from constants, read from its syntax: nothing of it is run.

Lists of configurations are often comprehensions, products of ranges, or what a function of the same
file returns. Environment variables count as unset, and Triton's backend is CUDA.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from launchwise.base.arithmetic import OPERATORS
from launchwise.cli.new.constant_names import (
    CALLED,
    CONFIG_OPTIONS,
    METHODS,
    TARGET,
    Config,
    Dotted,
    Function,
    NotConstant,
    Returned,
    Scope,
    Unknown,
    bound_in,
    config_of,
    imported,
    short,
)

MOST_STEPS = 100_000
"""Most expressions that are evaluated for one file."""

_DEEPEST = 20

_FAILURES = (ArithmeticError, TypeError, ValueError, LookupError, AttributeError)


class Constants:
    """Values of a file.

    Parameters
    ----------
    tree
        Of the file.
    """

    def __init__(self, tree: ast.Module) -> None:
        self._steps = self._depth = 0
        self.top = Scope(names={"__name__": ""})
        for statement in tree.body:
            self._kept(statement)

    def value(self, node: ast.expr, scope: Scope | None = None) -> Any:
        """Value of an expression.

        Raises
        ------
        NotConstant
            With the line of what is not constant.
        """
        scope = scope or self.top
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise NotConstant(node.lineno, f"takes more than {MOST_STEPS:,} steps")
        try:
            return self._value(node, scope)
        except _FAILURES as error:
            raise NotConstant(node.lineno, f"{short(node)} fails: {error}") from error

    def _value(self, node: ast.expr, scope: Scope) -> Any:
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                return scope.find(name, node.lineno)
            case ast.List() | ast.Tuple() | ast.Set():
                kind = {ast.List: list, ast.Tuple: tuple, ast.Set: set}[type(node)]
                return kind(self._items(node.elts, scope))
            case ast.Dict():
                return self._dict(node, scope)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
                inner = self._comprehended(node.generators, Scope(scope))
                made = [self.value(node.elt, each) for each in inner]
                return set(made) if isinstance(node, ast.SetComp) else made
            case ast.DictComp():
                inner = self._comprehended(node.generators, Scope(scope))
                return {self.value(node.key, one): self.value(node.value, one) for one in inner}
            case ast.Lambda():
                return Function(node, scope)
            case ast.Call():
                return self._called(node, scope)
            case ast.Attribute():
                return self._attribute(self.value(node.value, scope), node)
            case ast.Subscript() if not isinstance(node.slice, ast.Slice):
                return self.value(node.value, scope)[self.value(node.slice, scope)]
            case ast.BinOp() | ast.UnaryOp() | ast.Compare() | ast.BoolOp() | ast.IfExp():
                return self._computed(node, scope)
        raise NotConstant(node.lineno, f"{short(node)} is no constant")

    def _computed(self, node: ast.expr, scope: Scope) -> Any:
        match node:
            case ast.IfExp(test=test, body=body, orelse=otherwise):
                return self.value(body if self.value(test, scope) else otherwise, scope)
            case ast.BoolOp(op=op, values=values):
                found: Any = None
                for each in values:
                    found = self.value(each, scope)
                    if bool(found) == isinstance(op, ast.Or):
                        break
                return found
            case ast.UnaryOp(op=op, operand=operand):
                return OPERATORS[type(op)](self.value(operand, scope))
            case ast.BinOp(op=op, left=left, right=right):
                sides = self.value(left, scope), self.value(right, scope)
                if isinstance(op, ast.Add) and {type(each) for each in sides} <= {list, tuple}:
                    return sides[0] + sides[1]
                if isinstance(op, ast.BitOr) and all(isinstance(each, dict) for each in sides):
                    return {**sides[0], **sides[1]}
                return OPERATORS[type(op)](*sides)
            case ast.Compare(left=left, ops=ops, comparators=others):
                before, holds = self.value(left, scope), True
                for sign, other in zip(ops, others, strict=True):
                    after = self.value(other, scope)
                    if isinstance(sign, ast.Is | ast.IsNot):
                        holds = (before is after) == isinstance(sign, ast.Is)
                    else:
                        holds = bool(OPERATORS[type(sign)](before, after))
                    if not holds:
                        break
                    before = after
                return holds
        raise NotConstant(node.lineno, f"{short(node)} is no constant")

    def _items(self, nodes: Iterable[ast.expr], scope: Scope) -> list[Any]:
        found: list[Any] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                found += self._iterated(node.value, scope)
            else:
                found.append(self.value(node, scope))
        return found

    def _dict(self, node: ast.Dict, scope: Scope) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                found |= dict(self.value(value, scope))
            else:
                found[self.value(key, scope)] = self.value(value, scope)
        return found

    def _iterated(self, node: ast.expr, scope: Scope) -> Iterator[Any]:
        for each in iter(self.value(node, scope)):
            self._steps += 1
            if self._steps > MOST_STEPS:
                raise NotConstant(node.lineno, f"takes more than {MOST_STEPS:,} steps")
            yield each

    def _comprehended(
        self, generators: Sequence[ast.comprehension], scope: Scope
    ) -> Iterator[Scope]:
        if not generators:
            yield scope
            return
        first, *rest = generators
        for each in self._iterated(first.iter, scope):
            inner = Scope(scope)
            self._bind(first.target, each, inner)
            if all(self.value(test, inner) for test in first.ifs):
                yield from self._comprehended(rest, inner)

    # Calls

    def _attribute(self, value: Any, node: ast.Attribute) -> Any:
        if isinstance(value, Dotted):
            name = f"{value.name}.{node.attr}"
            if name.endswith(f".{TARGET}().backend"):
                return "cuda"
            known = {"os.environ": dict[str, str](), "torch.version.hip": None}
            return known[name] if name in known else Dotted(name)
        if isinstance(value, Config) and node.attr in ("kwargs", *CONFIG_OPTIONS):
            given = {**CONFIG_OPTIONS, **value.options}
            return dict(value.kwargs) if node.attr == "kwargs" else given[node.attr]
        raise NotConstant(node.lineno, f"{short(node)} is no constant")

    def _called(self, node: ast.Call, scope: Scope) -> Any:
        called = node.func
        if isinstance(called, ast.Attribute):
            owner = self.value(called.value, scope)
            if called.attr in METHODS.get(type(owner), ()):
                given, named = self._given(node, scope)
                return getattr(owner, called.attr)(*given, **named)
            function = self._attribute(owner, called)
        else:
            function = self.value(called, scope)
        given, named = self._given(node, scope)
        if isinstance(function, Function):
            return self.call(function, given, named, node.lineno)
        name = function.name if isinstance(function, Dotted) else ""
        if name.endswith(f".{TARGET}"):
            return Dotted(f"{name}()")
        if name.startswith("triton.") and name.endswith(".Config"):
            return config_of(node.lineno, given, named)
        if name not in CALLED:
            raise NotConstant(node.lineno, f"{short(node)} is known only when it runs")
        taken = [self._as_callable(each, node.lineno) for each in given]
        made = CALLED[name](
            *taken, **{key: self._as_callable(each, node.lineno) for key, each in named.items()}
        )
        return self._limited(made, node.lineno)

    def _limited(self, made: Any, line: int) -> Any:
        """An iterator as a list, whose length is limited."""
        if isinstance(made, int | float | bool | range):
            return made
        if isinstance(made, Mapping | list | tuple | set):
            return made
        found = []
        for each in made if made is not None else ():
            self._steps += 1
            if self._steps > MOST_STEPS:
                raise NotConstant(line, f"takes more than {MOST_STEPS:,} steps")
            found.append(each)
        return found if made is not None else None

    def _as_callable(self, value: Any, line: int) -> Any:
        if isinstance(value, Function):
            return lambda *given: self.call(value, given, {}, line)
        if isinstance(value, range) and len(value) > MOST_STEPS:
            raise NotConstant(line, f"takes more than {MOST_STEPS:,} steps")
        return value

    def _given(self, node: ast.Call, scope: Scope) -> tuple[list[Any], dict[str, Any]]:
        named: dict[str, Any] = {}
        for each in node.keywords:
            if each.arg is None:
                named |= self.value(each.value, scope)
            else:
                named[each.arg] = self.value(each.value, scope)
        return self._items(node.args, scope), named

    def call(
        self, function: Function, given: Sequence[Any], named: Mapping[str, Any], line: int
    ) -> Any:
        """What a function of the file returns for values; raises :class:`NotConstant`."""
        arguments = function.node.args
        names = function.parameters
        scope = Scope(function.scope)
        with_default = dict(zip(reversed(names), reversed(arguments.defaults), strict=False))
        with_default |= {
            one.arg: value
            for one, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
            if value is not None
        }
        for name, value in with_default.items():
            scope.names[name] = self.value(value, function.scope)
        scope.names |= {**dict(zip(names, given, strict=False)), **named}
        if self._depth >= _DEEPEST:
            raise NotConstant(line, "functions call each other too deep")
        self._depth += 1
        try:
            if isinstance(function.node, ast.Lambda):
                return self.value(function.node.body, scope)
            ended = self._run(function.node.body, scope)
            return ended.value if isinstance(ended, Returned) else None
        finally:
            self._depth -= 1

    # Statements

    def _kept(self, statement: ast.stmt) -> None:
        """Run a statement of the file; what it binds is unknown where it is not constant."""
        try:
            self._run([statement], self.top)
        except NotConstant as error:
            for name in bound_in(statement):
                self.top.names[name] = Unknown(error.line, error.said)

    def _run(self, body: Sequence[ast.stmt], scope: Scope) -> Returned | str | None:
        for statement in body:
            if (ended := self._step(statement, scope)) is not None:
                return ended
        return None

    def _step(self, statement: ast.stmt, scope: Scope) -> Returned | str | None:
        match statement:
            case ast.Return(value=value):
                return Returned(self.value(value, scope) if value else None)
            case ast.Break() | ast.Continue():
                return type(statement).__name__
            case ast.If(test=test, body=body, orelse=otherwise):
                return self._run(body if self.value(test, scope) else otherwise, scope)
            case ast.For(target=target, iter=iterated, body=body):
                for each in self._iterated(iterated, scope):
                    self._bind(target, each, scope)
                    ended = self._run(body, scope)
                    if isinstance(ended, Returned):
                        return ended
                    if ended == "Break":
                        break
            case ast.Try(body=body):
                return self._run(body, scope)
            case ast.Expr(value=value):
                self.value(value, scope)
            case _:
                self._assign(statement, scope)
        return None

    def _assign(self, statement: ast.stmt, scope: Scope) -> None:
        match statement:
            case ast.FunctionDef(name=name):
                scope.names[name] = Function(statement, scope)
            case ast.Import(names=names):
                for each in names:
                    top = each.name.partition(".")[0]
                    scope.names[each.asname or top] = Dotted(each.name if each.asname else top)
            case ast.ImportFrom(module=module, names=names):
                for each in names:
                    scope.names[each.asname or each.name] = imported(module or "", each.name)
            case ast.Assign(targets=targets, value=value):
                found = self.value(value, scope)
                for target in targets:
                    self._bind(target, found, scope)
            case ast.AnnAssign(target=target, value=value) if value is not None:
                self._bind(target, self.value(value, scope), scope)
            case ast.AugAssign(target=ast.Name(id=name) as target, op=op, value=value):
                sum_of = ast.BinOp(ast.Name(name, ast.Load()), op, value)
                node = ast.fix_missing_locations(ast.copy_location(sum_of, statement))
                scope.names[target.id] = self.value(node, scope)
            case ast.Pass() | ast.Assert():
                pass
            case _:
                line = statement.lineno
                raise NotConstant(line, f"{type(statement).__name__.lower()} is not read")

    def _bind(self, target: ast.expr, value: Any, scope: Scope) -> None:
        match target:
            case ast.Name(id=name):
                scope.names[name] = value
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                values = list(value)
                if len(values) != len(parts):
                    raise NotConstant(target.lineno, f"{short(target)} is given other many values")
                for part, each in zip(parts, values, strict=True):
                    self._bind(part, each, scope)
            case ast.Subscript(value=owner, slice=key):
                self.value(owner, scope)[self.value(key, scope)] = value
            case _:
                raise NotConstant(target.lineno, f"{short(target)} is not read")
