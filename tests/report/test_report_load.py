"""The section of a load: its times are those of the answers, and means count by launches."""

from dataclasses import replace

import pytest

from launchwise.experiment.load import Load
from launchwise.report.answer import worth
from tests.support.report_study import study
from tests.support.shown import tables


def loaded(counts):
    made = study()
    return replace(made, load=Load("tiny", tuple(made.problem_columns), counts, {}), _known={})


def test_a_study_without_a_load_has_no_section():
    assert worth.section(study()) is None


def test_shares_stand_beside_launches():
    entries = study().table.entries
    first, second, *_ = (one.problem for one in entries if one.device == 0 and one.time_ms)
    rows = tables(worth.section(loaded({first: 7, second: 2})))[0].rows
    shown = {row.cells[2].text: float(row.cells[1].text) for row in rows}
    assert shown.keys() == {"7", "2"}
    assert sum(shown.values()) == pytest.approx(100, abs=0.1)


def test_the_mean_of_a_choice_counts_by_launches():
    made = study()
    rows = worth.choices(made, "big")[0][1].assign(fraction=[0.5, 0.8])
    first = tuple(rows.iloc[0][name] for name in made.problem_columns)
    assert made.mean(rows) == pytest.approx(0.4**0.5)
    assert loaded({first: 5}).mean(rows) == 0.5
