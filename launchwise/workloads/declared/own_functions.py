"""Python of a workload's folder: its modules, and functions that a spec names.

Modules of a workload import each other relatively (``from .plan import Choice``), and the library
by its name. A folder needs no ``__init__.py``. A function, such as ``reference.py:expected``, gets
what its signature names, and nothing else.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

from launchwise.base.errors import UserError, unknown
from launchwise.base.names import SPEC_FILE
from launchwise.base.places import SHIPPED
from launchwise.base.storage import digest
from launchwise.workloads.spec import Spec


def import_from(folder: Path, module: str) -> ModuleType:
    """A module of a workload.

    ``module``: dotted path inside it, such as ``host.workload``.
    Raises UserError with file and line: it is missing, or fails when it is imported.
    """
    folder = folder.resolve()
    name = f"{_package_above(folder)}.{folder.name}.{module}"
    try:
        return importlib.import_module(name)
    except UserError:
        raise
    except (Exception, SystemExit) as error:
        raise own_error(folder, error) from error


def own_error(folder: Path, error: BaseException) -> UserError:
    """UserError for an exception in a workload's Python, with file and line.

    ``error``: what was raised, with its traceback.
    """
    where, line = folder, 0
    if isinstance(error, SyntaxError) and error.filename:
        where, line = Path(error.filename), error.lineno or 0
        said = f"SyntaxError: {error.msg}"
    else:
        for frame in traceback.extract_tb(error.__traceback__):
            if Path(frame.filename).is_relative_to(folder):
                where, line = Path(frame.filename), frame.lineno or 0
        is_exit = isinstance(error, SystemExit)
        said = "ends the process" if is_exit else f"{type(error).__name__}: {error}"
    message = f"{said} (an error in this workload's own Python, not in launchwise)"
    return UserError(where, f"line {line}" if line else "", message)


def _package_above(folder: Path) -> str:
    """Name of the package that the folder of a workload lies in. The project's own workloads have
    the name that any other code imports them by, so that a class exists once; a folder elsewhere
    belongs to a package that is made for it."""
    above = folder.parent
    if above.parent == SHIPPED:
        found = importlib.util.find_spec(above.name)
        places = (found.submodule_search_locations or []) if found else []
        if above in [Path(place).resolve() for place in places]:
            return above.name
    name = f"launchwise_workloads_{digest(str(above))}"
    Folders.packages[name] = above
    if not (folder / "__init__.py").exists():
        # By itself, Python takes NAME.py beside the folder, and looks for no name with a dot.
        Folders.packages[f"{name}.{folder.name}"] = folder
    return name


class Folders(MetaPathFinder):
    """Finds packages over folders that no path of Python leads to."""

    packages: ClassVar[dict[str, Path]] = {}

    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        if fullname not in self.packages:
            return None
        found = ModuleSpec(fullname, None, is_package=True)
        found.submodule_search_locations = [str(self.packages[fullname])]
        return found


sys.meta_path.insert(0, Folders())


@dataclass(frozen=True)
class OwnFunction:
    """A function of a Python file in a workload's folder."""

    folder: Path
    named: str  # file and function, as the spec names them
    call: Callable[..., Any]
    # Parameters to whether they have a default; all are given where they are known.
    parameters: Mapping[str, bool]
    takes_all: bool  # whether it takes `**anything`

    @property
    def file(self) -> Path:
        return self.folder / self.named.partition(":")[0]

    @property
    def name(self) -> str:
        return self.named.partition(":")[2]

    def takes(self, name: str) -> bool:
        """Whether it is given a value of that name."""
        return self.takes_all or name in self.parameters

    def insist_on_names(self, available: Collection[str]) -> None:
        """Check that it wants nothing else. Raises UserError when it names a value that there is
        not."""
        for name, has_default in self.parameters.items():
            if not has_default and name not in available:
                message = f"{self.name} takes {name!r}: {unknown('name', name, available)}"
                raise UserError(self.file, self.name, message)

    def __call__(self, available: Mapping[str, Any]) -> Any:
        """Result for those of the ``available`` values that the signature names. Raises UserError
        when it names a value that there is not, or fails; with file and line."""
        self.insist_on_names(available)
        try:
            return self.call(**{n: value for n, value in available.items() if self.takes(n)})
        except (Exception, SystemExit) as error:
            raise own_error(self.folder, error) from error


def own_function(folder: Path, named: str, key: str) -> OwnFunction:
    """The function ``named``, such as ``reference.py:expected``, of a workload's folder.

    ``key``: key of the spec that names it.
    Raises UserError when file or function is missing, or a parameter cannot be given by name.
    """
    file, _, name = named.partition(":")
    path = folder / file
    if not path.is_file():
        raise UserError(folder / SPEC_FILE, key, f"no file {file!r}")
    module = import_from(folder, ".".join(Path(file).with_suffix("").parts))
    function = getattr(module, name, None)
    if not callable(function):
        raise UserError(path, name, "is no function of this file")
    parameters = inspect.signature(function).parameters
    for each in parameters.values():
        if each.kind is each.POSITIONAL_ONLY:
            raise UserError(path, name, f"parameter {each.name!r} cannot be given by name")
    kinds = [each.kind for each in parameters.values()]
    by_name = {
        each.name: each.default is not each.empty
        for each in parameters.values()
        if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)
    }
    return OwnFunction(folder, named, function, by_name, inspect.Parameter.VAR_KEYWORD in kinds)


def check_own_functions(folder: Path, spec: Spec) -> None:
    """Import every function of the user's own that a spec names, and check its parameters. Raises
    UserError at the first one that is missing, fails, or wants a value that there is not."""
    more = {"inputs": ("generator", "problem"), "reference.compare": ("found", "expected")}
    known = (*spec.problem, *spec.derived, *spec.tunable_columns, *spec.arguments)
    for key, text in spec.own_functions.items():
        own_function(folder, text, key).insist_on_names({*known, *more.get(key, ())})
