"""Training rows with and without the Tukey filter, against values computed by hand."""

from __future__ import annotations

import dataclasses

import pandas as pd
import pytest

from launchwise.report.blocks import Table
from launchwise.report.models import outliers
from launchwise.report.study import StudyData
from launchwise.tables.learning import named_folds
from tests.support.report_study import study


def filtered(problem: list[int], overall: list[int]) -> StudyData:
    """Six training rows of two problems, of which the filters remove those at these places."""
    made = study()
    first = made.training.iloc[:1]
    rows = pd.concat([first] * 6, ignore_index=True).assign(
        n=[102] * 3 + [202] * 3, bx=[32, 64, 128] * 2, time_ms=[1.0, 1.04, 3.0, 8.0, 10.0, 20.0]
    )
    shared = [name for name in made.removed if name in rows and name != "scope"]
    gone = [
        made.removed.iloc[:1].assign(scope=scope, **{name: rows[name].iloc[at] for name in shared})
        for scope, places in (("problem", problem), ("global", overall))
        for at in places
    ]
    kept = rows.drop(index=problem)
    return dataclasses.replace(
        made,
        training=kept,
        removed=pd.concat([made.removed.iloc[:0], *gone], ignore_index=True),
        _known={},
    )


def test_no_filter_stands_beside_those_of_both_scopes() -> None:
    made = filtered(problem=[0, 2], overall=[3, 4, 5])
    split, _, fold = named_folds(made.training)[0].partition("/")
    found = outliers.arms(made, split, fold)
    assert list(found) == ["none", "problem", "global"]
    assert found["none"] == outliers.Arm(0, 0, 0, 0, 0.0, 0.0)
    # 1 ms of 1, 1.04 and 3 ms is gone; 8 ms stays.
    per_problem = found["problem"]
    assert (per_problem.removed, per_problem.near, per_problem.lost) == (2, 1, 1)
    assert per_problem.loss == pytest.approx(1.04**0.5 - 1)
    assert per_problem.worst == pytest.approx(0.04)
    # Nothing is left of the larger problem; the smaller one keeps its best.
    overall = found["global"]
    assert (overall.removed, overall.near, overall.gone) == (3, 1, 1)
    assert (overall.loss, overall.worst) == (0.0, 0.0)


def test_the_section_shows_all_three() -> None:
    tables = [one for one in outliers.outliers(filtered([0], [5])) if isinstance(one, Table)]
    (table,) = (one for one in tables if "with and without" in one.caption)
    names = [row.cells[0].text for row in table.rows]
    assert names == ["no filter", *outliers.SCOPES.values()]
    assert [row.cells[1].text for row in table.rows] == ["0", "1", "1"]
