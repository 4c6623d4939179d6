"""Stand-ins for Triton, PyTorch, CuPy, and any other module that is missing."""

from __future__ import annotations

import ast
import builtins
import importlib.abc
import importlib.machinery
import inspect
import math
import sys
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

from launchwise.cli.new.python.arrays import HOST_CALLS, NOW, Places, Symbol, array_of
from launchwise.cli.new.python.device import DEVICE_CALLS, DEVICE_OTHERS
from launchwise.cli.new.python.values import (
    ATTRIBUTES,
    TRACES,
    NotKnown,
    Value,
    called,
    compared,
    line_now,
    node_of,
    value_of,
)

CONFIG_OPTIONS: Mapping[str, Any] = {
    "num_warps": 4,
    "num_stages": 3,
    "num_ctas": 1,
    "maxnreg": None,
}
"""Options of ``triton.Config`` in their order, to what one that states none has."""


class Config:
    """``triton.Config``."""

    def __init__(self, kwargs: Any = None, *given: Any, **named: Any) -> None:
        if not isinstance(kwargs or {}, dict):
            raise NotKnown(line_now(), "triton.Config takes a dict of constexprs first")
        stated = dict(zip((*CONFIG_OPTIONS, "pre_hook"), given, strict=False)) | named
        self.line = line_now()
        self.kwargs = dict(kwargs or {})
        self.pre_hook = stated.pop("pre_hook", None)
        self.stated = {name: stated[name] for name in CONFIG_OPTIONS if name in stated}
        self.__dict__ |= {**CONFIG_OPTIONS, **self.stated}


class Launch:
    """A launch of a kernel.

    Parameters
    ----------
    given
        Parameters and options to what they are given.
    """

    def __init__(self, kernel: Kernel, grid: Any, given: tuple[Any, ...], named: Any) -> None:
        self.kernel, self.line = kernel, line_now()
        self.given = dict(zip(kernel.parameters, given, strict=False)) | named
        self.grid = grid
        self.problem: NotKnown | None = None
        try:
            while callable(grid) and not isinstance(grid, Value):
                meta = {name: self._meta(name) for name in (*kernel.parameters, *CONFIG_OPTIONS)}
                grid = grid(meta)
            self.grid = list(grid) if isinstance(grid, tuple | list) else [grid]
        except NotKnown as error:
            self.problem, self.grid = error, []

    def _meta(self, name: str) -> Any:
        known = self.given.get(name)
        if known is not None and name not in self.kernel.constexprs:
            return known
        return NOW[-1].symbol(name, Symbol("param"))


class Launched(BaseException):
    """The launch that a run is made for."""


LAUNCHES: list[Launch] = []
"""Launches of the run that goes on."""

WANTED: list[Kernel] = []
"""The kernel whose launch ends a run."""


class Kernel:
    """A function of Triton.

    Parameters
    ----------
    line
        Of its ``def``.
    tuners
        Calls that made its decorators: name, arguments, line.
    """

    def __init__(self, fn: FunctionType, line: int) -> None:
        self.fn, self.line, self.__name__ = fn, line, fn.__name__
        found = inspect.signature(fn).parameters
        self.parameters = list(found)
        self.defaults = {
            name: one.default for name, one in found.items() if one.default is not one.empty
        }
        self.constexprs = [name for name, one in found.items() if _is_constexpr(one.annotation)]
        self.tuners: list[tuple[str, tuple[Any, ...], dict[str, Any], int]] = []

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        def launch(*given: Any, **named: Any) -> None:
            LAUNCHES.append(Launch(self, grid, given, named))
            if self in WANTED:
                raise Launched

        return launch

    def __call__(self, *given: Any, **named: Any) -> Any:
        return self.fn(*given, **named)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Value(ast.Name(name))

    def warmup(self, *given: Any, **named: Any) -> Kernel:
        """What is compiled is launched like the function."""
        return self


def _is_constexpr(annotation: Any) -> bool:
    text = annotation if isinstance(annotation, str) else getattr(annotation, "_name", "")
    return str(text).rpartition(".")[2] == "constexpr"


# Calls


def _call(function: Value, *given: Any, **named: Any) -> Any:
    """What a call of an unknown function returns."""
    name, owner = function._name, function._owner
    calls = DEVICE_CALLS if TRACES else HOST_CALLS
    known = calls.get(name) or COMMON_CALLS.get(name)
    if known is not None:
        found = known(owner if owner is not None else function, *given, **named)
        if found is not NotImplemented:
            return found
    if TRACES:
        return DEVICE_OTHERS(owner, name, given, named)
    taken = given[0] if len(given) == 1 and not named else None
    if isinstance(taken, Kernel):
        taken.tuners.append(
            (owner._name if owner is not None else "", *function._given, function._line)
        )
        return taken
    if isinstance(taken, FunctionType | type | staticmethod | classmethod):
        return taken
    node = ast.Call(function._node, [node_of(one) for one in given], [
        ast.keyword(key, node_of(one)) for key, one in named.items()
    ])  # fmt: skip
    made = Value.of(node, *map(value_of, (*given, *named.values())))
    made._owner, made._source, made._given = function, made, (given, named)
    CALLS.append(function)
    return made


CALLS: list[Value] = []
"""Functions that are called and unknown, such as ``x.zero_``."""


