"""Which problems to measure next: held-out quality against rows, by the order of measurement.

    python benchmarks/next_problems.py benchmarks/results/next_problems.json

On recorded sweeps, one GPU each: the training problems of a split are measured in the order of
``launchwise plan`` (in rounds of 1/36 of the rows, each knowing the rows before it), of the sweep
as it is measured today, of the largest gap, and of random draws (two for each pool). This is
repeated with five pools, each 80 % of the training problems, drawn: a few problems more or less
change answers by more than orders differ. After each share of the rows, the mean of LightGBM and
kNN answers the held-out problems. Qualities are relative to all rows of the pool, means over
pools. ``rows_to_98_percent`` is the smallest share of the rows from which the quality, as the mean
of three shares in a row, is 98 %; None where half of the rows are too few. ``expected`` is the time
over the best that the library expects of answers after some rows of the plan, beside that of the
learner's answers, %.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from harness.command_line import arguments, write_result
from harness.next_problems import (
    LEARNERS,
    Simulation,
    drawn,
    expected,
    largest_gap,
    planned,
    simulation,
)

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
POOLS = 5
KEPT = 0.8
ORDERS = 2  # random orders of each pool
SHARES = tuple(part / PARTS for part in range(1, PARTS // 2 + 1))
THIRD = 1 / 3
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
    """Figures of one way to order, over pools."""
    mean = np.mean(curves, axis=0)
    return {
        "rows_to_98_percent": rows_to_enough(mean.tolist(), shares),
        "mean_to_a_third": float(mean[np.array(shares) <= THIRD + 1e-9].mean()),
        "at_a_third": float(mean[int(np.argmin(np.abs(np.array(shares) - THIRD)))]),
        "qualities": mean.tolist(),
    }


def compared(study: str, gpu: str, shares: Sequence[float], pools: int) -> dict[str, Any]:
    """A study on a GPU, measured in every order."""
    one = simulation(study, gpu, SPLIT)
    curves: dict[str, list[list[float]]] = {}
    first: list[int] = []
    for seed in range(pools):
        part = one.reduced(KEPT, seed)
        orders = {
            "plan": [planned(part, 1 / PARTS, shares[-1])],
            "sweep": [list(range(len(part.pool)))],
            "largest_gap": [largest_gap(part)],
            "random": [drawn(part, ORDERS * seed + place) for place in range(ORDERS)],
        }
        first = first or orders["plan"][0]
        for name, each in orders.items():
            curves.setdefault(name, []).extend(curve(part, order, shares) for order in each)
    found = {name: figures(each, shares) for name, each in curves.items()}
    part = one.reduced(KEPT, 0)
    return {
        **{"study": study, "gpu": gpu, "problems": len(one.pool), "held_out": one.held_out},
        **{"rows": int(one.rows.sum()), "quality": one.quality(range(len(one.pool)))},
        "orders": found,
        "expected": [
            {
                "share": share,
                "expected_percent": expected(part, places),
                "measured_percent": 100 * (1 / part.quality(places) - 1),
            }
            for share in EXPECTED_AT
            for places in [part.within(first, share)]
        ],
    }


def main() -> None:
    """Simulate all and write the file."""
    given = arguments(__doc__).parse_args()
    studies = [("tridiagonal_recursion", "h200")] if given.smallest else STUDIES
    shares, pools = (SHARES[11:], 1) if given.smallest else (SHARES, POOLS)
    results = []
    for study, gpu in studies:
        results.append(compared(study, gpu, shares, pools))
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
    facts = {
        "learners": LEARNERS,
        "pools": POOLS,
        "kept": KEPT,
        "shares": shares,
        "split": SPLIT,
        "mean_to_a_third": means,
    }
    write_result(given.output, {**facts, "studies": results})


if __name__ == "__main__":
    main()
