"""What a study brings to the page: shown, or blamed in its place while the rest stands."""

import itertools

import pytest
from report_study import study

from launchwise.base.errors import UserError
from launchwise.report.site.assemble import FAILED, elements, of_study, own_sections
from tests.support.report_pages import page_of
from tests.support.shown import tables

GOOD = """
from launchwise.report.blocks import Section, Text


def sections(study, published):
    rows = published["facts"]
    text = f"{len(rows)} published: {rows[0]['value']}"
    return [Section(f"{study.name}-mine", "Mine", [Text(text)])]
"""
numbers = itertools.count()


@pytest.fixture
def folder(tmp_path):
    """An empty study's folder in a workload's folder outside the project."""
    found = tmp_path / f"workloads{next(numbers)}" / "mine" / "studies" / "tiny"
    (found / "published").mkdir(parents=True)
    (found / "published" / "facts.csv").write_text("fact,value,source\nspeed,42,a paper\n")
    return found


def test_a_section_from_outside_the_project_follows_its_study_to_another_name(folder):
    (folder / "section.py").write_text(GOOD)
    renamed = folder.rename(folder.parent / "other")
    page = page_of(study(name="other", folder=renamed))
    assert 'id="other-mine"' in page
    assert "1 published: 42" in page


PLAIN = GOOD.replace('published["facts"]', '[{"value": 1}]')


@pytest.mark.parametrize(("published", "end"), [(True, "paper.html"), (False, "index.html")])
def test_only_a_published_study_has_a_page_beside_its_publication(folder, published, end):
    (folder / "section.py").write_text(PLAIN)
    if not published:
        (folder / "published" / "facts.csv").unlink()
    pages = of_study(study(folder=folder))
    (with_it,) = [
        page.path for page in pages if "tiny-mine" in [section.id for section in page.sections]
    ]
    assert with_it.endswith(end)
    assert any(page.path.endswith("paper.html") for page in pages) == published


def test_no_file_no_section(folder):
    assert own_sections(study(folder=folder)) == []
    assert own_sections(study()) == []


OWN = "this workload's own Python"
BAD = [
    (GOOD.replace("rows[0]", "rows[7]"), ["section.py", "line 7", "IndexError", OWN]),
    ("def sections(:\n", ["section.py", "line 1", "SyntaxError"]),
    ("import nowhere\n", ["section.py: line 1", "nowhere"]),
    ("x = 1\n", ["must define sections(study, published)"]),
    ("def sections(a, b):\n    return [1]\n", ["must return Section objects, not int"]),
    (GOOD.replace('f"{study.name}-mine"', '"mine"'), ["mine", "must begin with tiny-"]),
    (GOOD.replace("return [", "return 2 * ["), ["cannot be shown", "share an id: tiny-mine"]),
    (GOOD.replace("-mine", "-models"), ["share an id: tiny-models"]),
]
"""A module of a study, and what is said of it."""


@pytest.mark.parametrize(("content", "words"), BAD, ids=[words[-1] for _, words in BAD])
def test_what_fails_is_said_in_its_place_and_the_rest_stands(folder, content, words):
    (folder / "section.py").write_text(content)
    page = page_of(study(folder=folder))
    assert 'id="tiny-own"' in page
    assert 'id="tiny-answer"' in page
    assert 'id="provenance"' in page
    start = page.index(FAILED)
    said = page[start : start + 800].replace("&#39;", "'")
    for word in words:
        assert word in said


ELEMENTS = """elements:
  - {element: Speed, where: section 1, page: [mine, other/paper]}
  - {element: Data, where: section 2, files: [notes.txt], reason: "Ours is new."}
  - {element: Cards, where: section 3, reason: "The paper does not name them."}
"""


def test_the_elements_of_the_paper_lead_to_their_sections(folder):
    (folder / "section.py").write_text(GOOD)
    (folder / "published" / "elements.yaml").write_text(ELEMENTS)
    (folder.parents[1] / "notes.txt").write_text("none")
    page = page_of(study(folder=folder))
    assert 'id="tiny-elements"' in page
    assert '<a href="#tiny-mine">“Mine” and “other-paper”</a>' in page
    for text in ("notes.txt", "Ours is new.", "The paper does not name them."):
        assert text in page
    listed = elements(study(folder=folder), [], {"other": "Another"})
    cell = tables(listed, folded=True)[0].rows[0].cells[2]
    assert cell.text == "“tiny-mine” and “Another: paper”"
    assert cell.link == "other/paper.html#other-paper"


def test_an_element_that_points_nowhere_is_warned_of(folder, caplog):
    (folder / "published" / "elements.yaml").write_text(ELEMENTS)
    page = page_of(study(folder=folder))
    assert 'id="tiny-elements"' in page
    assert "elements.yaml: elements.1.files: no file 'notes.txt'" in caplog.text


def test_an_element_without_place_and_reason_stops_the_report(folder):
    bad = ELEMENTS.replace(", page: [mine, other/paper]", "")
    (folder / "published" / "elements.yaml").write_text(bad)
    with pytest.raises(UserError, match=r"elements\.yaml: elements\.0: 'Speed' has no place"):
        page_of(study(folder=folder))
