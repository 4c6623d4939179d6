"""The folder of a new workload: its ``spec.yaml`` and its source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from launchwise.base.errors import UserError
from launchwise.base.names import SPEC_FILE, check_folder_name
from launchwise.base.storage import read_bytes, write_bytes, write_text
from launchwise.base.time_limits import cpu_limit
from launchwise.cli.new.headers import extension_remark, remarks
from launchwise.cli.new.python.draft import Draft
from launchwise.cli.new.python.reading import facts_of
from launchwise.cli.new.python.writing import remarks as triton_remarks
from launchwise.cli.new.python.writing import spec_of_triton, usual_of_triton
from launchwise.cli.new.taken import Taken, taken_from
from launchwise.cli.new.writing import spec_text
from launchwise.cli.new.yaml_lines import QUESTION
from launchwise.workloads.builds import TRITON
from launchwise.workloads.sources import MOST_BYTES
from launchwise.workloads.usual import USUAL_FILE

MOST_SECONDS = 6  # Most CPU time for reading a file and guessing its spec


def begin(folder: Path, file: Path, name: str | None) -> list[str]:
    """Write the spec of a kernel, and copy its file; what was done, one line each.

    ``folder`` of the workload need not exist. ``file`` is a CUDA file, or a Python file with
    functions of Triton or that gives CUDA text to CuPy; the first of its kernels when ``name`` is
    left out. Raises UserError when no spec can be made of the file, or something of that name is in
    the folder already.
    """
    with cpu_limit(MOST_SECONDS, file):
        check_folder_name(folder.resolve())
        triton = _of_triton(folder, file, name) if file.suffix == TRITON else None
        made = triton or _of_cuda(folder, file, name)
    _write(folder, made)
    questions = sum(QUESTION in line for line in made.spec.splitlines())
    asked = f"{folder / SPEC_FILE}: {questions} lines with a question, marked {QUESTION.strip()!r}"
    usual = [f"{folder / USUAL_FILE}: what the file's users run, as it says"] if made.usual else []
    return [*made.lines, *usual, asked]


@dataclass(frozen=True)
class _Made:
    """What is written of a kernel."""

    spec: str
    contents: Mapping[Path, bytes]  # of the files that are copied
    origins: Mapping[Path, str]  # where each of them comes from, for messages
    lines: list[str]  # what is said of it
    usual: str = ""  # text of ``usual.yaml``; empty for none


def _of_cuda(folder: Path, file: Path, name: str | None) -> _Made:
    taken = taken_from(file, name)
    text = spec_text(folder.resolve().name, taken.file, taken.source, taken.kernel, taken.options)
    headers = taken.source.headers
    copies = {folder / one.place: one.path for one in headers if one.path and one.place}
    contents = {folder / taken.file: taken.content}
    contents |= {copy: read_bytes(own, MOST_BYTES) for copy, own in copies.items()}
    origins = {folder / taken.file: taken.origin}
    origins |= {copy: own.name for copy, own in copies.items()}
    lines = [
        *_listed(taken),
        *(f"{copy}: copied, too" for copy in copies),
        *remarks(headers, taken.file, str(folder)),
        *extension_remark(taken.content.decode("utf-8", "replace"), folder / taken.file),
    ]
    return _Made(text, contents, origins, lines)


def _of_triton(folder: Path, file: Path, name: str | None) -> _Made | None:
    """What is written of a kernel of Triton; None where the file has none."""
    facts = facts_of(file, name)
    if facts.chosen is None:
        return None
    chosen = facts.chosen.name
    draft = Draft(file, facts, facts.chosen)
    source = folder / file.name
    lines = [
        f"kernel {one}: {'chosen' if one == chosen else f'take it with --kernel {one}'}"
        for one in dict.fromkeys([*facts.kernels, chosen])
        if len(facts.kernels) > 1
    ]
    lines += [f"{file.name} imports {one}: copy that file to {folder}" for one in facts.modules]
    if facts.copied:
        lines.append(f"{source}: the functions of {file.name} that {chosen} needs")
    return _Made(
        spec_of_triton(folder.resolve().name, source.name, draft),
        {source: facts.copied.encode() or read_bytes(file, MOST_BYTES)},
        {source: file.name},
        [*lines, *triton_remarks(draft)],
        usual_of_triton(draft),
    )


def _write(folder: Path, made: _Made) -> None:
    spec, usual = folder / SPEC_FILE, folder / USUAL_FILE
    for path in [spec, *([usual] if made.usual else [])]:
        if path.exists():
            raise UserError(path, "", "exists; remove it first, or name another folder")
    for copy, content in made.contents.items():
        if copy.exists() and (not copy.is_file() or copy.read_bytes() != content):
            raise UserError(copy, "", f"exists and differs from {made.origins[copy]}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(folder, "", f"cannot be written: {error.strerror}") from error
    for copy, content in made.contents.items():
        if not copy.exists():
            write_bytes(copy, content)
    if made.usual:
        write_text(usual, made.usual)
    write_text(spec, made.spec)


def _listed(taken: Taken) -> list[str]:
    """One line per kernel, where a file has several."""
    if len(taken.kernels) == 1:
        return []
    return [
        f"kernel {one.name}: "
        + ("chosen" if one is taken.kernel else one.refused or f"take it with --kernel {one.name}")
        for one in taken.kernels
    ]
