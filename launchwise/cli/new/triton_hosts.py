"""The launch of a function of Triton in the host code of its file: grid, values, shapes, types."""

from __future__ import annotations

import ast
from collections.abc import Collection
from typing import Any

import numpy as np

from launchwise.cli.new.constant_names import NotConstant
from launchwise.cli.new.said import said
from launchwise.cli.new.triton_completion import complete
from launchwise.cli.new.triton_files import TritonFile, launches
from launchwise.cli.new.triton_tensors import (
    DEEPEST,
    LIKE,
    SIZED,
    Tensor,
    Tensors,
    integer,
    is_name,
    literal,
    made_tensor,
    positional,
    shape_of,
    size_of,
    stride_of,
    typed_like,
    viewed_by,
)


class Host:
    """The first launch of a function, and the statements before it.

    Parameters
    ----------
    parameters
        Of the function, in their order.
    taken
        Names that no problem parameter may have: those of constexprs are among them.
    usual_type
        Of tensors whose type the file does not say.
    """

    def __init__(
        self,
        file: TritonFile,
        kernel: str,
        parameters: list[str],
        taken: Collection[str],
        usual_type: str,
    ) -> None:
        self.tensors = Tensors()
        self.given: dict[str, ast.expr] = {}
        self.grid_node: ast.expr | None = None
        self._assigned: dict[str, ast.expr] = {}
        self._functions: dict[str, ast.FunctionDef] = {}
        self._defaults: dict[str, ast.expr | None] = {}
        self._taken = taken
        self._constants = file.constants
        self._usual_type = usual_type
        self._symbols: set[str] = set()
        self._same: dict[str, str] = {}
        found = next((each for each in launches(file.tree) if each[0] == kernel), None)
        if found is None:
            return
        _, call, function = found
        assert isinstance(call.func, ast.Subscript)
        self.grid_node = call.func.slice
        self.given = dict(zip(parameters, positional(call), strict=False))
        self.given |= {each.arg: each.value for each in call.keywords if each.arg}
        if function is not None:
            self._read_function(function, call)
        self._ranks()
        self._name_sizes()
        self._make_sizes()
        self._types(file.tree)

    @property
    def is_there(self) -> bool:
        """Whether the file launches the function."""
        return self.grid_node is not None

    def tensor(self, parameter: str) -> Tensor | None:
        """The tensor that a parameter is given; None where that is none."""
        node = self.given.get(parameter)
        name = self._tensor_name(node) if node is not None else ""
        return self.tensors.get(name) if name else None

    def shape(self, parameter: str) -> list[str | None]:
        """Sizes of the tensor of a parameter; empty where nothing is known."""
        node = self.given.get(parameter)
        name = self._tensor_name(node) if node is not None else ""
        return self.tensors.whole(name) if name else []

    def dtype(self, parameter: str) -> str:
        """Type of the tensor of a parameter; '' where the file does not say it."""
        node = self.given.get(parameter)
        return self.tensors.dtype(self._tensor_name(node), "") if node is not None else ""

    def gives_none(self, parameter: str) -> bool:
        """Whether the launch gives None for a parameter."""
        node = self.given.get(parameter)
        return isinstance(node, ast.Constant) and node.value is None

    def value(self, parameter: str) -> str | None:
        """Expression of what a parameter is given; None where it is given nothing.

        Raises
        ------
        NotConstant
            Where the language has no word for it.
        """
        node = self.given.get(parameter)
        return None if node is None else said(node, self.known)

    def constant(self, node: ast.expr | None) -> Any:
        """Value of an expression of the host; None where it is no constant."""
        for _ in range(DEEPEST):
            if not isinstance(node, ast.Name):
                break
            node = self._assigned.get(node.id, self._defaults.get(node.id, node))
        try:
            return None if node is None else self._constants.value(node)
        except NotConstant:
            return None

    def is_own(self, node: ast.expr | None) -> bool:
        """Whether an expression is a parameter of the host's function."""
        return isinstance(node, ast.Name) and node.id in self._defaults

    def grid(self) -> list[str]:
        """Sizes of the grid.

        Raises
        ------
        NotConstant
            Where the language has no word for one.
        """
        node = self.grid_node
        owner = ""
        if isinstance(node, ast.Name) and node.id in self._functions:
            function = self._functions[node.id]
            owner = function.args.args[0].arg if function.args.args else ""
            returned = [one for one in ast.walk(function) if isinstance(one, ast.Return)]
            node = returned[-1].value if returned else None
        for _ in range(DEEPEST):
            if not isinstance(node, ast.Name) or node.id not in self._assigned:
                break
            node = self._assigned[node.id]
        if isinstance(node, ast.Lambda):
            owner = node.args.args[0].arg if node.args.args else ""
            node = node.body
        if node is None:
            raise NotConstant(1, "the grid is not read")
        parts = node.elts if isinstance(node, ast.Tuple | ast.List) else [node]

        def known(part: ast.expr) -> str | None:
            match part:
                case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str(key))):
                    return key if name == owner else self.known(part)
            return self.known(part)

        return [said(part, known) for part in parts]

    def give_size(self, stride: str, size: str) -> None:
        """Size of the dimension whose stride a parameter is, where the host does not say it."""
        place = stride_of(self.given.get(stride, ast.Constant(0)))
        tensor = self.tensors.get(place[0]) if place is not None else None
        if place is None or place[1] is None or tensor is None or tensor.like:
            return
        rank = len(tensor.shape())
        given = {one % rank for one in tensor.sizes}
        if -rank <= place[1] < rank and place[1] % rank not in given:
            tensor.sizes[place[1]] = size

    def known(self, node: ast.expr) -> str | None:
        """What a name, a size or a stride of the host stands for."""
        return self._known(node, 0)

    # Reading

    def _read_function(self, function: ast.FunctionDef, call: ast.Call) -> None:
        arguments = function.args
        listed = [*arguments.posonlyargs, *arguments.args]
        self._defaults = {one.arg: None for one in (*listed, *arguments.kwonlyargs)}
        backwards = zip(reversed(listed), reversed(arguments.defaults), strict=False)
        self._defaults |= {one.arg: value for one, value in backwards}
        for one, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            self._defaults[one.arg] = value
        statements = [one for one in ast.walk(function) if isinstance(one, ast.stmt)]
        for node in statements:
            if isinstance(node, ast.Assert):
                self._equal(node.test)
        tests = {
            id(inner): node.test
            for node in statements
            if isinstance(node, ast.If)
            for inner in node.body
        }
        for node in sorted(statements, key=lambda one: one.lineno):
            if node.lineno > call.lineno:
                break
            match node:
                case ast.FunctionDef(name=name):
                    self._functions[name] = node
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if (
                    id(node) in tests and name in self._assigned
                ):
                    chosen = ast.IfExp(tests[id(node)], value, self._assigned[name])
                    self._assigned[name] = ast.copy_location(chosen, value)
                case ast.Assign(targets=[*targets], value=value):
                    for target in targets:
                        self._assign(target, value)
                case ast.AnnAssign(target=target, value=value) if value is not None:
                    self._assign(target, value)

    def _equal(self, test: ast.expr) -> None:
        """Names of sizes that the host asserts to be equal: the first stands for all."""
        for node in ast.walk(test):
            if isinstance(node, ast.Compare) and all(isinstance(op, ast.Eq) for op in node.ops):
                sides = [node.left, *node.comparators]
                first, *others = [shape_of(one) for one in sides]
                for other in filter(None, others if first else []):
                    self.tensors.setdefault(first, Tensor())
                    self.tensors.setdefault(other, Tensor()).like = first
                names = [one.id for one in sides if is_name(one)]
                first = self._same.get(names[0], names[0]) if names else ""
                self._same |= dict.fromkeys(names[1:], first)

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        owner = shape_of(value)
        match target:
            case ast.Tuple(elts=parts) if owner:
                tensor = self.tensors.setdefault(owner, Tensor())
                tensor.rank, tensor.is_whole = len(parts), True
                for place, part in enumerate(parts):
                    if isinstance(part, ast.Name) and part.id.strip("_"):
                        tensor.sizes[place] = self._symbol(part.id)
            case ast.Tuple(elts=parts) if isinstance(value, ast.Tuple):
                for part, each in zip(parts, value.elts, strict=False):
                    self._assign(part, each)
            case ast.Name(id=name):
                self._assign_name(name, value)

    def _assign_name(self, name: str, value: ast.expr) -> None:
        size = size_of(value)
        if size is not None:
            owner, place = size
            tensor = self.tensors.setdefault(owner, Tensor())
            if place is None:
                tensor.length = tensor.length or self._symbol(name)
            elif place not in tensor.sizes:
                tensor.sizes[place] = self._symbol(name)
                return
        elif made := made_tensor(value, self._constants):
            sizes, dtype = made[1:]
            tensor = self.tensors.setdefault(name, Tensor())
            tensor.typed_like = typed_like(value, self._assigned)
            tensor.dtype = "" if tensor.typed_like else dtype or tensor.dtype
            if isinstance(sizes, str):
                tensor.like = sizes if sizes != name else ""
                return
            tensor.made_of = list(sizes)
            tensor.rank, tensor.is_whole = max(tensor.rank, len(sizes)), bool(sizes)
            return
        elif (view := viewed_by(value)) and not self.tensors.get(view[0], Tensor()).sizes:
            viewed, sizes = view
            tensor = self.tensors.setdefault(name, Tensor())
            if viewed != name:
                self.tensors.setdefault(viewed, Tensor()).like = name
            if sizes:
                tensor.made_of, tensor.rank, tensor.is_whole = sizes, len(sizes), True
            return
        self._assigned[name] = value

    def _make_sizes(self) -> None:
        """Sizes of tensors that the host makes, once all names are known."""
        for tensor in self.tensors.values():
            for place, node in enumerate(tensor.made_of):
                if integer(node) == -1:
                    continue
                try:
                    tensor.sizes.setdefault(place, said(node, self.known))
                except NotConstant:
                    continue

    def _symbol(self, name: str) -> str:
        """Problem parameter for a name of the host."""
        found = self._same.get(name, name).strip("_") or "n"
        found = f"{found}_size" if found in self._taken else found
        self._symbols.add(name)
        return found

    def _ranks(self) -> None:
        """Least ranks, from the strides and sizes that the launch asks for."""
        for node in self.given.values():
            for each in ast.walk(node):
                for found in (size_of(each), stride_of(each)):
                    if found is not None and found[1] is not None:
                        tensor = self.tensors.setdefault(found[0], Tensor())
                        tensor.rank = max(tensor.rank, found[1] + 1, -found[1])
                # Who passes the stride of rows has columns, too.
                owner, place = stride_of(each) or ("", None)
                tensor = self.tensors.get(owner, Tensor(is_whole=True))
                if place == 0 and not (tensor.is_whole or tensor.length or tensor.like):
                    tensor.rank = max(tensor.rank, 2)

    def _name_sizes(self) -> None:
        """Sizes that the launch asks for without a name have that of the parameter."""
        for parameter, node in self.given.items():
            size = size_of(node)
            if size is None:
                continue
            tensor = self.tensors.setdefault(size[0], Tensor())
            if size[1] is None:
                tensor.length = tensor.length or self._symbol(parameter)
            elif self.tensors.size(size[0], size[1]) is None:
                tensor.sizes[size[1]] = self._symbol(parameter)

    def _types(self, tree: ast.Module) -> None:
        """Types of tensors of the same names that the file makes elsewhere, as in its tests."""
        for node in ast.walk(tree):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    made = made_tensor(value, self._constants)
                    tensor = self.tensors.get(name) or (
                        Tensor() if name in self._defaults else None
                    )
                    if made is not None and tensor is not None:
                        self.tensors.setdefault(name, tensor)
                        tensor.dtype = tensor.dtype or ("" if tensor.typed_like else made[2])

    # Meaning

    def _tensor_name(self, node: ast.expr) -> str:
        """Name of a tensor: itself, or what ``view``, ``contiguous`` and the like are made of."""
        for _ in range(DEEPEST):
            match node:
                case ast.Name(id=name) if name in self.tensors:
                    return name
                case ast.Name(id=name) if name in self._assigned:
                    node = self._assigned[name]
                case ast.Call(func=ast.Attribute(attr=attr), args=[first, *_]) if (
                    attr in LIKE and attr.endswith("_like")
                ):
                    node = first
                case ast.Call(func=ast.Attribute(value=value, attr=attr)) if attr in (
                    *LIKE, "view", "reshape", "to", "cuda", "flatten",
                ):  # fmt: skip
                    node = value
                case _:
                    return ""
        return ""

    def _known(self, node: ast.expr, depth: int) -> str | None:
        if depth > DEEPEST:
            return None
        if (size := size_of(node)) is not None:
            owner, place = size
            if place is not None:
                return self.tensors.size(owner, place)
            return self.tensors.length(owner)
        if (stride := stride_of(node)) is not None:
            return self.tensors.stride(*stride)
        match node:
            case ast.Subscript(value=ast.Name(id=name), slice=index) if owner := shape_of(
                self._assigned.get(name, index)
            ):
                dimension = integer(index)
                return None if dimension is None else self.tensors.size(owner, dimension)
            case ast.Name(id=name) if name in self._symbols:
                return self._symbol(name)
            case ast.Name(id=name) if name in self._assigned:
                try:
                    return said(self._assigned[name], lambda one: self._known(one, depth + 1))
                except NotConstant:
                    # A constexpr that is given the same, such as the number of SMs.
                    same = (key for key, one in self.given.items() if is_name(one, name))
                    if (parameter := next(same, None)) is None or parameter not in self._taken:
                        raise
                    return parameter
            case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr="element_size")):
                kind = self.tensors.dtype(owner, self._usual_type)
                return str(np.dtype(kind).itemsize) if kind in SIZED else None
            case ast.Name(id=name) if name in self._defaults:
                text = literal(self.constant(node))
                return text or (None if name in self.tensors else self._symbol(name))
            case ast.Name():
                return literal(self.constant(node))
        return None

    def complete(self) -> dict[str, str]:
        """Give sizes that the host does not say; returns tensors with a question."""
        return complete(self.tensors, self._symbol, self._make_sizes)
