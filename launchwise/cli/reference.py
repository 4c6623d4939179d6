"""Generate JSON schemas and reference pages from the typed models and the command line.

Writes ``schemas/*.schema.json`` and ``docs/reference/*.md``; ``--check`` only says which of them
are stale. Each page begins with an example from ``docs/reference/examples``.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from launchwise.base.errors import UserError
from launchwise.base.expressions import FUNCTION_DESCRIPTIONS, evaluate
from launchwise.cli.app import NAME
from launchwise.cli.command_page import command_sections
from launchwise.experiment.method import ProblemBlock, Selection
from launchwise.experiment.schemas import (
    EVERY_KEY_OPTIONAL,
    FEATURES,
    MODELS,
    Json,
    nested_models,
    schemas,
    type_schema,
)
from launchwise.gpus.machine import Machine
from launchwise.gpus.profile import GPU_FEATURES, GpuProfile
from launchwise.workloads.cost import LEAST, RESIDENT, Uses, Waits
from launchwise.workloads.parts import GPU_NAMES

SCHEMAS = Path("schemas")
PAGES = Path("docs/reference")
EXAMPLES = PAGES / "examples"
COMMAND = "make reference"
EXPRESSIONS = "expressions"
NO_DEFAULT = "none"


@dataclass(frozen=True)
class Page:
    """A page of the reference that describes one file.

    Parameters
    ----------
    name
        Of the page, without its suffix.
    file
        Of :data:`launchwise.experiment.schemas.MODELS`.
    about
        Where the file lies and what it is.
    types
        Types of the page that are no models.
    modules
        Modules with models of the page, beside that of the file's model.
    """

    name: str
    file: str
    about: str
    types: tuple[Any, ...] = ()
    modules: tuple[str, ...] = ()

    @property
    def model(self) -> type[BaseModel]:
        """Of the file's content."""
        return MODELS[self.file]

    @property
    def models(self) -> list[type[BaseModel]]:
        """Models that the page describes: those of its model's module and of its own ones."""
        every = nested_models(self.model)
        modules = (self.model.__module__, *self.modules)
        return [each for each in every if each.__module__ in modules]


MODEL_PAGES = (
    Page(
        "settings",
        "config",
        "Overlays (`config/*.yaml`) have the same keys. Snakemake merges them over `config.yaml` "
        "key by key.",
        modules=("launchwise.experiment.confirmation",),
    ),
    Page(
        "sweep",
        "sweep",
        "The file lies in the folder of its workload: `kernels/<workload>/sweep.yaml`. "
        "`sweeps.<workload>` of [config.yaml](settings.md) overrides single keys.",
        types=(ProblemBlock, Selection),
    ),
    Page(
        "study",
        "study",
        "The folder names the study: `kernels/<workload>/studies/<study>/study.yaml`. "
        "`studies.<study>` of [config.yaml](settings.md) overrides single keys.",
    ),
    Page(
        "elements",
        "elements",
        "The file lies in the folder of a study: `published/elements.yaml`. The report shows it as "
        "a table and warns of a file that does not exist or does not hold the text.",
    ),
    Page(
        "run_times",
        "run_times",
        "The file lies in the folder of a study: `published/run_times.yaml`. It says which columns "
        "of the published tables beside it (`published/*.csv`) hold run times. The stage `predict` "
        "predicts them on datasheet-only GPUs of the same cards; the report shows both "
        "([how to](../how-to/predict_times.md#published-run-times)).",
    ),
    Page(
        "spec",
        "spec",
        "The folder names the workload: `kernels/<workload>/spec.yaml`. Features may lie beside it "
        "in `features.yaml` ([example](expressions.md)), the cost in [cost.yaml](cost.md). With "
        "`arguments` and `reference` the file is all that a kernel needs.",
        modules=("launchwise.workloads.parts", "launchwise.workloads.arguments"),
    ),
    Page(
        "cost",
        "cost",
        "The file lies beside `spec.yaml`: `kernels/<workload>/cost.yaml`. Without it, a run "
        "counts as one kernel that moves the least bytes.",
        types=(Uses, Waits),
    ),
    Page(
        "usual",
        "usual",
        "The file lies beside `spec.yaml`: `kernels/<workload>/usual.yaml`. It names the "
        "configuration that a competent person takes without measuring: what a recommendation has "
        "to beat. Without it that is the baseline of [spec.yaml](spec.md). A study may have "
        "[choices of its own](study.md).",
    ),
)

