"""The child process: runs a Python file with stand-ins and writes what it says as JSON.

``python -m launchwise.cli.new.python.running`` reads a request from standard input.
"""

from __future__ import annotations

import ast
import dataclasses
import json
import os
import resource
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from functools import partial
from itertools import chain
from pathlib import Path
from types import FrameType
from typing import Any

from launchwise.base.errors import UserError, unknown
from launchwise.base.names import last_name
from launchwise.base.work import end_with_the_starter
from launchwise.cli.new.python.draft import Decisions
from launchwise.cli.new.python.host import Host, attempts, functions_of
from launchwise.cli.new.python.interpreter import Trace
from launchwise.cli.new.python.kernels import Code, Draft, Facts, Kernel
from launchwise.cli.new.python.stand_ins import BUILTINS, CODES
from launchwise.cli.new.python.texts import Excerpt, is_jit, names_read
from launchwise.cli.new.python.values import FILE, RUNS, NotKnown, TimeLimit, limited

MEMORY_BYTES = 2 << 30

_REFUSED = (
    *("os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate"),
    *("os.chmod", "os.chown", "os.utime", "os.setxattr", "shutil.", "tempfile.", "sqlite3."),
    *("socket.", "subprocess.", "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.kill"),
    *("ctypes.", "signal.pthread_kill", "resource.", "http.", "urllib.", "ftplib."),
)
"""Events of Python's audit that write files, start processes or ask the network."""

_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

_MOST_FUNCTIONS = 200


class _Watched(ast.NodeTransformer):
    """Lets values know their names, be members of sets, and decorators fail alone."""

    def visit_Assign(self, node: ast.Assign | ast.AnnAssign) -> ast.stmt:
        self.generic_visit(node)
        match node.targets if isinstance(node, ast.Assign) else [node.target]:
            case [ast.Name(id=name)] if node.value is not None:
                node.value = _call("named!", node.value, name)
            case [ast.Tuple(elts=parts)] if node.value is not None:
                is_open = any(isinstance(one, ast.Starred) for one in parts)
                names = ("*",) if is_open else tuple(getattr(one, "id", "") for one in parts)
                node.value = _call("named!", node.value, names)
        return node

    visit_AnnAssign = visit_Assign

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        decorators = node.decorator_list if is_jit(node) else []
        for one in decorators:
            if isinstance(one, ast.Call):
                one.args = [self._tried(each) for each in one.args]
                for each in one.keywords:
                    each.value = self._tried(each.value)
        self.generic_visit(node)
        if decorators:
            node.decorator_list = [_call("decorator!", self._tried(one)) for one in decorators]
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        match node.ops, node.comparators:
            case [ast.In() | ast.NotIn() as op], [several]:
                both = ast.Tuple([node.left, several], ast.Load())
                return _call("is_in!", both, isinstance(op, ast.In))
        return node

    def _tried(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.Starred):
            return node
        nothing = ast.arguments([], [], None, [], [], None, [])
        return _call("tried!", ast.Lambda(nothing, node), node.lineno)


def _call(name: str, value: ast.expr, *given: Any) -> ast.expr:
    called = ast.Call(ast.Name(name, ast.Load()), [value, *map(ast.Constant, given)], [])
    return ast.copy_location(called, value)


def _tried(seconds: float, function: Callable[[], Any], line: int) -> Any:
    """What a function returns, or why it is not known."""
    outcome: Any = NotKnown(line, f"takes more than {seconds:g} s of CPU time")
    with limited(seconds):
        try:
            outcome = function()
        except NotKnown as error:
            outcome = NotKnown(error.line or line, str(error))
        except (Exception, SystemExit) as error:
            frames = traceback.extract_tb(error.__traceback__)
            own = [one.lineno for one in frames if one.filename == FILE]
            said = " ".join(str(error).split()) or type(error).__name__
            outcome = NotKnown(own[-1] or line if own else line, said[:200])
    return outcome


def _decorator(tried: Callable[..., Any], decorator: Any) -> Callable[[Any], Any]:
    """A decorator that leaves a function of Triton as it is where it fails or takes it away."""

    def decorate(taken: Any) -> Any:
        made = tried(lambda: decorator(taken), 0)
        is_lost = isinstance(taken, Kernel) and not isinstance(made, Kernel)
        return taken if is_lost or isinstance(made, NotKnown) else made

    return decorate


class File:
    def __init__(self, tree: ast.Module, seconds: float) -> None:
        tried = partial(_tried, seconds)
        BUILTINS.update({"tried!": tried, "decorator!": partial(_decorator, tried)})
        self.space: dict[str, Any] = {"__name__": "kernels", "__builtins__": BUILTINS}
        self.failures: list[tuple[set[str], NotKnown]] = []  # With the functions that are called.
        names = [one.name for one in tree.body if is_jit(one)]
        for statement in tree.body:
            calls = {last_name(one) for one in ast.walk(statement) if isinstance(one, ast.Call)}
            module = ast.fix_missing_locations(ast.Module([_Watched().visit(statement)], []))
            code = compile(module, FILE, "exec", dont_inherit=True)
            failed = tried(lambda: exec(code, self.space), statement.lineno)  # noqa: B023
            if isinstance(failed, NotKnown):
                self.failures.append((calls, failed))
        found = {name: self.space.get(name) for name in names}
        self.kernels = {name: one for name, one in found.items() if isinstance(one, Kernel)}

    def free_kernels(self) -> list[str]:
        """Kernels that no other one calls; the ones that the file launches come first."""
        reads = {name: names_read(one.fn.__code__) for name, one in self.kernels.items()}
        inner = {name for own, names in reads.items() for name in names if name != own}
        free = [name for name in self.kernels if name not in inner] or [*self.kernels]
        launched = {one.kernel.__name__ for one in RUNS[0].launches}
        for function in functions_of(self.space):
            launched |= names_read(function.__code__)
        return sorted(free, key=lambda name: name not in launched)


