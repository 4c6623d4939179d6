"""Nothing that stands in a file becomes code of an export, a page, a table or a terminal."""

import ast
import csv
import dataclasses
import io
import json
import re
import shutil
import subprocess
import sys
import unicodedata
from html.parser import HTMLParser
from xml.etree import ElementTree

import pandas as pd
import pytest
from exported import needs_gxx, said_by_cpp
from hostile import CANARY, TEXTS, table_of
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import ROOT

from launchwise.base.errors import UserError
from launchwise.base.literals import cpp_comment, csv_table, html_text, visible, visible_lines
from launchwise.base.typed import read_yaml
from launchwise.cli import app
from launchwise.exporting.exports import write_answers
from launchwise.exporting.languages import cpp_header, macros_text, python_module
from launchwise.learning.answers import MEASURED, Answer, Suggestion
from launchwise.report.site import writing
from launchwise.report.site.assemble import Report
from launchwise.workloads.spec import load_spec
from tests.support.report_pages import RUN, files_of
from tests.support.report_study import study

EXAMPLES = ROOT / "docs" / "tutorial" / "example"
LITERALS = ROOT / "launchwise" / "report" / "templates" / "literals.js"
TEXT = st.text(
    st.sampled_from("\"'\\?/*{}%$#@=+-<>&;\n\r\t\0\x1b\u202e\u2028aZ0 _é😀"), max_size=12
)


# Exports


