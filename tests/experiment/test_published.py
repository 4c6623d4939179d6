"""Published tables are whole rows with sources; elements of papers have places that exist."""

import re

import pandas as pd
import pytest
import yaml
from samples import ROOT

from launchwise.base.errors import UserError
from launchwise.base.typed import read_yaml
from launchwise.experiment.published import ELEMENTS, Element, check_places, read_elements

TABLES = sorted((ROOT / "kernels").glob("*/studies/*/published/*.csv"))
FACTS = [path for path in TABLES if path.name == "facts.csv"]


@pytest.mark.parametrize("path", FACTS, ids=lambda path: path.parents[1].name)
def test_no_fact_is_given_twice(path):
    rows = pd.read_csv(path, dtype=str)
    assert rows["fact"].is_unique
    assert rows["value"].notna().all()


STUDIES = sorted(path.parents[1] for path in ROOT.glob(f"kernels/*/studies/*/{ELEMENTS}"))
SECTIONS = [*ROOT.glob("launchwise/report/**/*.py"), *ROOT.glob("kernels/*/studies/*/*.py")]


@pytest.mark.parametrize("study", STUDIES, ids=lambda path: path.name)
def test_every_place_exists(study):
    sources = "".join(path.read_text() for path in SECTIONS)
    # Sections are named in full, or by what follows the study's name.
    made = set(re.findall(r'[-"]([\w-]+)"', sources))
    names = {path.name for path in ROOT.glob("kernels/*/studies/*")}
    check_places(study)
    for element in read_elements(study):
        for section in element.sections(study.name):
            name, _, suffix = section.partition("-")
            assert name in names, section
            assert suffix in made, section


GOOD = {"element": "a", "where": "b", "files": ["here.txt"]}


def written(tmp_path, **changes):
    """A study of a workload with two elements."""
    study = tmp_path / "studies" / "mine"
    (study / "published").mkdir(parents=True)
    (tmp_path / "here.txt").write_text("some words")
    (study / ELEMENTS).write_text(yaml.safe_dump({"elements": [GOOD, {**GOOD, **changes}]}))
    return study


def test_places_lie_in_the_study_the_workload_or_the_project(tmp_path):
    files = ["README.md", "here.txt", "published/elements.yaml"]
    study = written(tmp_path, files=files, page=["paper", "other/answer"])
    check_places(study)
    element = read_elements(study)[1]
    assert element == Element(element="a", where="b", files=files, page=["paper", "other/answer"])
    assert element.sections("mine") == ["mine-paper", "other-answer"]
    assert read_elements(tmp_path) == []


@pytest.mark.parametrize(
    ("changes", "key", "complaint"), read_yaml(ROOT / "tests/experiment/data/elements.yaml")
)
def test_an_element_without_a_place_is_refused(tmp_path, changes, key, complaint):
    study = written(tmp_path, **changes)
    with pytest.raises(UserError) as refused:
        check_places(study)
    assert refused.value.where == str(study / ELEMENTS)
    assert refused.value.key == key
    assert complaint in refused.value.message
