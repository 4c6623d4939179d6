"""What static evaluation of a Python file knows: names, functions, configurations of Triton."""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from launchwise.base.arithmetic import FUNCTIONS


class NotConstant(Exception):
    """A value that the file alone does not tell.

    Parameters
    ----------
    line
        Of the file.
    said
        What stands there.
    """

    def __init__(self, line: int, said: str) -> None:
        super().__init__(said)
        self.line, self.said = line, said


@dataclass(frozen=True)
class Dotted:
    """Something that is imported, such as ``triton.language.float16``."""

    name: str

    @property
    def last(self) -> str:
        """The name after the last dot."""
        return self.name.rpartition(".")[2]


@dataclass(frozen=True)
class Function:
    """A function of the file, or a lambda."""

    node: ast.FunctionDef | ast.Lambda
    scope: Scope

    @property
    def parameters(self) -> list[str]:
        """Names of its parameters by place."""
        return [each.arg for each in (*self.node.args.posonlyargs, *self.node.args.args)]


@dataclass(frozen=True)
class Config:
    """A ``triton.Config``: values of constexprs, and the options that it states."""

    line: int
    kwargs: Mapping[str, Any]
    options: Mapping[str, Any]
    hook: Any = None


CONFIG_OPTIONS: Mapping[str, Any] = {
    "num_warps": 4,
    "num_stages": 3,
    "num_ctas": 1,
    "maxnreg": None,
}
"""Options of ``triton.Config`` in their order, to what one that states none has."""


@dataclass(frozen=True)
class Unknown:
    line: int
    said: str


@dataclass
class Scope:
    """Names of a function, above those of the file."""

    outer: Scope | None = None
    names: dict[str, Any] = field(default_factory=dict)

    def find(self, name: str, line: int) -> Any:
        """What a name is bound to; raises :class:`NotConstant`."""
        scope: Scope | None = self
        while scope is not None and name not in scope.names:
            scope = scope.outer
        if scope is None:
            if name in BUILTINS:
                return Dotted(name)
            raise NotConstant(line, f"{name} is not known")
        value = scope.names[name]
        if isinstance(value, Unknown):
            raise NotConstant(value.line, value.said)
        return value


BUILTINS: Mapping[str, Callable[..., Any]] = {
    **{"len": len, "min": min, "max": max, "sum": sum, "abs": abs, "int": int, "bool": bool},
    **{"float": float, "any": any, "all": all, "round": round, "sorted": sorted, "set": set},
    **{"tuple": tuple, "list": list, "dict": dict, "range": range, "zip": zip},
    **{"enumerate": enumerate, "reversed": reversed, "filter": filter, "map": map},
}
CALLED: Mapping[str, Callable[..., Any]] = {
    **BUILTINS,
    "itertools.product": itertools.product,
    "itertools.chain": itertools.chain,
    "math.ceil": math.ceil,
    "math.floor": math.floor,
    "math.log2": math.log2,
    "triton.cdiv": FUNCTIONS["ceil_div"],
    "triton.next_power_of_2": FUNCTIONS["next_power_of_2"],
    "torch.cuda.is_available": lambda: True,
    "os.getenv": lambda name, default=None: default,
}
TARGET = "get_current_target"
"""Function of Triton's driver that names the backend."""

METHODS: Mapping[type[Any], tuple[str, ...]] = {
    dict: ("items", "keys", "values", "get", "copy", "update"),
    list: ("append", "extend", "copy", "insert"),
    set: ("add", "copy"),
}


@dataclass(frozen=True)
class Returned:
    value: Any


def config_of(line: int, given: Sequence[Any], named: Mapping[str, Any]) -> Config:
    places = ("kwargs", *CONFIG_OPTIONS, "pre_hook")
    taken = {**dict(zip(places, given, strict=False)), **named}
    kwargs = taken.pop("kwargs", {})
    if not isinstance(kwargs, Mapping) or not all(isinstance(each, str) for each in kwargs):
        raise NotConstant(line, "triton.Config takes a dict of constexprs first")
    hook = taken.pop("pre_hook", None)
    options = {name: taken[name] for name in CONFIG_OPTIONS if name in taken}
    return Config(line, dict(kwargs), options, hook)


def imported(module: str, name: str) -> Dotted:
    """A name that is imported; projects hand Triton on under its usual names."""
    usual = {"triton": "triton", "tl": "triton.language"}
    own = module.split(".")[0] in ("triton", "itertools", "math", "os", "torch")
    return Dotted(usual[name] if name in usual and not own else f"{module}.{name}")


def bound_in(statement: ast.stmt) -> set[str]:
    """Names that a statement binds, or whose list it changes."""
    found = {
        node.id
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    }
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = node.func.value
            if isinstance(owner, ast.Name) and node.func.attr in ("append", "extend", "update"):
                found.add(owner.id)
    return found


def short(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
