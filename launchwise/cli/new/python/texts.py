"""Texts of a draft: expressions over named sizes, and the part of a Python file that it needs."""

from __future__ import annotations

import ast
import builtins
import copy
import dis
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import CodeType
from typing import Any, TypeGuard

from launchwise.base.names import last_name
from launchwise.cli.new.python.tensors import Shape, Symbol
from launchwise.cli.new.python.values import COMPARISONS, NotKnown, Run, Value

_OPERATORS = (*COMPARISONS, "+", "-", "*", "/", "//", "%", "**")
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
            condition = paths[0][0][place][0]
            text = f"({yes._text} if {condition._text} else {no._text})"
            return Value(text, "if", [condition, yes, no])
    return paths[0][1]


_HARMLESS = ("triton", "math", "itertools", "functools", "typing", "enum", "dataclasses")
"""Packages that a machine which compiles has, and that need no GPU."""

_USUAL = {
    "triton": "import triton as {}",
    "tl": "import triton.language as {}",
    "jit": "from triton import jit as {}",
}
"""Names under which projects hand Triton on."""

_COMPOUND = ast.Try | ast.If | ast.For | ast.While | ast.With
"""Statements that are not copied: a person copies what they set."""


class Excerpt:
    """The part of a file that a build of a kernel needs. Host code may import PyTorch and ask for a
    GPU, which the machine that compiles lacks. A file without such code is kept as it is, if it
    ``is_whole``."""

    def __init__(self, name: str, kernel: str, text: str, is_whole: bool = True) -> None:
        self.text = ""  # Empty where the file is kept.
        self.modules: list[str] = []  # Files beside it that must be copied, too.
        self.missing: list[str] = []  # What the copy reads and nothing defines, with its import.
        body = ast.parse(text).body
        if is_whole and all(map(_is_harmless, body)):
            return
        names = [(one, *_names(one)) for one in body]
        wanted, size = {kernel}, 0
        while len(wanted) > size:
            size = len(wanted)
            for statement, bound, read in names:
                if bound & wanted and not isinstance(statement, _COMPOUND):
                    wanted |= read
        lines = []
        for statement, bound, _ in names:
            is_copied = not isinstance(statement, ast.Import | ast.ImportFrom | _COMPOUND)
            if is_copied and bound & wanted:
                wanted -= bound
                lines += _copied(statement, text.splitlines())
        defined = {name for _, bound, _ in names for name in bound}
        imports: list[str] = []
        for one in sorted(wanted, key=lambda one: (one not in defined, one)):
            imports += self._imports(one, [*_imports_of(body, one)] or [*_imports_of(body, "*")])
        self.text = "\n".join([f"# What {kernel} of {name} needs.", *imports, *lines]) + "\n"

    def _imports(self, name: str, found: list[tuple[str, str, str]]) -> list[str]:
        """Import a name as the file does, if Triton or Python has it."""
        nowhere = ("", "", "defined nowhere at the top, or in a branch")
        module, original, text = found[0] if found else nowhere
        if own := [text for module, _, text in found if _is_triton(module)]:
            return _one_of(own)
        if original in _USUAL:
            usual = _USUAL[original].format(name)
            return [usual.replace(f"import {name} as {name}", f"import {name}")]
        if module.startswith(".") and not module.startswith(".."):
            self.modules += [module] if module not in self.modules else []
            return [text]
        self.missing.append(f"{name} ({text})")
        return []


def _copied(statement: ast.stmt, source: list[str]) -> list[str]:
    """Lines of a statement; a function has of its decorators that of Triton alone."""
    lines = source[statement.lineno - 1 : statement.end_lineno]
    if not isinstance(statement, ast.FunctionDef):
        return lines
    kept = [one for one in statement.decorator_list if last_name(one) == "jit"]
    return ["", "", *(f"@{ast.unparse(one)}" for one in kept), *lines]


def _imports_of(body: list[ast.stmt], name: str) -> Iterator[tuple[str, str, str]]:
    """Module, name there, and statement, wherever the file imports a name."""
    for node in ast.walk(ast.Module(body, [])):
        for one in node.names if isinstance(node, ast.Import | ast.ImportFrom) else ():
            if _bound_by(one) == name and isinstance(node, ast.ImportFrom):
                text = ast.unparse(ast.ImportFrom(node.module, [one], node.level))
                yield "." * node.level + (node.module or ""), one.name, text
            elif _bound_by(one) == name:
                yield one.name, "", ast.unparse(ast.Import([one]))


def _bound_by(name: ast.alias) -> str:
    return name.asname or name.name.partition(".")[0]


def _one_of(imports: list[str]) -> list[str]:
    """Imports of which the first that succeeds counts."""
    *others, last = dict.fromkeys(imports)
    lines = [last]
    for text in reversed(others):
        inner = [f"    {line}" for line in lines]
        lines = ["try:", f"    {text}", "except ImportError:", *inner]
    return lines


def _is_triton(module: str) -> bool:
    return module.partition(".")[0] in _HARMLESS


def is_jit(node: ast.AST) -> TypeGuard[ast.FunctionDef]:
    return isinstance(node, ast.FunctionDef) and any(
        last_name(one) == "jit" for one in node.decorator_list
    )


def _is_harmless(statement: ast.stmt) -> bool:
    """Whether an import of the file by launchwise may run a statement at its top."""
    match statement:
        case ast.Import(names=names):
            return all(_is_triton(one.name) for one in names)
        case ast.ImportFrom(module=module, level=level):
            return level == 0 and (_is_triton(module or "") or module == "__future__")
        case ast.FunctionDef(decorator_list=decorators):
            return all(last_name(one) in ("jit", "autotune", "heuristics") for one in decorators)
        case ast.Assign(value=value) | ast.AnnAssign(value=value):
            calls = [one for one in ast.walk(value or ast.Constant(0)) if isinstance(one, ast.Call)]
            return all(last_name(one) in ("Config", "range", "constexpr", "cdiv") for one in calls)
        case ast.Expr(value=ast.Constant()):
            return True
    return False


_LOADS = ("LOAD_NAME", "LOAD_GLOBAL")


def _names(statement: ast.stmt) -> tuple[set[str], set[str]]:
    """Names that a statement at the top binds and reads, of its decorators with ``jit`` alone."""
    kept = copy.copy(statement)
    if isinstance(kept, ast.FunctionDef):
        kept.decorator_list = [one for one in kept.decorator_list if last_name(one) == "jit"]
    if isinstance(kept, ast.ImportFrom):
        return {*map(_bound_by, kept.names)}, set()
    code = compile(ast.Module([kept], []), "", "exec", dont_inherit=True)
    bound = {one.argval for one in dis.get_instructions(code) if one.opname == "STORE_NAME"}
    return bound, names_read(code) - {*vars(builtins)}


def names_read(code: CodeType) -> set[str]:
    """Global names that code reads, also in functions inside."""
    inner = (one for one in code.co_consts if isinstance(one, CodeType))
    loads = (one for one in dis.get_instructions(code) if one.opname in _LOADS)
    return {one.argval for one in loads}.union(*map(names_read, inner))
