"""Functions of a user's own that a spec names, such as ``reference.py:expected``.

A function gets what its signature names, and nothing else.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError, unknown
from launchwise.base.names import SPEC_FILE
from launchwise.workloads.packages import import_from, own_error
from launchwise.workloads.spec import Spec


@dataclass(frozen=True)
class OwnFunction:
    """A function of a Python file in a workload's folder."""

    folder: Path
    # File and function, as the spec names them.
    named: str
    call: Callable[..., Any]
    # Parameters that it must be given.
    wanted: tuple[str, ...]
    # Parameters with a default; they are given too where they are known.
    optional: tuple[str, ...]
    # Whether it takes ``**anything``.
    takes_all: bool

    @property
    def file(self) -> Path:
        """The Python file."""
        return self.folder / self.named.partition(":")[0]

    @property
    def name(self) -> str:
        """Name of the function."""
        return self.named.partition(":")[2]

    def names(self) -> tuple[str, ...]:
        """Every parameter that its signature names."""
        return (*self.wanted, *self.optional)

    def takes(self, name: str) -> bool:
        """Whether it is given a value of that name."""
        return self.takes_all or name in self.names()

    def insist_on_names(self, available: Collection[str]) -> None:
        """Check that it wants nothing else.

        Raises
        ------
        UserError
            When it names a value that there is not.
        """
        if missing := [name for name in self.wanted if name not in available]:
            message = f"{self.name} takes {missing[0]!r}: {unknown('name', missing[0], available)}"
            raise UserError(self.file, self.name, message)

    def __call__(self, available: Mapping[str, Any]) -> Any:
        """Result for those of the ``available`` values that the signature names.

        Raises
        ------
        UserError
            When it names a value that there is not, or fails; with file and line.
        """
        self.insist_on_names(available)
        try:
            return self.call(**{n: value for n, value in available.items() if self.takes(n)})
        except Exception as error:
            raise own_error(self.folder, error) from error


def own_function(folder: Path, named: str, key: str) -> OwnFunction:
    """The function ``named``, such as ``reference.py:expected``, of a workload's folder.

    Parameters
    ----------
    key
        Key of the spec that names it.

    Raises
    ------
    UserError
        When file or function is missing, or a parameter cannot be given by name.
    """
    file, _, name = named.partition(":")
    path = folder / file
    if not path.is_file():
        raise UserError(folder / SPEC_FILE, key, f"no file {file!r}")
    module = import_from(folder, ".".join(Path(file).with_suffix("").parts))
    function = getattr(module, name, None)
    if not callable(function):
        raise UserError(path, name, "is no function of this file")
    parameters = inspect.signature(function).parameters.values()
    kinds = {each.name: each.kind for each in parameters}
    if unnamed := [n for n, kind in kinds.items() if kind is inspect.Parameter.POSITIONAL_ONLY]:
        raise UserError(path, name, f"parameter {unnamed[0]!r} cannot be given by name")
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    named_ones = [each for each in parameters if each.kind in by_name]
    return OwnFunction(
        folder=folder,
        named=named,
        call=function,
        wanted=tuple(e.name for e in named_ones if e.default is inspect.Parameter.empty),
        optional=tuple(e.name for e in named_ones if e.default is not inspect.Parameter.empty),
        takes_all=inspect.Parameter.VAR_KEYWORD in kinds.values(),
    )


def check_own_functions(folder: Path, spec: Spec) -> None:
    """Import every function of the user's own that a spec names, and check its parameters.

    Raises
    ------
    UserError
        At the first one that is missing, fails, or wants a value that there is not.
    """
    reference = spec.reference
    named = {
        "inputs": spec.inputs,
        "reference.file": None if reference is None else reference.file,
        "reference.compare": None if reference is None else reference.compare,
    }
    more = {"inputs": ("generator", "problem"), "reference.compare": ("found", "expected")}
    known = (*spec.problem, *spec.derived, *spec.tunable_columns, *spec.arguments)
    for key, text in named.items():
        if text is not None:
            own_function(folder, text, key).insist_on_names({*known, *more.get(key, ())})
