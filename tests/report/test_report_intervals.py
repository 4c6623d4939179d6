"""What the page calls best, and what it says beside the rules without learning."""

import copy
import dataclasses

import pytest
from report_study import study

from launchwise.report import wording
from launchwise.report.answer.model_tables import tables_of
from tests.support.shown import tables


def with_ratios(**ratios):
    """The tiny study with intervals of some models' ratios."""
    whole = study()
    facts = copy.deepcopy(dict(whole.facts))
    for part in facts["splits"]["sizes"].values():
        for model, ratio in ratios.items():
            known = {"beside_best_model": ratio, "fraction_interval": (0.9012, 0.9876)}
            part["models"][model] |= known
    return dataclasses.replace(whole, facts=facts)


def table_of(whole):
    """The first table of models."""
    return tables(tables_of(whole))[0]


@pytest.mark.parametrize(
    ("knn", "tree", "best"),
    [
        ((1.0, 1.0), (0.97, 1.01), {"kNN", "regression tree"}),
        ((0.8, 0.9), (1.0, 1.0), {"regression tree"}),
        # Nothing is known of few problems.
        (None, None, {"kNN", "regression tree"}),
    ],
)
def test_models_that_the_problems_do_not_tell_apart_are_best_together(knn, tree, best):
    table = table_of(with_ratios(knn=knn, tree=tree))
    found = {row.cells[0].text for row in table.rows if row.cells[1].best}
    assert best <= found
    assert (found == {"kNN", "regression tree"}) == (len(best) == 2)


def test_the_best_model_of_a_column_is_marked_and_no_rule():
    table = table_of(study())
    best = {
        column.title: [row.cells[0].text for row in table.rows if row.cells[place].best]
        for place, column in enumerate(table.columns)
    }
    # Most is best, or least; of equal ones, and of the only one, none is.
    for title in ("coefficient", "speed-up", "worst", "slower"):
        assert best[title] == ["regression tree"]
    for title in ("method", "MAPE", "Spearman"):
        assert best[title] == []


def test_the_interval_stands_beside_the_mean():
    table = table_of(with_ratios(knn=(1.0, 1.0)))
    headings = [(column.title, column.unit) for column in table.columns]
    place = headings.index(("mean", "95 % interval"))
    (row,) = [row for row in table.rows if row.cells[0].text == "kNN"]
    assert row.cells[place].text == "0.901 to 0.988"
    assert not row.cells[place].best


def test_an_interval_that_is_not_known_has_no_limits():
    assert wording.interval((0.941, 0.978)) == "0.941 to 0.978"
    nan = float("nan")
    assert {wording.interval(each) for each in (None, (nan, nan), (0.9, nan))} == {wording.MISSING}
