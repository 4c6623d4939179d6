"""Learning to rank: grades, lists, and an order that no target of times would give."""

import numpy as np
import pytest
from stencil import cases, training_rows

from launchwise.learning.recommenders import _trees
from launchwise.learning.recommenders._trees import LambdarankRecommender, grades, lists_of
from launchwise.learning.splits import among, case_numbers

GPU = "card.sm72"
TRAINED, ASKED = (cases(sizes, (GPU,)) for sizes in ((256, 300, 512), (500,)))


@pytest.fixture(scope="module")
def sweep(domain):
    """Measured times of one GPU."""
    rows = training_rows(domain.spec, (256, 300, 500, 512))
    return rows[rows["gpu"] == GPU].reset_index(drop=True)


def of(rows, asked, domain):
    """Rows of some cases."""
    return rows[among(rows, asked, domain.spec)].reset_index(drop=True)


def test_grades_fall_with_the_distance_from_the_best():
    times = np.array([1.0, 1.009, 1.015, 1.04, 1.08, 1.15, 1.4, 1.9, 2.5])
    assert grades(np.log(times)).tolist() == [7, 7, 6, 5, 4, 3, 2, 1, 0]


def test_a_case_is_one_list_and_a_long_one_is_drawn_into_equal_parts(monkeypatch):
    numbers = np.array([0] * 3 + [1] * 10 + [2] * 4)
    assert lists_of(numbers, 0).tolist() == numbers.tolist()
    monkeypatch.setattr(_trees, "LONGEST_LIST", 4)
    found = lists_of(numbers, 0)
    assert found[:3].tolist() == [0, 0, 0]
    assert found[-4:].tolist() == [4, 4, 4, 4]
    assert sorted(np.bincount(found[3:13])[1:].tolist()) == [3, 3, 4]
    # Drawn, not cut: what a sweep lists first would else be one list.
    assert found[3:13].tolist() != sorted(found[3:13].tolist())
    assert (found == lists_of(numbers, 0)).all()
    monkeypatch.undo()  # As long as LightGBM takes.
    assert np.bincount(lists_of(np.zeros(10_000, np.int64), 0)).tolist() == [10_000]
    assert sorted(np.bincount(lists_of(np.zeros(10_001, np.int64), 0))) == [5000, 5001]


def test_order_does_not_depend_on_how_long_a_problem_takes(domain, sweep):
    train, asked = of(sweep, TRAINED, domain), of(sweep, ASKED, domain)
    factor = 1000.0 ** case_numbers(train, domain.spec)
    slower = train.assign(time_ms=train["time_ms"] * factor)
    order, other = (
        LambdarankRecommender(domain).fit(rows).ranking(asked).order.tolist()
        for rows in (train, slower)
    )
    assert order == other


def test_rows_in_any_order_teach_the_same_lists(domain, sweep):
    # Rows of a case need not lie together.
    train, asked = of(sweep, TRAINED, domain), of(sweep, ASKED, domain)
    mixed = train.sample(frac=1, random_state=3).reset_index(drop=True)
    for rows in (train, mixed):
        ranked = LambdarankRecommender(domain).fit(rows).rank(asked)
        first = ranked.loc[ranked["rank"] == 1, "time_ms"].iloc[0]
        assert first <= 1.05 * asked["time_ms"].min()
