"""Correlations of ranks within groups, against pandas group by group."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from launchwise.learning.prediction_errors import correlations, group_ranks

ROWS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=30
)


def by_pandas(first, second):
    """The same by pandas' ranks and NumPy's correlation; NaN of fewer than 2 or of constants."""
    if len(first) < 2:
        return float("nan")
    ranks = [pd.Series(values).rank().to_numpy() for values in (first, second)]
    if any(np.ptp(each) == 0 for each in ranks):
        return float("nan")
    return float(np.corrcoef(*ranks)[0, 1])


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
