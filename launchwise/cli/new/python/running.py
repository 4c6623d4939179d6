"""The child process: runs a Python file with stand-ins and writes what it says as JSON.

``python -m launchwise.cli.new.python.running`` reads a request from standard input.
"""

from __future__ import annotations

import ast
import dataclasses
import json
import os
import sys
import traceback
import warnings
from collections.abc import Iterator
from typing import Any

from launchwise.base.names import last_name
from launchwise.cli.new.python import facts
from launchwise.cli.new.python.cupy import CODES, RAW_LAUNCHES
from launchwise.cli.new.python.device import trace
from launchwise.cli.new.python.excerpt import is_jit
from launchwise.cli.new.python.host import attempts, functions_of, names_read, read_host
from launchwise.cli.new.python.limits import TimeLimit, confine, limited
from launchwise.cli.new.python.stand_ins import (
    BUILTINS,
    LAUNCHES,
    MATH,
    WANTED,
    Kernel,
    MathModule,
    install,
)
from launchwise.cli.new.python.tuning import Failed, read_tuning
from launchwise.cli.new.python.values import FILE, NotKnown, Value, gives_missing

_SECONDS = 1.0
"""Most CPU time of a statement of the file."""

_MOST_FUNCTIONS = 200


class _Watched(ast.NodeTransformer):
    """Binds names through a function, so that values know them, and asks ``is None`` by one."""

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        self.generic_visit(node)
        match node.targets:
            case [ast.Name(id=name)]:
                node.value = _call("named!", ast.Constant(name), node.value)
            case [ast.Tuple(elts=parts)]:
                names = [_target(one) for one in parts]
                node.value = _call("named!", ast.List(names, ast.Load()), node.value)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        self.generic_visit(node)
        if isinstance(node.target, ast.Name) and node.value is not None:
            node.value = _call("named!", ast.Constant(node.target.id), node.value)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.stmt:
        for one in node.body:
            if isinstance(one, ast.FunctionDef):
                self.visit(one)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        match node.ops, node.comparators:
            case [ast.Is() | ast.IsNot() as op], [ast.Constant(None)]:
                return _call("is_none!", node.left, ast.Constant(isinstance(op, ast.Is)))
            case [ast.In() | ast.NotIn() as op], [several]:
                wanted = ast.Constant(isinstance(op, ast.In))
                return _call("is_in!", node.left, several, wanted)
        return node


def _call(name: str, *given: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(given), [])


def _target(node: ast.expr) -> ast.expr:
    """The name of a target; ``*`` for what takes several."""
    return ast.Constant("*" if isinstance(node, ast.Starred) else getattr(node, "id", ""))


class File:
    """The file while it runs.

    Parameters
    ----------
    space
        Its names.
    failures
        Lines of statements that failed, with the reason.
    """

    def __init__(self, text: str) -> None:
        self.space: dict[str, Any] = {"__name__": "kernels", "__builtins__": BUILTINS}
        self.failures: list[tuple[ast.stmt, int, str]] = []
        self.kernels: dict[str, Kernel] = {}
        for statement in ast.parse(text).body:
            self._run(statement)

    def _run(self, statement: ast.stmt) -> None:
        decorators: list[ast.expr] = []
        if is_jit(statement):
            decorators, statement.decorator_list = statement.decorator_list, []
        watched = _Watched().visit(statement)
        failed = self._tried(lambda: self._execute(watched), statement.lineno)
        if failed is not None:
            self.failures.append((statement, failed.line, failed.said))
            for name in bound_in(statement):
                self.space.setdefault(name, Value(ast.Name(name)))
        for name, value in [*self.space.items()]:
            if getattr(value, "__name__", "") == "math":
                self.space[name] = MathModule()
            elif callable(value) and getattr(value, "__module__", "") == "math":
                self.space[name] = MATH.get(value.__name__, value)
        if isinstance(statement, ast.FunctionDef) and decorators:
            for decorator in reversed(decorators):
                self._decorate(statement.name, decorator)
            kernel = self.space[statement.name]
            if isinstance(kernel, Kernel):
                self.kernels[statement.name] = kernel

    def _decorate(self, name: str, node: ast.expr) -> None:
        """Apply a decorator whose arguments are computed one by one."""
        if not isinstance(node, ast.Call):
            decorator = self._value(node)
        else:
            given = [self._value(one) for one in node.args if not isinstance(one, ast.Starred)]
            named = {one.arg: self._value(one.value) for one in node.keywords if one.arg}
            function = self._value(node.func)
            if isinstance(function, Failed) or not callable(function):
                return
            decorator = self._tried(lambda: function(*given, **named), node.lineno, is_value=True)
            if isinstance(decorator, Value):
                decorator._line = node.lineno
        if not callable(decorator):
            return
        made = self._tried(lambda: decorator(self.space[name]), node.lineno, is_value=True)
        if isinstance(made, Kernel) or not isinstance(self.space[name], Kernel):
            self.space[name] = made

    def _value(self, node: ast.expr) -> Any:
        bound = ast.Assign([ast.Name("value!", ast.Store())], _Watched().visit(node))
        ast.copy_location(bound, node)

        def value() -> Any:
            self._execute(bound)
            return self.space.pop("value!")

        return self._tried(value, node.lineno, is_value=True)

    def _execute(self, statement: ast.stmt) -> None:
        module = ast.fix_missing_locations(ast.Module([statement], []))
        exec(compile(module, FILE, "exec", dont_inherit=True), self.space)

    def _tried(self, function: Any, line: int, is_value: bool = False) -> Any:
        """What a function returns, or why it fails; names that the file lacks get values."""
        outcome: Any = Failed(line, f"takes more than {_SECONDS:g} s of CPU time")
        with limited(_SECONDS):
            while True:
                try:
                    found = function()
                    outcome = found if is_value else None
                except NotKnown as error:
                    outcome = Failed(error.line or line, str(error))
                except (Exception, SystemExit) as error:
                    if gives_missing(error, self.space):
                        continue
                    frames = traceback.extract_tb(error.__traceback__)
                    own = [one.lineno for one in frames if one.filename == FILE]
                    said = " ".join(str(error).split()) or type(error).__name__
                    outcome = Failed(own[-1] or line if own else line, said[:200])
                break
        return outcome


