"""Imports a workload's folder as a Python package, wherever it lies.

Modules of a workload import each other relatively (``from .plan import Choice``), and the library
by its name. A folder needs no ``__init__.py``.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType

from launchwise.base.errors import UserError
from launchwise.base.places import SHIPPED
from launchwise.base.storage import digest


def import_from(folder: Path, module: str) -> ModuleType:
    """A module of a workload.

    Parameters
    ----------
    folder
        Folder of the workload.
    module
        Dotted path inside it, such as ``host.workload``.

    Raises
    ------
    UserError
        With file and line: it is missing, or fails when it is imported.
    """
    folder = folder.resolve()
    name = f"{_package_above(folder)}.{folder.name}.{module}"
    try:
        return importlib.import_module(name)
    except UserError:
        raise
    except Exception as error:
        raise own_error(folder, error) from error


def own_error(folder: Path, error: Exception) -> UserError:
    """UserError for an exception in a workload's Python, with file and line.

    Parameters
    ----------
    folder
        Folder of the workload.
    error
        What was raised, with its traceback.
    """
    where, line = folder, 0
    if isinstance(error, SyntaxError) and error.filename:
        where, line = Path(error.filename), error.lineno or 0
        said = f"SyntaxError: {error.msg}"
    else:
        for frame in traceback.extract_tb(error.__traceback__):
            if Path(frame.filename).is_relative_to(folder):
                where, line = Path(frame.filename), frame.lineno or 0
        said = f"{type(error).__name__}: {error}"
    message = f"{said} (an error in this workload's own Python, not in launchwise)"
    return UserError(where, f"line {line}" if line else "", message)


def _package_above(folder: Path) -> str:
    """Name of the package that the folder of a workload lies in.

    The project's own workloads have the name that any other code imports them by, so that a class
    exists once; a folder elsewhere belongs to a package that is made for it.
    """
    above = folder.parent
    if above.parent == SHIPPED:
        found = importlib.util.find_spec(above.name)
        places = (found.submodule_search_locations or []) if found else []
        if above in [Path(place).resolve() for place in places]:
            return above.name
    name = f"launchwise_workloads_{digest(str(above))}"
    _make_package(name, above)
    if not (folder / "__init__.py").exists():
        # By itself, Python takes NAME.py beside the folder, and looks for no name with a dot.
        _make_package(f"{name}.{folder.name}", folder)
    return name


def _make_package(name: str, folder: Path) -> None:
    if name not in sys.modules:
        package = ModuleType(name)
        package.__path__ = [str(folder)]
        sys.modules[name] = package
