"""The glossary has an entry for every rule, folder of results, command and key of settings."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from samples import ROOT

from launchwise.cli.app import app
from launchwise.workflow.targets import OF_STUDIES

GLOSSARY = ROOT / "docs" / "reference" / "glossary.md"


def entries() -> list[list[str]]:
    """Names that each row of the glossary explains, without marks."""
    rows = re.findall(r"^\| (.+?) \| .+ \|$", GLOSSARY.read_text(encoding="utf-8"), re.M)[1:]
    return [[name.strip("` /") for name in row.split(",")] for row in rows]


def nouns() -> Iterator[tuple[str, str]]:
    """Source and noun."""
    for path in [ROOT / "Snakefile", *sorted((ROOT / "rules").glob("*.smk"))]:
        text = path.read_text(encoding="utf-8")
        for rule in re.findall(r"^(?:rule|use rule \w+ as) (\w+)", text, re.M):
            yield path.name, rule
        for folder in re.findall(r"[\"']results/(\w+)[/\"']", text):
            yield f"results/ in {path.name}", folder
    targets = ROOT / "launchwise" / "workflow" / "targets.py"
    for stage in [*OF_STUDIES, *re.findall(r"f\"([a-z]+)_\{study\}\"", targets.read_text())]:
        yield targets.name, stage
    for command in app.registered_commands:
        yield "launchwise --help", f"launchwise {command.name}"
    for file in ("config", "spec", "study", "sweep", "cost", "run_times", "usual"):
        schema = json.loads((ROOT / "schemas" / f"{file}.schema.json").read_text(encoding="utf-8"))
        for key in schema["properties"]:
            yield f"{file}.yaml", key


def test_every_noun_of_files_commands_and_settings_has_an_entry() -> None:
    known = {name for row in entries() for name in row}
    sources = {noun: source for source, noun in nouns()}
    assert {"sweep", "launchwise tune", "fences", "sweeps", "blind_pairs"} <= sources.keys()
    assert {noun: source for noun, source in sources.items() if noun not in known} == {}


def test_words_are_in_order_and_none_has_two_entries() -> None:
    words = [row[0].removeprefix("% of ").casefold() for row in entries()]
    assert words == sorted(words)
    names = [name for row in entries() for name in {*row}]
    assert sorted(name for name in {*names} if names.count(name) > 1) == []