def bound_in(statement: ast.stmt) -> Iterator[str]:
    """Names that a statement binds."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name


def _plain(value: Any) -> str | None:
    """A number or a text as Python writes it; None for others."""
    known = value._known if isinstance(value, Value) else value
    if isinstance(known, bool | int | float | str) and len(repr(known)) < 200:
        return repr(known)
    return None


def _facts(text: str, name: str | None, taken: list[str]) -> facts.Facts:
    file = File(text)
    top = [*LAUNCHES]
    found = facts.Facts()
    for key, value in file.space.items():
        if (plain := _plain(value)) is not None and not key.startswith("__"):
            found.values[key] = plain
    if file.kernels:
        found.kernels = _free_kernels(file, top)
        found.chosen = _chosen(file, file.kernels[name or found.kernels[0]], top, taken)
    else:
        _run_all(file)
        found.codes = sorted([*CODES, *_failed_codes(file)], key=lambda one: one.line)
        found.launches = RAW_LAUNCHES
    return found


def _free_kernels(file: File, top: list[Any]) -> list[str]:
    """Kernels that no other one calls; the ones that the file launches come first."""
    reads = {name: names_read(one.fn.__code__) for name, one in file.kernels.items()}
    inner = {name for own, names in reads.items() for name in names if name != own}
    free = [name for name in file.kernels if name not in inner] or [*file.kernels]
    launched = {one.kernel.__name__ for one in top}
    for function, _ in functions_of(file.space):
        launched |= names_read(function.__code__)
    return sorted(free, key=lambda name: name not in launched)


def _chosen(file: File, kernel: Kernel, top: list[Any], taken: list[str]) -> facts.Kernel:
    reading = trace(kernel)
    host = read_host(kernel, reading, file.space, top, [*taken, *kernel.constexprs])
    none = {name for name, one in host.given.items() if one.is_none}
    tuning = read_tuning(kernel, none.__contains__)
    defaults = {
        name: value if isinstance(value, bool | int | float | str) else None
        for name, value in kernel.defaults.items()
    }
    return facts.Kernel(
        kernel.__name__, kernel.line, kernel.parameters, kernel.constexprs, defaults, reading,
        tuning, host,
    )  # fmt: skip


def _run_all(file: File) -> None:
    """Run every function, for kernels of CuPy that are made or launched in one."""
    WANTED.clear()
    for function, before in functions_of(file.space)[:_MOST_FUNCTIONS]:
        with limited(_SECONDS):
            for _ in attempts(function, before, 4, is_covering=True):
                continue


def _failed_codes(file: File) -> Iterator[facts.Code]:
    for statement, line, said in file.failures:
        calls = {last_name(node) for node in ast.walk(statement) if isinstance(node, ast.Call)}
        if calls & {"RawKernel", "RawModule"}:
            yield facts.Code(line, refused=said)


def main() -> None:
    """Answer one request."""
    request = json.load(sys.stdin)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nowhere, number)
    warnings.simplefilter("ignore")
    confine()
    install()
    try:
        found = _facts(request["text"], request["kernel"], request["taken"])
        answer = json.dumps(dataclasses.asdict(found))
    except (Exception, TimeLimit) as error:
        said = " ".join(str(error).split())[:200]
        answer = json.dumps({"failed": f"cannot be run: {type(error).__name__} {said}".strip()})
    answers.write(answer)
    answers.close()
    os._exit(0)  # Nothing that the file left behind runs on.


if __name__ == "__main__":
    main()
