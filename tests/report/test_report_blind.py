"""Blind tests on the report's pages."""

import dataclasses

import pytest

from launchwise.report import numbers
from launchwise.report.answer import rule
from launchwise.report.answer.predicted_times import Spread
from launchwise.report.blocks import Fold
from launchwise.report.pages import finder, index_page
from launchwise.report.site import assemble
from tests.support.report_pages import RUN
from tests.support.report_study import SCORE, study
from tests.support.shown import blocks_of, notes, rows_of, tables


def with_tests():
    """A study with blind tests of a GPU of its own, and of one that it had no row of."""
    other = {**SCORE, "gpu": "other", "new_gpu": True, "fraction_geometric_mean": 0.91}
    return dataclasses.replace(study(), blind={"big": SCORE, "other": other})


def fold_of(*studies):
    """What the front page says of blind tests; empty without any."""
    folds = blocks_of(index_page.sections(studies)[-1], Fold)
    return [block for fold in folds if fold.id == "blind" for block in fold.blocks]


def table_of(made):
    """The table of the front page."""
    (table,) = tables(fold_of(made))
    return table


def test_a_gpu_that_no_study_learnt_from_is_marked():
    own, other = table_of(with_tests()).rows
    assert [cell.text for cell in own.cells[1:5]] == ["big", "first", "40", "0.974"]
    assert own.cells[4].detail == "0.969 to 0.979"
    assert [cell.text for cell in other.cells[1:5]] == ["other, new", "first", "40", "0.910"]
    assert [cell.text for cell in own.cells[8:12]] == ["2", "–", "6", "4 of 22"]
    assert fold_of(study()) == []


def test_the_lookup_has_the_answers_whose_test_ended_well():
    made = study()
    judged = {"fraction": 0.98765432, "gain": 1.5, "gain_low": 1.4, "gain_high": 1.6}
    rows = made.rows.iloc[:2][["n", "dtype", "order"]].assign(**judged, is_usual=False)
    rows = rows.assign(n=[111, 112], status=["ok", "timeout"])
    ((gpu, found),) = finder.tested(dataclasses.replace(made, scores={"big": rows})).items()
    assert (gpu, len(found)) == ("big", 1)
    problem, *numbers, is_usual = found[0]
    assert problem == [111, "float32", 2]
    assert numbers == pytest.approx([*judged.values()], rel=1e-3)
    assert is_usual == 0


def test_it_is_named_where_the_gpus_are():
    assert numbers.only_tested([with_tests(), with_tests()]) == ["other"]
    assert "Blind tests only: other." in assemble.whose(assemble.Report([with_tests()], RUN))
    assert "blind" not in assemble.whose(assemble.Report([study()], RUN))
    # A GPU that was new may have rows now.
    made = dataclasses.replace(study(), blind={"big": {**SCORE, "new_gpu": True}})
    assert table_of(made).rows[0].cells[1].text == "big, new"
    assert numbers.only_tested([made]) == []


def test_the_answer_of_a_study_has_its_result():
    own, other = rows_of(rule.sure(with_tests()), "What answers reach")
    assert [own[0], *own[-4:]] == ["big", "40", "0.974", "–", "–"]
    assert other == ["other", *["–"] * 8, "40", "0.910", "–", "–"]


def test_a_later_test_has_a_line_of_its_own_and_stands_in_for_one_that_was_not_measured():
    later = {**SCORE, "problems": 14, "fraction_geometric_mean": 0.917}
    both = dataclasses.replace(study(), blind={"big": SCORE}, drawn={"big": later})
    assert [[cell.text for cell in row.cells[2:5:2]] for row in table_of(both).rows] == [
        ["first", "0.974"],
        ["later", "0.917"],
    ]
    assert rows_of(rule.sure(both), "What answers reach")[0][-4:-2] == ["40", "0.974"]
    alone = dataclasses.replace(both, blind={}, _known={})
    assert [row.cells[4].text for row in table_of(alone).rows] == ["0.917"]
    assert rows_of(rule.sure(alone), "What answers reach")[0][-4:-2] == ["14", "0.917"]


def test_intervals_say_what_they_held_in_the_blind_test():
    held = {**SCORE, "times_covered": 0.525, "covered": None}
    made = dataclasses.replace(study(), blind={"big": held})
    drawn = finder.data(made)
    said = dict(zip(drawn["gpus"], drawn["covered"], strict=True))
    assert said["big"] == (
        "The blind test's intervals were meant to hold 90 %; they held 52 % of the times."
    )
    assert said["big.sm4"] == ""
    both = dataclasses.replace(made, blind={"big": {**held, "covered": 0.95}})
    assert "52 % of the times and 95 % of the gains" in finder.covered(both, "big")
    # Of how many answers, which are fewer than the problems.
    counted = {**held, "covered": 0.95, "intervals": 37, "times": 39}
    made = dataclasses.replace(made, blind={"big": counted}, _known={})
    for table, end in ((table_of(made), -1), (tables(rule.sure(made))[0], None)):
        assert [cell.detail for cell in table.rows[0].cells[:end][-2:]] == ["of 37", "of 39"]


def test_answers_that_nobody_has_measured_yet_are_named():
    made = with_tests()
    waiting = fold_of(made, dataclasses.replace(made, name="more", frozen=["big"]))
    assert "Frozen, and not measured yet: A tiny study on big." in notes(waiting)
    assert not any("Frozen" in text for text in notes(fold_of(made)))


def test_a_time_from_a_datasheet_says_how_far_it_may_be_off():
    assert finder.data(study(), Spread(3.24, 55, ("t4",)))["off"] == "within 3.2 times"
    assert finder.data(study())["off"] == "error unknown"
