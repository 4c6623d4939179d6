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


@pytest.fixture(scope="module")
def launch() -> dict[str, float]:
    """The published launch: its facts, and what follows from its grid and block."""
    given = {name: float(text) for name, text in facts("granger_time").items()}
    columns = [
        (block, thread)
        for block in range(int(given["grid_x"]))
        for thread in range(int(given["block_x"]))
        if block * given["threads_a_dimension"] + thread < given["county"]
    ]
    copies = given["block_y"] * given["grid_y"]
    warps = len({(block, thread // 32) for block, thread in columns}) * copies
    blocks = len({block for block, _ in columns}) * given["grid_y"]
    parts = ("kilobytes_begin", "kilobytes_gram_schmidt", "kilobytes_solve")
    rows, cols = given["rows"], given["cols"]
    return {
        **given,
        **{"working": len(columns) * copies, "warps": warps, "blocks": blocks},
        "bytes": 1e3 * sum(given[name] for name in parts),
        # X and Q, a series, R and b of one regression.
        "arrays": 4 * (rows * (2 * cols + 1) + cols**2 + cols),
    }


def test_counts_of_one_thread_are_those_of_the_loops(launch: dict[str, float]) -> None:
    rows, cols = launch["rows"], launch["cols"]
    pairs = cols * (cols - 1) / 2
    # A length is a product of a column with itself and a root; scaling is one division and `rows`
    # multiplications. A pair of columns is a product and a subtraction.
    norms = cols * (2 * rows + 1 + 1 + rows)
    gram_schmidt, r = norms + pairs * 4 * rows, cols * cols * 2 * rows
    # Q^T y; a multiply-add per pair of the substitution, and its divisions.
    b = cols * 2 * rows + 2 * pairs + cols
    # Words: X to Q, intercepts; products of two columns, subtracted from one, lengths and scaling;
    # Q^T X and Q^T y, R stored, b and R of the substitution.
    words = (
        rows * (2 * cols + 1),
        rows * (5 * pairs + 3 * cols),
        2 * rows * (cols**2 + cols) + cols**2 + 2 * pairs + 2 * cols,
    )
    counted = [norms, gram_schmidt, r, b, r + b, gram_schmidt + r + b]
    counted += [4 * each for each in (*words, sum(words))]
    found = table("granger_time", "recount")
    assert list(found["counted_again"]) == counted
    names = ("norms", "gram_schmidt", "r", "b", "solve", "a_thread")
    assert list(found["printed"][:6]) == [launch[f"flop_{name}"] for name in names]
    assert found["printed"].iloc[-1] == launch["bytes"]


def test_errors_of_the_prediction_follow_from_its_launch(launch: dict[str, float]) -> None:
    printed = table("granger_time", "predictions")
    sms = pd.read_csv(ROOT / "data" / "cards.csv").query("figure == 'sms'")
    sms = printed["gpu"].map(sms.set_index("card")["value"].astype(float))
    flop, copies = launch["flop_a_thread"] * launch["threads"], launch["working"] / 160
    once, lanes = launch["arrays"] * launch["county"], launch["working"] / launch["warps"] / 32
    shares = lanes * np.minimum(1, launch["blocks"] / sms)

    def ratios(flop: float, count: float, share: pd.Series | float = 1.0) -> str:
        compute = 1e6 * flop / (share * printed["peak_float32_flops"])
        memory = 1e6 * count / printed["bandwidth_bytes_a_second"]
        total = np.maximum(compute, memory) + launch["launch_overhead_us"]
        ends = [f"{end(total / printed['predicted_us']):.2f}" for end in (min, max)]
        return ends[0] if ends[0] == ends[1] else " to ".join(ends)

    found = table("granger_time", "errors").set_index("what")
    assert list(found["by_launch"].iloc[3:5]) == [
        f"{launch['working']:.0f}",
        f"{once / 1e3:.2f} kB",
    ]
    implied = 1e-6 * printed["memory_us"] * printed["bandwidth_bytes_a_second"]
    again = table("granger_time", "recount")["counted_again"].iloc[-1] * launch["threads"]
    assert found["in_source"].iloc[2] == f"{implied.mean() / 1e6:.2f} MB"
    assert found["off"].iloc[2] == f"{again / implied.mean():.3f} × too few"
    total = launch["bytes"] * launch["threads"]
    assert list(found["by_counts"].iloc[:2]) == [
        ratios(flop, launch["bytes_a_thread"] * launch["threads"]),
        ratios(flop, launch["bytes_total"]),
    ]
    assert list(found["by_its_launch"]) == [
        *(ratios(flop, each) for each in (total, total, again)),
        ratios(copies * flop, copies * total),
        ratios(flop, once),
        ratios(flop, total, shares),
        ratios(copies * flop, once, shares),
    ]
    assert f"{100 * shares.min():.1f} to {100 * shares.max():.1f} %" == found["by_launch"].iloc[5]
    reasons = table("granger_time", "reasons").set_index("reason")["text"]
    assert "800 threads have work, in 160 warps of 5 blocks" in reasons["Copies"]
    assert (launch["working"], launch["warps"], launch["blocks"]) == (800, 160, 5)
