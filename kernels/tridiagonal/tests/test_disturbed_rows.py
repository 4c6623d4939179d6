"""Rows that something outside disturbed, in times from a known law."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.tridiagonal.studies.host_runs import (
    APART,
    DISAGREE,
    LEAST_ERROR,
    disturbance,
    excess_over_neighbours,
)

SIZES = [10**power for power in range(2, 9)]
CHOICES = [4, 8, 16, 32, 64]


def table(seed=1, noise=0.01):
    """Both variants at every size and m: a law of powers, with some noise."""
    generator = np.random.default_rng(seed)
    rows = [
        {"variant": variant, "n": n, "m": m, "time_ms": 1e-5 * n**0.8 * m**-0.4 * share}
        for variant, share in (("strided", 1.0), ("strided_scratch", 1.05))
        for n in SIZES
        for m in CHOICES
    ]
    found = pd.DataFrame(rows)
    found["time_ms"] *= np.exp(noise * generator.standard_normal(len(found)))
    return found.assign(relative_error=0.01 * generator.uniform(0.5, 1.5, len(found)))


def at(rows, n, m, variant="strided"):
    (place,) = rows.index[(rows["n"] == n) & (rows["m"] == m) & (rows["variant"] == variant)]
    return int(place)


@settings(max_examples=10)
@given(st.integers(0, 99), st.sampled_from(SIZES[1:-1]), st.sampled_from(CHOICES[1:-1]))
def test_a_row_apart_from_all_neighbours_is_found_and_no_other(seed, n, m):
    rows = table(seed)
    assert not (disturbance(rows) != "").any()
    one = at(rows, n, m)
    rows.loc[one, "time_ms"] *= 1.5
    found = disturbance(rows)
    assert found[one] == APART
    assert (found != "").sum() == 1


def test_a_whole_size_is_no_disturbance_of_one_row():
    # A step in size that both variants and all m share: two kinds of neighbours agree with it.
    rows = table()
    rows.loc[rows["n"] == 10**5, "time_ms"] *= 1.5
    assert not (disturbance(rows) != "").any()
    # With one variant alone, the other variant and the other sizes tell.
    rows = table()
    own = (rows["n"] == 10**5) & (rows["variant"] == "strided")
    rows.loc[own, "time_ms"] *= 1.5
    assert (disturbance(rows)[own] == APART).all()
    assert not (disturbance(rows)[~own] != "").any()


def test_a_shorter_time_and_a_small_excess_are_none():
    rows = table()
    rows.loc[at(rows, 10**5, 16), "time_ms"] *= 0.8
    found = disturbance(rows)
    assert found[at(rows, 10**5, 16)] == ""
    exact = table(noise=0.0)
    exact.loc[at(exact, 10**5, 16), "time_ms"] *= 1.09
    assert not (disturbance(exact) != "").any()


@pytest.mark.parametrize(("error", "why"), [(0.019, ""), (0.2, DISAGREE), (np.nan, "")])
def test_repeats_disagree_beyond_the_fence_of_all_errors(error, why):
    rows = table()
    one = at(rows, 100, 4)
    rows.loc[one, "relative_error"] = error
    assert disturbance(rows)[one] == why


def test_no_error_below_what_a_sweep_asks_disagrees():
    rows = table().assign(relative_error=1e-4)
    rows.loc[3, "relative_error"] = LEAST_ERROR
    assert not (disturbance(rows) != "").any()
    # All errors alike are no disagreement, however large.
    assert not (disturbance(table().assign(relative_error=0.3)) != "").any()


def test_a_row_with_neighbours_of_one_kind_has_no_excess():
    rows = table()
    alone = rows[(rows["variant"] == "strided") & (rows["n"] == 100)]
    assert excess_over_neighbours(alone).isna().all()
    assert not (disturbance(alone) != "").any()
    # The order of rows makes no difference.
    mixed = rows.sample(frac=1, random_state=1)
    pd.testing.assert_series_equal(
        excess_over_neighbours(mixed).sort_index(), excess_over_neighbours(rows), check_names=False
    )
