"""The folder of a new workload: its ``spec.yaml`` and its CUDA file."""

from __future__ import annotations

from pathlib import Path

from launchwise.base.errors import UserError
from launchwise.base.names import SPEC_FILE, check_folder_name
from launchwise.base.storage import read_bytes, write_bytes, write_text
from launchwise.base.time_limits import cpu_limit
from launchwise.cli.new.headers import remarks
from launchwise.cli.new.signature import Source, choose, read_source
from launchwise.cli.new.writing import spec_text
from launchwise.cli.new.yaml_lines import QUESTION
from launchwise.workloads.sources import MOST_BYTES

MOST_SECONDS = 6
"""Most CPU time for reading a CUDA file and guessing its spec."""


def begin(folder: Path, file: Path, name: str | None) -> list[str]:
    """Write the spec of a kernel, and copy its file.

    Parameters
    ----------
    folder
        Of the workload; it need not exist.
    file
        CUDA file.
    name
        Kernel of the file; the first when left out.

    Returns
    -------
    list of str
        What was done, one line each.

    Raises
    ------
    UserError
        When no spec can be made of the file, or something of that name is in the folder already.
    """
    spec = folder / SPEC_FILE
    with cpu_limit(MOST_SECONDS, file):
        source = read_source(file)
        kernel = choose(source, name, file)
        check_folder_name(folder.resolve())
        text = spec_text(folder.resolve().name, file.name, source, kernel)
    copies = {folder / file.name: file}
    copies |= {folder / one.place: one.path for one in source.headers if one.path and one.place}
    contents = {copy: read_bytes(own, MOST_BYTES) for copy, own in copies.items()}
    if spec.exists():
        raise UserError(spec, "", "exists; remove it first, or name another folder")
    for copy, content in contents.items():
        if copy.exists() and (not copy.is_file() or copy.read_bytes() != content):
            shown = file if copy.name == file.name else copies[copy].name
            raise UserError(copy, "", f"exists and differs from {shown}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(folder, "", f"cannot be written: {error.strerror}") from error
    for copy, content in contents.items():
        if not copy.exists():
            write_bytes(copy, content)
    write_text(spec, text)
    questions = sum(QUESTION in line for line in text.splitlines())
    return [
        *_listed(source, kernel.name),
        *(f"{copy}: copied, too" for copy in copies if copy != folder / file.name),
        *remarks(source.headers, file.name, str(folder)),
        f"{spec}: {questions} lines with a question, marked {QUESTION.strip()!r}",
    ]


def _listed(source: Source, chosen: str) -> list[str]:
    """One line per kernel, where a file has several."""
    if len(source.kernels) == 1:
        return []
    return [
        f"kernel {one.name}: "
        + ("chosen" if one.name == chosen else one.refused or f"take it with --kernel {one.name}")
        for one in source.kernels
    ]
