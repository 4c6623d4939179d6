"""Stand-ins for Triton, PyTorch, CuPy and other modules, and builtins that take values."""

from __future__ import annotations

import builtins
import inspect
import math
import re
import sys
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

from launchwise.cli.new.python import device, tensors
from launchwise.cli.new.python.facts import Code, Literal
from launchwise.cli.new.python.tensors import Places, literal, shape_of, symbol
from launchwise.cli.new.python.values import (
    ATTRIBUTES,
    MADE_OF,
    RUNS,
    TRACES,
    Base,
    Launched,
    NotKnown,
    Value,
    called,
    combined,
    line_now,
    value_of,
)

# Kernels of Triton

CONFIG_OPTIONS: Mapping[str, Any] = {
    **{"num_warps": 4, "num_stages": 3, "num_ctas": 1, "maxnreg": None}
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
    def __init__(self, kernel: Kernel, grid: Any, given: tuple[Any, ...], named: Any) -> None:
        self.kernel, self.line = kernel, line_now()
        self.given = dict(zip(kernel.parameters, given, strict=False)) | named
        self.derived: dict[str, Any] = {}  # Constexprs of heuristics.
        self.notes: list[str] = []
        for name, rule in kernel.rules.items():
            try:
                own = {name: self.given[name]} if name in self.given else {}
                self.derived[name] = rule(self._meta() | own)
            except (Exception, SystemExit) as error:
                line = getattr(error, "line", 0) or rule.__code__.co_firstlineno
                why = f"the heuristic of {name}: {error or type(error).__name__}"
                self.notes.append(f"line {line}: {why}: write it under macros")
        self.given |= self.derived
        self.grid: list[Any] = []
        self.problem: NotKnown | None = None
        try:
            while callable(grid) and not isinstance(grid, Value):
                grid = grid(self._meta())
            self.grid = list(grid) if isinstance(grid, tuple | list) else [grid]
        except NotKnown as error:
            self.problem = error

    def _meta(self) -> dict[str, Any]:
        """What a grid and heuristics are given: names in the place of constexprs."""
        names = (*self.kernel.parameters, *CONFIG_OPTIONS)
        free = {name: symbol(name, "param") for name in names}
        return free | {name: self.given[name] for name in self.kernel.given if name in self.given}


class Kernel(Base):
    """A function of Triton."""

    def __init__(self, fn: FunctionType) -> None:
        self.fn, self.line, self.__name__ = fn, fn.__code__.co_firstlineno, fn.__name__
        found = inspect.signature(fn).parameters
        self.parameters = list(found)
        self.defaults: dict[str, Literal] = {
            name: one.default if isinstance(one.default, bool | int | float | str) else None
            for name, one in found.items()
            if one.default is not one.empty
        }
        self.constexprs = [name for name, one in found.items() if _is_constexpr(one.annotation)]
        self.given = [name for name in self.parameters if name not in self.constexprs]
        self.ends_runs = False  # A launch of it is what runs are made for.
        # Calls that made its decorators: name, arguments, line.
        self.tuners: list[tuple[str, tuple[Any, ...], dict[str, Any], int]] = []

    @property
    def rules(self) -> dict[str, Any]:
        """Constexprs to functions of ``@triton.heuristics``."""
        found: dict[str, Any] = {}
        for name, given, named, _ in self.tuners:
            rules: Any = next(iter([*given, *named.values()]), {})
            found |= rules if name == "heuristics" and isinstance(rules, dict) else {}
        return found

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        def launch(*given: Any, **named: Any) -> None:
            RUNS[-1].launches.append(Launch(self, grid, given, named))
            if self.ends_runs:
                raise Launched

        return launch

    def __call__(self, *given: Any, **named: Any) -> Any:
        return self.fn(*given, **named)

    def warmup(self, *given: Any, **named: Any) -> Kernel:
        """What is compiled is launched like the function."""
        return self


def _is_constexpr(annotation: Any) -> bool:
    text = annotation if isinstance(annotation, str) else getattr(annotation, "_name", "")
    return str(text).rpartition(".")[2] == "constexpr"


# Kernels of CuPy

CODES: list[Code] = []  # CUDA texts in the order in which they are given


def _text(value: Any, what: str) -> str:
    if isinstance(value, Value):
        raise NotKnown(0, f"{what} is {value._said()}, which is known only when it runs")
    if not isinstance(value, str):
        raise NotKnown(0, f"{what} is no text, but {value!r:.40}")
    if MADE_OF in value:
        part = value.split(MADE_OF)[1]
        raise NotKnown(0, f"{what} is made of {part}, which is known only when it runs")
    if "\0" in value or re.search("[\ud800-\udfff]", value):
        raise NotKnown(0, f"{what} holds a character that no file of text has")
    return value


def _keep(code: Any, names: Any, options: Any, named: dict[str, Any]) -> None:
    found = Code(line_now())
    if any(one.line == found.line and one.text == code for one in CODES):
        return
    CODES.append(found)
    try:
        found.names = [_text(one, "name") for one in names or ()]
        if named.get("path") is not None:
            raise NotKnown(0, "path names a file: give that one to --from")
        if named.get("enable_cooperative_groups"):
            raise NotKnown(0, "kernels are never launched cooperatively: split it in several")
        if isinstance(options, Value):
            _text(options, "options")
        found.options = [_text(one, "options") for one in options or ()]
        found.text = _text(code, "code")
    except NotKnown as error:
        found.refused = str(error)


def _raw_kernel(
    owner: Any, code: Any = None, name: Any = None, options: Any = (), **named: Any
) -> Any:
    _keep(code, [name], options, named)
    return NotImplemented


def _raw_module(owner: Any, code: Any = None, *given: Any, **named: Any) -> Any:
    _keep(code, named.get("name_expressions"), named.get("options"), named)
    return NotImplemented


# Calls


def _call(function: Value, *given: Any, **named: Any) -> Any:
    """What a call of an unknown function returns."""
    name, owner = function._name, function._owner
    calls = device.CALLS if TRACES else tensors.CALLS
    known = calls.get(name) or _COMMON_CALLS.get(name)
    if known is not None:
        found = known(owner if owner is not None else function, *given, **named)
        if found is not NotImplemented:
            return found
    if TRACES:
        return device.others(owner, name, given, named)
    taken = given[0] if len(given) == 1 and not named else None
    if isinstance(taken, Kernel):
        tuner = owner._name if owner is not None else ""
        taken.tuners.append((tuner, *function._given, function._line))
        return taken
    if isinstance(taken, FunctionType | type | staticmethod | classmethod):
        return taken
    values = [*map(value_of, (*given, *named.values()))]
    keys = [*("" for _ in given), *(f"{key}=" for key in named)]
    text = ", ".join(f"{key}{one._text}" for key, one in zip(keys, values, strict=True))
    made = Value(f"{function._text}({text})", "result", values, owner=function)
    made._source, made._given = made, (given, named)
    return made


Value.on_call = staticmethod(_call)


def _cdiv(owner: Any, one: Any, other: Any, *more: Any, **named: Any) -> Any:
    if all(isinstance(each, int) for each in (one, other)):
        return -(-one // other)
    if TRACES:
        TRACES[-1].count(value_of(one), value_of(other))
    return called("ceil_div", one, other)


def _next_power(owner: Any, n: Any, **named: Any) -> Any:
    return 1 << (n - 1).bit_length() if isinstance(n, int) else called("next_power_of_2", n)


def _jit(owner: Any, fn: Any = None, **named: Any) -> Any:
    if fn is None:
        return lambda function: _jit(owner, function)
    return Kernel(fn) if isinstance(fn, FunctionType) else fn


_COMMON_CALLS: dict[str, Callable[..., Any]] = {
    **{"cdiv": _cdiv, "next_power_of_2": _next_power, "jit": _jit},
    "Config": lambda owner, *given, **named: Config(*given, **named),
    "constexpr": lambda owner, value=None: value,
    "is_available": lambda owner: True,
    "do_bench": lambda owner, function, *given, **named: function(),
    **{"RawKernel": _raw_kernel, "RawModule": _raw_module},
}

ATTRIBUTES |= {
    "Tensor": lambda value: Value,
    "hip": lambda value: None if value._name == "version" else NotImplemented,
    "backend": lambda value: "cuda" if "current_target" in str(value) else NotImplemented,
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


def _computed(plain: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A function of numbers that takes values, too."""

    def function(*given: Any, **named: Any) -> Any:
        listed = given[0] if len(given) == 1 and isinstance(given[0], tuple | list) else given
        if not named and any(isinstance(one, Value) for one in listed):
            return called(name, *listed)
        return plain(*given, **named)

    return function


class _Math:
    """``math``."""

    def __getattr__(self, name: str) -> Any:
        plain = getattr(math, name)
        return _computed(plain, name) if name in ("ceil", "floor", "sqrt", "log2") else plain


def _range(*given: Any) -> Any:
    return TRACES[-1].loop(*given) if TRACES else range(*given)


def _len(one: Any) -> Any:
    return shape_of(one).size(0) if isinstance(one, Value) else len(one)


class IsGiven(Value):
    """``x is not None``: whether an array is given."""


def _is_none(value: Any, wanted: bool) -> Any:
    """``value is None``, or ``is not`` where not ``wanted``."""
    known = (value is None) == wanted
    return IsGiven(repr(int(known)), "constant", known=known)


def _is_in(value: Any, several: Any, wanted: bool) -> Any:
    """``value in several``, or ``not in``."""
    if isinstance(value, Value) and value._known is None and not isinstance(several, Value):
        return combined("in" if wanted else "not in", None, value, value_of([*several]))
    return (value in several) == wanted


def _named(names: str | list[str], value: Any) -> Any:
    """A value that the file binds to a name, or to several."""
    if isinstance(names, list):
        if isinstance(value, Places) and "*" not in names:
            value = value.shape.of_rank(len(names))
        elif isinstance(value, Value):
            value = [value[place] for place in range(len(names))]
        elif not isinstance(value, tuple | list):
            value = list(value)
        is_plain = len(value) == len(names) and "*" not in names
        return [_named(*pair) for pair in zip(names, value, strict=True)] if is_plain else value
    if type(value) is int and not TRACES:
        return literal(names, value)
    if isinstance(value, Value) and not TRACES:
        found = RUNS[-1].symbols.get(value._text)
        if found is not None and found.kind in ("size", "length"):
            found.called = found.called or names.strip("_")
    return value


def _import(name: str, space: Any = None, own: Any = None, parts: Any = (), level: int = 0) -> Any:
    """Values in the place of all modules but Python's own."""
    top = name.partition(".")[0]
    if level == 0 and top == "math":
        return _Math()
    if level == 0 and top in sys.stdlib_module_names:
        return __import__(name, space, own, parts, level)
    return Value(name, name=name.rpartition(".")[2]) if parts and not level else Value(top)


class Builtins(dict[str, Any]):
    """Python's builtins; a name that nothing defines has a value."""

    def __missing__(self, name: str) -> Value:
        if name.startswith("__"):
            raise KeyError(name)
        self[name] = Value(name)
        return self[name]


BUILTINS = Builtins({
    **vars(builtins),
    **{"int": _Kinds("int", (int,), {}), "float": _Kinds("float", (float,), {})},
    **{"range": _range, "len": _len, "__import__": _import},
    **{one.__name__: _computed(one, one.__name__) for one in (min, max, abs)},
    **{"is_none!": _is_none, "is_in!": _is_in, "named!": _named},
    "print": lambda *given, **named: None,
})  # fmt: skip
