"""Recommenders that learn: one module a kind, found by its name.

``models.<name>.kind`` in the settings names a module of this package. Modules are imported when
they are asked for, so that a job loads the one library that it needs.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from launchwise.base.errors import UserError, unknown

if TYPE_CHECKING:
    from launchwise.learning.recommender import Recommender

FOLDER = Path(__file__).resolve().parent

BY_COST = ("analytical", "learnt")
"""Kinds that go by a workload's ``cost.yaml``: no measurement on the GPU that is asked about."""


def kinds() -> list[str]:
    """Kinds of recommenders that exist."""
    return sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "__init__")


def source(kind: str) -> str:
    """Path of a kind's module from the root of the project: a rule's code depends on it."""
    return f"launchwise/learning/recommenders/{kind}.py"


def recommender_class(kind: str, key: str = "models") -> type[Recommender]:
    """The recommender's class of one kind.

    Raises
    ------
    UserError
        When there is no such kind.
    """
    from launchwise.learning.recommender import Recommender

    if kind not in kinds():
        raise UserError("config.yaml", f"{key}.kind", unknown("kind of model", kind, kinds()))
    module = import_module(f"{__name__}.{kind}")
    found = [
        member
        for _, member in inspect.getmembers(module, inspect.isclass)
        if issubclass(member, Recommender) and member.__module__ == module.__name__
    ]
    if len(found) != 1:
        raise UserError(source(kind), "", f"must hold one Recommender, holds {len(found)}")
    return found[0]
