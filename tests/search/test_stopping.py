"""The chance that something faster was left: what raises it, and where its numbers come from."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import ROOT

from launchwise.search import transfer_search
from launchwise.search.transfer_search import Evidence, chance_left

RESULT = ROOT / "benchmarks" / "results" / "stopping.json"


@given(st.floats(0, 1e4), st.floats(0, 1e4), st.integers(0, 500), st.integers(1, 10**5))
def test_more_that_is_expected_raises_it_and_a_long_wait_lowers_it(
    few: float, many: float, since: int, left: int
) -> None:
    few, many = sorted([few, many])
    assert 0 < chance_left(Evidence(few, since, left)) <= chance_left(Evidence(many, since, left))
    assert chance_left(Evidence(few, since + 10, left)) < chance_left(Evidence(few, since, left))
    assert chance_left(Evidence(few, since, left)) < 1


def test_nothing_left_is_no_chance() -> None:
    assert chance_left(Evidence(0.0, 3, 0)) == 0


def test_its_numbers_are_those_of_the_benchmark() -> None:
    found = json.loads(RESULT.read_text())
    here = (
        transfer_search.CONSTANT,
        transfer_search.BY_EXPECTED,
        transfer_search.BY_SINCE,
        transfer_search.BY_LEFT,
    )
    assert here == pytest.approx(found["coefficients"], abs=1e-3)
    # What is called a tenth is one: on workloads that the numbers were not fitted to.
    for right in found["right_held_out"].values():
        assert 0.85 <= right <= 0.95
