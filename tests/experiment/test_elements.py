"""Elements of the papers: each has a place that exists, or a reason."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from launchwise.base.errors import UserError
from launchwise.experiment.elements import FILE, Element, check_places, read_elements
from tests.support.samples import ROOT

STUDIES = sorted(path.parents[1] for path in ROOT.glob(f"kernels/*/studies/*/{FILE}"))
SECTIONS = [*ROOT.glob("launchwise/report/*.py"), *ROOT.glob("kernels/*/studies/*/*.py")]
MOST_REASONS = 10
"""Elements of all papers that may have no place here."""


@pytest.mark.parametrize("study", STUDIES, ids=lambda path: path.name)
def test_every_place_exists(study: Path) -> None:
    sources = "".join(path.read_text() for path in SECTIONS)
    made = set(re.findall(r'\{(?:study\.)?name\}-([\w-]+)"', sources))
    names = {path.name for path in ROOT.glob("kernels/*/studies/*")}
    check_places(study)
    for element in read_elements(study):
        for section in element.sections:
            name, _, suffix = section.partition("-")
            assert name in names, section
            assert suffix in made, section


def test_few_elements_have_no_place() -> None:
    found = [element for study in STUDIES for element in read_elements(study)]
    assert sum(not element.here for element in found) <= MOST_REASONS


GOOD: dict[str, Any] = {"element": "a", "kind": "claim", "where": "b", "here": ["here.txt#words"]}


def written(tmp_path: Path, **changes: Any) -> Path:
    """A study of a workload with one element."""
    study = tmp_path / "studies" / "mine"
    (study / "published").mkdir(parents=True)
    (tmp_path / "here.txt").write_text("some words")
    (study / FILE).write_text(yaml.safe_dump({"elements": [GOOD, {**GOOD, **changes}]}))
    return study


def test_places_lie_in_the_project_or_in_the_workload(tmp_path: Path) -> None:
    study = written(tmp_path, here=["README.md", "here.txt", "#mine-paper"], theirs="3 ms")
    assert read_elements(study)[1] == Element(
        element="a", kind="claim", where="b", here=["README.md", "here.txt", "#mine-paper"],
        theirs="3 ms",
    )  # fmt: skip
    assert read_elements(tmp_path) == []


@pytest.mark.parametrize(
    ("changes", "key", "complaint"),
    [
        ({"here": []}, "elements.1", "no place"),
        ({"here": ["there.txt"]}, "elements.1.here", "no file 'there.txt'"),
        ({"here": ["here.txt#other"]}, "elements.1.here", "'here.txt' does not hold 'other'"),
        ({"kind": "idea"}, "elements.1.kind", "must"),
        ({"were": "x"}, "elements.1.were", "unknown key"),
    ],
)
def test_an_element_without_a_place_is_refused(
    tmp_path: Path, changes: dict[str, Any], key: str, complaint: str
) -> None:
    study = written(tmp_path, **changes)
    with pytest.raises(UserError) as refused:
        check_places(study)
    assert refused.value.where == str(study / FILE)
    assert refused.value.key == key
    assert complaint in refused.value.message
    assert "\n" not in str(refused.value)
