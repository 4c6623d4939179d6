"""Ranks and correlations within groups, against pandas group by group."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from launchwise.learning import metrics
from launchwise.learning.ranks import correlations, group_ranks

ROWS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=30
)


@given(ROWS)
def test_ranks_are_those_of_pandas(rows: list[tuple[int, int, int]]) -> None:
    table = pd.DataFrame(rows, columns=["group", "first", "second"]).astype(
        {"first": float, "second": float}
    )
    groups = table["group"].to_numpy()
    wanted = table.groupby("group")["first"].rank()
    assert group_ranks(groups, table["first"].to_numpy()).tolist() == wanted.tolist()


@given(ROWS)
def test_correlations_of_ranks_are_spearmans(rows: list[tuple[int, int, int]]) -> None:
    table = pd.DataFrame(rows, columns=["group", "first", "second"]).astype(float)
    groups = pd.factorize(table["group"])[0]
    first, second = table["first"].to_numpy(), table["second"].to_numpy()
    found = correlations(groups, group_ranks(groups, first), group_ranks(groups, second))
    wanted = [
        metrics.spearman(first[groups == group], second[groups == group])
        for group in range(groups.max() + 1)
    ]
    assert found == pytest.approx(wanted, nan_ok=True)


def test_ties_share_a_rank_within_their_group_only() -> None:
    groups = np.array([1, 0, 1, 0, 1])
    values = np.array([5.0, 5.0, 2.0, 7.0, 5.0])
    assert group_ranks(groups, values).tolist() == [2.5, 1.0, 1.0, 2.0, 2.5]
    constant = correlations(groups, np.ones(5), values)
    assert np.isnan(constant).all()
