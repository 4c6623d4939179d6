"""The published times of reviews, held to each other and to what the paper says of them."""

from __future__ import annotations

import numpy as np
import pytest
from published_tables import facts, table


def test_printed_speed_ups_of_reviews_follow_from_the_printed_seconds() -> None:
    times = table("sentiment_inference", "times").set_index("implementation")
    printed = times["speed_up"].dropna()
    assert list(printed.index) == ["CUDA naive", "CUDA shared memory", "CUDA streams"]
    by_seconds = times.loc["CPU (C++ with Eigen)", "total_s"] / times["total_s"]
    # The last of them is rounded down less than half a unit.
    assert np.allclose(by_seconds[printed.index], printed, rtol=0, atol=0.7)


def test_claimed_gains_of_reviews_are_those_of_the_printed_times() -> None:
    times = table("sentiment_inference", "times").set_index("implementation")
    given = facts("sentiment_inference")
    steps = {
        "gain_shared_all_percent": ("total_s", "CUDA naive", "CUDA shared memory"),
        "gain_shared_one_percent": ("one_case_ms", "CUDA naive", "CUDA shared memory"),
    }
    for fact, (column, before, after) in steps.items():
        saved = 100 * (1 - times.loc[after, column] / times.loc[before, column])
        assert saved == pytest.approx(float(given[fact]), abs=0.5)
    single = times.loc["CPU (C++ with Eigen)", "one_case_ms"] / times["one_case_ms"]
    assert round(single["CUDA naive"]) == int(given["speed_up_claimed"]) == 500
    assert round(single["CUDA streams"]) == 682
    assert int(given["speed_up_all_claimed"]) < times.loc["CUDA naive", "speed_up"] == 159


def test_published_times_of_one_review_and_of_all_disagree() -> None:
    times = table("sentiment_inference", "times").dropna(subset="total_s")
    mean = 1e3 * times["total_s"] / int(facts("sentiment_inference")["cases"])
    assert list((times["one_case_ms"] / mean).round(1)) == [9.0, 2.9, 2.6, 2.3]
