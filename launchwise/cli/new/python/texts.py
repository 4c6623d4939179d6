"""Expressions of a host over its symbols, as expressions of ``spec.yaml`` over named sizes."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from launchwise.cli.new.python.tensors import Shape, Symbol
from launchwise.cli.new.python.values import NotKnown, Run, Value, written

_FUNCTIONS = ("ceil_div", "next_power_of_2", "log2", "min", "max", "abs")
_ALLOWED = (
    *(ast.Name, ast.Constant, ast.Call, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp),
    *(ast.Tuple, ast.Load, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow),
    *(ast.USub, ast.Not, ast.boolop, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE),
    *(ast.In, ast.NotIn),
)


class Texts:
    """Names for sizes, and expressions over them."""

    def __init__(self, run: Run, taken: Iterable[str], own: Iterable[str] = ()) -> None:
        self._symbols, self._called, self._tensors = run.symbols, run.called, run.tensors
        self._taken = {*taken}  # Names that no problem parameter may have.
        self._own = {*own}  # Names that stand for themselves: constexprs.
        self._same: dict[str, ast.expr] = {}  # Symbols to what they stand for,
        self._filled: dict[str, str] = {}  # sizes that nothing says to names,
        self._open: set[str] = set()  # and symbols that are just looked up.
        self.questions: dict[str, str] = {}

    def unify(self, one: ast.expr, other: ast.expr) -> None:
        """Two sizes that the host insists to be equal: the first stands for both."""
        one, other = self._root(one), self._root(other)
        for first, second in ((one, other), (other, one)):
            name = getattr(second, "id", "")
            symbol = self._symbols.get(name)
            if symbol is None or symbol.kind not in ("size", "length", "free"):
                continue
            if getattr(first, "id", "") != name:
                self._same[name] = first
                if name in self._called and isinstance(first, ast.Name):
                    self._called.setdefault(first.id, self._called[name])
            return

    def _root(self, node: ast.expr) -> ast.expr:
        while isinstance(node, ast.Name) and node.id in self._same:
            node = self._same[node.id]
        return node

    def name_by(self, symbol: str, parameter: str) -> None:
        """A size that the host does not name has the name of the parameter that it is given for."""
        root = getattr(self._root(ast.Name(symbol)), "id", "")
        found = self._symbols.get(root)
        if found is not None and found.kind in ("size", "length"):
            self._called.setdefault(root, parameter)

    def give(self, shape: Shape, place: int, node: ast.expr) -> None:
        """A size of a tensor that the host does not say."""
        with suppress(NotKnown):
            self.text(node)
            self._give(shape, place, node)

    def _give(self, shape: Shape, place: int, node: ast.expr) -> None:
        own = shape.size(place)._name
        if own not in self._symbols:
            shape.sizes[place] = Value(node)
        elif getattr(self._root(node), "id", "") != own:
            self._same[own] = node

    def called(self, name: str) -> str:
        """Problem parameter for a name of the host."""
        found = name.strip("_") or "n"
        return f"{found}_size" if found in self._taken else found

    def reads(self, node: ast.expr) -> Iterator[tuple[str, Symbol]]:
        """Symbols that an expression reads, with their names."""
        for name in (getattr(one, "id", "") for one in ast.walk(node)):
            if name in self._symbols:
                yield name, self._symbols[name]

    def guessed(self, node: ast.expr) -> str:
        """A tensor whose sizes are guessed, and which an expression reads; '' for none."""
        for name, symbol in self.reads(node):
            key = symbol.shape.key if symbol.shape is not None else ""
            if name in self._filled or (symbol.kind == "stride" and key in self.questions):
                return key
        return ""

    def text(self, node: ast.expr, line: int = 0) -> str:
        """An expression of ``spec.yaml``; raises :class:`NotKnown` where there is none."""
        try:
            return ast.unparse(_Writer(self).visit(copy.deepcopy(node)))
        except LookupError as error:
            part = error.args[0]
            said = f"{written(part)} has no expression of spec.yaml"
            raise NotKnown(getattr(part, "lineno", line), said) from error

    def shape(self, shape: Shape) -> list[str | None]:
        """Sizes of a tensor, None for those that the host does not say."""

        def text(size: Value | None) -> str | None:
            try:
                return None if size is None else self.text(size._node)
            except NotKnown:
                return None

        return [*map(text, shape.known())]

    def symbol(self, name: str) -> str | None:
        """What a symbol stands for; None where nothing says it."""
        if name in self._open:
            return None
        self._open.add(name)
        try:
            root = self._root(ast.Name(name))
            return self._said(root.id) if isinstance(root, ast.Name) else self.text(root)
        finally:
            self._open.remove(name)

    def _said(self, key: str) -> str | None:
        found, own = self._symbols.get(key), self._called.get(key)
        if found is None:
            return key if key in self._own else None
        if found.kind in ("literal", "param"):
            return key if found.kind == "param" else repr(found.known)
        if found.kind == "free":
            return None if key in self._tensors else self.called(key)
        if found.kind == "size" and own:
            return self.called(own)
        if key in self._filled:
            return self._filled[key]
        assert found.shape is not None
        sizes, place = self.shape(found.shape), found.place
        is_there = -len(sizes) <= place < len(sizes)
        if found.kind == "size":
            return sizes[place] if is_there else None
        if found.kind == "stride":  # Of a contiguous tensor, in elements.
            sizes = sizes[place % len(sizes) + 1 :] if is_there else [None]
        elif own and None in sizes:
            return self.called(own)
        return None if None in sizes else " * ".join(f"({one})" for one in sizes) or "1"

    def complete(self, shapes: Mapping[str, Shape], is_said: bool) -> None:
        """Give sizes that nothing says: those of a tensor that has the others, too, or names.
        Unless ``is_said``, no host gives any: all are asked for."""
        whole = [text for text in map(self.shape, shapes.values()) if None not in text]
        for name, shape in shapes.items():
            text = self.shape(shape)
            if None in text or not is_said:
                asked = f"shape: the file does not say all sizes of {shape.key}"
                self.questions.setdefault(shape.key, asked if is_said else "shape")
            if None not in text:
                continue
            alike = [one for one in whole if len(one) == len(text) > 1]
            alike.sort(key=lambda one: -sum(a == b for a, b in zip(text, one, strict=True)))
            other = alike[0] if alike else text
            sizes = shape.of_rank(len(text))
            for place in (place for place, one in enumerate(text) if one is None):
                usual = ("rows", "columns")[place] if len(text) < 3 else f"{name}_{place}".lower()
                if sizes[place]._name not in self._symbols:
                    sizes[place] = shape.named(place)
                self._same.pop(sizes[place]._name, None)
                self._filled[sizes[place]._name] = other[place] or self.called(usual)
            whole.append(self.shape(shape))


def _has_fraction(node: ast.expr) -> bool:
    return any(
        isinstance(each, ast.Div) or getattr(each, "id", "") in ("log2", "sqrt")
        for each in ast.walk(node)
    )


class _Writer(ast.NodeTransformer):
    """Writes symbols as what they stand for, and calls as the language has them. Raises LookupError
    with a node that the language has no word for."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts

    def visit(self, node: ast.AST) -> Any:
        if not isinstance(node, _ALLOWED):
            raise LookupError(node)
        return super().visit(node)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        found = self._texts.symbol(node.id)
        if found is None:
            raise LookupError(node)
        return ast.parse(found, mode="eval").body

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        if not isinstance(node.value, int | float | str):
            raise LookupError(node)
        return ast.Constant(int(node.value)) if isinstance(node.value, bool) else node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        name, given = getattr(node.func, "id", ""), node.args
        match given:
            case [ast.BinOp(left=left, op=ast.Div(), right=right)] if name == "ceil":
                name, given = "ceil_div", [left, right]
            case [one] if name == "sqrt":
                return ast.BinOp(self.visit(one), ast.Pow(), ast.Constant(0.5))
            case [one] if name in ("int", "bool") and not _has_fraction(one):
                found: ast.expr = self.visit(one)
                return found
        if name not in _FUNCTIONS or (name in ("min", "max") and len(given) < 2):
            raise LookupError(node)
        return ast.Call(ast.Name(name), [self.visit(one) for one in given], [])


