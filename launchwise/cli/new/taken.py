"""The kernel that a draft is made of, from a CUDA file or from a Python file that calls CuPy."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from launchwise.base.errors import UserError, unknown
from launchwise.base.literals import cpp_comment
from launchwise.base.storage import read_bytes
from launchwise.cli.new.python.facts import Code
from launchwise.cli.new.python.reading import raw_codes
from launchwise.cli.new.signature import Kernel, Source, choose, read_source
from launchwise.workloads.sources import MOST_BYTES

_Launches = Mapping[str, tuple[list[int], int]]
"""Kernels to threads per block and bytes of shared memory."""


@dataclass(frozen=True)
class Taken:
    """A kernel with its CUDA file.

    Parameters
    ----------
    origin
        Where the CUDA text stands, for messages.
    file, content
        Name and content of the CUDA file of the workload.
    source, kernel
        What was read.
    kernels
        All that the origin has.
    options
        Of the compiler.
    """

    origin: str
    file: str
    content: bytes
    source: Source
    kernel: Kernel
    kernels: tuple[Kernel, ...]
    options: tuple[str, ...] = ()


def taken_from(file: Path, name: str | None) -> Taken:
    """The kernel of that name in a file, or the first that a spec can be written for.

    Raises
    ------
    UserError
        When the file cannot be read, there is no such kernel, or no spec can be written for it.
    """
    if file.suffix == ".py":
        return _taken_from_python(file, name)
    source = read_source(file, wanted=name)
    kernel = choose(source, name, file)
    content = read_bytes(file, MOST_BYTES)
    return Taken(str(file), file.name, content, source, kernel, source.kernels)


def _taken_from_python(file: Path, name: str | None) -> Taken:
    found = raw_codes(file)
    codes, launches = found.codes, found.launches
    if not codes:
        raise UserError(
            file, "", "has no @triton.jit function and no call of cupy.RawKernel or cupy.RawModule"
        )
    sources: dict[tuple[str, str], Source] = {}
    for code in codes:
        key = (code.text, _macro_lines(code))
        if not code.refused and key not in sources:
            sources[key] = _source_of(file, code, launches)
    known = list(_kernels(codes, sources))
    kernel, code = _chosen(known, name, file)
    if kernel.refused:
        raise UserError(file, f"line {code.line}", kernel.refused)
    source = sources[code.text, _macro_lines(code)]
    place = f"{file.name}, line {code.line}"
    content = f"// {cpp_comment(f'The CUDA text of {place}.')}\n{_cuda_text(code)}".encode()
    kernels = tuple(one for one, _ in known if one.name)
    return Taken(place, f"{file.stem}.cu", content, source, kernel, kernels, tuple(code.options))


def _kernels(
    codes: Sequence[Code], sources: Mapping[tuple[str, str], Source]
) -> Iterator[tuple[Kernel, Code]]:
    """Kernels with the call that has their text, those first that a call names."""
    named: list[tuple[Kernel, Code]] = []
    others: list[tuple[Kernel, Code]] = []
    for code in codes:
        names = list(dict.fromkeys(each.partition("<")[0] for each in code.names))
        if code.refused:
            named += [(Kernel(one, (), (), code.refused), code) for one in names or [""]]
            continue
        for one in sources[code.text, _macro_lines(code)].kernels:
            (named if one.name in names else others).append((one, code))
    texts: dict[str, str] = {}
    for one, code in named + others:
        if one.name not in texts:
            yield one, code
        elif code.text != texts[one.name]:
            twice = "an earlier call has another kernel of that name: rename one"
            yield replace(one, refused=twice), code
        if not one.refused:
            texts.setdefault(one.name, code.text)


def _chosen(
    known: Sequence[tuple[Kernel, Code]], name: str | None, file: Path
) -> tuple[Kernel, Code]:
    """The kernel of that name, else the first that can be taken."""
    named = [one for one in known if name in (None, one[0].name)]
    if not named:
        names = {one.name for one, _ in known if one.name}
        raise UserError(file, "--kernel", unknown("kernel", name, names))
    return next((one for one in named if not one[0].refused), named[0])


def _source_of(file: Path, code: Code, launches: _Launches) -> Source:
    """What the CUDA text of a call declares, launched as the file launches it."""
    try:
        return read_source(file, _cuda_text(code) + _host_code(code, launches))
    except UserError as error:
        place = ": ".join(filter(None, [f"line {code.line}", error.key]))
        raise UserError(error.where, place, error.message) from error


def _cuda_text(code: Code) -> str:
    return _macro_lines(code) + code.text.strip("\n") + "\n"


def _macro_lines(code: Code) -> str:
    """Macros of the call's options, as values that a build may replace."""
    return "".join(
        f"#ifndef {name}\n#define {name} {value}\n#endif\n" for name, value in code.macros.items()
    )


def _host_code(code: Code, launches: _Launches) -> str:
    """Launches of the Python file as a CUDA file has them: the draft alone reads them."""
    unknown_sizes = dict.fromkeys((one for one in code.names if "<" in one), "1, threads_per_block")
    sizes = {
        name: f"1, dim3({', '.join(map(str, block))}), {shared}"
        for name, (block, shared) in launches.items()
    }
    lines = [
        f"{name}<<<{given}>>>();"
        for name, given in (unknown_sizes | sizes).items()
        if _LAUNCHED.fullmatch(name)
    ]
    return f"void launches() {{ {' '.join(lines)} }}\n" if lines else ""


_LAUNCHED = re.compile(r"[\w:]+(<[\w:, ]+>)?")
