"""Pages against what they describe: lists, tables, words, and examples of the repository."""

import json
import re

import pytest
from samples import ROOT

from launchwise.cli.app import app
from launchwise.workflow.targets import OF_STUDIES


def test_every_kind_of_result_is_listed():
    planned = [*(ROOT / "rules").glob("*.smk"), *(ROOT / "launchwise/workflow").glob("*.py")]
    named = "\n".join(path.read_text() for path in planned)
    kinds = set(re.findall(r"""["']results/(\w+)[/"']""", named))
    assert {"times", "pairs", "lookup"} <= kinds
    listed = (ROOT / "docs/reference/results.md").read_text(encoding="utf-8")
    rows = set(re.findall(r"^\| `(\w+)/", listed, re.M))
    assert kinds - {"results"} <= rows


def test_every_row_of_the_page_names_a_test():
    page = (ROOT / "docs" / "explanation" / "safety.md").read_text(encoding="utf-8")
    # Those on the size of files stand together in one test, which the text names.
    page, _, _ = page.partition("## Reading is bounded")
    rows = [line for line in page.splitlines() if line.startswith("| ")][1:]
    named = [re.findall(r"`(test_\w+)` \|$", row) for row in rows]
    assert len(named) >= 20
    assert all(len(each) == 1 for each in named)
    tests = "".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")
    )
    known = set(re.findall(r"^def (test_\w+)\(", tests, re.MULTILINE))
    assert {each[0] for each in named} <= known


TASKS = ("Measure", "Learn", "Show")


def test_each_task_names_ten_files_to_read_and_folders_to_ignore():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for task in TASKS:
        part = text.partition(f"\n### {task}\n")[2].partition("\n## ")[0].partition("\n### ")[0]
        files = re.findall(r"^\d+\. `([^`]+)`", part, re.M)
        assert [each for each in files if not (ROOT / each).is_file()] == []
        assert len({*files}) == len(files) == 10
        folders = re.findall(r"`([^`]+)/`", part.partition("\nIgnore ")[2])
        library = [f"launchwise/{each.removeprefix('launchwise/')}" for each in folders]
        assert [each for each in library if not (ROOT / each).is_dir()] == []
        assert len(library) > 3
        assert [
            each for each in files if each.startswith(tuple(f"{one}/" for one in library))
        ] == []


def test_the_index_lists_every_guide():
    text = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    guides = {path.name for path in (ROOT / "docs" / "how-to").glob("*.md")}
    assert {*re.findall(r"\(how-to/(\w+\.md)\)", text)} == guides


PAGE = ROOT / "docs" / "how-to" / "describe_a_kernel.md"
EXAMPLE = re.compile(
    r"\]\(\.\./\.\./(?P<spec>[^)]*spec\.yaml)\)[^`]*```yaml\n(?P<text>.*?)```", re.S
)
EXAMPLES = [(match["spec"], match["text"]) for match in EXAMPLE.finditer(PAGE.read_text())]


def test_every_example_names_its_workload():
    assert len(EXAMPLES) == PAGE.read_text().count("```yaml") > 5


@pytest.mark.parametrize(("spec", "text"), EXAMPLES)
def test_an_example_is_part_of_its_workload(spec, text):
    verified = {line.strip() for line in (ROOT / spec).read_text().splitlines()}
    for line in text.splitlines():
        assert line.strip() in verified


GLOSSARY = ROOT / "docs" / "reference" / "glossary.md"


def entries():
    """Names that each row of the glossary explains, without marks."""
    rows = re.findall(r"^\| (.+?) \| .+ \|$", GLOSSARY.read_text(encoding="utf-8"), re.M)[1:]
    return [[name.strip("` /") for name in row.split(",")] for row in rows]


def nouns():
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


def test_every_noun_of_files_commands_and_settings_has_an_entry():
    known = {name for row in entries() for name in row}
    sources = {noun: source for source, noun in nouns()}
    assert {"sweep", "launchwise tune", "fences", "sweeps", "blind_pairs"} <= sources.keys()
    assert {noun: source for noun, source in sources.items() if noun not in known} == {}


def test_words_are_in_order_and_none_has_two_entries():
    words = [row[0].removeprefix("% of ").casefold() for row in entries()]
    assert words == sorted(words)
    names = [name for row in entries() for name in {*row}]
    assert sorted(name for name in {*names} if names.count(name) > 1) == []


def test_what_pages_include_is_there_and_written_as_the_site_reads_it():
    docs = ROOT / "docs"
    found = 0
    for page in docs.rglob("*.md"):
        for line in page.read_text().splitlines():
            # A formatter of code once wrote it with spaces, and the page showed the line itself.
            if re.match(r"\s*-+\s*8\s*<", line):
                named = re.fullmatch(r'--8<-- "(.+)"', line)
                assert named, f"{page}: {line}"
                assert (docs / named[1]).is_file(), f"{page}: {line}"
                found += 1
    assert found > 8
