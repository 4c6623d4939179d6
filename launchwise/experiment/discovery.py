"""Discovers workloads and studies by their folders."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from launchwise.base.errors import UserError
from launchwise.base.names import SPEC_FILE
from launchwise.workloads.cost import COST_FILE
from launchwise.workloads.spec import FEATURES_FILE

SWEEP_FILE = "sweep.yaml"
STUDY_FILE = "study.yaml"
STUDIES = "studies"
"""Folder of a workload that holds one folder per study."""

COMMON = "common"
"""Folder beside the workloads: device code that they share."""

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
    studies share a name.
    """
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
