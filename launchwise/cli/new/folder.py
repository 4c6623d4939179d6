"""The folder of a new workload: the kernel that it is for, its ``spec.yaml`` and its source."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

import launchwise
from launchwise.base.errors import UserError, unknown
from launchwise.base.literals import cpp_comment
from launchwise.base.names import SPEC_FILE, check_folder_name
from launchwise.base.storage import read_bytes, write_bytes, write_text
from launchwise.cli.new.headers import remarks
from launchwise.cli.new.python.kernels import Code, Draft, Facts
from launchwise.cli.new.signature import Kernel, Source, choose, read_source
from launchwise.cli.new.spec_text import RESERVED, spec_text
from launchwise.cli.new.yaml_lines import QUESTION
from launchwise.workloads.builds import TRITON
from launchwise.workloads.parts import compiler_option
from launchwise.workloads.sources import MOST_BYTES, OPTIONS, cpu_limit, source_text


def begin(folder: Path, file: Path, name: str | None) -> list[str]:
    """Write the spec of a kernel, and copy its file; what was done, one line each. ``folder`` of
    the workload need not exist. ``file`` is a CUDA file, or a Python file with functions of Triton
    or that gives CUDA text to CuPy; the first of its kernels when ``name`` is left out. Raises
    UserError when no spec can be made of the file, or something of that name is in the folder
    already."""
    with cpu_limit(file):
        check_folder_name(folder.resolve())
        if file.suffix == TRITON:
            facts = facts_of(file, name, folder.resolve().name)
            if facts.draft is not None:
                made = _of_triton(folder, file, facts.draft)
            else:
                made = _of_cupy(folder, file, name, facts.codes)
        else:
            source = read_source(file, wanted=name)
            kernel, content = choose(source, name, file), read_bytes(file, MOST_BYTES)
            copy = folder / file.name
            made = _drafted(copy, str(file), content, source, kernel, source.kernels)
    _write(folder, made)
    questions = sum(QUESTION in line for line in made.spec.splitlines())
    asked = f"{folder / SPEC_FILE}: {questions} lines with a question, marked {QUESTION.strip()!r}"
    return [*made.lines, asked]


@dataclass(frozen=True)
class _Made:
    spec: str
    # Content of the files that are copied, and where each comes from, for messages.
    copies: Mapping[Path, tuple[bytes, str]]
    lines: list[str]  # what is said of it


def _of_triton(folder: Path, file: Path, draft: Draft) -> _Made:
    source = folder / file.name
    every = [(one, "") for one in dict.fromkeys([*draft.kernels, draft.kernel])]
    lines = _listed(every, draft.kernel) if draft.kernels[1:] else []
    lines += [f"{file.name} imports {one}: copy that file to {folder}" for one in draft.modules]
    if draft.copied:
        lines.append(f"{source}: the functions of {file.name} that {draft.kernel} needs")
    content = draft.copied.encode() or read_bytes(file, MOST_BYTES)
    return _Made(draft.spec, {source: (content, file.name)}, [*lines, *draft.notes])


def _drafted(
    copy: Path,
    origin: str,
    content: bytes,
    source: Source,
    kernel: Kernel,
    kernels: Sequence[Kernel],
    options: Sequence[str] = (),
) -> _Made:
    """What is written of a kernel of CUDA, one of ``kernels``. ``copy`` is its file in the
    workload's folder, ``origin`` where its text stands, ``options`` are those of the compiler."""
    folder, headers = copy.parent, source.headers
    own = {
        folder / one.place: (read_bytes(one.path, MOST_BYTES), one.path.name)
        for one in headers
        if one.path and one.place
    }
    lines = [
        *_listed([(one.name, one.refused) for one in kernels], kernel.name),
        *(f"{header}: copied, too" for header in own),
        *remarks(headers, copy.name, str(folder)),
    ]
    spec = spec_text(folder.resolve().name, copy.name, source, kernel, options)
    return _Made(spec, {copy: (content, origin), **own}, lines)


def _listed(kernels: Sequence[tuple[str, str]], chosen: str) -> list[str]:
    """One line per kernel, where there are several: names, and why no spec can be written."""
    return [
        f"kernel {one}: "
        + (refused or ("chosen" if one == chosen else f"take it with --kernel {one}"))
        for one, refused in kernels
        if len(kernels) > 1
    ]


def _write(folder: Path, made: _Made) -> None:
    spec = folder / SPEC_FILE
    if spec.exists():
        raise UserError(spec, "", "exists; remove it first, or name another folder")
    for copy, (content, origin) in made.copies.items():
        if copy.exists() and (not copy.is_file() or copy.read_bytes() != content):
            raise UserError(copy, "", f"exists and differs from {origin}")
    for copy, (content, _) in made.copies.items():
        if not copy.exists():
            write_bytes(copy, content)
    write_text(spec, made.spec)


# CUDA text that a Python file gives to CuPy


