"""The published predictions follow from the figures that the paper prints."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from published_tables import facts, table
from samples import ROOT


def test_printed_times_follow_from_their_parts_on_cards_that_are_known() -> None:
    predictions, given = table("granger_time", "predictions"), facts("granger_time")
    assert list(predictions["gpu"]) == ["titan_black", "titan_x", "titan_v", "rtx2080ti", "rtx4070"]
    cards = pd.read_csv(ROOT / "data" / "cards.csv")
    assert set(predictions["gpu"]) <= set(cards["card"])
    compute = 1e6 * float(given["flop_total"]) / predictions["peak_float32_flops"]
    assert list(compute.round(2)) == list(predictions["compute_us"])
    longer = predictions[["compute_us", "memory_us"]].max(axis=1)
    assert list(longer) == list(predictions["body_us"])
    total = predictions["body_us"] + float(given["launch_overhead_us"])
    assert np.allclose(total, predictions["predicted_us"], rtol=0, atol=1e-9)


def test_printed_times_belong_to_a_tenth_of_the_printed_bytes() -> None:
    predictions, given = table("granger_time", "predictions"), facts("granger_time")
    implied = 1e-6 * predictions["memory_us"] * predictions["bandwidth_bytes_a_second"]
    assert implied.max() / implied.min() < 1.0001
    # One line of the source has both.
    assert float(given["bytes_total"]) == 10 * 1e6 * float(given["megabytes_total"])
    assert implied.mean() / 1e6 == pytest.approx(float(given["megabytes_total"]), abs=0.05)
    threads = int(given["threads"])
    assert threads * float(given["bytes_a_thread"]) == pytest.approx(
        float(given["bytes_total"]), rel=2e-3
    )
    parts = ("kilobytes_begin", "kilobytes_gram_schmidt", "kilobytes_solve")
    a_thread = 1e3 * sum(float(given[name]) for name in parts)
    assert a_thread == pytest.approx(198_400)
    # The three parts are rounded, by .05, .5 and .5 kB at most.
    assert abs(implied.mean() / threads - a_thread) < 1050


def test_counts_of_a_predicted_launch_agree() -> None:
    given = {name: float(text) for name, text in facts("granger_time").items()}
    assert given["flop_r"] + given["flop_b"] == given["flop_solve"]
    assert given["flop_gram_schmidt"] + given["flop_solve"] == given["flop_a_thread"] == 43_200
    # What the text lost: 45 pairs of columns, a product and a subtraction of 100 rows each.
    assert given["flop_gram_schmidt"] - given["flop_norms"] == 45 * 4 * given["rows"]
    assert given["flop_a_thread"] * given["threads"] == pytest.approx(given["flop_total"], rel=1e-3)
    # Copies along y of a block are counted, those along y of the grid are not.
    assert given["threads"] == given["county"] * given["block_y"]
    last = (given["grid_x"] - 1) * given["threads_a_dimension"] + given["block_x"] - 1
    assert given["last_regression_of_grid"] == last
