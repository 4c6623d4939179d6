"""Functions of Triton as their file declares them, read without running it.

The reader of Python kernels imports this before its stand-ins: nothing here may load NumPy.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from launchwise.base.errors import UserError, unknown
from launchwise.base.names import last_name
from launchwise.workloads.sources import source_text

OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")
POWERS_OF_TWO = ("num_warps", "num_ctas")
"""Options of Triton's compiler that a build may set, beside the constexprs of the function."""

REGISTERS = "maxnreg"  # The option that limits registers per thread
NO_LIMIT = 0  # Its value for no limit, beside configurations that have one

INSTALL = "pip install 'launchwise[triton]'"
MISSING = f"triton is missing: {INSTALL}"


@dataclass(frozen=True)
class Parameter:
    """A parameter of a function of Triton."""

    name: str
    is_constexpr: bool  # whether its value is fixed by a compilation
    has_default: bool  # whether the file gives it a value
    # Whether Triton compiles the function anew for the integer 1, and for multiples of 16.
    equals_one: bool = True
    is_aligned: bool = True


@dataclass(frozen=True)
class TritonFunction:
    name: str
    parameters: tuple[Parameter, ...]
    prints: tuple[int, ...] = ()  # lines on which its file prints
    keys: frozenset[str] = frozenset()  # names in the `key` of its `@triton.autotune`

    @property
    def constexprs(self) -> list[Parameter]:
        """Parameters that a build fixes."""
        return [each for each in self.parameters if each.is_constexpr]

    @property
    def given(self) -> list[Parameter]:
        """Parameters that get the arguments of a launch, in their order."""
        return [each for each in self.parameters if not each.is_constexpr]


def triton_function(path: Path, name: str) -> TritonFunction:
    """The function ``name`` of a file. Raises UserError when the file is no Python, or has no
    ``@triton.jit`` function of that name."""
    changed = path.stat().st_mtime_ns if path.is_file() else 0
    functions = _functions(path, changed)
    if name not in functions:
        message = unknown("@triton.jit function", name, functions)
        raise UserError(path, "", message)
    return functions[name]


@lru_cache(maxsize=64)
def _functions(path: Path, changed: int) -> dict[str, TritonFunction]:
    try:
        tree = ast.parse(source_text(path))
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        said = getattr(error, "msg", None) or str(error)
        raise UserError(path, f"line {line}" if line else "", f"SyntaxError: {said}") from error
    defined = [
        (node, decorator)
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        for decorator in node.decorator_list
        if last_name(decorator) == "jit"
    ]
    inner = (each for node, _ in defined for part in node.body for each in ast.walk(part))
    calls = [each for each in inner if isinstance(each, ast.Call)]
    named = [each.lineno for each in calls if last_name(each) in ("device_print", "print")]
    prints = tuple(sorted(named))
    return {
        node.name: TritonFunction(
            node.name, tuple(_parameters(node, decorator)), prints, _keys(node)
        )
        for node, decorator in defined
    }


def _keys(function: ast.FunctionDef) -> frozenset[str]:
    """Texts that ``@triton.autotune(configs, key)`` lists as they are."""
    found: set[str] = set()
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call) and last_name(decorator) == "autotune":
            named = [each.value for each in decorator.keywords if each.arg == "key"]
            for node in (*named, *decorator.args[1:2]):
                found |= {each for each in _listed(node) if isinstance(each, str)}
    return frozenset(found)


def _parameters(function: ast.FunctionDef, decorator: ast.AST) -> Iterator[Parameter]:
    given = function.args
    listed = [*given.posonlyargs, *given.args]
    defaults = [*[None] * (len(listed) - len(given.defaults)), *given.defaults, *given.kw_defaults]
    general, unaligned = (
        {one for key in getattr(decorator, "keywords", ()) if key.arg == name
         for one in _listed(key.value)}
        for name in ("do_not_specialize", "do_not_specialize_on_alignment")
    )  # fmt: skip
    for place, each in enumerate([*listed, *given.kwonlyargs]):
        is_general, is_unaligned = ({each.arg, place} & one for one in (general, unaligned))
        is_constexpr = each.annotation is not None and last_name(each.annotation) == "constexpr"
        has_default = defaults[place] is not None
        is_aligned = not (is_general or is_unaligned)
        yield Parameter(each.arg, is_constexpr, has_default, not is_general, is_aligned)


def _listed(node: ast.AST) -> set[str | int]:
    found = (each.value for each in ast.walk(node) if isinstance(each, ast.Constant))
    return {each for each in found if isinstance(each, str | int)}
