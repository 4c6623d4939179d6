"""Typed models of files that people write: one base class, one-line errors, strict YAML."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from launchwise.errors import UserError, unknown


class Strict(BaseModel):
    """A model that refuses keys it does not know and never changes after it was read."""

    model_config = ConfigDict(extra="forbid", frozen=True)


Model = TypeVar("Model", bound=BaseModel)


class _UniqueKeys(yaml.SafeLoader):
    """YAML in which a repeated key is an error instead of a silent override."""


def _mapping(loader: _UniqueKeys, node: yaml.MappingNode) -> dict[Any, Any]:
    seen: set[Any] = set()
    for key_node, _ in node.value:
        if key_node.tag == "tag:yaml.org,2002:merge":
            continue
        key = loader.construct_object(key_node)
        if key in seen:
            raise yaml.MarkedYAMLError(
                problem=f"{key!r} is given twice", problem_mark=key_node.start_mark
            )
        seen.add(key)
    loader.flatten_mapping(node)
    return loader.construct_mapping(node, deep=True)


_UniqueKeys.add_constructor("tag:yaml.org,2002:map", _mapping)


def read_yaml(path: str | Path) -> Any:
    """Read a YAML file in which no key occurs twice.

    Raises
    ------
    UserError
        When it is missing, no YAML, or repeats a key (the line is named).
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
        return yaml.load(text, Loader=_UniqueKeys)
    except OSError as error:
        raise UserError(path, "", f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UserError(path, "", f"is no UTF-8 text: {error.reason}") from error
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else "?"
        raise UserError(path, f"line {line}", str(error.problem)) from error


def validated(model: type[Model], value: Any, where: str | Path) -> Model:
    """``value`` as ``model``; the first thing wrong as a :class:`UserError` naming its key."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise UserError(where, *first_problem(error, model)) from error


def first_problem(error: ValidationError, model: type[BaseModel]) -> tuple[str, str]:
    """Key and message of the first problem that pydantic found."""
    problem = error.errors()[0]
    # Tagged unions and validators put their own marks into the location: keys are what is left.
    location = [str(part) for part in problem["loc"] if not str(part).startswith("function-")]
    key = ".".join(location)
    if problem["type"] == "extra_forbidden":
        return key, unknown("key", location[-1], _keys_beside(model, location[:-1]))
    message = str(problem["msg"]).removeprefix("Value error, ")
    if problem["type"] not in ("missing", "value_error"):
        message += f" (got {_shortened(problem['input'])})"
    return key, message


def _keys_beside(model: Any, location: list[str]) -> list[str]:
    """Keys allowed at ``location`` inside ``model``, as far as types tell."""
    for part in location:
        fields = getattr(model, "model_fields", None)
        if fields is not None and part in fields:
            model = fields[part].annotation
        inner = [kind for kind in _models_in(model)]
        if not inner:
            return []
        model = inner[0]
    return list(getattr(model, "model_fields", {}))


def _models_in(annotation: Any) -> list[Any]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [
        found for argument in getattr(annotation, "__args__", ()) for found in _models_in(argument)
    ]


def _shortened(value: Any, limit: int = 60) -> str:
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"
