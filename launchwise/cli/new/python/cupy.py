"""Stand-ins for kernels of CuPy, which keep their CUDA texts and launches."""

from __future__ import annotations

import re
from typing import Any

from launchwise.cli.new.python.facts import Code
from launchwise.cli.new.python.values import MADE_OF, NotKnown, Value, line_now

CODES: list[Code] = []
"""CUDA texts in the order in which they are given."""

LAUNCHED: dict[str, tuple[list[int], int]] = {}
"""Kernels of CuPy to threads per block, and bytes of shared memory, of their first launch."""


class _RawKernel:
    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(
        self, grid: Any, block: Any, *given: Any, shared_mem: Any = 0, **named: Any
    ) -> None:
        try:
            *sizes, shared = (int.__index__(_known(one)) for one in (*block, shared_mem))
        except TypeError:
            return
        if 1 <= len(sizes) <= 3 and all(0 <= one < 1 << 31 for one in (*sizes, shared)):
            LAUNCHED.setdefault(self.name, (sizes, shared))


class _RawModule:
    def get_function(self, name: Any) -> _RawKernel:
        return _RawKernel(str(name))


def _known(value: Any) -> Any:
    return value._known if isinstance(value, Value) else value


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


def raw_kernel(
    owner: Any, code: Any = None, name: Any = None, options: Any = (), **named: Any
) -> Any:
    """``cupy.RawKernel``."""
    _keep(code, [name], options, named)
    return _RawKernel(str(name))


def raw_module(owner: Any, code: Any = None, *given: Any, **named: Any) -> Any:
    """``cupy.RawModule``."""
    _keep(code, named.get("name_expressions"), named.get("options"), named)
    return _RawModule()
