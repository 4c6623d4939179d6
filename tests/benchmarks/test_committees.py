"""Variants of the answering model learn from no row of what they are asked, and add up."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness.ablated import material_of
from harness.committees import Task, Variant, fitted, on_blind_test

from launchwise.base.storage import write_json
from launchwise.learning.final import learnt_from
from launchwise.learning.splits import cases_in
from tests.support.slow_cases import first_of

STUDY = "tridiagonal_streams"
FEW = {"members": "knn, nearest_size"}


def task(**changes: bool) -> Task:
    """A variant with few members on a recorded blind test."""
    return Task("few", Variant("few members", FEW, **changes), 1, "blind", STUDY, "h200")


def test_a_row_of_a_test_problem_among_the_training_rows_ends_the_run() -> None:
    material = material_of(STUDY)
    domain = material.domain()
    rows = learnt_from(material.study, domain, material.sweeps).training
    (case,) = cases_in(rows, material.spec)[:1]
    with pytest.raises(ValueError, match=f"{STUDY}, h200: [1-9] training rows are of test"):
        fitted(task(), domain, rows, [case])


@pytest.mark.parametrize("inherits", first_of([False, True]))
def test_a_product_of_all_cards_answers_every_problem(inherits: bool) -> None:
    outcome = on_blind_test(task(all_cards=True, inherits=inherits))
    assert len(outcome.rows) == 40
    assert outcome.rows["fraction"].between(0.3, 1).all()
    assert min(outcome.fit_s, outcome.answer_s) > 0


def test_only_runs_of_the_same_tests_are_added_to(tmp_path: Path) -> None:
    from committee import earlier

    facts = {"commit": "a", "seeds": [1], "studies": [STUDY]}
    write_json(tmp_path / "one.json", {**facts, "variants": {"default": {}}})
    assert earlier(tmp_path / "one.json", facts) == {"default": {}}
    with pytest.raises(SystemExit, match="other seeds"):
        earlier(tmp_path / "one.json", {**facts, "seeds": [2]})
