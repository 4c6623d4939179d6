"""Recommenders that learn: a module per kind, found by its name, or per family of kinds.

``models.<name>.kind`` in the settings names a module of this package, a kind of :data:`FAMILIES`,
or a module in the folder ``recommenders`` of a study's workload. Modules are imported when they are
asked for, so that a job loads the one library that it needs.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from launchwise.base.errors import UserError, unknown
from launchwise.workloads.declared.own_functions import import_from

if TYPE_CHECKING:
    from launchwise.learning.recommender import Recommender

FOLDER = Path(__file__).resolve().parent

BY_COST = ("analytical", "learnt")
"""Kinds that use a workload's ``cost.yaml`` and need no measurement on the target GPU."""

COMMITTEE = "committee"  # Kind that is made of others
COST_MODEL_WITH_TREES = "learnt"  # Kind whose predicted times are the nearest

MEMBERS = (COST_MODEL_WITH_TREES, "xgboost")
"""Members of a committee that names none, as far as its study has them."""

SIMPLE_RULES = (
    "untuned",
    "usual",
    "best_on_average",
    "nearest_size",
    "nearest_gpu",
    "most_frequent_best",
)
"""Names of heuristics without learning (:mod:`launchwise.learning.baselines`), in the order of the
report."""

FAMILIES = {
    **dict.fromkeys(("analytical", "learnt", "roofline"), "_cost_model"),
    **dict.fromkeys(("best_tree", "forest", "tree"), "_trees"),
    **dict.fromkeys(("lightgbm", "xgboost"), "_trees"),
}
"""Kinds that share a module of this package: its name, which is none of a kind."""

OWN = "recommenders"  # Folder of a workload with its own kinds


def kinds(workload: Path | None = None) -> list[str]:
    """Kinds of recommenders that exist, for any workload or also for the one in this folder."""
    return sorted({*_modules(FOLDER), *FAMILIES, *(_modules(workload / OWN) if workload else [])})


def _modules(folder: Path) -> list[str]:
    packages = (path.parent for path in folder.glob("[a-z]*/__init__.py"))
    return [path.stem for path in (*folder.glob("[a-z]*.py"), *packages)]


def is_own(kind: str, workload: Path | None) -> bool:
    """Whether a kind is one of the workload in this folder alone."""
    return workload is not None and kind in _modules(workload / OWN)


def source(kind: str, workload: Path | None = None) -> Path:
    """File of a kind's module: a rule's code depends on it."""
    if workload is not None and is_own(kind, workload):
        path = workload / OWN / kind
        return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return FOLDER / f"{FAMILIES.get(kind, kind)}.py"


def members_of(parameters: Mapping[str, Any], models: Collection[str]) -> list[str]:
    """Members of a committee by its parameters, in order.

    ``models``: models of its study: a committee that names no members has those of its default that
    are among them.
    """
    default = [name for name in MEMBERS if name in models]
    named = str(parameters.get("members", ", ".join(default)))
    return list(dict.fromkeys(name.strip() for name in named.split(",") if name.strip()))


def answering_model(models: Mapping[str, Mapping[str, Any]]) -> str:
    """Name of the model that answers: the committee of a study, or its first model."""
    chosen = [name for name, entry in models.items() if entry["kind"] == COMMITTEE]
    return chosen[0] if chosen else next(iter(models))


def recommender_class(
    kind: str, key: str = "models", workload: Path | None = None, where: str | Path = "config.yaml"
) -> type[Recommender]:
    """The recommender's class of one kind.

    ``key``: what asks for it, for messages; ``workload``: folder of the workload, whose own kinds
    count as well; ``where``: file that names it, for messages. Raises UserError when there is no
    such kind, or its module holds none.
    """
    from launchwise.learning.recommender import Recommender

    if kind not in kinds(workload):
        message = unknown("kind of model", kind, kinds(workload))
        raise UserError(where, f"{key}.kind".lstrip("."), message)
    if workload is not None and is_own(kind, workload):
        module = import_from(workload, f"{OWN}.{kind}")
    else:
        module = import_module(f"{__name__}.{FAMILIES.get(kind, kind)}")
    found = [
        member
        for _, member in inspect.getmembers(module, inspect.isclass)
        if issubclass(member, Recommender) and member.__module__ == module.__name__
    ]
    if kind in FAMILIES:
        own_name = f"{kind.replace('_', '')}recommender"
        found = [member for member in found if member.__name__.lower() == own_name]
    if len(found) != 1:
        message = f"must hold one Recommender, holds {len(found)}"
        raise UserError(source(kind, workload), "", message)
    return found[0]
