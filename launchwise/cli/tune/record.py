"""What a run of ``launchwise tune`` stood on and made: the next one may find that nothing is to do.

This is decided without pandas, pydantic or the workload's spec, so the answer comes at once.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from launchwise.base.places import shipped
from launchwise.base.storage import digest, write_json
from launchwise.measuring.cards import Card

VERSION = 3

WHOLE_BYTES = 1 << 22
"""Larger files of a workload are told apart by size and time."""

MOST_FILES = 2000
"""A folder with more files is not looked through: it is more than a workload."""

PROJECT = ("launchwise", "kernels/common", "scripts", "rules")
"""Folders of the project whose code makes results."""

SKIPPED = {"__pycache__", "tuned", "results"}


@dataclass(frozen=True)
class Asked:
    """What a run was asked for, beside how many cores it may use.

    Parameters
    ----------
    workload
        The workload's folder.
    folder
        Folder of settings and results.
    """

    workload: Path
    problem: list[str]
    gpu: str
    device: str | None
    search: list[Any]
    folder: Path

    @property
    def path(self) -> Path:
        """Where the record lies."""
        return self.folder / "results" / "tune" / f"{self.gpu}.json"


@dataclass(frozen=True)
class Record:
    """What a finished run printed, stood on and made."""

    inputs: str
    outputs: Mapping[str, list[int]]
    text: str
    as_json: str
    version: int = field(default=VERSION)


def recorded(asked: Asked, present: Callable[[], Iterable[Card]]) -> Record | None:
    """The record of an earlier run whose inputs and outputs are as they were; None without one.

    Parameters
    ----------
    present
        Gives the cards of this machine; asked where there is a record.
    """
    try:
        found = json.loads(asked.path.read_text(encoding="utf-8"))
        record = Record(**found)
    except (OSError, ValueError, TypeError):
        return None
    if record.version != VERSION or record.outputs != _states(asked.folder, record.outputs):
        return None
    return record if record.inputs == inputs_of(asked, present()) else None


def keep(asked: Asked, inputs: str | None, outputs: Iterable[str], text: str, as_json: str) -> None:
    """Write the record of a finished run.

    Parameters
    ----------
    inputs
        :func:`inputs_of` before it began; None where they cannot be told: there is no record then.
    outputs
        Files that it made or found, from its folder.
    """
    if inputs is None:
        asked.path.unlink(missing_ok=True)
        return
    record = Record(inputs, _states(asked.folder, outputs), text, as_json)
    write_json(asked.path, asdict(record))


def inputs_of(asked: Asked, present: Iterable[Card]) -> str | None:
    """Digest of everything that answers follow from; None where the workload has too many files.

    The question, the files of the workload, the code of the project, Python and its packages, nvcc,
    and the cards of this machine with their driver.
    """
    own = [*_files(asked.workload, asked.folder)]
    if len(own) > MOST_FILES:
        return None
    nvcc = shutil.which("nvcc")
    packages = Path(sysconfig.get_paths()["purelib"])
    return digest(
        [
            [str(asked.workload.resolve()), str(asked.folder.resolve())],
            [asked.problem, asked.gpu, asked.device, asked.search],
            [[str(path), _content(path)] for path in own],
            [[str(path), *_state(path)] for path in _project_files()],
            [sys.version, sorted(path.name for path in packages.glob("*.dist-info"))],
            [nvcc, _state(Path(nvcc).resolve()) if nvcc else None],
            [[card.uuid, card.device_name, card.arch, card.driver] for card in present],
        ]
    )


def _files(folder: Path, results: Path) -> Iterator[Path]:
    """Files of a workload, without results that lie among them; a few more than allowed at most."""
    count = 0
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(
            name
            for name in folders
            if name not in SKIPPED and name[0] != "." and Path(place, name) != results
        )
        for name in sorted(names):
            yield Path(place, name)
            count += 1
            if count > MOST_FILES:
                return


def _project_files() -> Iterator[Path]:
    yield shipped("Snakefile")
    for name in PROJECT:
        for place, folders, names in os.walk(shipped(name)):
            folders[:] = sorted(each for each in folders if each != "__pycache__")
            yield from (Path(place, each) for each in sorted(names))


def _content(path: Path) -> list[Any]:
    """Digest of a file; size and time of a large one."""
    size, time = _state(path)
    if size > WHOLE_BYTES:
        return [size, time]
    return [hashlib.sha256(path.read_bytes()).hexdigest()]


def _state(path: Path) -> tuple[int, int]:
    """Size and time of a file; -1 where it is missing."""
    try:
        found = path.stat()
    except OSError:
        return -1, -1
    return found.st_size, found.st_mtime_ns


def _states(folder: Path, names: Iterable[str]) -> dict[str, list[int]]:
    return {name: list(_state(folder / name)) for name in names}
