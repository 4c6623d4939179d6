"""Stand-ins for Triton, PyTorch, CuPy and other modules, and builtins that take values."""

from __future__ import annotations

import builtins
import math
import re
import sys
from collections.abc import Callable
from types import FunctionType, SimpleNamespace
from typing import Any

from launchwise.cli.new.python.kernels import Code, Config, Kernel
from launchwise.cli.new.python.tensors import CALLS, Places, shape_of
from launchwise.cli.new.python.values import (
    ATTRIBUTES,
    MADE_OF,
    RUNS,
    TRACES,
    NotKnown,
    Value,
    called,
    combined,
    line_now,
    value_of,
)

# Kernels of CuPy

CODES: list[Code] = []  # CUDA texts in the order in which they are given


def _text(value: Any, what: str) -> str:
    text = format(value) if isinstance(value, Value) else value
    if not isinstance(text, str):
        raise NotKnown(0, f"{what} is no text, but {value!r:.40}")
    if MADE_OF in text:
        part = text.split(MADE_OF)[1]
        raise NotKnown(0, f"{what} is made of {part}, which is known only when it runs")
    if "\0" in text or re.search("[\ud800-\udfff]", text):
        raise NotKnown(0, f"{what} holds a character that no file of text has")
    return text


def _keep(code: Any, names: Any, options: Any, named: dict[str, Any]) -> Any:
    """Keep the text of ``cupy.RawKernel`` or ``cupy.RawModule``, or why it cannot be taken."""
    found = Code(line_now())
    if any(one.line == found.line and one.text == code for one in CODES):
        return NotImplemented
    CODES.append(found)
    try:
        found.names = [_text(one, "name") for one in names or ()]
        if named.get("path") is not None:
            raise NotKnown(0, "path names a file: give that one to --from")
        if named.get("enable_cooperative_groups"):
            raise NotKnown(0, "kernels are never launched cooperatively: split it in several")
        listed = [options] if isinstance(options, Value) else options or ()
        found.options = [_text(one, "options") for one in listed]
        found.text = _text(code, "code")
    except NotKnown as error:
        found.refused = str(error)
    return NotImplemented


# Calls


def _call(function: Value, *given: Any, **named: Any) -> Any:
    """What a call of an unknown function returns."""
    name, owner = function._name, function._owner
    calls = TRACES[-1].calls if TRACES else CALLS
    known = calls.get(name) or _COMMON_CALLS.get(name)
    if known is not None:
        found = known(owner if owner is not None else function, *given, **named)
        if found is not NotImplemented:
            return found
    if TRACES:
        return TRACES[-1].other(name, owner, given, named)
    taken = given[0] if len(given) == 1 and not named else None
    if isinstance(taken, Kernel):
        tuner = owner._name if owner is not None else ""
        taken.tune(tuner, *function._given, function._line)
        return taken
    if isinstance(taken, FunctionType | type | staticmethod | classmethod):
        return taken
    made = called(function._text, *given, **named)
    made._sign, made._owner = "result", function
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
    "RawKernel": lambda owner, code=None, name=None, options=(), **named: _keep(
        code, [name], options, named
    ),
    "RawModule": lambda owner, code=None, *given, **named: _keep(
        code, named.get("name_expressions"), named.get("options"), named
    ),
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
    def function(*given: Any, **named: Any) -> Any:
        listed = given[0] if len(given) == 1 and isinstance(given[0], tuple | list) else given
        if not named and any(isinstance(one, Value) for one in listed):
            return called(name, *listed)
        return plain(*given, **named)

    return function


_MATH = SimpleNamespace(**vars(math))
for _name in ("ceil", "floor", "sqrt", "log2"):
    setattr(_MATH, _name, _computed(getattr(math, _name), _name))


def _range(*given: Any) -> Any:
    return TRACES[-1].loop(None, *given) if TRACES else range(*given)


def _len(one: Any) -> Any:
    return shape_of(one).size(0) if isinstance(one, Value) else len(one)


def _is_in(both: tuple[Any, Any], wanted: bool) -> Any:
    value, several = both
    if isinstance(value, Value) and value._known is None and not isinstance(several, Value):
        return combined("in" if wanted else "not in", None, value, value_of([*several]))
    return (value in several) == wanted


def _named(value: Any, names: str | tuple[str, ...]) -> Any:
    """A value that the file binds to a name, or to several; ``*``: to as many as there are."""
    if isinstance(names, tuple):
        if "*" in names:
            return value
        if isinstance(value, Places):
            value = value.shape.of_rank(len(names))
        elif isinstance(value, Value):
            value = [value[place] for place in range(len(names))]
        value = [*value]
        is_plain = len(value) == len(names)
        return [*map(_named, value, names)] if is_plain else value
    if type(value) is int and not TRACES:
        return Value(f"{names}={value}", "literal", known=value)
    if isinstance(value, Value) and not TRACES:
        found = RUNS[-1].symbols.get(value._text)
        if found is not None and found.kind in ("size", "length"):
            found.called = found.called or names.strip("_")
    return value


def _import(name: str, space: Any = None, own: Any = None, parts: Any = (), level: int = 0) -> Any:
    """Values in the place of all modules but Python's own."""
    top = name.partition(".")[0]
    if level == 0 and top == "math":
        return _MATH
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
    **{"is_in!": _is_in, "named!": _named},
    "print": lambda *given, **named: None,
})  # fmt: skip