def _compare(sign: type[ast.AST], left: Value, right: Value) -> None:
    if TRACES:
        TRACES[-1].compared(sign, left, right)


Value.on_call = staticmethod(_call)
Value.on_compare = staticmethod(_compare)


def _cdiv(owner: Any, one: Any, other: Any, *more: Any, **named: Any) -> Any:
    if all(isinstance(each, int) for each in (one, other)):
        return -(-one // other)
    if TRACES:
        TRACES[-1].divided(value_of(one), value_of(other))
    return called("ceil_div", one, other)


def _next_power(owner: Any, n: Any, **named: Any) -> Any:
    return 1 << (n - 1).bit_length() if isinstance(n, int) else called("next_power_of_2", n)


def _jit(owner: Any, fn: Any = None, **named: Any) -> Any:
    if fn is None:
        return lambda function: _jit(owner, function)
    return Kernel(fn, fn.__code__.co_firstlineno) if isinstance(fn, FunctionType) else fn


def _computed(plain: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A function of numbers that takes values, too."""

    def function(*given: Any, **named: Any) -> Any:
        listed = given[0] if len(given) == 1 and isinstance(given[0], tuple | list) else given
        if not named and any(isinstance(one, Value) for one in listed):
            return called(name, *listed)
        return plain(*given, **named)

    return function


MATH = {name: _computed(getattr(math, name), name) for name in ("ceil", "floor", "sqrt", "log2")}
"""Functions of ``math``."""

COMMON_CALLS: dict[str, Callable[..., Any]] = {
    **{"cdiv": _cdiv, "next_power_of_2": _next_power, "jit": _jit},
    "Config": lambda owner, *given, **named: Config(*given, **named),
    "constexpr": lambda owner, value=None: value,
    "is_available": lambda owner: True,
    "do_bench": lambda owner, function, *given, **named: function(),
}


# Builtins


class _Kinds(type):
    """Of a class in the place of ``int`` or ``float``, which take values, too."""

    def __instancecheck__(cls, one: Any) -> bool:
        return isinstance(one, cls.__mro__[1] | Value)

    def __call__(cls, *given: Any, **named: Any) -> Any:
        if given and isinstance(given[0], Value) and given[0]._known is None:
            return called(cls.__name__, given[0])
        plain = cls.__mro__[1]
        return plain(*given, **named)


_Int, _Float = _Kinds("int", (int,), {}), _Kinds("float", (float,), {})


def _range(*given: Any) -> Any:
    if TRACES:
        return TRACES[-1].loop(*given)
    return range(*given)


def _len(one: Any) -> Any:
    return array_of(one).size(0) if isinstance(one, Value) else len(one)


class Given(Value):
    """``x is not None``: whether an array is given."""


def is_none(value: Any, wanted: bool) -> Any:
    """``value is None``, or ``is not`` where not ``wanted``."""
    return Given(ast.Constant(int((value is None) == wanted)), known=(value is None) == wanted)


def is_in(value: Any, several: Any, wanted: bool) -> Any:
    """``value in several``, or ``not in``."""
    if isinstance(value, Value) and value._known is None and not isinstance(several, Value):
        return compared(ast.In if wanted else ast.NotIn, "", value, value_of([*several]))
    return (value in several) == wanted


def named(names: str | list[str], value: Any) -> Any:
    """A value that the file binds to a name, or to several."""
    if isinstance(names, list):
        if isinstance(value, Places) and "*" not in names:
            value = value.array.of_rank(len(names))
        elif isinstance(value, Value):
            value = [value[place] for place in range(len(names))]
        elif not isinstance(value, tuple | list):
            value = list(value)
        is_plain = len(value) == len(names) and "*" not in names
        return [named(*pair) for pair in zip(names, value, strict=True)] if is_plain else value
    if type(value) is int and not TRACES:
        return NOW[-1].symbol(f"{names}={value}", Symbol("literal", known=value))
    if type(value) is Value and isinstance(value._node, ast.Name) and not TRACES:
        symbol = NOW[-1].symbols.get(value._node.id)
        if symbol is not None and symbol.kind in ("size", "length") and names.strip("_"):
            NOW[-1].called.setdefault(value._node.id, names)
    return value


BUILTINS: dict[str, Any] = {
    **vars(builtins),
    **{"int": _Int, "float": _Float, "range": _range, "len": _len},
    **{one.__name__: _computed(one, one.__name__) for one in (min, max, abs)},
    **{"is_none!": is_none, "is_in!": is_in, "named!": named},
    "print": lambda *given, **named: None,
}


class MathModule:
    """``math``."""

    def __getattr__(self, name: str) -> Any:
        return MATH.get(name) or getattr(math, name)


# Modules


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives values in the place of all modules but Python's own."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """A stand-in."""
        if name.partition(".")[0] in sys.stdlib_module_names:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: Any) -> Any:
        """The value in its place."""
        return Value(ast.parse(spec.name, mode="eval").body)

    def exec_module(self, module: Any) -> None:
        """Nothing runs."""


ATTRIBUTES |= {
    "Tensor": lambda value: Value,
    "hip": lambda value: None if value._name == "version" else NotImplemented,
    "backend": lambda value: "cuda" if "current_target" in str(value) else NotImplemented,
}


def install() -> None:
    """Let imports find stand-ins."""
    sys.meta_path.insert(0, Finder())
