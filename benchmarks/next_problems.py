"""Which problems to measure next: held-out quality against rows, by the order of measurement.

    python benchmarks/next_problems.py benchmarks/results/next_problems.json

On recorded sweeps, one GPU each: the training problems of a split are measured in the order of
``launchwise plan`` (in rounds of 1/36, 1/24 and 1/18 of the rows, each knowing the rows before it),
of the sweep as it is measured today, of the largest gap, and of random draws. After each share of
the rows, the mean of LightGBM and kNN answers the held-out problems. ``rows_to_98_percent`` is the
smallest share of the rows from which the quality, as the mean of three shares in a row, is 98 % of
that of all rows; the median over rounds or seeds. None where half of the rows are too few.
``expected`` is the time over the best that the library expects of answers after some rows of the
plan, beside that of the learner's answers, %.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np
from harness.command_line import arguments, provenance
from harness.next_problems import (
    LEARNERS,
    Simulation,
    drawn,
    expected,
    largest_gap,
    planned,
    simulation,
)

from launchwise.base.storage import write_json

STUDIES = (
    ("acoustic_kernels", "h200"),
    ("acoustic_kernels", "h100"),
    ("acoustic_tile", "h200"),
    ("granger_time", "h200"),
    ("sentiment_inference", "h200"),
    ("tridiagonal_subsystem", "h200"),
    ("tridiagonal_subsystem", "h100"),
)
SPLIT = "interpolation"
PARTS = 36
ROUNDS = (1 / 36, 1 / 24, 1 / 18)
SHARES = tuple(part / PARTS for part in range(1, PARTS // 2 + 1))
THIRD = 1 / 3
SEEDS = 9
ENOUGH = 0.98
EXPECTED_AT = (0.1, 0.2, THIRD, 0.5)
IN_A_ROW = 3


def curve(one: Simulation, order: Sequence[int], shares: Sequence[float]) -> list[float]:
    """Quality after each share of the rows, relative to all rows."""
    full = one.quality(range(len(one.pool)))
    return [one.quality(one.within(order, share)) / full for share in shares]


def rows_to_enough(qualities: Sequence[float], shares: Sequence[float]) -> float | None:
    """Smallest share of the rows that is enough, the mean of three in a row."""
    for place in range(len(shares) - IN_A_ROW + 1):
        if np.mean(qualities[place : place + IN_A_ROW]) >= ENOUGH:
            return shares[place]
    return None


def figures(curves: Sequence[Sequence[float]], shares: Sequence[float]) -> dict[str, Any]:
    """Figures of one way to order, over its rounds or seeds."""
    reached = [rows_to_enough(each, shares) for each in curves]
    median = statistics.median([1.0 if each is None else each for each in reached])
    mean = np.mean(curves, axis=0)
    return {
        "rows_to_98_percent": None if median == 1.0 else median,
        "orders_that_reach_it": sum(each is not None for each in reached),
        "orders": len(curves),
        "mean_to_a_third": float(mean[np.array(shares) <= THIRD + 1e-9].mean()),
        "at_a_third": float(mean[int(np.argmin(np.abs(np.array(shares) - THIRD)))]),
        "qualities": mean.tolist(),
    }


def compared(study: str, gpu: str, shares: Sequence[float], seeds: int) -> dict[str, Any]:
    """A study on a GPU, measured in every order."""
    one = simulation(study, gpu, SPLIT)
    orders = {
        "plan": [planned(one, each, shares[-1]) for each in ROUNDS],
        "sweep": [list(range(len(one.pool)))],
        "largest_gap": [largest_gap(one)],
        "random": [drawn(one, seed) for seed in range(seeds)],
    }
    found = {
        name: figures([curve(one, order, shares) for order in each], shares)
        for name, each in orders.items()
    }
    return {
        **{"study": study, "gpu": gpu, "problems": len(one.pool), "held_out": one.held_out},
        **{"rows": int(one.rows.sum()), "quality": one.quality(range(len(one.pool)))},
        "orders": found,
        "expected": [
            {
                "share": share,
                "expected_percent": expected(one, places),
                "measured_percent": 100 * (1 / one.quality(places) - 1),
            }
            for share in EXPECTED_AT
            for places in [one.within(orders["plan"][0], share)]
        ],
    }


def main() -> None:
    """Simulate all and write the file."""
    given = arguments(__doc__ or "").parse_args()
    studies = [("tridiagonal_recursion", "h200")] if given.smallest else STUDIES
    shares, seeds = (SHARES[11:], 1) if given.smallest else (SHARES, SEEDS)
    results = []
    for study, gpu in studies:
        results.append(compared(study, gpu, shares, seeds))
        words = ", ".join(
            f"{name} {one['rows_to_98_percent'] or 1:.2f} ({one['mean_to_a_third']:.3f})"
            for name, one in results[-1]["orders"].items()
        )
        print(f"{study} on {gpu}: {words}", flush=True)
    names = list(results[0]["orders"])
    means = {
        name: float(np.mean([one["orders"][name]["mean_to_a_third"] for one in results]))
        for name in names
    }
    facts = {"learners": LEARNERS, "shares": shares, "split": SPLIT, "mean_to_a_third": means}
    write_json(given.output, {**provenance(), **facts, "studies": results})


if __name__ == "__main__":
    main()