def _of_cupy(folder: Path, file: Path, name: str | None, codes: Sequence[Code]) -> _Made:
    if not codes:
        message = "has no @triton.jit function and no call of cupy.RawKernel or cupy.RawModule"
        raise UserError(file, "", message)
    known: dict[str, tuple[Kernel, Code, Source | None]] = {}
    for code in codes:
        for kernel, source in _kernels(file, code):
            if kernel.name not in known or known[kernel.name][0].refused:
                known[kernel.name] = kernel, code, source
    if name not in (None, *known):
        raise UserError(file, "--kernel", unknown("kernel", name, {*known} - {""}))
    named = [known[name]] if name is not None else [*known.values()]
    kernel, code, source = next((one for one in named if not one[0].refused), named[0])
    if kernel.refused or source is None:
        raise UserError(file, f"line {code.line}", kernel.refused)
    place = f"{file.name}, line {code.line}"
    content = f"// {cpp_comment(f'The CUDA text of {place}.')}\n{code.text}".encode()
    copy = folder / f"{file.stem}.cu"
    kernels = [one for one, _, _ in known.values() if one.name]
    return _drafted(copy, place, content, source, kernel, kernels, code.options)


def _kernels(file: Path, code: Code) -> Iterator[tuple[Kernel, Source | None]]:
    """Kernels of the text of a call: those that it names, else all."""
    names = {each.partition("<")[0] for each in code.names}
    if code.refused:
        yield from ((Kernel(one, (), (), code.refused), None) for one in sorted(names) or [""])
        return
    # A launch says the arguments of a template; no draft has this line.
    launches = (f"{one}<<<1, threads_per_block>>>();" for one in code.names if "<" in one)
    try:
        source = read_source(file, f"{code.text}void launches() {{ {' '.join(launches)} }}\n")
    except UserError as error:
        place = ": ".join(filter(None, [f"line {code.line}", error.key]))
        raise UserError(error.where, place, error.message) from error
    found = [one for one in source.kernels if one.name in names] or source.kernels
    yield from ((one, source) for one in found)


# A Python file, run in a process of its own

_PYTHON_BYTES = 256 << 10
"""Longest Python file, bytes: Python's own parser takes long, and cannot be stopped."""

CPU_SECONDS = 6  # Most CPU time of the child
STATEMENT_SECONDS = 1.0  # and of a statement of the file, or of an argument of a decorator
_WALL_SECONDS = 60  # Of a child that waits; on a busy machine CPU time takes its time
_MACRO = re.compile(r"(?:-D|--define-macro=)(?P<name>[A-Za-z_]\w*)(?:=(?P<value>[^\n\r\\]*))?")


def facts_of(path: Path, kernel: str | None, workload: str) -> Facts:
    """What a Python file says when it runs in a process of its own. It drafts the function of
    Triton ``kernel``, the first that is launched when None, for the folder ``workload``; a file
    without any gives CUDA text to CuPy. Raises UserError when the file cannot be read, is no
    Python, or cannot be run, or takes too long."""
    text = source_text(path, _PYTHON_BYTES)
    asked = {
        **{"path": str(path), "text": text, "kernel": kernel, "workload": workload},
        **{"taken": [*RESERVED, *OPTIONS], "cpu_seconds": CPU_SECONDS},
        "seconds": STATEMENT_SECONDS,
    }
    root = str(Path(launchwise.__file__).resolve().parent.parent)
    with tempfile.TemporaryDirectory(prefix="launchwise-") as folder:
        environment = {
            **{"PYTHONPATH": root, "HOME": folder, "TMPDIR": folder, "PATH": "/usr/bin:/bin"},
            **{"PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8"},
        }
        command = [sys.executable, "-s", "-m", "launchwise.cli.new.python.running"]
        nowhere, text_in = subprocess.DEVNULL, json.dumps(asked)
        try:
            done = subprocess.run(
                command, input=text_in, cwd=folder, env=environment, timeout=_WALL_SECONDS,
                stdout=subprocess.PIPE, stderr=nowhere, encoding="utf-8", errors="replace",
                check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            message = f"takes more than {_WALL_SECONDS} s to run"
            raise UserError(path, "", message) from error
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        raise UserError(path, "", f"takes more than {CPU_SECONDS} s of CPU time to run")
    try:
        read: Any = json.loads(done.stdout)
        if "failed" not in read:
            found = TypeAdapter(Facts).validate_python(read)
            return Facts(found.draft, [*map(_with_macros, found.codes)])
    except (ValueError, TypeError) as error:
        raise UserError(path, "", "ends its own process while it runs") from error
    raise UserError(path, read["key"], read["failed"])


def _with_macros(code: Code) -> Code:
    """CUDA text below the macros among its options, as values that a build may replace, and what
    keeps it from being taken."""
    options, code.options, macros = code.options, [], dict[str, str]()
    try:
        for option in options:
            if match := _MACRO.fullmatch(option):
                macros[match["name"]] = "1" if match["value"] is None else match["value"]
            else:
                code.options += {compiler_option(option)} - {*code.options}
    except ValueError as error:
        code.refused = code.refused or str(error)
    if "__global__" not in code.text:
        code.refused = code.refused or "code has no kernel: no function is __global__"
    defined = (f"#ifndef {name}\n#define {name} {macros[name]}\n#endif\n" for name in macros)
    code.text = "".join(defined) + code.text.strip("\n") + "\n"
    return code
