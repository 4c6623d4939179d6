"""What is wrong with a value of a hyper-parameter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from launchwise.base.declarations import UNREADABLE
from launchwise.base.errors import unknown

SEEDS = (0, 2**32 - 1)
"""Seeds that every library takes."""


TINY = 1e-6
"""As the smallest of a range: zero itself is not allowed."""


def misfit(
    name: str, value: Any, defaults: Mapping[str, Any], allowed: Mapping[str, Iterable[Any]]
) -> str:
    """What is wrong with a hyper-parameter; nothing if it fits.

    Parameters
    ----------
    defaults
        Hyper-parameters with their default values. Without an entry in ``allowed`` a value has the
        default's type; any value fits where the default is None or not known.
    allowed
        Hyper-parameter to alternatives: a value, or the smallest and largest of a range as a tuple,
        None where it has no end. A range of a hyper-parameter with an integer default holds
        integers.
    """
    if name not in defaults:
        return unknown("parameter", name, defaults)
    default = defaults[name]
    known = allowed.get(name) or ([SEEDS] if name == "seed" else None)
    if known is None:
        return "" if _is_like(value, default) else f"must be {_type_words(default)}, not {value!r}"
    whole = isinstance(default, int) and not isinstance(default, bool)
    for one in known:
        in_range = isinstance(one, tuple) and _is_within(value, one, whole)
        if in_range or (value == one and isinstance(value, bool) == isinstance(one, bool)):
            return ""
    if all(isinstance(one, str) for one in known):
        return unknown("value", value, known)
    *words, last = [_words(one, whole) for one in known]
    either = f"{', '.join(words)} or {last}" if words else last
    return f"must be {either}, not {value!r}"


def _is_like(value: Any, default: Any) -> bool:
    if default is None or default is UNREADABLE:
        return True
    if isinstance(default, bool) or isinstance(value, bool):
        return isinstance(value, bool) and isinstance(default, bool)
    if isinstance(default, float):
        return isinstance(value, int | float)
    return isinstance(value, type(default))


def _type_words(default: Any) -> str:
    words = {bool: "true or false", int: "an integer", float: "a number", str: "text"}
    return words.get(type(default), f"a {type(default).__name__}")


def _is_within(value: Any, limits: tuple[Any, Any], whole: bool) -> bool:
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
        return False
    low, high = limits
    return (low is None or value >= low) and (high is None or value <= high)


def _words(one: Any, whole: bool) -> str:
    if not isinstance(one, tuple):
        return {None: "null", True: "true", False: "false"}.get(one, str(one))
    low, high = one
    number = "an integer" if whole else "a number"
    least = "" if low is None else "above 0" if 0 < low <= TINY else f"of at least {low}"
    most = "" if high is None else f"of at most {high}"
    return f"{number} {' and '.join(each for each in (least, most) if each)}".strip()
