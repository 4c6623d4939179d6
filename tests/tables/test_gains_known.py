"""When the gain of the fastest configuration of a problem is known."""

import math

import pandas as pd
import pytest

from launchwise.base.robust import Ratio
from launchwise.tables.measurements import NARROW, gains_known


def rows(low, high, roles="best"):
    """Pairs of one problem: the usual choice, one of gain 2 and one of gain 1.5."""
    return pd.DataFrame(
        {
            "n": 100,
            "roles": ["usual", roles, "near"],
            "gain": [1.0, 2.0, 1.5],
            "gain_low": [1.0, low, 1.5],
            "gain_high": [1.0, high, 1.5],
            "rounds": [20, 20, 20],
        }
    )


@pytest.mark.parametrize(
    ("low", "high", "known"),
    [
        (1.981, 2.019, True),
        (1.979, 2.021, False),
        # More than 1 % to one side; what counts is the width.
        (1.97, 2.005, True),
        (1.99, 2.035, False),
        (math.nan, math.nan, False),
    ],
)
def test_a_gain_is_known_by_the_width_at_which_pairs_end(low, high, known):
    assert list(gains_known(rows(low, high))) == [known]
    assert (Ratio(2.0, low, high, 20, 0).half_width <= NARROW) is known


def test_the_gain_of_the_usual_choice_over_itself_does_not_count():
    assert gains_known(rows(1.99, 2.01, "usual+best")).empty


def test_the_gain_is_that_of_the_fastest_of_the_sweep():
    # Slower in these rounds than the one of gain 1.5, which is known.
    slower = rows(0.5, 1.5).assign(gain=[1.0, 0.9, 1.5])
    assert list(gains_known(slower)) == [False]