OPERATORS = (
    ("+", "addition", "7 + 2"),
    ("-", "subtraction, or the negative of a number", "7 - 2"),
    ("*", "multiplication", "7 * 2"),
    ("/", "division", "7 / 2"),
    ("//", "division, rounded down", "7 // 2"),
    ("%", "remainder", "7 % 2"),
    ("**", "power", "7 ** 2"),
    ("==  !=  <  <=  >  >=", "comparison of numbers or texts", "1 < 7 <= 8"),
    ("and  or  not", "logic", "7 > 2 and not 7 > 8"),
    ("in  not in", "membership in a list", "'float32' in ('float32', 'float64')"),
    ("… if … else …", "choice", "4 if 'float32' == 'float32' else 8"),
)
"""Operator, what it does, and an example."""

READERS = (
    (
        "`spec.yaml`: `derived`",
        "problem parameters, tunables, `variant`, derived names above",
    ),
    ("`spec.yaml`: `work`", "problem parameters, derived names that read nothing else"),
    (
        "`spec.yaml`: `constraints`, `block`, `grid`",
        "problem parameters, tunables, `variant`, derived names, [limits of the GPU](#gpu)",
    ),
    (
        "`features.yaml`",
        "problem parameters, tunables, `variant`, derived names, [attributes of the GPU](#gpu)",
    ),
    (
        "`cost.yaml`",
        "all of these, derived names of `cost.yaml` above, [constants of the cost model]"
        "(#cost-model)",
    ),
    (
        "`sweep.yaml`, `study.yaml`: `constraints`",
        "problem parameters, tunables, `variant`, derived names",
    ),
)
"""Where expressions stand, and which names they may read."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the files, or check them; returns 1 and prints one line per stale file or mistake."""
    parser = argparse.ArgumentParser(prog="python -m launchwise.cli.reference", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if any is stale")
    asked = parser.parse_args(arguments)
    try:
        files = generated(Path.cwd())
    except UserError as error:
        print(f"launchwise: {error}", file=sys.stderr)
        return 1
    stale = stale_files(files)
    for path in stale:
        if asked.check:
            print(f"launchwise: {path}: is stale; run `{COMMAND}`", file=sys.stderr)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(files[path], encoding="utf-8")
    return 1 if asked.check and stale else 0


def stale_files(files: Mapping[Path, str]) -> list[Path]:
    """Those of ``files`` (path to text) that are missing or have another text."""
    return [
        path
        for path, text in files.items()
        if not path.is_file() or path.read_text(encoding="utf-8") != text
    ]


def generated(root: Path) -> dict[Path, str]:
    """Every generated file of the project in ``root``: path to text.

    Raises
    ------
    UserError
        When the example of a page is missing.
    """
    every = schemas()
    texts = {
        root / SCHEMAS / f"{name}.schema.json": json.dumps(schema, indent=2, ensure_ascii=False)
        for name, schema in every.items()
    }
    links = _links()
    for page in MODEL_PAGES:
        example = _example(root, page.file)
        texts[root / PAGES / f"{page.name}.md"] = model_page(
            page, every[page.file], example, PageWriter(page.name, links)
        )
    texts[root / PAGES / f"{EXPRESSIONS}.md"] = expression_page(_example(root, FEATURES))
    texts[root / PAGES / f"{NAME}.md"] = command_page()
    return {path: f"{text.rstrip()}\n" for path, text in texts.items()}


def _example(root: Path, name: str) -> str:
    path = root / EXAMPLES / f"{name}.yaml"
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise UserError(path, "", f"cannot be read: {error.strerror}") from error


def _links() -> dict[str, tuple[str, str]]:
    """Title of every described type to its page and its anchor there."""
    found = {"expression": (EXPRESSIONS, "")}
    for page in MODEL_PAGES:
        for model in page.models:
            title = str(model.model_config["title"])
            found[title] = (page.name, "" if model is page.model else anchor(title))
            found[f"{title}{EVERY_KEY_OPTIONAL}"] = found[title]
        for kind in page.types:
            title = type_schema(kind)["title"]
            found[title] = (page.name, anchor(title))
    return found


def anchor(heading: str) -> str:
    """Anchor of a heading, as GitHub and MkDocs make it."""
    return heading.lower().replace(" ", "-")


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


def page_head(title: str, *paragraphs: str) -> list[str]:
    """Lines that begin a page: its title, a note that it is generated, paragraphs."""
    note = f"<!-- Generated by `{COMMAND}`. -->"
    return [f"# {title}", "", note, "", *(f"{sentence(each)}\n" for each in paragraphs)]


def schema_link(file: str) -> str:
    """Link from a page to the JSON schema of a file."""
    path = f"{SCHEMAS}/{file}.schema.json"
    return f"[{path}](../../{path})"


def yaml_block(text: str) -> list[str]:
    """Lines of a block of YAML."""
    return ["```yaml", text, "```", ""]


class PageWriter:
    """Tables of one page.

    Parameters
    ----------
    page
        Its name, without suffix.
    links
        Title of every described type to its page and its anchor there.
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
            return self._link(title, plural)
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


_WORDS = {"string": "text"}
"""Types by names other than those of JSON."""


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


def expression_page(example: str) -> str:
    """Page of expressions: operators, functions and the names that they may read."""
    functions = [
        (f"`{name}`", escaped(text), f"`{shown}`", f"`{_shown(shown)}`")
        for name, (shown, text) in FUNCTION_DESCRIPTIONS.items()
    ]
    operators = [
        (" ".join(f"`{each}`" for each in signs.split("  ")), text, f"`{shown}`", _shown(shown))
        for signs, text, shown in OPERATORS
    ]
    described = {name: str(field.description) for name, field in GpuProfile.model_fields.items()}
    limits = {name: described[name.removeprefix("gpu_")] for name in GPU_NAMES}
    attributes = {name: described[key] for name, key in GPU_FEATURES.items()}
    constants = {
        LEAST: "shortest time that any kernel could take for the problem on the GPU, us",
        RESIDENT: "blocks of the kernel that one SM holds at once; in `kernels` only",
        **{f"machine_{name}": text for name, text in Machine.descriptions().items()},
    }
    about = (
        "An expression is a text in `spec.yaml`, `features.yaml`, `cost.yaml`, `sweep.yaml` or "
        "`study.yaml`: arithmetic and conditions in Python's syntax. It is interpreted, never "
        "executed: attributes, subscripts and other calls are errors. A condition holds unless its "
        "value is 0 or false."
    )
    lines = [
        *page_head("Expressions", about),
        "An example is `features.yaml`, which maps names of features to expressions. JSON schema "
        f"for editors: {schema_link(FEATURES)}.",
        "",
        *yaml_block(example),
        "A text inside an expression has its own quotation marks: `\"dtype == 'float32'\"`. "
        'A number alone is quoted too: `"1"`.',
        "",
        *_section("Operators", ("operator", "description", "example", "value"), operators),
        *_section("Functions", ("function", "description", "example", "value"), functions),
        *_section("Names", ("expressions in", "may read"), READERS),
        "## GPU",
        "",
        "Limits, for `constraints`, `block`, `grid` and `cost.yaml`:",
        "",
        *_names(limits),
        "Attributes, for `features.yaml` and `cost.yaml`:",
        "",
        *_names(attributes),
        "## Cost model",
        "",
        "Constants for `cost.yaml`, measured or estimated from attributes of the GPU:",
        "",
        *_names(constants),
    ]
    return "\n".join(lines)


def command_page() -> str:
    """Page of the command ``launchwise``."""
    about = (
        f"`{NAME}` lies in `.venv/bin`; `python -m {NAME}` is the same. What is a file of the "
        "pipeline is a [target of Snakemake](command_line.md#snakemake) instead. A mistake is one "
        f"line on stderr, `{NAME}: file: key: what`, and exit code 2."
    )
    return "\n".join([*page_head(NAME, about), *command_sections(table, escaped)])


def _section(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [f"## {title}", "", *table(head, rows), ""]


def _names(described: Mapping[str, str]) -> list[str]:
    rows = [(f"`{name}`", escaped(text)) for name, text in described.items()]
    return [*table(("name", "description"), rows), ""]


def _shown(expression: str) -> str:
    value = evaluate(expression, {})
    return str(value).lower() if isinstance(value, bool) else f"{value:g}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of a Markdown table; columns in which every cell is empty are left out."""
    rows = list(rows)
    kept = [place for place in range(len(head)) if any(row[place] for row in rows)]
    cells = [[row[place].replace("|", "\\|") for place in kept] for row in (head, *rows)]
    lines = [f"| {' | '.join(each)} |" for each in cells]
    return [lines[0], "|" + "---|" * len(kept), *lines[1:]]


def sentence(text: str) -> str:
    """``text`` with a capital letter and a full stop, for Markdown."""
    return escaped(capital(text).removesuffix(".") + ".")


def capital(text: str) -> str:
    """``text`` with a capital letter."""
    return text[0].upper() + text[1:]


def escaped(text: str) -> str:
    """``text`` with what Markdown takes for HTML escaped, but in code."""
    parts = text.split("`")
    parts[::2] = [each.replace("<", "&lt;").replace("*", "\\*") for each in parts[::2]]
    return "`".join(parts)


if __name__ == "__main__":
    raise SystemExit(main())
