"""The kernel that a draft is made of, from a CUDA file or from a Python file that calls CuPy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from launchwise.base.errors import UserError, unknown
from launchwise.base.literals import cpp_comment
from launchwise.base.storage import read_bytes
from launchwise.cli.new.python.facts import Code, Facts
from launchwise.cli.new.python.reading import raw_codes
from launchwise.cli.new.signature import Kernel, Source, choose, read_source
from launchwise.workloads.sources import MOST_BYTES


@dataclass(frozen=True)
class Taken:
    """A kernel with its CUDA file."""

    origin: str  # where the CUDA text stands, for messages
    file: str  # name of the CUDA file of the workload
    content: bytes
    source: Source
    kernel: Kernel
    kernels: tuple[Kernel, ...]  # all that the origin has
    options: tuple[str, ...] = ()  # of the compiler


def taken_from(file: Path, name: str | None) -> Taken:
    """The kernel of that name in a file, or the first that a spec can be written for. Raises
    UserError when the file cannot be read, there is no such kernel, or no spec can be written for
    it."""
    if file.suffix != ".py":
        source = read_source(file, wanted=name)
        kernel = choose(source, name, file)
        content = read_bytes(file, MOST_BYTES)
        return Taken(str(file), file.name, content, source, kernel, source.kernels)
    found = raw_codes(file)
    if not found.codes:
        message = "has no @triton.jit function and no call of cupy.RawKernel or cupy.RawModule"
        raise UserError(file, "", message)
    known = list(_kernels(file, found))
    names = tuple(kernel for kernel, _, _ in known if kernel.name)
    named = [one for one in known if name in (None, one[0].name)]
    if not named:
        raise UserError(file, "--kernel", unknown("kernel", name, {one.name for one in names}))
    kernel, code, own = next((one for one in named if not one[0].refused), named[0])
    if kernel.refused or own is None:
        raise UserError(file, f"line {code.line}", kernel.refused)
    place = f"{file.name}, line {code.line}"
    content = f"// {cpp_comment(f'The CUDA text of {place}.')}\n{_cuda_text(code)}".encode()
    return Taken(place, f"{file.stem}.cu", content, own, kernel, names, tuple(code.options))


def _kernels(file: Path, found: Facts) -> Iterator[tuple[Kernel, Code, Source | None]]:
    """Kernels with the call that has their text and what it says, those first that a call names."""
    sources: dict[str, Source] = {}
    every: list[tuple[bool, Kernel, Code, Source | None]] = []
    for code in found.codes:
        names = list(dict.fromkeys(each.partition("<")[0] for each in code.names))
        if code.refused:
            refused = (Kernel(one, (), (), code.refused) for one in names or [""])
            every += [(True, one, code, None) for one in refused]
            continue
        text = _cuda_text(code)
        if text not in sources:
            try:
                sources[text] = read_source(file, text + _host_code(code, found))
            except UserError as error:
                place = ": ".join(filter(None, [f"line {code.line}", error.key]))
                raise UserError(error.where, place, error.message) from error
        every += [(one.name in names, one, code, sources[text]) for one in sources[text].kernels]
    texts: dict[str, str] = {}
    for _, one, code, source in sorted(every, key=lambda each: not each[0]):
        if one.name not in texts:
            yield one, code, source
        elif code.text != texts[one.name]:
            twice = "an earlier call has another kernel of that name: rename one"
            yield replace(one, refused=twice), code, source
        if not one.refused:
            texts.setdefault(one.name, code.text)


def _cuda_text(code: Code) -> str:
    """The text of a call, below macros of its options as values that a build may replace."""
    macros = (
        f"#ifndef {name}\n#define {name} {value}\n#endif\n" for name, value in code.macros.items()
    )
    return "".join(macros) + code.text.strip("\n") + "\n"


def _host_code(code: Code, found: Facts) -> str:
    """Launches of the Python file as a CUDA file has them: the draft alone reads them."""
    sizes = dict.fromkeys((one for one in code.names if "<" in one), "1, threads_per_block")
    for name, (block, shared) in found.launches.items():
        sizes[name] = f"1, dim3({', '.join(map(str, block))}), {shared}"
    lines = [
        f"{name}<<<{given}>>>();"
        for name, given in sizes.items()
        if re.fullmatch(r"[\w:]+(<[\w:, ]+>)?", name)
    ]
    return f"void launches() {{ {' '.join(lines)} }}\n" if lines else ""
