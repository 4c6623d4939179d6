"""Ranks and correlations within groups, against pandas group by group."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from launchwise.learning.prediction_errors import correlations, group_ranks

ROWS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=30
)


def spearman(first, second):
    """Rank correlation of one group."""
    one = np.zeros(len(first), dtype=np.int64)
    return float(correlations(one, group_ranks(one, first), group_ranks(one, second))[0])


def by_pandas(first, second):
    """The same by pandas' ranks and NumPy's correlation; NaN of fewer than 2 or of constants."""
    if len(first) < 2:
        return float("nan")
    ranks = [pd.Series(values).rank().to_numpy() for values in (first, second)]
    if any(np.ptp(each) == 0 for each in ranks):
        return float("nan")
    return float(np.corrcoef(*ranks)[0, 1])


@given(ROWS)
def test_ranks_are_those_of_pandas(rows):
    table = pd.DataFrame(rows, columns=["group", "first", "second"]).astype(
        {"first": float, "second": float}
    )
    groups = table["group"].to_numpy()
    wanted = table.groupby("group")["first"].rank()
    assert group_ranks(groups, table["first"].to_numpy()).tolist() == wanted.tolist()
    order = np.argsort(table["first"].to_numpy())
    assert group_ranks(groups, table["first"].to_numpy(), order).tolist() == wanted.tolist()
    # More groups than two bytes number.
    far = groups * 20_000
    assert group_ranks(far, table["first"].to_numpy()).tolist() == wanted.tolist()


@given(ROWS)
def test_correlations_of_ranks_are_spearmans(rows):
    table = pd.DataFrame(rows, columns=["group", "first", "second"]).astype(float)
    groups = pd.factorize(table["group"])[0]
    first, second = table["first"].to_numpy(), table["second"].to_numpy()
    found = correlations(groups, group_ranks(groups, first), group_ranks(groups, second))
    wanted = [
        by_pandas(first[groups == group], second[groups == group])
        for group in range(groups.max() + 1)
    ]
    assert found == pytest.approx(wanted, nan_ok=True)


def test_ties_share_a_rank_within_their_group_only():
    groups = np.array([1, 0, 1, 0, 1])
    values = np.array([5.0, 5.0, 2.0, 7.0, 5.0])
    assert group_ranks(groups, values).tolist() == [2.5, 1.0, 1.0, 2.0, 2.5]
    constant = correlations(groups, np.ones(5), values)
    assert np.isnan(constant).all()


def test_spearman_by_hand():
    # Rank differences 1, 1, 0, 0: 1 - 6 * 2 / (4 * 15).
    assert spearman(np.array([1, 2, 3, 4]), np.array([20, 10, 30, 40])) == pytest.approx(0.8)
    assert spearman(np.array([1, 5, 6]), np.array([9, 4, 1])) == pytest.approx(-1.0)
    # Ties share a rank: (1, 2.5, 2.5) against (1, 2, 3).
    assert spearman(np.array([1, 2, 2]), np.array([1, 2, 3])) == pytest.approx(math.sqrt(3) / 2)


@given(st.lists(st.integers(1, 50), min_size=3, max_size=10, unique=True), st.data())
def test_spearman_sees_ranks_only(values, data):
    measured = np.array(data.draw(st.permutations(values)), dtype=float)
    predicted = np.array(values, dtype=float)
    found = spearman(predicted, measured)
    assert -1 - 1e-12 <= found <= 1 + 1e-12
    assert spearman(np.exp(predicted / 9), measured**3) == pytest.approx(found)
    assert spearman(-predicted, measured) == pytest.approx(-found)


def test_spearman_of_constants_or_of_one_value_is_unknown():
    assert math.isnan(spearman(np.array([1.0, 1.0]), np.array([1.0, 2.0])))
    assert math.isnan(spearman(np.array([1.0]), np.array([1.0])))
