"""CUDA texts that a Python file gives to CuPy, read from its syntax: nothing of it is run."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from launchwise.base.errors import UserError
from launchwise.workloads.compiler_options import compiler_option
from launchwise.workloads.sources import source_text

MOST_BYTES = 256 << 10
"""Longest Python file, bytes: Python's own parser takes long, and cannot be stopped."""

_LINKS = 10
"""Most names that stand for one another."""

_MACRO = re.compile(r"(?:-D|--define-macro=)(?P<name>[A-Za-z_]\w*)(?:=(?P<value>[^\n\r\\]*))?")


@dataclass(frozen=True)
class RawCode:
    """CUDA text of a call of ``cupy.RawKernel`` or ``cupy.RawModule``.

    Parameters
    ----------
    line
        Of the call.
    text
        CUDA C++.
    names
        The kernel that the call names; for a module its name expressions.
    macros, options
        What the call gives to the compiler: ``-DNAME=VALUE``, and options of ``spec.yaml``.
    refused
        Why the text cannot be taken; empty where it can.
    """

    line: int
    text: str = ""
    names: tuple[str, ...] = ()
    macros: Mapping[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    refused: str = ""


@dataclass(frozen=True)
class RawLaunch:
    """The first launch of a kernel whose sizes are numbers: threads per block, and bytes."""

    block: tuple[int, ...]
    shared_bytes: int


class PythonFile:
    """Calls of a Python file.

    Parameters
    ----------
    path
        Of the file.

    Raises
    ------
    UserError
        When it cannot be read, is no Python, or is longer than :data:`MOST_BYTES`.
    """

    def __init__(self, path: Path) -> None:
        text = source_text(path, MOST_BYTES)
        try:
            with warnings.catch_warnings():
                # Texts of other languages hold backslashes.
                warnings.simplefilter("ignore")
                nodes = list(ast.walk(ast.parse(text)))
        except SyntaxError as error:
            raise UserError(path, f"line {error.lineno or 1}", f"no Python: {error.msg}") from error
        except (ValueError, RecursionError, MemoryError) as error:
            raise UserError(
                path, "", "cannot be read as Python: nested too deep, or no text"
            ) from error
        self._calls = sorted(
            (node for node in nodes if isinstance(node, ast.Call)),
            key=lambda one: (one.lineno, one.col_offset),
        )
        self._aliases = {
            alias.asname: alias.name
            for node in nodes
            if isinstance(node, ast.ImportFrom) and node.module == "cupy"
            for alias in node.names
            if alias.asname
        }
        self._values = _values_of_names(nodes)

    def codes(self) -> list[RawCode]:
        """CUDA texts in the order of the file."""
        return [self._code(call) for call in self._calls if self._made(call)]

    def launches(self) -> dict[str, RawLaunch]:
        """Kernels to their first launch whose sizes are numbers."""
        found: dict[str, RawLaunch] = {}
        for call in self._calls:
            name = self._kernel(call.func)
            if not name or name in found:
                continue
            try:
                block = self._sizes(_argument(call, 1, "block"))
                shared = _argument(call, None, "shared_mem")
                found[name] = RawLaunch(block, self._number(shared) if shared else 0)
            except ValueError:
                continue
        return found

    def _made(self, node: ast.AST) -> str:
        """``RawKernel`` or ``RawModule`` where a node is a call of it, else ''."""
        func = node.func if isinstance(node, ast.Call) else None
        name = func.attr if isinstance(func, ast.Attribute) else ""
        if isinstance(func, ast.Name):
            name = self._aliases.get(func.id, func.id)
        return name if name in ("RawKernel", "RawModule") else ""

    def _code(self, call: ast.Call) -> RawCode:
        names: tuple[str, ...] = ()
        try:
            if self._made(call) == "RawKernel":
                names = (self._text(_argument(call, 1, "name"), "name"),)
                options = _argument(call, 2, "options")
            else:
                if _argument(call, None, "path") is not None:
                    raise ValueError("path names a file: give that one to --from")
                options = _argument(call, None, "options")
                names = self._texts(_argument(call, None, "name_expressions"), "name_expressions")
            if _is_true(_argument(call, None, "enable_cooperative_groups")):
                raise ValueError("kernels are never launched cooperatively: split it in several")
            text = self._text(_argument(call, 0, "code"), "code")
            macros, kept = _as_in_a_spec(self._texts(options, "options"))
            if "__global__" not in text:
                raise ValueError("code has no kernel: no function is __global__")
        except ValueError as error:
            return RawCode(call.lineno, names=names, refused=str(error))
        return RawCode(call.lineno, text, names, macros, kept)

    def _value(self, node: ast.expr | None) -> ast.expr | None:
        """What a name stands for, if the file binds it once; other nodes as they are."""
        for _ in range(_LINKS):
            if not isinstance(node, ast.Name):
                break
            values = self._values.get(node.id, [])
            if len(values) != 1 or values[0] is None:
                break
            node = values[0]
        return node

    def _text(self, node: ast.expr | None, what: str) -> str:
        """A text that a call is given.

        Raises
        ------
        ValueError
            When it is no literal.
        """
        value = self._value(node)
        if isinstance(value, ast.JoinedStr):
            raise ValueError(
                f"{what} is an f-string: write a plain text, and its values as options -D"
            )
        if isinstance(value, ast.Name):
            raise ValueError(f"{what} is {value.id}, which is not bound once, to a text in quotes")
        if not isinstance(value, ast.Constant) or not isinstance(value.value, str):
            raise ValueError(f"{what} is no text in quotes, nor a name of one")
        text = value.value
        if "\0" in text or (not text.isascii() and re.search("[\ud800-\udfff]", text)):
            raise ValueError(f"{what} holds a character that no file of text has")
        return text

    def _texts(self, node: ast.expr | None, what: str) -> tuple[str, ...]:
        value = self._value(node)
        if value is None or (isinstance(value, ast.Constant) and value.value is None):
            return ()
        if not isinstance(value, ast.Tuple | ast.List):
            raise ValueError(f"{what} is no list of texts in quotes, nor a name of one")
        return tuple(self._text(each, what) for each in value.elts)

    def _kernel(self, node: ast.expr) -> str:
        """Name of the kernel that an expression is; '' where it is none."""
        value = self._value(node)
        if not isinstance(value, ast.Call):
            return ""
        is_function = isinstance(value.func, ast.Attribute) and value.func.attr == "get_function"
        if not is_function and self._made(value) != "RawKernel":
            return ""
        try:
            return self._text(_argument(value, 0 if is_function else 1, "name"), "name")
        except ValueError:
            return ""

    def _sizes(self, node: ast.expr | None) -> tuple[int, ...]:
        value = self._value(node)
        if not isinstance(value, ast.Tuple) or not 1 <= len(value.elts) <= 3:
            raise ValueError("no sizes")
        return tuple(self._number(each) for each in value.elts)

    def _number(self, node: ast.expr) -> int:
        value = self._value(node)
        number = value.value if isinstance(value, ast.Constant) else None
        if not isinstance(number, int) or not 0 <= number < 1 << 31:
            raise ValueError("no number")
        return number


def _values_of_names(nodes: list[ast.AST]) -> dict[str, list[ast.expr | None]]:
    """Every name that a file binds, to what it is bound to; None for what is no assignment."""
    found: dict[str, list[ast.expr | None]] = {}
    assigned: set[int] = set()
    for node in nodes:
        if not isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr):
            continue
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if isinstance(target, ast.Name):
                assigned.add(id(target))
                found.setdefault(target.id, []).append(node.value)
    for node in nodes:
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            if id(node) not in assigned:
                found.setdefault(node.id, []).append(None)
        elif isinstance(node, ast.arg):
            found.setdefault(node.arg, []).append(None)
    return found


def _argument(call: ast.Call, place: int | None, name: str) -> ast.expr | None:
    """An argument of a call by its place or name; None where it has none."""
    named = [one.value for one in call.keywords if one.arg == name]
    if named or place is None:
        return named[0] if named else None
    before = call.args[: place + 1]
    starred = any(isinstance(each, ast.Starred) for each in before)
    return before[place] if len(before) > place and not starred else None


def _is_true(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _as_in_a_spec(options: tuple[str, ...]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Macros, and the options that ``spec.yaml`` knows.

    Raises
    ------
    ValueError
        With an option that it does not know.
    """
    macros: dict[str, str] = {}
    kept = []
    for option in options:
        if match := _MACRO.fullmatch(option):
            macros[match["name"]] = "1" if match["value"] is None else match["value"]
        else:
            kept.append(compiler_option(option))
    return macros, tuple(dict.fromkeys(kept))
