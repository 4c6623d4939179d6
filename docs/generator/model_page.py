"""Page of one YAML file: its example, and tables of its keys from the typed models."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from docs.generator.markdown import (
    capital,
    escaped,
    page_head,
    schema_link,
    sentence,
    table,
    yaml_block,
)
from docs.generator.pages import Page
from docs.generator.schemas import Json, type_schema

NO_DEFAULT = "none"


def model_page(page: Page, schema: Json, example: str, writer: PageWriter) -> str:
    """Page of a file: its example, its keys, then its other types."""
    definitions = schema.get("$defs", {})
    sections = [(schema["title"], schema)]
    sections += [
        (each.model_config["title"], definitions[each.__name__])
        for each in page.models
        if each is not page.model
    ]
    sections += [(kind["title"], kind) for kind in map(type_schema, page.types)]
    lines = [
        *page_head(schema["title"], schema["description"], page.about),
        f"Unknown keys are errors. JSON schema for editors: {schema_link(page.file)}.",
        "",
        *yaml_block(example),
    ]
    for title, section in sections:
        if section is schema:
            lines += ["## Keys", ""]
        else:
            lines += [f"## {capital(title)}", "", sentence(section["description"]), ""]
        if "properties" in section:
            lines += [*writer.key_table(section, definitions), ""]
        else:
            lines += [f"Type: {writer.kind({**section, 'title': ''}, definitions)}.", ""]
    return "\n".join(lines)


class PageWriter:
    """Tables of one page.

    ``page``: its name, without suffix.
    ``links``: title of every described type to its page and its anchor there.
    """

    def __init__(self, page: str, links: Mapping[str, tuple[str, str]]) -> None:
        self._page = page
        self._links = links

    def key_table(self, section: Json, definitions: Mapping[str, Json]) -> list[str]:
        """Table of the keys of an object."""
        rows = []
        required = section.get("required", [])
        for key, schema in section["properties"].items():
            default = "required" if key in required else self._default(schema)
            rows.append((f"`{key}`", *self._cells(schema, definitions, default)))
        if isinstance(others := section.get("additionalProperties"), dict):
            rows.append(("any other", *self._cells(others, definitions, "")))
        return table(("key", "type", "default", "allowed", "description"), rows)

    def _cells(
        self, schema: Json, definitions: Mapping[str, Json], default: str
    ) -> tuple[str, str, str, str]:
        kind = self.kind(schema, definitions, without_null=default == NO_DEFAULT)
        limits = "; ".join(dict.fromkeys(_limits(schema)))
        return kind, default, limits, escaped(schema["description"])

    def _default(self, schema: Json) -> str:
        if "default" not in schema:
            return ""
        value = schema["default"]
        if value is None or value in ({}, [], ""):
            return NO_DEFAULT
        if "$ref" in schema:
            return "its defaults"
        return f"`{value if isinstance(value, str) else json.dumps(value)}`"

    def kind(
        self,
        schema: Json,
        definitions: Mapping[str, Json],
        many: bool = False,
        without_null: bool = False,
    ) -> str:
        """Type of a value in plain words."""
        if "$ref" in schema:
            schema = definitions[schema["$ref"].rpartition("/")[2]]
        plural = "s" if many else ""
        title = schema.get("title", "")
        if title in self._links:
            return self._link(title, "es" if many and title.endswith("ch") else plural)
        members = schema.get("anyOf", schema.get("oneOf"))
        if members is not None:
            kinds = [
                self.kind(each, definitions, many)
                for each in members
                if not (without_null and each == {"type": "null"})
            ]
            if "number" in kinds and "integer" in kinds:
                kinds.remove("integer")
            return " or ".join(dict.fromkeys(kinds))
        if schema["type"] == "array":
            if "prefixItems" in schema:
                one = self.kind(schema["prefixItems"][0], definitions, many=True)
                return f"list{plural} of {len(schema['prefixItems'])} {one}"
            return f"list{plural} of {self.kind(schema['items'], definitions, many=True)}"
        if schema["type"] == "object":
            values = self.kind(schema["additionalProperties"], definitions)
            return f"mapping{plural}: name to {values}"
        return f"{_WORDS.get(schema['type'], schema['type'])}{plural}"

    def _link(self, title: str, plural: str) -> str:
        page, place = self._links[title]
        target = (f"{page}.md" if page != self._page else "") + (f"#{place}" if place else "")
        return f"[{title}{plural}]({target})"


_WORDS = {"string": "text"}  # Types by names other than those of JSON


def _limits(schema: Json) -> Iterator[str]:
    """Limits of a value beside its type, in words."""
    if "enum" in schema:
        yield ", ".join(f"`{each}`" for each in schema["enum"])
    if "const" in schema:
        yield f"`{schema['const']}`"
    bounds = [f"{word} {schema[key]}" for key, word in _BOUNDS.items() if key in schema]
    if bounds:
        yield ", ".join(bounds)
    if "pattern" in schema:
        yield f"matches `{schema['pattern']}`"
    if schema.get("minLength"):
        yield "not empty"
    for key, word in (("minItems", "entries"), ("minProperties", "names")):
        if schema.get(key) and "prefixItems" not in schema:
            least = schema[key]
            yield "not empty" if least == 1 else f"at least {least} {word}"
    if "pattern" in schema.get("propertyNames", {}):
        yield f"names match `{schema['propertyNames']['pattern']}`"
    for member in schema.get("anyOf", []):
        yield from _limits(member)
    if isinstance(schema.get("items"), dict) and "anyOf" not in schema["items"]:
        yield from (f"each {each}" for each in _limits(schema["items"]))


_BOUNDS = {
    "minimum": "at least",
    "exclusiveMinimum": "above",
    "maximum": "at most",
    "exclusiveMaximum": "below",
}
