"""Values of a host over its symbols, as expressions of ``spec.yaml`` over named sizes."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from launchwise.cli.new.python.tensors import Shape, Symbol
from launchwise.cli.new.python.values import COMPARISONS, NotKnown, Run, Value

_OPERATORS = (*COMPARISONS, "+", "-", "*", "/", "//", "%", "**", "and", "or")
_FORMS = {
    **{one: f"({{}} {one} {{}})" for one in _OPERATORS},
    **{one: f"{one}({{}})" for one in ("next_power_of_2", "log2", "abs")},
    **{"ceil_div": "ceil_div({}, {})", "sqrt": "({} ** 0.5)", "int": "{}", "bool": "{}"},
    **{"negative": "(-{})", "not": "(not {})", "if": "({1} if {0} else {2})"},
}
"""Operators and functions to what ``spec.yaml`` has for them."""


class Texts:
    """Names for sizes, and expressions over them."""

    def __init__(self, run: Run, taken: Iterable[str]) -> None:
        self._symbols, self._tensors = run.symbols, run.tensors
        self._taken = {*taken}  # Names that no problem parameter may have.
        self._open: set[str] = set()  # Symbols that are just looked up.
        self.questions: dict[str, str] = {}  # Of shapes, by their keys.

    def symbol(self, value: Any) -> Symbol | None:
        found: Symbol | None = self._symbols.get(getattr(value, "_text", ""))
        return found

    def _root(self, value: Value) -> Value:
        while (found := self.symbol(value)) is not None and found.same is not None:
            value = found.same
        return value

    def unify(self, one: Value, other: Value) -> None:
        """Two sizes that the host insists to be equal: the first stands for both."""
        one, other = self._root(one), self._root(other)
        for first, second in ((one, other), (other, one)):
            found, stays = self.symbol(second), self.symbol(first)
            if found is None or found.kind not in ("size", "length", "free"):
                continue
            if found is not stays:
                found.same = first
                if stays is not None:
                    stays.called = stays.called or found.called
            return

    def name_by(self, value: Value, parameter: str) -> None:
        """A size that the host does not name has the name of the parameter that it is given for."""
        found = self.symbol(self._root(value))
        if found is not None and found.kind in ("size", "length"):
            found.called = found.called or parameter

    def give(self, shape: Shape, place: int, value: Value) -> None:
        """A size of a tensor that the host does not say."""
        found = self.symbol(shape.size(place))
        if self.text_or_none(value) is None:
            return
        if found is None:
            shape.sizes[place] = value
        elif self.symbol(self._root(value)) is not found:
            found.same = value

    def _named(self, name: str) -> str:
        found = name.strip("_") or "n"
        return f"{found}_size" if found in self._taken else found

    def reads(self, value: Value) -> Iterator[Symbol]:
        yield from filter(None, map(self.symbol, value._walk()))

    def guessed(self, value: Value) -> str:
        """A tensor whose sizes are guessed, and which a value reads; '' for none."""
        for found in self.reads(value):
            key = found.shape.key if found.shape is not None else ""
            if found.is_guess or (found.kind == "stride" and key in self.questions):
                return key
        return ""

    def text(self, value: Value, same: Mapping[str, str] | None = None) -> str:
        """An expression of ``spec.yaml``, with names in the place of texts of values; raises
        :class:`NotKnown` where there is none."""
        return ast.unparse(ast.parse(self._written(value, same or {}), mode="eval"))

    def text_or_none(self, value: Value | None) -> str | None:
        try:
            return None if value is None else self.text(value)
        except NotKnown:
            return None

    def shape(self, shape: Shape) -> list[str | None]:
        """Sizes of a tensor, None for those that the host does not say."""
        return [*map(self.text_or_none, shape.known())]

    def _written(self, value: Value, same: Mapping[str, str]) -> str:
        sign, parts, known = value._sign, value._parts, value._known
        if value._text in same:
            return same[value._text]
        if sign in ("constant", "literal") and known is not None:
            return repr(int(known) if isinstance(known, bool) else known)
        if sign == "param":
            return value._text
        if sign == "name" and (found := self._stands_for(value)) is not None:
            return f"({found})"
        form = value._name if sign == "call" else sign
        if form == "ceil" and parts[0]._sign == "/":
            form, parts = "ceil_div", parts[0]._parts
        texts = (self._written(one, same) for one in parts)
        if form in ("min", "max", "tuple") and len(parts) > 1:
            return f"{form.removeprefix('tuple')}({', '.join(texts)})"
        if form not in _FORMS or (form in ("int", "bool") and _has_fraction(parts[0])):
            raise NotKnown(value._line, f"{value._said()} has no expression of spec.yaml")
        return _FORMS[form].format(*texts)

    def _stands_for(self, value: Value) -> str | None:
        """What a symbol stands for; None where nothing says it."""
        if value._text in self._open:
            return None
        self._open.add(value._text)
        try:
            root = self._root(value)
            is_name = root._sign == "name"
            return self._resolved(root._text) if is_name else self._written(root, {})
        finally:
            self._open.remove(value._text)

    def _resolved(self, name: str) -> str | None:
        found = self._symbols.get(name)
        if found is None:
            return None
        if found.kind == "free":
            return None if name in self._tensors else self._named(name)
        if (found.called and found.kind == "size") or found.is_guess:
            return self._named(found.called)
        assert found.shape is not None
        sizes, place = self.shape(found.shape), found.place
        is_there = -len(sizes) <= place < len(sizes)
        if found.kind == "size":
            return sizes[place] if is_there else None
        if found.kind == "stride":  # Of a contiguous tensor, in elements.
            sizes = sizes[place % len(sizes) + 1 :] if is_there else [None]
        elif found.called and None in sizes:
            return self._named(found.called)
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
                found = self.symbol(sizes[place]) or self.symbol(shape.named(place))
                assert found is not None
                found.is_guess, found.same, found.called = True, None, other[place] or usual
            whole.append(self.shape(shape))


def _has_fraction(value: Value) -> bool:
    return any(one._sign == "/" or one._name in ("log2", "sqrt") for one in value._walk())


def merged(paths: Sequence[tuple[Sequence[tuple[Value, bool]], Value]]) -> Value:
    """One value for what several runs gave, by the conditions in which they differ."""
    if len({value._text for _, value in paths}) == 1:
        return paths[0][1]
    for place in range(min(len(taken) for taken, _ in paths)):
        if len({taken[place][1] for taken, _ in paths}) == 2:
            yes, no = (
                merged([one for one in paths if one[0][place][1] is outcome])
                for outcome in (True, False)
            )
            return _chosen(paths[0][0][place][0], yes, no)
    return paths[0][1]


def _chosen(condition: Value, yes: Value, no: Value) -> Value:
    """``yes if condition else no``, shorter where it can be."""
    same, both = condition._text, (yes._text, no._text)
    if both[0] == both[1]:
        return yes
    if (yes._known, no._known) in ((True, False), (False, True)):
        return condition if yes._known else ~condition
    if same in both:
        sign = "or" if same == both[0] else "and"
        other = no if same == both[0] else yes
        return Value(f"({same} {sign} {other._text})", sign, [condition, other])
    return Value(f"({both[0]} if {same} else {both[1]})", "if", [condition, yes, no])
