"""Hyper-parameters of a kind of model: names, defaults, limits, and what a search tries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from launchwise.base.typed import first_problem

TRIED = "tried"  # Mark of a field that a search tries


class Hyperparameters(BaseModel):
    """Hyper-parameters of a kind; a subclass adds its own, each with a type, default and limits."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    seed: int = Field(0, ge=0, le=2**32 - 1)  # within what every library takes

    @classmethod
    def misfit(cls, given: Mapping[str, Any]) -> tuple[str, str] | None:
        """Name of the first value that does not fit, and what is wrong with it; None if all fit."""
        try:
            cls.model_validate(given)
        except ValidationError as error:
            return first_problem(error, cls, given)
        return None

    @classmethod
    def suggested(cls, trial: Any) -> dict[str, Any]:
        """Values that an Optuna ``trial`` tries of the fields made by :func:`tried`, own first."""
        inherited = [name for base in cls.__bases__ for name in getattr(base, "model_fields", ())]
        found = {}
        for name in sorted(cls.model_fields, key=lambda name: name in inherited):
            field = cls.model_fields[name]
            if not isinstance(field.json_schema_extra, dict):
                continue
            low, high, log = cast("list[Any]", field.json_schema_extra[TRIED])
            if low is None:
                values = [True, False] if field.annotation is bool else get_args(field.annotation)
                found[name] = trial.suggest_categorical(name, list(values))
            else:
                suggest = trial.suggest_int if isinstance(low, int) else trial.suggest_float
                found[name] = suggest(name, low, high, log=log)
        return found


def tried(
    default: Any, low: Any = None, high: Any = None, *, log: bool = False, **limits: Any
) -> Any:
    """A hyper-parameter that a search tries from ``low`` to ``high``, else at all of its values.

    ``log``: by ratio. ``limits`` are those of :func:`pydantic.Field`.
    """
    return Field(default, json_schema_extra={TRIED: [low, high, log]}, **limits)
