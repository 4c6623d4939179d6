"""What pages say of the answering method: how it answers, what it is made of, what it took."""

import dataclasses
import json

from launchwise.report.answer import study_answer
from launchwise.report.blocks import File
from launchwise.report.models.model_tables import tables_of
from launchwise.report.scores import answering, leader, seconds_to_train
from launchwise.report.site import writing
from launchwise.report.site.assemble import Report
from tests.support.report_pages import RUN
from tests.support.report_study import study
from tests.support.shown import blocks_of, notes, tables


def answered():
    """The small study, whose second model answers; its members are the first and a simple rule."""
    made = study()
    committee = {"kind": "committee", "members": ["knn", "nearest_size"], "caution": 6.0}
    return dataclasses.replace(made, models={**made.models, "tree": committee})


def test_it_leads_though_another_model_is_better_on_a_gpu():
    made = answered()
    assert [leader(study(), "sizes", gpu) for gpu in made.gpus] == ["knn", "tree"]
    assert answering(made) == "tree"
    assert [leader(made, "sizes", gpu) for gpu in made.gpus] == ["tree", "tree"]


def test_it_took_what_its_members_took():
    assert seconds_to_train(answered(), "tree", "sizes") == 1.5


def test_a_file_has_the_records_of_the_models():
    written = writing.folder(Report([answered()], RUN), 1)
    (file,) = blocks_of(study_answer.sure(answered()), File)
    assert json.loads(written[file.path])["tree"]["members"] == ["knn", "nearest_size"]
    assert f'href="../{file.path}"' in written["tiny/index.html"]


def test_the_page_says_what_it_promised_and_what_was_measured():
    (table,) = (one for one in tables(tables_of(answered())) if one.caption.startswith("Predicted"))
    assert table.caption.endswith("regression tree")
    assert [row.cells[0].text for row in table.rows] == ["sizes"]
    assert [one for one in notes(tables_of(answered())) if "Kept:" in one]
