"""Every generated file: JSON schemas and reference pages; which of them are stale."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from docs.generator.column_page import column_page
from docs.generator.commands import command_page
from docs.generator.expression_page import expression_page
from docs.generator.markdown import SCHEMAS, anchor
from docs.generator.model_page import PageWriter, model_page
from docs.generator.pages import MODEL_PAGES
from docs.generator.schemas import EVERY_KEY_OPTIONAL, FEATURES, schemas, type_schema
from launchwise.base.errors import UserError
from launchwise.cli.app import NAME

PAGES = Path("docs/reference")
EXAMPLES = PAGES / "examples"
EXPRESSIONS = "expressions"
COLUMNS = "columns"


def stale_files(files: Mapping[Path, str]) -> list[Path]:
    """Those of ``files`` (path to text) that are missing or have another text."""
    return [
        path
        for path, text in files.items()
        if not path.is_file() or path.read_text(encoding="utf-8") != text
    ]


def generated(root: Path) -> dict[Path, str]:
    """Every generated file of the project in ``root``: path to text. Raises UserError when the
    example of a page is missing."""
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
    texts[root / PAGES / f"{COLUMNS}.md"] = column_page()
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
