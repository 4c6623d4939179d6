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

from launchwise.base.declarations import UNREADABLE, Unreadable, class_constant, module_constant
from launchwise.base.errors import unknown
from launchwise.learning.misfits import misfit
from launchwise.learning.recommenders import (
    COMMITTEE,
    FOLDER,
    kinds,
    members_of,
    recommender_class,
    source,
    split_parameters,
)

BASELINES_FILE = FOLDER.parent / "baselines.py"


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
    if kind == COMMITTEE:
        return _complaint_of_committee(parameters, workload)
    return _misfit_of(kind, parameters, workload)


def _misfit_of(
    kind: str, parameters: Mapping[str, Any], workload: Path | None
) -> tuple[str, str] | None:
    defaults, allowed = _declared(kind, workload)
    for name, value in parameters.items():
        if said := misfit(name, value, defaults, allowed):
            return name, said
    return None


def _complaint_of_committee(
    parameters: Mapping[str, Any], workload: Path | None
) -> tuple[str, str] | None:
    own, of_members = split_parameters(parameters)
    if said := _misfit_of(COMMITTEE, own, workload):
        return said
    heuristics = module_constant(BASELINES_FILE, "BASELINES")
    known = {*kinds(workload), *heuristics} - {COMMITTEE}
    members = members_of(parameters)
    for member in members:
        if member not in known:
            return "members", unknown("member", member, known)
    for member, theirs in of_members.items():
        first = f"{member}.{next(iter(theirs))}"
        if member not in members:
            return first, unknown("member", member, members)
        if member in heuristics:
            return first, f"{member} has no parameters"
        if said := _misfit_of(member, theirs, workload):
            return f"{member}.{said[0]}", said[1]
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
