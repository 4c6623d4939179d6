"""Checks hyper-parameters against what a kind of model declares.

A class lists its hyper-parameters in ``defaults`` and what each may be in ``allowed``. Settings are
checked before any job, so both are read from the source text: importing a model's class may load
libraries that take seconds. Where the text does not tell, the class is imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from launchwise.base.declarations import UNREADABLE, Unreadable, class_constant
from launchwise.learning.misfits import misfit
from launchwise.learning.recommenders import recommender_class, source


def complaint(
    kind: str, parameters: Mapping[str, Any], workload: Path | None = None
) -> tuple[str, str] | None:
    """The first hyper-parameter of a model that does not fit its kind, and what is wrong with it.

    Parameters
    ----------
    kind
        Exists.
    workload
        Folder of the workload, whose own kinds count as well.

    Raises
    ------
    UserError
        When the kind's module can neither be read nor imported.
    """
    if not parameters:
        return None
    defaults, allowed = _declared(kind, workload)
    for name, value in parameters.items():
        if said := misfit(name, value, defaults, allowed):
            return name, said
    return None


@cache
def _declared(kind: str, workload: Path | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """``defaults`` and ``allowed`` of a kind."""
    try:
        path = source(kind, workload)
        found = [class_constant(path, "Recommender", name) for name in ("defaults", "allowed")]
        if any(UNREADABLE in _flat(each) for each in found[1].values()):
            raise Unreadable(f"{path}: allowed")
        return found[0], found[1]
    except Unreadable:
        own = recommender_class(kind, workload=workload)
        return own.defaults, own.allowed


def _flat(values: Any) -> list[Any]:
    return [values, *values] if isinstance(values, list | tuple) else [values]
