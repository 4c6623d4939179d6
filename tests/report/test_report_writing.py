"""The folder written study by study is the one that is made at once."""

from __future__ import annotations

import dataclasses
from io import StringIO

import pandas as pd
import pytest

from launchwise.report.site import assemble, writing
from launchwise.report.site.assemble import Report
from launchwise.report.site.stand_ins import MissingStudy
from launchwise.report.study import StudyData
from tests.support.report_pages import RUN, files_of
from tests.support.report_study import study
from tests.support.slow_cases import first_of

CSV = (".models.csv", ".configurations.csv")


def two() -> list[StudyData]:
    return [study(name="tiny"), study(gpus=("big",), name="small")]


@pytest.mark.parametrize("processes", first_of([2, 1]))
def test_it_is_the_folder_made_at_once(processes: int) -> None:
    found = writing.folder(Report(two(), RUN), processes)
    assert found == files_of(*two())
    tables = {path: text for path, text in found.items() if path.endswith(CSV)}
    assert len(tables) == 4
    for study_ in two():
        wanted = pd.read_csv(StringIO(tables[f"{study_.name}.models.csv"]))
        assert list(wanted["model"]) == list(writing.model_summary(study_)["model"])
        chosen = pd.read_csv(StringIO(tables[f"{study_.name}.configurations.csv"]))
        assert len(chosen) == len(writing.configuration_summary(study_))
    assert 'href="tiny/index.html#tiny-answer"' in found["index.html"]


def test_a_missing_study_has_its_page_and_its_place() -> None:
    lost = MissingStudy("lost", "A lost study", "Why?", "x.parquet: is missing")
    found = writing.folder(Report(two(), RUN, missing=[lost]), 1)
    assert "x.parquet: is missing" in found["lost/index.html"]
    assert found["lost.models.csv"].strip('\n"') == ""
    assert 'href="lost/index.html#lost-answer"' in found["index.html"]


def test_a_section_that_fails_is_named_on_the_front_page(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(made: StudyData) -> None:
        raise ValueError("torn")

    monkeypatch.setitem(assemble.ANSWERS, "gpus", ("The GPUs compared", broken))
    found = writing.folder(Report(two(), RUN), 1)
    assert "2 sections could not be made" in found["index.html"]
    assert 'href="tiny/index.html#tiny-gpus"' in found["index.html"]
    assert "ValueError: torn" in found["small/index.html"]


def test_two_studies_of_one_name_are_refused() -> None:
    twin = dataclasses.replace(study(), _known={})
    with pytest.raises(ValueError, match="share a path"):
        writing.folder(Report([study(), twin], RUN), 1)
