"""Every measured figure of the documents comes from a file of the repository."""

import pytest
from samples import ROOT

from docs.generator.figure_marks import check, read_marks, rewritten
from docs.generator.figure_sources import as_written, value_at
from docs.generator.figure_text import figures
from docs.generator.write_figures import documents
from launchwise.base.typed import read_yaml

CASES = read_yaml(ROOT / "tests" / "docs" / "data" / "figures.yaml")
PAGE, RESULT = CASES["page"], CASES["result"]


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


@pytest.mark.parametrize(("sentence", "wanted"), CASES["read"])
def test_what_reads_like_a_measured_figure(sentence, wanted):
    assert [figure.text for figure in figures(sentence)] == wanted


@pytest.fixture
def root(tmp_path):
    """A repository with one result."""
    results = tmp_path / "benchmarks" / "results"
    results.mkdir(parents=True)
    (results / "result.json").write_text(RESULT)
    return tmp_path


def test_a_page_whose_figures_stand_in_a_file_passes(root):
    assert check("page.md", PAGE, root) == []


@pytest.mark.parametrize(("right", "planted", "complaint"), CASES["planted"])
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


@pytest.mark.parametrize(("text", "complaint"), CASES["refused"])
def test_a_figure_without_source_or_reason_is_refused(text, complaint, root):
    assert complaint in "".join(check("page.md", text, root))


@pytest.mark.parametrize(
    ("value", "figure", "written"), read_yaml(ROOT / "tests/docs/data/digits.yaml")
)
def test_a_figure_keeps_its_number_of_digits(value, figure, written):
    assert as_written(value, figure) == written


def test_values_compute_from_left_to_right():
    content = {"a": [{"n": 1, "k": "x", "s": 2.0}, {"n": 1, "k": "y", "s": 6.0}]}
    assert value_at("a/n=1&k=y/s minus a/0/s over a/0/s times 100", content) == 200
    assert value_at("a/*/s/max plus a/*/s/min", content) == 8
    assert value_at("s over /a/1/s times 3", {"s": 2.0}, content) == 1