def out_of_branches(text: str) -> str:
    """A file whose kernels below ``if`` and ``try`` stand at the left, on the same lines: the
    branch that holds them is taken."""
    lines = text.splitlines()
    for statement in ast.parse(text).body:
        branches = [getattr(statement, name, []) for name in ("body", "orelse")]
        held = [one for one in branches if any(map(is_jit, chain(*map(ast.walk, one))))]
        if not isinstance(statement, ast.If | ast.Try) or not held:
            continue
        first, last = min(map(_first_line, held[0])) - 1, held[0][-1].end_lineno
        indent = " " * held[0][0].col_offset
        kept = [line.removeprefix(indent) for line in lines[first:last]]
        end = statement.end_lineno or first
        lines[statement.lineno - 1 : end] = [""] * (end - statement.lineno + 1)
        lines[first:last] = kept
    found = "\n".join(lines) + "\n"
    return found if [*lines] == text.splitlines() else out_of_branches(found)


def _first_line(statement: ast.stmt) -> int:
    """Line of a statement, or of its first decorator."""
    decorators = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(one.lineno for one in decorators)])


def _facts(request: dict[str, Any]) -> Facts:
    path, name = Path(request["path"]), request["kernel"]
    _parsed(path, request["text"])
    text = out_of_branches(request["text"])
    tree = _parsed(path, text)
    jit = [one for one in ast.walk(tree) if is_jit(one)]
    if jit and not any(map(is_jit, tree.body)):
        message = "a @triton.jit function inside another one is not read: move it to the left"
        raise UserError(path, f"line {jit[0].lineno}", message)
    file = File(tree, request["seconds"])
    if not jit:
        for call in [*functions_of(file.space).values()][:_MOST_FUNCTIONS]:
            attempts(call, is_covering=True)
        raw = [one for calls, one in file.failures if calls & {"RawKernel", "RawModule"}]
        failed = [Code(one.line, refused=str(one)) for one in raw]
        return Facts(codes=sorted([*CODES, *failed], key=lambda one: one.line))
    if not file.kernels:
        raise UserError(path, "", "has no @triton.jit function that runs")
    if name is not None and name not in file.kernels:
        raise UserError(path, "--kernel", unknown("@triton.jit function", name, file.kernels))
    kernels = file.free_kernels()
    kernel = file.kernels[name or kernels[0]]
    is_whole = text.split() == request["text"].split()
    copied = Excerpt(path.name, kernel.__name__, text, is_whole)
    traced = Trace(kernel)
    host = Host(kernel, traced, file.space, request["taken"])
    decisions = Decisions(kernel, traced, host, request["taken"])
    chosen, missing = kernel.__name__, "; ".join(copied.missing)
    lacks = [f"{chosen} reads what is not copied: {missing}"] if missing else []
    asked = [*lacks, *(f"line {line}: {said}" for said, line in kernel.notes.items())]
    notes = [f"{path.name}: {each}" for each in asked]
    others = [one for one in kernels if one != chosen]
    spec = decisions.spec(request["workload"], path.name, others, notes)
    return Facts(Draft(chosen, kernels, spec, notes, copied.text, copied.modules))


def _parsed(path: Path, text: str) -> ast.Module:
    try:
        tree = ast.parse(text)
        compile(tree, str(path), "exec", dont_inherit=True)
        return tree
    except SyntaxError as error:
        raise UserError(path, f"line {error.lineno or 1}", f"no Python: {error.msg}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        message = "cannot be read as Python: nested too deep, or no text"
        raise UserError(path, "", message) from error


def _stop(number: int, frame: FrameType | None) -> None:
    raise TimeLimit


def _refuse(event: str, given: tuple[Any, ...]) -> None:
    if event == "open":
        _, mode, flags = given
        if {*(mode or "")} & {*"wax+"} or (isinstance(flags, int) and flags & _FLAGS):
            raise PermissionError(f"a file is opened to write: {given[0]!r:.100}")
    elif event.startswith(_REFUSED):
        raise PermissionError(f"{event} is not allowed while launchwise reads a file")


def _confine(cpu_seconds: int) -> None:
    """Bound memory and time, and refuse what writes files, starts processes or asks the network."""
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds + 1))
    most = resource.getrlimit(resource.RLIMIT_AS)[1]
    bytes_allowed = MEMORY_BYTES if most < 0 else min(MEMORY_BYTES, most)
    resource.setrlimit(resource.RLIMIT_AS, (bytes_allowed, bytes_allowed))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGPROF, _stop)
    sys.addaudithook(_refuse)


def main() -> None:
    end_with_the_starter()
    request = json.load(sys.stdin)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nowhere, number)
    warnings.simplefilter("ignore")
    _confine(request["cpu_seconds"])
    try:
        answer = json.dumps(dataclasses.asdict(_facts(request)))
    except UserError as error:
        answer = json.dumps({"key": error.key, "failed": error.message})
    except (Exception, TimeLimit) as error:
        said = " ".join(str(error).split())[:200]
        failed = f"cannot be run: {type(error).__name__} {said}".strip()
        answer = json.dumps({"key": "", "failed": failed})
    answers.write(answer)
    answers.close()
    os._exit(0)  # Nothing that the file left behind runs on.


if __name__ == "__main__":
    main()