def test_python_gives_every_text_back_and_runs_none(tmp_path):
    write_answers(tmp_path / "out", table_of(TEXTS))
    path = tmp_path / "out" / "exported.py"
    body = ast.parse(path.read_text(encoding="utf-8")).body
    assert {type(node) for node in body} == {ast.Expr, ast.ImportFrom, ast.Assign, ast.FunctionDef}
    assert {node.module for node in body if isinstance(node, ast.ImportFrom)} == {"numbers"}
    program = (
        "import json, runpy, sys; found = runpy.run_path(sys.argv[1]);"
        "print(json.dumps([found['TITLE'], found['COMMITS'], found['DEVICES'], found['ENTRIES'],"
        "found['recommend'](found['COMMITS'][1], n=1, kind=found['COMMITS'][1])]))"
    )
    command = [sys.executable, "-I", "-c", program, str(path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    title, commits, devices, entries, answer = json.loads(done.stdout)
    assert (title, commits) == (TEXTS[0], [*TEXTS])
    assert [names[1] for names in devices] == [*TEXTS]
    assert [entry[1][1] for entry in entries] == [*TEXTS]
    assert (answer["variant"], answer["mode"], answer["bx"]) == (TEXTS[1], TEXTS[1], 8)
    assert answer["launches"][0]["kernel"] == TEXTS[1]
    assert not (tmp_path / CANARY).exists()


@given(st.lists(TEXT, min_size=1, max_size=4, unique=True))
@settings(max_examples=60)
def test_any_text_is_a_literal_of_python(texts):
    table = table_of(texts)
    found = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in ast.parse(python_module(table)).body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id in ("TITLE", "COMMITS", "VERSION", "DAY", "DEVICES", "MEASURED")
    }
    assert found["TITLE"] == texts[0]
    assert found["COMMITS"] == texts
    assert (found["VERSION"], found["DAY"]) == (texts[-1], table.day)
    assert found["MEASURED"] == {one.name: one.measured for one in table.devices}
    assert [names[1] for names in found["DEVICES"]] == texts


@needs_gxx
def test_cpp_gives_every_text_back_and_runs_none(tmp_path):
    (tmp_path / "exported.hpp").write_text(cpp_header(table_of(TEXTS)), encoding="utf-8")
    program = """#include "exported.hpp"
#include <cstdio>
int main() {
    for (const auto &one : launchwise::exported::detail::devices) {
        for (unsigned char byte : one.name) std::printf("%02x", byte);
        std::puts("");
    }
    for (const auto &one : launchwise::exported::detail::entries) {
        const auto &chosen = launchwise::exported::detail::configurations[one.choice];
        for (unsigned char byte : chosen.variant) std::printf("%02x", byte);
        const auto found = launchwise::exported::launches_of(one.asked, chosen);
        std::printf(" %d\\n", found.count == 1 && found.kernels[0].kernel == one.asked.kind);
    }
}
"""
    # -trigraphs: as compilers before C++17 read a text.
    lines = said_by_cpp(tmp_path, program, "-trigraphs", "-Wno-trigraphs").split("\n")
    written = [one.encode().hex() for one in TEXTS]
    assert lines[1 : 2 * len(TEXTS) : 2] == written
    assert lines[2 * len(TEXTS) : -1] == [f"{one} 1" for one in written]
    assert not (tmp_path / CANARY).exists()


@given(TEXT)
def test_a_comment_of_cpp_is_one_line_that_ends(text):
    found = cpp_comment(text)
    assert len(f"// {found}".splitlines()) == 1
    assert not found.endswith(("\\", "??/"))
    assert visible(found) == found


def test_macros_are_one_line_each():
    for text in TEXTS:
        values = {"variant": text, "bx": 8, "kind": text}
        best = Suggestion(1, values, 1.0, None, None, None, None, None, is_usual=False)
        answer = Answer("h200", {"kind": text}, MEASURED, [best], values, "")
        for name in ("saxpy", "smooth"):  # with host code, and without
            lines = macros_text(answer, load_spec(EXAMPLES / name)).splitlines()
            assert [line.split(" ")[0] for line in lines] == ["//", "#pragma", *["#define"] * 3]
            assert re.fullmatch(r"#define VARIANT_[A-Z0-9_]* 1", lines[2])
            assert not lines[4].endswith("\\")


def test_json_wisdom_and_t4_give_every_text_back(tmp_path):
    write_answers(tmp_path / "out", table_of(TEXTS))
    assert json.loads((tmp_path / "out" / "exported.json").read_text())["commits"] == [*TEXTS]
    _, *lines = (tmp_path / "out" / "exported.wisdom").read_text().splitlines()
    names = [json.loads(line)["environment"]["device_name"] for line in lines]
    assert names == [*TEXTS]


# Report


class Shape(HTMLParser):
    """Tags with the names of their attributes; texts; what scripts are."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags = set()
        self.links = set()
        self.scripts = 0
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.add((tag, tuple(name for name, _ in attrs)))
        self.scripts += tag == "script"
        self.links |= {value or "" for name, value in attrs if name in ("href", "src")}

    def handle_comment(self, data):
        raise AssertionError(f"a comment: {data}")


def planted(text):
    """A study whose data hold a text wherever they hold words."""
    found = study()
    words = ("commit", "driver", "toolkit", "card", "backend", "reason", "throttle")
    spec = found.spec.model_copy(update={"title": text, "description": text})
    variants = {
        name: one.model_copy(update={"title": f"{text}{name}"})
        for name, one in spec.variants.items()
    }
    tunables = {
        name: one.model_copy(update={"description": text, "unit": text})
        for name, one in spec.tunables.items()
    }
    problem = {
        name: one.model_copy(update={"description": text, "unit": text})
        for name, one in spec.problem.items()
    }
    spec = spec.model_copy(update={"variants": variants, "tunables": tunables, "problem": problem})
    return dataclasses.replace(
        found,
        spec=spec,
        settings=found.settings.model_copy(update={"title": text, "question": text}),
        entries={
            name: one.model_copy(update={"title": f"{text}{name}"})
            for name, one in found.entries.items()
        },
        profiles={
            name: one.model_copy(update={"device_name": text, "driver": text, "toolkit": text})
            for name, one in found.profiles.items()
        },
        sweeps={
            name: rows.assign(**dict.fromkeys(words, text)) for name, rows in found.sweeps.items()
        },
        kept_out={"other": [text]},
    )


@pytest.fixture(scope="module")
def plain():
    return files_of(planted("words"))


@pytest.mark.parametrize("text", ["".join(TEXTS), '"><canary a=\'"', "</script><canary>"])
def test_pages_hold_the_tags_of_a_harmless_report(plain, text):
    files = files_of(planted(text))
    assert files.keys() == plain.keys()
    assert html_text(text)[:20] in files["index.html"]
    for path, page in files.items():
        assert not re.search("[\u202e\u2066\0\x1b\x85\u2028]", page), path
        if path.endswith(".html"):
            own, other = Shape(page), Shape(plain[path])
            assert own.tags == other.tags, path
            assert own.scripts == other.scripts
            assert own.links == other.links
            data = re.findall(r'id="page-data"[^>]*>(.*?)</script>', page, re.DOTALL)[0]
            json.loads(data)


@given(TEXT)
def test_a_text_of_html_and_svg_is_a_text(text):
    given = f'<svg a="{html_text(text)}"><text>{html_text(text)}</text></svg>'
    svg = ElementTree.fromstring(given.replace("\r", "&#13;"))
    escaped = "".join(one if one in "\n\r\t" else visible(one) for one in text)
    assert (svg[0].text or "") == escaped


# Tables


def cells_of(text):
    return list(csv.reader(io.StringIO(text, newline="")))


def is_formula(cell):
    seen = unicodedata.normalize("NFKC", cell.lstrip())
    return seen[:1] in tuple("=+-@") and not re.fullmatch(r"[-+]?[\d.e-]+\s*", seen)


@pytest.mark.parametrize(("text", "cell"), read_yaml(ROOT / "tests/safety/data/cells.yaml"))
def test_tables_of_the_report_hold_no_formula(text, cell):
    found = writing.folder(Report([planted(text)], RUN), 1)
    csv_files = [path for path in found if path.endswith(".csv")]
    assert len(csv_files) > 3
    for path in csv_files:
        assert not any(is_formula(cell) for row in cells_of(found[path]) for cell in row)
    framed = csv_table(pd.DataFrame({text: [text], "n": [-1]})).to_csv(index=False)
    assert cells_of(framed) == [[cell, "n"], [cell, "-1"]]


@given(st.text(st.sampled_from("=+-@\uff1d\uff0b;\t\n ,\"'x1.e"), max_size=8))
def test_no_cell_is_a_formula_wherever_a_program_splits(text):
    framed = csv_table(pd.DataFrame({"a": ["a"], "b": [text]})).to_csv(index=False)
    for sign in ",;\t":
        for row in csv.reader(io.StringIO(framed, newline=""), delimiter=sign):
            assert not any(is_formula(cell) for cell in row)
    if re.fullmatch(r"[-+]?\d+(\.\d+)?", text):
        assert cells_of(framed)[1][1] == text


# Scripts of the report, by node


def by_node(expression):
    """Values of an expression over each text, with the report's functions."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node")
    program = (
        "const window = {};"
        f"{LITERALS.read_text(encoding='utf-8')}"
        f"console.log(JSON.stringify(JSON.parse(process.argv[1]).map((text) => {expression})))"
    )
    done = subprocess.run(
        [node, "-e", program, json.dumps(TEXTS)], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def test_literals_of_the_lookup_are_those_of_python_and_cpp(tmp_path):
    found = by_node("window.launchwiseLiteral(text)")
    assert [ast.literal_eval(one) for one in found] == [*TEXTS]
    if shutil.which("g++") is None:
        return
    # A text with a zero ends there in a plain literal, of one with \x85 the bytes are asked for.
    lines = "".join(f"std::fputs({one}, stdout); std::putchar(0);\n" for one in found)
    (tmp_path / "main.cpp").write_text(f"#include <cstdio>\nint main() {{\n{lines}}}\n")
    subprocess.run(["g++", "-trigraphs", "-o", "main", "main.cpp"], cwd=tmp_path, check=True)
    done = subprocess.run(["./main"], cwd=tmp_path, capture_output=True, check=True)
    assert done.stdout.split(b"\0")[:-1] == [one.split("\0")[0].encode() for one in TEXTS]


def test_commands_of_the_lookup_are_words_of_a_shell(tmp_path):
    words = [one for one in by_node("window.launchwiseWord(text)") if "\0" not in one]
    script = f"printf '%s\\0' {' '.join(words)}"
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, check=True)
    texts = [one.encode() for one in TEXTS if "\0" not in one]
    assert done.stdout.split(b"\0")[:-1] == texts
    assert not (tmp_path / CANARY).exists()


def test_cells_and_plots_of_a_page_are_texts():
    cells = by_node("window.launchwiseCell(text)")
    found = [cells_of(f"{one}\r\n")[0] if one else [""] for one in cells]
    assert not any(is_formula(row[0]) for row in found)
    assert all(len(row) == 1 for row in found)
    plotted = by_node("window.launchwisePlotted({ text: [`${text}<br>`] }).text[0]")
    for text, one in zip(TEXTS, plotted, strict=True):
        assert one.removesuffix("<br>") == text.replace("<", "&lt;")


# Terminal


def test_messages_steer_no_terminal():
    for text in TEXTS:
        said = str(UserError(text, text, text))
        assert visible(said) == said


def test_commands_steer_no_terminal(monkeypatch, capsys):
    def printing(**options):
        for text in (*TEXTS, "over\rwritten"):
            print(text)
            print(text, file=sys.stderr)

    monkeypatch.setattr(app, "app", printing)
    assert app.main([]) == 0
    for said in capsys.readouterr():
        assert said.count("\n") > len(TEXTS)
        assert visible_lines(said) == said
        assert "\r" not in said
