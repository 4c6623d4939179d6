"""The folder written study by study, and what stands in the place of what a report lacks."""

import dataclasses
import logging
import re
from io import StringIO

import pandas as pd
import pytest

from launchwise.report.site import writing
from launchwise.report.site.assemble import Report
from launchwise.report.site.reading import MissingStudy
from tests.report import test_report_curves
from tests.support.report_pages import RUN, files_of, visible
from tests.support.report_study import study

CSV = (".models.csv", ".configurations.csv")


def two():
    return [study(name="tiny"), study(gpus=("big",), name="small")]


def test_it_is_the_folder_made_at_once():
    found = writing.folder(Report(two(), RUN), 2)
    assert found == files_of(*two())
    tables = {path: text for path, text in found.items() if path.endswith(CSV)}
    assert len(tables) == 4
    for study_ in two():
        models = pd.read_csv(StringIO(tables[f"{study_.name}.models.csv"]))
        assert set(models["model"]) == {"oracle", "untuned", "knn", "tree"}
        chosen = pd.read_csv(StringIO(tables[f"{study_.name}.configurations.csv"]))
        assert list(chosen["gpu"].unique()) == list(study_.gpus)
    assert 'href="tiny/index.html#tiny-answer"' in found["index.html"]


def test_two_studies_of_one_name_are_refused():
    twin = dataclasses.replace(study(), _known={})
    with pytest.raises(ValueError, match="share a path"):
        writing.folder(Report([study(), twin], RUN), 1)


GONE = MissingStudy(
    "lost", "A lost study", "Which tile was it?", "results/evaluation/lost.parquet: cannot be read"
)


def test_a_missing_study_has_its_place_and_the_front_page_says_so():
    found = files_of(study(), missing=[GONE])
    own = visible(found["lost/index.html"])
    assert "This study is not in the report: results/evaluation/lost.parquet: cannot be re" in own
    assert "Delete this file and run the workflow again" in own
    front = visible(found["index.html"])
    assert "1 study not in this report: A lost study." in front
    assert found["lost.models.csv"].strip('\n"') == ""
    assert 'href="lost/index.html#lost-answer"' in front
    # The other study is whole, and leads to the page of the missing one.
    assert 'href="../lost/index.html"' in found["tiny/index.html"]
    assert "could not be made" not in "".join(found.values())


def test_a_report_of_missing_studies_alone_is_made():
    found = files_of(missing=[GONE])
    assert "1 study not in this report: A lost study." in visible(found["index.html"])
    assert {"gpus.html", "lost/index.html"} <= set(found)


def test_sections_that_fail_say_so_and_the_rest_is_made(caplog):
    made = study()
    lacks = made.evaluation.drop(columns=["role", "time_ms"])
    broken = dataclasses.replace(made, evaluation=lacks, curves=test_report_curves.curves())
    with caplog.at_level(logging.ERROR, logger="launchwise"):
        found = files_of(broken)
    page = visible(found["tiny/index.html"])
    errors = re.findall(r"This section could not be made \((KeyError: .*?)\)", page)
    assert all(any(name in error for error in errors) for name in ("role", "time_ms"))
    for title in ("Learning curves", "Cost"):
        assert title in page
    assert "Transfer between GPUs" in page
    front = visible(found["index.html"])
    assert f"{len(errors)} sections could not be made:" in front
    assert re.search(r'href="tiny/index\.html#tiny-[a-z-]+">The first of them', front)
    assert any("could not be made" in record.message for record in caplog.records)
