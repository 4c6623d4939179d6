"""Every measured figure of the documents comes from a file of the repository."""

import pytest
from samples import ROOT

from docs.generator.figure_marks import check, read_marks, rewritten
from docs.generator.figure_sources import as_written, value_at
from docs.generator.figure_text import figures
from docs.generator.write_figures import documents


@pytest.mark.parametrize("name", documents())
def test_writing_the_figures_changes_nothing(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    # Each figure is as its source has it, so writing it anew changes nothing.
    assert check(name, text, ROOT) == []


def test_many_documents_are_checked_and_no_generated_one():
    names = documents()
    assert len(names) > 30
    assert {"README.md", "benchmarks/README.md", "kernels/acoustic/README.md"} <= set(names)
    assert "docs/reference/settings.md" not in names


@pytest.mark.parametrize(
    ("sentence", "wanted"),
    [
        ("It is 12 % faster.", ["12"]),
        ("It takes 15 and 11 s, or 3 to 4 ms.", ["15", "11", "3", "4"]),
        ("A copy reaches .98 of it, that is 4 079 GB/s.", [".98", "4 079"]),
        ("It takes 5s and 20ms, 7 × less.", ["5", "20", "7"]),
        ("It is 3x faster, four times smaller and takes a third of the memory.",
         ["3", "four", "third"]),
        ("Errors of 2e-5 and 1.5e-7; 89 rows per second; in 23 of 24 rows.",
         ["2e-5", "1.5e-7", "89", "23", "24"]),
        ("| a | b |\n|---|---|\n| 7 cards | 118, again 97 |\n", ["118", "97"]),
        ("It waits two or three minutes, 43 TFLOP/s later.", ["two", "three", "43"]),
        # None of these is measured.
        ("On an H200 with 16 cores and a grid of 512^3, order 2, 8 or 16 of sm_90.", []),
        ("See `time 3.5 ms`.\n\n```text\n5.3 ms\n```\n<!-- 3 % --> [link](a_2.5.md)", []),
        ("| a | 12 |\n|---|---|\n| stage 1 | stages 1 and 3 of a long plan of work |\n", []),
    ],
)  # fmt: skip
def test_what_reads_like_a_measured_figure(sentence, wanted):
    assert [figure.text for figure in figures(sentence)] == wanted


PAGE = """The run takes 1.4<!-- = result.json runs/n=512/s --> s (`n` = 512),
3<!-- = result.json runs/1/before_s over runs/1/s --> times as fast.

<!-- sources: small = result.json runs/*&kind=small -->
They take 2<!-- = small */s/min --> to 9.0<!-- = small */s/max --> s, .98<!-- = small 1/share -->
of it.

<!-- table result.json runs/*&kind=small
| {n} | {s:.1f} | {share?:.2f} | {between:.1f} | {/names/[kind]} |
-->

| n | s | share | between | kind |
|---|---|---|---|---|
| 64 | 9.0 | – | – | tiny |
| 1 024 | 2.0 | 0.98 | 1.0 to 2.0 | tiny |

<!-- setting -->
- every 20 ms,
- for 1 min.

It waits 5<!-- setting --> s, or two<!-- definition --> minutes.
"""

RESULT = """{"names": {"small": "tiny"}, "runs": [
{"n": 64, "s": 9.0, "kind": "small", "between": null},
{"n": 512, "s": 1.352, "kind": "large", "before_s": 4.1},
{"n": 1024, "s": 2.0, "kind": "small", "share": 0.9812, "between": [1.0, 2.0]}]}"""


@pytest.fixture
def root(tmp_path):
    """A repository with one result."""
    results = tmp_path / "benchmarks" / "results"
    results.mkdir(parents=True)
    (results / "result.json").write_text(RESULT)
    return tmp_path


def test_a_page_whose_figures_stand_in_a_file_passes(root):
    assert check("page.md", PAGE, root) == []


@pytest.mark.parametrize(
    ("right", "planted", "complaint"),
    [
        ("1.4<!", "1.5<!", "page.md:1: '1.5' is '1.4' in the source"),
        ("3<!", "4<!", "'4' is '3'"),
        ("| 64 | 9.0", "| 64 | 9.1", "'| 64 | 9.1 | – | – | tiny |' is '| 64 | 9.0 |"),
        ("| 64 | 9.0 | – | – | tiny |\n", "", "is '| 64 | 9.0 |"),
        ("9.0<!", ".90<!", "'.90' is '9.00'"),
    ],
)
def test_a_planted_figure_is_noticed_and_written_anew(right, planted, complaint, root):
    page = PAGE.replace(right, planted, 1)
    assert complaint in "".join(check("page.md", page, root))
    if right.startswith(("1", "3", "|")):
        assert rewritten(read_marks("page.md", page, root)) == PAGE


def test_a_changed_result_is_noticed(root):
    path = root / "benchmarks" / "results" / "changed.json"
    path.write_text(RESULT.replace("1.352", "1.25"))
    page = PAGE.replace("result.json", "changed.json")
    (complaint,) = check("page.md", page, root)
    assert "'1.4' is '1.2'" in complaint


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("It needs 17 % of it.", "17 has no mark"),
        ("<!-- setting -->\nIt needs 1 %.\n\nIt needs 17 %.", "17 has no mark"),
        ("It needs 17<!-- setting --> or 18 %.", "18 has no mark"),
        ("It needs<!-- setting --> 17 %.", "17 has no mark"),
        ("It needs 17<!-- because --> %.", "neither"),
        ("It needs 17<!-- published: --> %.", "publication"),
        ("It has 17<!-- setting --> wheels.", "exempts nothing"),
        ("<!-- setting -->\nIt has 17 wheels.", "exempts nothing"),
        ("It is half<!-- = result.json runs/0/s --> of it.", "behind no number"),
        ("It needs 17<!-- = result.json runs/n=1/s --> %.", "has no 'runs/n=1/s'"),
        ("It needs 17<!-- = lost.json s --> %.", "lost.json: cannot be read"),
        ("It needs 17<!-- = results/a.json s --> %.", "is an output"),
        ("It needs 17<!-- = unknown s --> %.", "no computation"),
        ("It needs 17<!-- = result.json 17 --> %.", "names no value"),
        ("It needs 17<!-- = result.json runs/0/between --> %.", "nothing there"),
        ("<!-- table result.json runs/* | {n} | -->\n\nNo table.", "above no table"),
        ("<!-- table result.json runs/*\n| {n} |\n-->\n| a | b |\n|---|---|\n", "other columns"),
        ("<!-- table result.json runs/*\n| {s} |\n-->\n| a |\n|---|\n", "needs a format"),
        ("<!-- table result.json runs/*&n=2\n| {n} |\n-->\n| a |\n|---|\n", "no element"),
    ],
)
def test_a_figure_without_source_or_reason_is_refused(text, complaint, root):
    assert complaint in "".join(check("page.md", text, root))


@pytest.mark.parametrize(
    ("value", "figure", "written"),
    [
        (0.6549, "0.65", "0.65"),
        (0.6551, "0.65", "0.66"),
        (1443.4, "1 444", "1 443"),
        (1.97e-5, "1.9e-5", "2.0e-5"),
        (0.9849, ".97", ".98"),
        (0.9999, ".98", "1.00"),
    ],
)
def test_a_figure_keeps_its_number_of_digits(value, figure, written):
    assert as_written(value, figure) == written


def test_values_compute_from_left_to_right():
    content = {"a": [{"n": 1, "k": "x", "s": 2.0}, {"n": 1, "k": "y", "s": 6.0}]}
    assert value_at("a/n=1&k=y/s minus a/0/s over a/0/s times 100", content) == 200
    assert value_at("a/*/s/max plus a/*/s/min", content) == 8
    assert value_at("s over /a/1/s times 3", {"s": 2.0}, content) == 1
