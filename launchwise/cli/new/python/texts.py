"""Expressions of a host over its symbols, as expressions of ``spec.yaml`` over named sizes."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from launchwise.cli.new.python.arrays import Array, Names, Symbol
from launchwise.cli.new.python.values import NotKnown, Value, written

_FUNCTIONS = ("ceil_div", "next_power_of_2", "log2", "min", "max", "abs")
_ALLOWED = (
    *(ast.Name, ast.Constant, ast.Call, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp),
    *(ast.Tuple, ast.Load, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow),
    *(ast.USub, ast.Not, ast.boolop, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE),
    *(ast.In, ast.NotIn),
)
_DEEPEST = 12
"""Most names that stand for one another."""


class Texts:
    """Names for sizes, and expressions over them.

    Parameters
    ----------
    taken
        Names that no problem parameter may have.
    own
        Names that stand for themselves: constexprs.
    """

    def __init__(self, names: Names, taken: Iterable[str], own: Iterable[str] = ()) -> None:
        self._names = names
        self._own = {*own}
        self._taken = {*taken}
        self._same: dict[str, ast.expr] = {}
        self._filled: dict[str, str] = {}
        firsts: dict[str, str] = {}
        for symbol, called in names.called.items():
            if (first := firsts.setdefault(called, symbol)) != symbol:
                self._same[symbol] = ast.Name(first)

    def unify(self, one: ast.expr, other: ast.expr) -> None:
        """Two sizes that the host insists to be equal: the first stands for both."""
        for first, second in ((one, other), (other, one)):
            symbol = self._names.symbols.get(getattr(second, "id", ""))
            if symbol is None or symbol.kind not in ("size", "length", "free"):
                continue
            second_id = self._root(second)
            if ast.dump(self._root(first)) != ast.dump(second_id):
                self._same[second_id.id] = self._root(first)  # type: ignore[attr-defined]
                own = self._names.called.pop(second_id.id, "")  # type: ignore[attr-defined]
                if own and isinstance(first, ast.Name):
                    self._names.called.setdefault(self._root(first).id, own)  # type: ignore[attr-defined]
            return

    def _root(self, node: ast.expr) -> ast.expr:
        for _ in range(_DEEPEST):
            if not isinstance(node, ast.Name) or node.id not in self._same:
                break
            node = self._same[node.id]
        return node

    def name_by(self, symbol: str, parameter: str) -> None:
        """A size that the host does not name has the name of the parameter that it is given for."""
        root = getattr(self._root(ast.Name(symbol)), "id", "")
        found = self._names.symbols.get(root)
        if found is not None and found.kind in ("size", "length"):
            self._names.called.setdefault(root, parameter)

    def give(self, array: Array, place: int, node: ast.expr) -> None:
        """A size of an array, where the host does not say it."""
        symbol = array.size(place)._name
        is_free = symbol in self._names.symbols and symbol not in {*self._names.called, *self._same}
        if is_free and getattr(self._root(node), "id", "") != symbol:
            self._same[symbol] = node

    def called(self, name: str) -> str:
        """Problem parameter for a name of the host."""
        found = name.strip("_") or "n"
        return f"{found}_size" if found in self._taken else found

    def reads(self, node: ast.expr, kind: str) -> Iterator[Symbol]:
        """Symbols of a kind that an expression reads."""
        for one in ast.walk(node):
            symbol = self._names.symbols.get(getattr(one, "id", ""))
            if symbol is not None and symbol.kind == kind:
                yield symbol

    def text(self, node: ast.expr, line: int) -> str:
        """An expression of ``spec.yaml``; raises :class:`NotKnown` where there is none."""
        return ast.unparse(self._written(node, line, 0))

    def shape(self, array: Array) -> list[str | None]:
        """Sizes of an array, None for those that the host does not say."""
        found: list[str | None] = []
        for size in self._whole(array).shape():
            try:
                found.append(None if size is None else self.text(size._node, 0))
            except NotKnown:
                found.append(None)
        return found

    def _whole(self, array: Array) -> Array:
        for _ in range(_DEEPEST):
            if array.like is None or (array.sizes and array.is_whole):
                break
            array = array.like
        return array

    def _written(self, node: ast.expr, line: int, depth: int) -> ast.expr:
        writer = _Writer(self, depth)
        try:
            found: ast.expr = writer.visit(copy.deepcopy(node))
        except LookupError as error:
            part = error.args[0]
            said = f"{written(part)} has no expression of spec.yaml"
            raise NotKnown(getattr(part, "lineno", line), said) from error
        return found

    def symbol(self, name: str, depth: int) -> ast.expr | None:
        """What a symbol stands for; None where nothing says it."""
        root = self._root(ast.Name(name))
        if not isinstance(root, ast.Name):
            return self._written(root, 0, depth + 1)
        symbol = self._names.symbols.get(root.id)
        if symbol is None:
            return root if root.id in self._own else None
        if symbol.kind == "literal":
            return ast.Constant(symbol.known)
        if symbol.kind == "param":
            return root
        if symbol.kind == "free":
            return None if root.id in self._names.arrays else ast.Name(self.called(root.id))
        array = symbol.array
        assert array is not None
        if symbol.kind == "length":
            sizes = self.shape(array) if self._whole(array).sizes else []
            if sizes and None not in sizes:
                return _product([str(one) for one in sizes])
            own = self._names.called.get(root.id)
            return ast.Name(self.called(own)) if own else None
        if symbol.kind == "stride":
            return self._stride(array, symbol.place)
        if own := self._names.called.get(root.id):
            return ast.Name(self.called(own))
        return self._size(array, symbol.place, root.id)

    def _size(self, array: Array, place: int, symbol: str) -> ast.expr | None:
        if text := self._filled.get(symbol):
            return ast.parse(text, mode="eval").body
        whole = self._whole(array)
        if whole is not array:
            sizes = self.shape(whole)
            if -len(sizes) <= place < len(sizes) and sizes[place] is not None:
                return ast.parse(str(sizes[place]), mode="eval").body
        return None

    def _stride(self, array: Array, place: int) -> ast.expr | None:
        """Stride of a contiguous tensor, in elements."""
        shape = self.shape(array)
        if not shape or not -len(shape) <= place < len(shape):
            return None
        after = shape[place % len(shape) + 1 :]
        return None if None in after else _product([str(one) for one in after])

    def complete(self, arrays: Iterable[Array]) -> dict[str, str]:
        """Give sizes that the host does not say: those of a tensor of the same rank, else names.

        Returns
        -------
        Tensor to a question.
        """
        questions: dict[str, str] = {}
        roots = dict.fromkeys(self._whole(one) for one in arrays)
        shapes = {one: self.shape(one) for one in roots}
        whole = [shape for shape in shapes.values() if shape and None not in shape]
        for array in roots:
            shape = self.shape(array)
            if None not in shape:
                continue
            alike = [one for one in whole if len(one) == len(shape)]
            fits = (one for one in alike if _agree(one, shape))
            other = next(fits, next(iter(alike), None))
            for place, text in enumerate(shape):
                if text is None:
                    usual = ("rows", "columns")[place] if len(shape) == 2 else ""
                    key = re.sub(r"\W+", "_", array.key).lower()
                    own = self.called(usual or f"{key}_{place}")
                    found = other[place] if other is not None else None
                    self._fill(array, place, found or own)
            questions[array.key] = f"shape: the file does not say all sizes of {array.key}"
            whole.append(self.shape(array))
        return questions

    def _fill(self, array: Array, place: int, text: str) -> None:
        rank = len(array.shape())
        symbols = {one % rank: size for one, size in array.sizes.items()}
        size = symbols[place] if place in symbols else array.size(place)
        self._filled[size._name] = text


def _agree(whole: list[str | None], shape: list[str | None]) -> bool:
    """Whether a whole shape has the sizes that are known of another."""
    return all(own in (None, one) for one, own in zip(whole, shape, strict=True))


def _product(texts: list[str]) -> ast.expr:
    found: ast.expr | None = None
    for text in texts:
        node = ast.parse(text, mode="eval").body
        found = node if found is None else ast.BinOp(found, ast.Mult(), node)
    return found or ast.Constant(1)


def _has_fraction(node: ast.expr) -> bool:
    return any(
        isinstance(each, ast.Div) or getattr(each, "id", "") in ("log2", "sqrt")
        for each in ast.walk(node)
    )


class _Writer(ast.NodeTransformer):
    """Writes symbols as what they stand for, and calls as the language has them.

    Raises
    ------
    LookupError
        With a node that the language has no word for.
    """

    def __init__(self, texts: Texts, depth: int) -> None:
        self._texts, self._depth = texts, depth

    def visit(self, node: ast.AST) -> Any:
        if self._depth > _DEEPEST or not isinstance(node, _ALLOWED):
            raise LookupError(node)
        return super().visit(node)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        found = self._texts.symbol(node.id, self._depth)
        if found is None:
            raise LookupError(node)
        return found

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
