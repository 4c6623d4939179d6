"""The best choice for every size: observed, made monotone, learnt from neighbours, transferred.

A *choice* is the value of one tunable (a sub-system size, a number of recursions, of streams); a
*size* is the one number that describes the problem. The rows are those of one dtype, and of one
GPU unless several are asked for. After M. Veneva (arXiv:2510.27351), who corrects optima to follow
a trend but gives no rule for it.

Columns are named by parameters: ``size`` (a number > 0) and ``choice`` (a number); ``time_ms`` is
NaN where a measurement failed. Rows that share a size and a choice count as the fastest of
them. A loss is 100 (time / best time of the size - 1). Every function that reads times raises
ValueError when there is none, or a time or size is not positive.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from launchwise.learning.merit import geometric_mean

OPTIMUM_TIE = 1e-9  # smallest relative gain for which a correction leaves an observed optimum


def with_a_choice(rows: pd.DataFrame, size: str = "n", choice: str = "m") -> pd.DataFrame:
    """Rows of sizes that have a time for more than one choice. A size that was measured with one
    choice only, for another study, has no optimum, and a trend that must pass there would be drawn
    to it."""
    timed = rows[rows["time_ms"].notna()]
    return rows[rows[size].map(timed.groupby(size)[choice].nunique()) > 1]


def observed_optima(rows: pd.DataFrame, size: str = "n", choice: str = "m") -> pd.DataFrame:
    """The fastest choice for each size; of equally fast ones the smallest. Returns a DataFrame:
    ``size``, ``choice``, ``time_ms``, by ascending size; sizes without a time are left out."""
    grid = _grid(rows, size, choice)
    best = {choice: grid.idxmin(axis=1), "time_ms": grid.min(axis=1)}
    return pd.DataFrame(best).rename_axis(index=size, columns=None).reset_index()


def corrected_optima(rows: pd.DataFrame, size: str = "n", choice: str = "m") -> pd.DataFrame:
    """Choices that never fall as the size grows, with the least sum of log(time / best time).

    Only measured choices are taken, so each has its time. Where it costs nothing (less than
    :data:`OPTIMUM_TIE`) the observed optimum stays; after that, smaller choices are preferred.

    Returns a DataFrame: by ascending size: ``size``, ``choice``, ``time_ms``, ``rank`` (int, 1 is
    the fastest choice of that size, equal times share a rank), ``loss_percent`` (>= 0),
    ``observed_<choice>`` and ``observed_time_ms``.
    Raises ValueError when no measured choices follow a trend.
    """
    grid = _grid(rows, size, choice)
    observed = observed_optima(rows, size, choice)
    times, best = grid.to_numpy(), observed["time_ms"].to_numpy()
    costs = np.log(times / best[:, None])
    costs += OPTIMUM_TIE * (grid.columns.to_numpy() != observed[choice].to_numpy()[:, None])
    columns = _monotone_path(np.where(np.isnan(costs), np.inf, costs), list(grid.index))
    taken = times[np.arange(len(times)), columns]
    return pd.DataFrame(
        {
            size: grid.index,
            choice: grid.columns.to_numpy()[columns],
            "time_ms": taken,
            "rank": 1 + (times < taken[:, None]).sum(axis=1),
            "loss_percent": 100 * (taken / best - 1),
            f"observed_{choice}": observed[choice],
            "observed_time_ms": best,
        }
    )


def voted(places: np.ndarray, classes: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """Class that most of the nearest known places have, for each number of neighbours.

    Of equal votes the smallest class wins, of places as near the first.

    ``places``, ``classes``: of what is known: float64 and int64 from 0, each of shape (known,).
    ``asked``: float64, shape (asked,).
    Returns an array: int64, shape (asked, known): from 1 neighbour to all.
    """
    nearest = np.argsort(np.abs(asked[:, None] - places), axis=1, kind="stable")
    votes = np.cumsum(np.eye(classes.max() + 1, dtype=np.int64)[classes[nearest]], axis=1)
    return votes.argmax(axis=2)


def _grid(rows: pd.DataFrame, size: str, choice: str) -> pd.DataFrame:
    """Least time (float64, ms) of each size (index) and choice (columns), both ascending."""
    measured = rows[rows["time_ms"].notna()]
    if measured.empty or not (measured[[size, "time_ms"]] > 0).all(axis=None):
        raise ValueError(f"rows must hold times, and {size} and time_ms must be positive")
    return (
        measured.groupby([size, choice])["time_ms"].min().astype(float).unstack().sort_index(axis=1)
    )


def _monotone_path(costs: np.ndarray, sizes: list[float]) -> np.ndarray:
    """Column of each row, never falling, of least summed cost; infinite costs are forbidden."""
    places = np.arange(costs.shape[1])
    before = []
    total = np.zeros(costs.shape[1])
    for size, row in zip(sizes, costs, strict=True):
        # The cheapest way that ends at or left of each column, and where it ends.
        least = np.minimum.accumulate(total)
        cheaper = np.concatenate([[True], total[1:] < least[:-1]])
        before.append(np.maximum.accumulate(np.where(cheaper, places, 0)))
        total = least + row
        if np.isinf(total).all():
            raise ValueError(f"no choice measured at size {size} is as large as those before it")
    path = [total.argmin()]
    for row in reversed(before[1:]):
        path.append(row[path[-1]])
    return np.array(path[::-1])


def _losses(rows: pd.DataFrame, chosen: pd.DataFrame, size: str, choice: str) -> pd.Series:
    """Losses in percent of the chosen sizes and choices that were measured."""
    if rows.empty:
        return pd.Series(dtype=float)
    grid = _grid(rows, size, choice)
    relative = grid.div(grid.min(axis=1), axis=0)
    pairs = zip(chosen[size], chosen[choice], strict=True)
    values = [relative.at[n, m] for n, m in pairs if n in relative.index and m in relative]
    return 100 * (pd.Series(values, dtype=float).dropna() - 1)


SPLITS = 10  # shuffled splits: a single one of a dozen test sizes says little

TEST_SHARE, FOLDS = 0.25, 3
MOST_TRIES = 200  # seeds that are tried for splits whose training sizes have every choice


@dataclass(frozen=True)
class Classification:
    """Accuracies (0..1) over several splits; ``null`` is that of the most frequent choice.

    ``neighbours`` are the numbers that the grid search found, ascending, each once.
    ``loss_percent`` (geometric mean) and ``worst_loss_percent`` are those of the predicted choices
    that were measured, NaN if none was; ``unmeasured`` of all ``tested`` sizes have no such time.
    """

    splits: int
    mean: float
    least: float
    largest: float
    null: float
    neighbours: tuple[int, ...]
    tested: int
    loss_percent: float
    worst_loss_percent: float
    unmeasured: int


def split(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Places of the training and of the test part, as ``train_test_split`` of scikit-learn draws.
    Hundreds of seeds may be tried, and its checks of arrays take a hundred times as long."""
    tested = math.ceil(TEST_SHARE * count)
    drawn = np.random.RandomState(seed).permutation(count)
    return drawn[tested:], drawn[:tested]


