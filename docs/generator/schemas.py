"""JSON schemas of the files that people write, for editors: generated from the typed models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, models_json_schema
from pydantic_core import core_schema

from launchwise.base.typed import models_in
from launchwise.experiment.method import Sweep
from launchwise.experiment.published import Elements, RunTimes
from launchwise.experiment.settings import Settings
from launchwise.experiment.study import StudyFile
from launchwise.workloads.cost import Cost
from launchwise.workloads.spec import Spec
from launchwise.workloads.usual import UsualChoices

MODELS: dict[str, type[BaseModel]] = {
    "config": Settings,
    "sweep": Sweep,
    "study": StudyFile,
    "elements": Elements,
    "run_times": RunTimes,
    "spec": Spec,
    "cost": Cost,
    "usual": UsualChoices,
}
"""File, without its suffix, to the model of its content."""

FEATURES = "features"  # `features.yaml`, the one file whose content is no model but a mapping

OVERRIDES: dict[str, type[BaseModel]] = {"sweeps": Sweep, "studies": StudyFile}
"""Keys of the settings that override keys of a file, to the model of that file."""

PARTIAL = "Partial"  # Prefix of definitions whose keys are all optional
EVERY_KEY_OPTIONAL = ", every key optional"  # How their titles end

Json = dict[str, Any]


class Generator(GenerateJsonSchema):
    """JSON schemas without a title per key, and with the titles of types inside mappings."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Never: it would repeat the key."""
        return False

    def dict_schema(self, schema: core_schema.DictSchema) -> Json:
        """A mapping whose names have a schema of their own."""
        found: Json = {"type": "object"}
        keys = self.generate_inner(schema["keys_schema"])
        if keys != {"type": "string"}:
            found["propertyNames"] = keys
        found["additionalProperties"] = self.generate_inner(schema["values_schema"]) or True
        self.update_with_validations(found, schema, self.ValidationsMapping.object)
        return found


def schemas() -> dict[str, Json]:
    """JSON schema (2020-12) of every file: name without suffix to schema."""
    found = {name: _schema(model) for name, model in MODELS.items()}
    features = type_schema(Spec.model_fields[FEATURES].annotation)
    described = {
        "title": "features.yaml",
        "description": "Features that models learn from: name to expression.",
    }
    found[FEATURES] = {"$schema": Generator.schema_dialect, **described, **features}
    return found


def type_schema(annotation: Any) -> Json:
    """JSON schema of a type that is no model."""
    return TypeAdapter(annotation).json_schema(schema_generator=Generator)


def nested_models(model: type[BaseModel]) -> list[type[BaseModel]]:
    """``model`` and every model below it, in the order of their keys, each once."""
    found = [model]
    for place in found:
        for field in place.model_fields.values():
            found += [each for each in models_in(field.annotation) if each not in found]
    return found


def _schema(model: type[BaseModel]) -> Json:
    wanted = [model, *(OVERRIDES.values() if model is Settings else ())]
    _, together = models_json_schema(
        [(each, "validation") for each in wanted], schema_generator=Generator
    )
    definitions = together["$defs"]
    root = definitions.pop(model.__name__)
    if model is Settings:
        for key, overridden in OVERRIDES.items():
            partial = _partial({"$ref": _reference(overridden.__name__)}, definitions)
            root["properties"][key]["additionalProperties"] = _or_null(partial)
    used = {name: definitions[name] for name in sorted(_used(root, definitions))}
    schema = {"$schema": Generator.schema_dialect, **root}
    return {**schema, "$defs": used} if used else schema


def _reference(name: str) -> str:
    return f"#/$defs/{name}"


def _name(reference: str) -> str:
    return reference.rpartition("/")[2]


def _partial(schema: Json, definitions: dict[str, Json]) -> Json:
    """``schema`` for overrides of a complete value (:func:`launchwise.base.typed.merged`). No key
    is required and each may be null; lists and plain values are replaced whole."""
    if "$ref" in schema:
        name = _name(schema["$ref"])
        made = PARTIAL + name
        if made not in definitions:
            definitions[made] = {}  # A model may hold itself.
            whole = definitions[name]
            title = f"{whole['title']}{EVERY_KEY_OPTIONAL}"
            definitions[made] = {**_partial(whole, definitions), "title": title}
        return {**_without(schema, "default"), "$ref": _reference(made)}
    members = schema.get("anyOf", schema.get("oneOf"))
    if members is not None:
        kept = _without(schema, "anyOf", "oneOf", "discriminator", "default")
        return {**kept, "anyOf": [_partial(each, definitions) for each in members]}
    kept = _without(schema, "default", "required", "minProperties")
    if "properties" in schema:
        each = schema["properties"].items()
        kept["properties"] = {key: _or_null(_partial(one, definitions)) for key, one in each}
    if isinstance(schema.get("additionalProperties"), dict):
        values = schema["additionalProperties"]
        kept["additionalProperties"] = _or_null(_partial(values, definitions))
    return kept


def _or_null(schema: Json) -> Json:
    null = {"type": "null"}
    if null in schema.get("anyOf", []):
        return schema
    about = {key: schema[key] for key in ("description",) if key in schema}
    members = schema["anyOf"] if "anyOf" in schema else [_without(schema, "description")]
    return {**about, "anyOf": [*members, null]}


def _without(schema: Json, *keys: str) -> Json:
    return {key: value for key, value in schema.items() if key not in keys}


def _used(schema: Json, definitions: dict[str, Json]) -> set[str]:
    """Names of the definitions that a schema refers to, directly or not."""
    found: set[str] = set()
    remaining = [schema]
    while remaining:
        names = {_name(each) for each in _references(remaining.pop())} - found
        found |= names
        remaining += [definitions[name] for name in names]
    return found


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "$ref":
                yield inner
            else:
                yield from _references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _references(inner)
