"""What pages say of the answering method: how it answers, what it is made of, what it took."""

from __future__ import annotations

import dataclasses

from launchwise.report.blocks import Fold, Table, Text
from launchwise.report.health.provenance import provenance
from launchwise.report.models.headline import goals
from launchwise.report.scores import answering, leader, seconds_to_train
from launchwise.report.study import StudyData
from tests.support.report_pages import RUN
from tests.support.report_study import study


def answered() -> StudyData:
    """The small study, whose second model answers; its members are the first and a simple rule."""
    made = study()
    committee = {"kind": "committee", "members": ["knn", "nearest_size"], "caution": 6.0}
    return dataclasses.replace(made, models={**made.models, "tree": committee})


def test_it_leads_though_another_model_is_better_on_a_gpu() -> None:
    made = answered()
    assert [leader(study(), "sizes", gpu) for gpu in made.gpus] == ["knn", "tree"]
    assert answering(made) == "tree"
    assert [leader(made, "sizes", gpu) for gpu in made.gpus] == ["tree", "tree"]


def test_it_took_what_its_members_took() -> None:
    assert seconds_to_train(answered(), "tree", "sizes") == 1.5


def test_provenance_names_its_members_and_its_caution() -> None:
    [fold] = [
        block
        for block in provenance(RUN, [answered()]).blocks
        if isinstance(block, Fold) and block.title.startswith("Models of tiny")
    ]
    [table] = [block for block in fold.blocks if isinstance(block, Table)]
    assert [[cell.text for cell in row.cells] for row in table.rows] == [
        ["kNN", "neighbours=2", "3", "5", "1.5"],
        ["regression tree", "members=kNN, nearest size; caution=6", "–", "–", "1.5"],
    ]


def test_the_page_says_when_it_leaves_the_simple_rules() -> None:
    found = goals(answered()).blocks
    [note] = [block.text for block in found if isinstance(block, Text) and "Kept:" in block.text]
    assert "times 6 / √(training problems)" in note
    assert "test cases of other problems" in note
    [fold] = [block for block in found if isinstance(block, Fold) and "whole card" in block.title]
    said = [block.text for block in fold.blocks if isinstance(block, Text)]
    assert "nothing of it is chosen by test problems" in said[-1]