def classify_optima(
    optima: pd.DataFrame, rows: pd.DataFrame, seed: int, size: str = "n", choice: str = "m"
) -> Classification | None:
    """Split sizes 3 : 1 at random, search the number of neighbours by cross-validation, and test.

    Sizes are taken as they are, not by their logarithm, and every choice is in the training
    part, as in the paper; where no split has that, there is none.

    ``optima``: one row per size, observed or corrected.
    ``rows``: measurements, for the losses; no loss is known without any.
    ``seed``: of the first split; the next ones count on.
    """
    places = optima[size].to_numpy(dtype=float)
    named, choices = np.unique(optima[choice].to_numpy(), return_inverse=True)
    classes = choices.max() + 1
    found, lost = [], []
    for number in range(MOST_TRIES):
        train, test = split(len(places), seed + number)
        known, wanted = choices[train], choices[test]
        counts = np.bincount(known, minlength=classes)
        if not counts.all() or len(known) < 2 * FOLDS:
            continue
        most = min(classes, len(known) * (FOLDS - 1) // FOLDS)
        best = _searched(places[train], known, most, seed + number)
        answers = voted(places[train], known, places[test])[:, best - 1]
        null = float((counts.argmax() == wanted).mean())
        found.append((float((answers == wanted).mean()), null, best))
        lost.append(pd.DataFrame({size: optima[size].to_numpy()[test], choice: named[answers]}))
        if len(found) == SPLITS:
            break
    if not found:
        return None
    accuracies, nulls, neighbours = zip(*found, strict=True)
    predicted = pd.concat(lost)
    losses = _losses(rows, predicted, size, choice)
    return Classification(
        splits=len(found),
        mean=float(np.mean(accuracies)),
        least=min(accuracies),
        largest=max(accuracies),
        null=float(np.mean(nulls)),
        neighbours=tuple(sorted(set(neighbours))),
        tested=len(predicted),
        loss_percent=mean_loss(losses),
        worst_loss_percent=float(losses.max()),
        unmeasured=len(predicted) - len(losses),
    )


def mean_loss(percent: pd.Series) -> float:
    """Geometric mean of losses, %."""
    return 100 * (geometric_mean(1 + percent.to_numpy() / 100) - 1)


def _searched(places: np.ndarray, classes: np.ndarray, most: int, seed: int) -> int:
    """Number of neighbours, 1 to ``most``, of the best mean accuracy over shuffled folds. The least
    of equally good ones, as ``GridSearchCV`` with ``KFold`` of scikit-learn finds it. ``places``
    (float64) and ``classes`` (int64 from 0) have shape (known,)."""
    rows = np.arange(len(places))
    accuracies = []
    for part in np.array_split(np.random.RandomState(seed).permutation(len(places)), FOLDS):
        held = np.isin(rows, part)
        answers = voted(places[~held], classes[~held], places[held])[:, :most]
        accuracies.append((answers == classes[held, None]).mean(axis=0))
    return int(np.mean(accuracies, axis=0).argmax()) + 1
