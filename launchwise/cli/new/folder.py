"""The folder of a new workload: its ``spec.yaml`` and its CUDA file."""

from __future__ import annotations

from pathlib import Path

from launchwise.base.errors import UserError
from launchwise.base.names import SPEC_FILE, check_folder_name
from launchwise.base.storage import read_bytes, write_bytes, write_text
from launchwise.base.time_limits import cpu_limit
from launchwise.cli.new.headers import remarks
from launchwise.cli.new.taken import Taken, taken_from
from launchwise.cli.new.writing import spec_text
from launchwise.cli.new.yaml_lines import QUESTION
from launchwise.workloads.sources import MOST_BYTES

MOST_SECONDS = 6
"""Most CPU time for reading a file and guessing its spec."""


def begin(folder: Path, file: Path, name: str | None) -> list[str]:
    """Write the spec of a kernel, and copy its file.

    Parameters
    ----------
    folder
        Of the workload; it need not exist.
    file
        CUDA file, or Python file that gives CUDA text to CuPy.
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
        taken = taken_from(file, name)
        check_folder_name(folder.resolve())
        text = spec_text(
            folder.resolve().name, taken.file, taken.source, taken.kernel, taken.options
        )
    headers = taken.source.headers
    copies = {folder / one.place: one.path for one in headers if one.path and one.place}
    contents = {folder / taken.file: taken.content}
    contents |= {copy: read_bytes(own, MOST_BYTES) for copy, own in copies.items()}
    if spec.exists():
        raise UserError(spec, "", "exists; remove it first, or name another folder")
    for copy, content in contents.items():
        if copy.exists() and (not copy.is_file() or copy.read_bytes() != content):
            shown = copies[copy].name if copy in copies else taken.origin
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
        *_listed(taken),
        *(f"{copy}: copied, too" for copy in copies),
        *remarks(headers, taken.file, str(folder)),
        f"{spec}: {questions} lines with a question, marked {QUESTION.strip()!r}",
    ]


def _listed(taken: Taken) -> list[str]:
    """One line per kernel, where a file has several."""
    if len(taken.kernels) == 1:
        return []
    return [
        f"kernel {one.name}: "
        + ("chosen" if one is taken.kernel else one.refused or f"take it with --kernel {one.name}")
        for one in taken.kernels
    ]
