"""How much other cards tell of a new one, by what is known of them: coefficients of a search.

    python benchmarks/likeness.py benchmarks/results/likeness.json

Every pair of cards that both measured a kernel's problem, public or recorded, slices included: the
logarithm of the deviation between their losses, over the configurations that are fastest on one of
them, is a sum of coefficients times differences of the cards, none of them below 0, and of a
constant of the problem. Weights of cards fall with a multiple of that sum: the one by which their
mean is nearest to the card that is left out. :mod:`launchwise.search.candidates` holds the product.

``held_out`` says how the weighted mean does, with coefficients and multiple fitted without the
kernel, beside the plain mean of the other cards. No GPU is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd
from harness import searches
from harness.command_line import arguments, write_result
from scipy.optimize import lsq_linear

from launchwise.search.candidates import COEFFICIENTS, differences
from launchwise.search.transfer_search import LARGEST_LOSS, weights_of

NAMES = tuple(COEFFICIENTS)
PROBLEMS = 20  # of each recorded kernel
FASTEST = 50  # configurations that a pair is held against each other on
FLOOR = 0.01  # added to deviations: those of times themselves
PENALTY = 1.0
"""Of a coefficient times a typical difference, less the mean of all of them, squared: where no pair
tells, one difference counts as much as another."""

MULTIPLES = (0.0, 2.0, 4.0, 7.0, 10.0, 14.0)


@dataclass(frozen=True)
class Table:
    """Bounded losses of a problem's configurations on each card, NaN where not measured."""

    kernel: str
    losses: pd.DataFrame


@cache
def apart(one: str, other: str) -> np.ndarray:
    """Differences of two cards, by :data:`NAMES`."""
    found = differences(searches.facts_of(one), searches.facts_of(other))
    return np.array([found[name] for name in NAMES])


@cache
def typical() -> np.ndarray:
    """Root mean square of the differences of whole cards, by :data:`NAMES`."""
    cards = [*searches.CARDS, *(path.name for path in (searches.PUBLIC / "gpus").iterdir())]
    pairs = [apart(one, other) for one in cards for other in cards]
    return np.asarray(np.sqrt(np.mean(np.square(pairs), axis=0)))


def tables(smallest: bool) -> Iterator[Table]:
    """Those of all kernels."""
    kernels, count = (("granger",), 2) if smallest else (searches.KERNELS, PROBLEMS)
    for kernel in kernels:
        every = list(searches.recorded(kernel).values())
        for place in np.random.default_rng(1).permutation(len(every))[:count]:
            yield Table(kernel, searches.losses(every[place]))
    for kernel in searches.WORKLOADS:
        yield Table(kernel, searches.losses(searches.public(kernel)[1]))


def fitted(every: Sequence[Table]) -> np.ndarray:
    """Coefficients of the differences; each kernel has the same weight."""
    rows: list[tuple[str, int, np.ndarray, float]] = []
    for number, table in enumerate(every):
        cards = list(table.losses)
        for place, one in enumerate(cards):
            for other in cards[:place]:
                both = table.losses[[one, other]].dropna()
                top = both.loc[both.min(axis=1).nsmallest(FASTEST).index].to_numpy()
                deviation = float(np.sqrt(((top[:, 0] - top[:, 1]) ** 2).mean()))
                rows.append((table.kernel, number, apart(one, other), np.log(deviation + FLOOR)))
    kernels, numbers, differ, logs = map(np.array, zip(*rows, strict=True))
    count, constants = len(NAMES), pd.get_dummies(numbers).to_numpy(float)
    weights = 1 / np.array([np.sqrt((kernels == each).sum()) for each in kernels])
    # The last unknown is what a typical difference counts.
    left = np.hstack([differ, constants, np.zeros((len(logs), 1))]) * weights[:, None]
    alike = np.zeros((count, left.shape[1]))
    alike[:, :count], alike[:, -1] = np.diag(PENALTY * typical()), -PENALTY
    least = [0.0] * count + [-np.inf] * constants.shape[1] + [0.0]
    found = lsq_linear(
        np.vstack([left, alike]), np.append(logs * weights, np.zeros(count)), (least, np.inf)
    )
    return np.asarray(found.x[:count])


def told(every: Sequence[Table], coefficients: np.ndarray) -> dict[str, dict[str, float]]:
    """Kernel to how well the weighted mean of others tells the losses of each card: logarithm of
    the ``deviation`` over the configurations that are fastest or said to be, and share of the best
    of the ``first`` choice; means over cards and problems."""
    found: dict[str, list[tuple[float, float]]] = {}
    for table in every:
        for card in map(str, table.losses):
            own = table.losses[card].dropna()
            if not (others := searches.others_of(card, table.losses)):
                continue
            away = np.array([apart(card, other) @ coefficients for other in others])
            known = table.losses.loc[own.index, others].fillna(LARGEST_LOSS).to_numpy()
            said, true = known @ weights_of(away), own.to_numpy()
            top = np.argsort(np.minimum(said, true), kind="stable")[:FASTEST]
            deviation = np.log(np.std(said[top] - true[top]) + FLOOR)
            share = np.exp(-true[np.argmin(said)])
            found.setdefault(table.kernel, []).append((float(deviation), float(share)))
    return {
        kernel: dict(zip(("deviation", "first"), map(fmean, zip(*rows, strict=True)), strict=True))
        for kernel, rows in found.items()
    }


def chosen(every: Sequence[Table]) -> np.ndarray:
    """Coefficients times the multiple of the least deviation; each kernel weighs the same."""
    found = fitted(every)
    means = {
        multiple: fmean(each["deviation"] for each in told(every, multiple * found).values())
        for multiple in MULTIPLES
    }
    return found * min(means, key=means.__getitem__)


def main() -> None:
    """Fit, hold out, write."""
    asked = arguments(__doc__).parse_args()
    every = list(tables(asked.smallest))
    held_out: dict[str, dict[str, Any]] = {}
    for kernel in dict.fromkeys(table.kernel for table in every):
        inside = [table for table in every if table.kernel == kernel]
        without = chosen([table for table in every if table.kernel != kernel])
        held_out[kernel] = {
            "problems": len(inside),
            "weighted": told(inside, without)[kernel],
            "mean": told(inside, 0 * without)[kernel],
        }
    coefficients = {
        name: round(float(each), 3) for name, each in zip(NAMES, chosen(every), strict=True)
    }
    write_result(asked.output, {"coefficients": coefficients, "held_out": held_out})


if __name__ == "__main__":
    main()