def merged(paths: Sequence[tuple[Sequence[tuple[Value, bool]], ast.expr]]) -> ast.expr:
    """One expression for what several runs gave, by the conditions in which they differ."""
    if len({ast.dump(node) for _, node in paths}) == 1:
        return paths[0][1]
    for place in range(min(len(taken) for taken, _ in paths)):
        if len({taken[place][1] for taken, _ in paths}) == 2:
            yes, no = (
                merged([one for one in paths if one[0][place][1] is outcome])
                for outcome in (True, False)
            )
            return _chosen(paths[0][0][place][0]._node, yes, no)
    return paths[0][1]


def _chosen(condition: ast.expr, yes: ast.expr, no: ast.expr) -> ast.expr:
    """``yes if condition else no``, shorter where it can be."""
    same = ast.dump(condition)
    if ast.dump(yes) == ast.dump(no):
        return yes
    if isinstance(yes, ast.Constant) and isinstance(no, ast.Constant):
        if (yes.value, no.value) == (True, False):
            return condition
        if (yes.value, no.value) == (False, True):
            return ast.UnaryOp(ast.Not(), condition)
    if same == ast.dump(no):
        return ast.BoolOp(ast.And(), [condition, yes])
    if same == ast.dump(yes):
        return ast.BoolOp(ast.Or(), [condition, no])
    return ast.IfExp(condition, yes, no)
