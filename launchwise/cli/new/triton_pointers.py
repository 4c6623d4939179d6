"""What a function of Triton does with its parameters: loads, stores, atomics, offsets, bounds."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from launchwise.cli.new.triton_files import last_name

_SAME: tuple[str, ...] = (
    "multiple_of",
    "max_contiguous",
    "max_constancy",
    "cast",
    "advance",
    "make_block_ptr",
)
_SAME += ("make_tensor_descriptor", "broadcast_to", "expand_dims", "to")
"""Functions whose result is the pointer that they are given first."""

_KEEPS_SCALE = (ast.Add, ast.Sub)


@dataclass
class Use:
    """How a function uses a pointer.

    Parameters
    ----------
    stored_as
        Type that a value is converted to before it is stored; '' if none.
    indexes
        Pointers whose address depends on what is loaded from it.
    addresses
        What it loads from and stores to.
    bounds
        Names that the masks of its loads and stores compare with.
    """

    is_loaded: bool = False
    is_stored: bool = False
    atomics: set[str] = field(default_factory=set)
    stored_as: str = ""
    indexes: dict[str, None] = field(default_factory=dict)
    addresses: list[ast.expr] = field(default_factory=list)
    bounds: dict[str, None] = field(default_factory=dict)

    @property
    def role(self) -> str:
        """Role of the argument."""
        if self.atomics or (self.is_loaded and self.is_stored):
            return "inout"
        return "output" if self.is_stored else "input"


@dataclass
class Reading:
    """What was found of a function.

    Parameters
    ----------
    uses
        Parameters that are pointers.
    axes
        Axes of the grid that it reads.
    scratch_line
        Where it makes a tensor descriptor; 0 where it makes none.
    descriptor_line
        Where it loads from or stores to a descriptor that is a parameter.
    """

    uses: dict[str, Use] = field(default_factory=dict)
    axes: set[int] = field(default_factory=set)
    has_dot: bool = False
    has_loop: bool = False
    scratch_line: int = 0
    descriptor_line: int = 0


class Flow:
    """Follows pointers and loaded values through the statements of a function.

    Parameters
    ----------
    function
        Of Triton.
    functions
        All of the file, which it may call.
    """

    def __init__(
        self, function: ast.FunctionDef, functions: Mapping[str, ast.FunctionDef], depth: int = 0
    ) -> None:
        self._functions, self._depth = functions, depth
        listed = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
        self.parameters = [one.arg for one in listed]
        constexprs = {
            one.arg
            for one in listed
            if one.annotation is not None and last_name(one.annotation) == "constexpr"
        }
        self._scalars = constexprs | _scalars(function)
        self.reading = Reading()
        self.values: dict[str, ast.expr] = {}
        self.added: dict[str, list[ast.expr]] = {}
        self._bases = {one: {one} for one in self.parameters if one not in self._scalars}
        self._loaded: dict[str, set[str]] = {}
        for _ in range(2):  # A loop carries pointers back to its head.
            for statement in function.body:
                self._read(statement)

    def bases(self, node: ast.expr | None) -> set[str]:
        """Parameters that a pointer may come from."""
        match node:
            case ast.Name(id=name):
                return set(self._bases.get(name, ()))
            case ast.BinOp(op=op, left=left, right=right) if isinstance(op, _KEEPS_SCALE):
                return self.bases(left) or self.bases(right)  # A pointer stands before offsets.
            case ast.Subscript(value=value) | ast.Attribute(value=value):
                return self.bases(value)
            case ast.IfExp(body=body, orelse=otherwise):
                return self.bases(body) | self.bases(otherwise)
            case ast.Tuple(elts=parts):
                return set().union(*(self.bases(part) for part in parts))
            case ast.Call(func=func):
                name = last_name(func)
                if name in _SAME and isinstance(func, ast.Attribute):
                    first = _argument(node, 0, "base")
                    return self.bases(func.value if name == "to" else first)
                if name == "where":
                    return set().union(*(self.bases(each) for each in node.args[1:]))
        return set()

    def _read(self, statement: ast.stmt) -> None:
        for node in _own_expressions(statement):
            for call in (each for each in ast.walk(node) if isinstance(each, ast.Call)):
                self._called(call)
        match statement:
            case ast.Assign(targets=[target], value=value):
                self._assigned(target, value)
            case ast.AnnAssign(target=target, value=value) if value is not None:
                self._assigned(target, value)
            case ast.AugAssign(target=ast.Name(id=name), value=value):
                self._loaded.setdefault(name, set()).update(self.loaded(value))
                self.added.setdefault(name, []).append(value)
            case ast.For() | ast.While():
                self.reading.has_loop = True
        for body in ("body", "orelse"):
            for each in getattr(statement, body, ()):
                self._read(each)

    def _assigned(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            for one, given in zip(target.elts, value.elts, strict=False):
                self._assigned(one, given)
            return
        for name in (each.id for each in ast.walk(target) if isinstance(each, ast.Name)):
            if bases := self.bases(value):
                self._bases.setdefault(name, set()).update(bases)
            self._loaded.setdefault(name, set()).update(self.loaded(value))
            self.values[name] = value

    def loaded(self, node: ast.expr) -> set[str]:
        """Pointers that a value was loaded from, in one step or several."""
        found: set[str] = set()
        for each in ast.walk(node):
            if isinstance(each, ast.Name):
                found |= self._loaded.get(each.id, set())
            elif isinstance(each, ast.Call) and last_name(each.func) == "load":
                found |= self.bases(_pointer(each))
        return found

    def _called(self, call: ast.Call) -> None:
        name = last_name(call.func)
        pointer = _pointer(call)
        if name == "program_id":
            axis = _argument(call, 0, "axis")
            number = getattr(axis, "value", 0)
            self.reading.axes.add(number if isinstance(number, int) else 0)
        elif name in ("dot", "dot_scaled"):
            self.reading.has_dot = True
        elif name == "make_tensor_descriptor":
            self.reading.scratch_line = self.reading.scratch_line or call.lineno
        elif name in ("load", "store") or name.startswith("atomic_"):
            owner = call.func.value if isinstance(call.func, ast.Attribute) else None
            own = pointer.id if isinstance(pointer, ast.Name) and pointer is owner else ""
            if own in self.parameters and own not in self.values:
                self.reading.descriptor_line = self.reading.descriptor_line or call.lineno
            self._accessed(name, call, pointer)
        elif isinstance(call.func, ast.Name) and name in self._functions and self._depth < 6:
            self._inner(call, self._functions[name])

    def _accessed(self, name: str, call: ast.Call, pointer: ast.expr | None) -> None:
        indexing = self.loaded(pointer) if pointer is not None else set()
        for base in self.bases(pointer):
            if base not in self.parameters:
                continue
            use = self.reading.uses.setdefault(base, Use())
            assert pointer is not None
            use.addresses.append(pointer)
            mask = _argument(call, 1 if name == "load" else 2, "mask")
            use.bounds |= dict.fromkeys(self._compared_with(mask) if mask is not None else ())
            if name == "load":
                use.is_loaded = True
            elif name == "store":
                use.is_stored = True
                use.stored_as = use.stored_as or self._type_of(_argument(call, 1, "value"))
            else:
                use.atomics.add(name)
                use.stored_as = use.stored_as or self._type_of(_argument(call, 1, "val"))
            for other in indexing - {base}:
                self.reading.uses.setdefault(other, Use()).indexes[base] = None

    def _compared_with(self, mask: ast.expr, depth: int = 0) -> Iterable[str]:
        for each in ast.walk(mask):
            if isinstance(each, ast.Compare):
                for side in each.comparators:
                    yield from (one.id for one in ast.walk(side) if isinstance(one, ast.Name))
            elif isinstance(each, ast.Name) and each.id in self.values and depth < 4:
                yield from self._compared_with(self.values[each.id], depth + 1)

    def _type_of(self, value: ast.expr | None, depth: int = 0) -> str:
        """Type that a stored value is converted to."""
        if isinstance(value, ast.Name) and value.id in self.values and depth < 4:
            return self._type_of(self.values[value.id], depth + 1)
        if isinstance(value, ast.Call) and last_name(value.func) == "to" and value.args:
            kind = last_name(value.args[0])
            return kind if kind in _TYPES else ""
        if isinstance(value, ast.Call) and last_name(value.func) in ("sum", "max", "min"):
            return self._type_of(next(iter(value.args), None), depth + 1) if depth < 4 else ""
        return ""

    def _inner(self, call: ast.Call, function: ast.FunctionDef) -> None:
        """What a function that is called does with the pointers that it is given."""
        inner = Flow(function, self._functions, self._depth + 1)
        given = {**dict(zip(inner.parameters, call.args, strict=False))}
        given |= {each.arg: each.value for each in call.keywords if each.arg}
        reading = inner.reading
        self.reading.axes |= reading.axes
        self.reading.has_dot |= reading.has_dot
        self.reading.has_loop |= reading.has_loop
        self.reading.scratch_line = self.reading.scratch_line or reading.scratch_line
        for name, use in reading.uses.items():
            for base in self.bases(given.get(name)):
                if base in self.parameters:
                    own = self.reading.uses.setdefault(base, Use())
                    own.is_loaded |= use.is_loaded
                    own.is_stored |= use.is_stored
                    own.atomics |= use.atomics
                    own.stored_as = own.stored_as or use.stored_as


_TYPES: tuple[str, ...] = ("float16", "bfloat16", "float32", "float64", "int1")
_TYPES += ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def _pointer(call: ast.Call) -> ast.expr | None:
    """The pointer of a load, a store or an atomic operation, also of a descriptor's method."""
    if isinstance(call.func, ast.Attribute) and last_name(call.func.value) not in (
        "tl",
        "language",
    ):
        return call.func.value
    return _argument(call, 0, "pointer")


def _argument(call: ast.Call, place: int, name: str) -> ast.expr | None:
    named = [one.value for one in call.keywords if one.arg == name]
    return named[0] if named else call.args[place] if len(call.args) > place else None


def _own_expressions(statement: ast.stmt) -> Iterable[ast.expr]:
    """Expressions of a statement, without those of the statements in it."""
    return (one for one in ast.iter_child_nodes(statement) if isinstance(one, ast.expr))


def _scalars(function: ast.FunctionDef) -> set[str]:
    """Names that a function multiplies, divides or compares: no pointers."""
    found: set[str] = set()
    for node in ast.walk(function):
        parts: list[ast.expr] = []
        if isinstance(node, ast.BinOp) and not isinstance(node.op, _KEEPS_SCALE):
            parts = [node.left, node.right]
        elif isinstance(node, ast.Compare):
            none = any(isinstance(each, ast.Is | ast.IsNot) for each in node.ops)
            parts = [] if none else [node.left, *node.comparators]
        elif isinstance(node, ast.Call) and last_name(node.func) in ("range", "cdiv"):
            parts = list(node.args)
        found |= {one.id for one in parts if isinstance(one, ast.Name)}
    return found
