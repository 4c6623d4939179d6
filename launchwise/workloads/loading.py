"""Loads the host logic of a workload: its own, or what its ``spec.yaml`` declares."""

from __future__ import annotations

from pathlib import Path

from launchwise.base.errors import UserError
from launchwise.workloads.declared.declared_workload import DeclaredWorkload
from launchwise.workloads.declared.own_functions import import_from
from launchwise.workloads.spec import Spec
from launchwise.workloads.workload import Workload

HOST_MODULE = "host.workload"
"""Where the class of a workload is found in its folder: ``host/workload.py``."""


def host_file(folder: Path) -> Path:
    """Where a workload's host code begins."""
    return folder.joinpath(*HOST_MODULE.split(".")).with_suffix(".py")


def load_workload(folder: Path, spec: Spec) -> Workload:
    """The workload defined in ``folder/host/workload.py``, or by the ``arguments`` of its spec.
    Raises UserError when the file is missing where it is needed, fails, or defines no single
    subclass of :class:`Workload`."""
    path = host_file(folder)
    if not path.is_file():
        if spec.arguments:
            return DeclaredWorkload(folder, spec)
        if (folder / path.name).is_file():
            raise UserError(
                folder / path.name, "", f"must be moved to {path.parent.name}/{path.name}"
            )
        raise UserError(path, "", "is missing")
    module = import_from(folder, HOST_MODULE)
    found = [
        value
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, Workload)
        and value.__module__ == module.__name__
    ]
    if len(found) != 1:
        raise UserError(path, "", f"must define one subclass of Workload, not {len(found)}")
    return found[0](folder, spec)
