"""What pages say of the answering method: how it answers, what it is made of, what it took."""

import dataclasses
import json

from launchwise.report.blocks import Text
from launchwise.report.health.health_section import provenance
from launchwise.report.models.model_tables import goals
from launchwise.report.scores import answering, leader, seconds_to_train
from launchwise.report.site import writing
from launchwise.report.site.assemble import Report
from tests.support.report_pages import RUN
from tests.support.report_study import study
from tests.support.shown import tables


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
    (link,) = [row.cells[1].link for row in tables(provenance(RUN, [answered()]))[-1].rows]
    assert json.loads(written[link])["tree"]["members"] == ["knn", "nearest_size"]


def test_the_page_says_when_it_leaves_the_simple_rules():
    found = goals(answered()).blocks
    [note] = [block.text for block in found if isinstance(block, Text) and "Kept:" in block.text]
    assert "times 6 / √(training problems)" in note
    assert "test cases of other problems" in note
    said = [block.text for block in found if isinstance(block, Text)]
    assert any("nothing of it is chosen by test problems" in text for text in said)
