"""Which folders hold workloads and studies, and which settings file holds a key."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.base.names import SPEC_FILE
from launchwise.base.typed import read_yaml
from launchwise.workloads.cost import COST_FILE
from launchwise.workloads.spec import FEATURES_FILE

SWEEP_FILE = "sweep.yaml"
STUDY_FILE = "study.yaml"
STUDIES = "studies"  # Folder of a workload that holds one folder per study
COMMON = "common"  # Folder beside the workloads: device code that they share

WORKLOAD_FILES = (SWEEP_FILE, FEATURES_FILE, COST_FILE, STUDIES, "host", "*.cu")
"""Files and folders that mark the folder of a workload."""

NAME = re.compile(r"[a-z][a-z0-9_]*")


def find_workloads(folders: Iterable[Path]) -> dict[str, Path]:
    """Folders of every workload: name -> folder with a ``spec.yaml``.

    ``folders``: workloads themselves, or folders that hold some.
    Raises UserError when a folder is missing or holds no workload, a workload's folder lacks its
    spec, or two workloads share a name.
    """
    found: dict[str, Path] = {}
    for folder in folders:
        if not folder.is_dir():
            raise UserError("config.yaml", "workloads", f"no folder {str(folder)!r}")
        if (folder / SPEC_FILE).is_file():
            own = {folder.resolve().name: folder.resolve()}
        else:
            own = {path.name: path for path in sorted(folder.iterdir()) if _is_workload(path)}
        if not own:
            message = f"{str(folder)!r} holds no workload (a folder with {SPEC_FILE})"
            raise UserError("config.yaml", "workloads", message)
        for name, path in own.items():
            if not (path / SPEC_FILE).is_file():
                raise UserError(path / SPEC_FILE, "", "is missing: every workload has one")
            if name in found:
                message = f"workload {name!r} is also in {found[name].parent}"
                raise UserError(path / SPEC_FILE, "", message)
            found[name] = path
    return found


def _is_workload(path: Path) -> bool:
    if not path.is_dir() or path.name == COMMON or path.name.startswith("."):
        return False
    return any(any(path.glob(mark)) for mark in (SPEC_FILE, *WORKLOAD_FILES))


def find_studies(workloads: Mapping[str, Path]) -> dict[str, Path]:
    """Folders of every study of ``workloads`` (name -> folder), in order of workload and name.
    Raises UserError when a study's folder lacks ``study.yaml`` or has a name that is none, or two
    studies share a name."""
    found: dict[str, Path] = {}
    for folder in workloads.values():
        for path in sorted((folder / STUDIES).glob("*/")):
            # A folder that git left behind holds nothing but compiled files.
            if path.name.startswith((".", "_")) or not set(path.iterdir()) - {path / "__pycache__"}:
                continue
            if not (path / STUDY_FILE).is_file():
                raise UserError(path / STUDY_FILE, "", "is missing: every study has one")
            if not NAME.fullmatch(path.name):
                message = f"the folder's name must match {NAME.pattern}: it names the study"
                raise UserError(path / STUDY_FILE, "", message)
            if path.name in found:
                message = f"study {path.name!r} is also in {found[path.name]}"
                raise UserError(path / STUDY_FILE, "", message)
            found[path.name] = path
    return found


COMMAND_LINE = "--config"


@dataclass(frozen=True)
class Beneath:
    """A file of a workload's folder that settings override."""

    path: Path  # the file
    key: str  # dotted key of the settings that its content stands below, such as `studies.tile`


@dataclass(frozen=True)
class Sources:
    """Files that the settings were merged from."""

    files: Sequence[Path]  # settings files, the last one strongest
    # What they were merged to, if parts of it may come from no file.
    config: Mapping[str, Any] | None = None
    _read: dict[Path, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def error(self, key: str, message: str, beneath: Beneath | None = None) -> UserError:
        """Error for ``key`` that names the file that holds it.

        ``key``: dotted key of the settings.
        ``beneath``: the file that the settings of this key override; its own keys are shorter.
        """
        where, depth = self._holder(key)
        if beneath is None or depth > len(beneath.key.split(".")):
            return UserError(where, key, message)
        own = key.removeprefix(beneath.key).removeprefix(".")
        return UserError(beneath.path, own, message)

    def left_out(self, key: str) -> list[str]:
        """Names below ``key`` that the merged settings set to null."""
        below = (self.config or {}).get(key)
        entries = below.items() if isinstance(below, Mapping) else ()
        return [str(name) for name, entry in entries if entry is None]

    def is_lost_null(self, key: str) -> bool:
        """Whether files set ``key`` to null and none gives it a value: a name that is mistyped."""
        depth = len(key.split("."))
        self._holder(key)  # Reads the files.
        held = [_follow(content, key.split(".")) for content in self._read.values()]
        values = [value for found, value in held if found == depth]
        return bool(values) and all(value is None for value in values)

    def _holder(self, key: str) -> tuple[str, int]:
        """The last file that holds ``key`` (or as much of it as any does), and how much it holds.
        :data:`COMMAND_LINE` when no file holds what the merged settings hold."""
        parts = key.split(".") if key else []
        best, depth, held = self.files[0] if self.files else Path("config.yaml"), -1, None
        for path in self.files:
            if path not in self._read:
                self._read[path] = read_yaml(path)
            found, node = _follow(self._read[path], parts)
            if found >= depth:
                best, depth, held = path, found, node
        found, node = _follow(self.config, parts)
        # NaN is not equal to itself, but it is written alike.
        differs = node != held and repr(node) != repr(held)
        changed = found == depth and differs and not isinstance(node, Mapping)
        if self.files and self.config is not None and (found > depth or changed):
            return COMMAND_LINE, found
        return str(best), depth


def _follow(node: Any, parts: list[str]) -> tuple[int, Any]:
    """Number of leading ``parts`` of a dotted key that exist in ``node``, and the value there.
    Names may have dots themselves (``h200.sm72``): the longest name that fits is taken."""
    if isinstance(node, list) and parts and parts[0].isdigit() and int(parts[0]) < len(node):
        found, inner = _follow(node[int(parts[0])], parts[1:])
        return found + 1, inner
    if isinstance(node, Mapping):
        names = {str(name): name for name in node}
        for count in range(len(parts), 0, -1):
            name = ".".join(parts[:count])
            if name in names:
                found, inner = _follow(node[names[name]], parts[count:])
                return found + count, inner
    return 0, node
