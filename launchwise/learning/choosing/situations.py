"""Situation of a problem relative to the training rows: known or new GPU, size inside or beyond.

A model that interpolates well may extrapolate badly. Therefore the answering plan is chosen, and
its errors are measured, on held-out training cases that relate to the rest as the problem relates
to all training cases.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from pydantic import ConfigDict, FiniteFloat

from launchwise.learning.row_arrays import arrays
from launchwise.learning.search import grouped_folds
from launchwise.learning.splits import case_numbers
from launchwise.learning.vectors import Columns
from launchwise.tables.rows import row_numbers
from launchwise.workloads.spec import Spec

Situation = Literal["within", "beyond", "new_gpu"]
"""``within``: a known GPU, and every number of the problem between measured ones. ``beyond``: a
known GPU, and a number outside, or a text that no training problem has. ``new_gpu``: no training
row is of that GPU."""

SITUATIONS: tuple[Situation, ...] = get_args(Situation)
BEYOND_SHARE = 1 / 3
"""Share of the training problems, the largest, that is held out to measure extrapolation."""

FEWEST_BEYOND = 6
"""Fewest training problems of which some are held out so."""

MOST_GPU_FOLDS = 6
"""Most folds that leave GPUs out."""

MOST_SLICE_FOLDS = 2
"""Most folds that leave slices of the only card out: they tell little of another card."""

Folds = list[tuple[np.ndarray, np.ndarray]]
"""Row numbers of training and held-out rows, fold by fold."""


@dataclass(frozen=True)
class Known:
    """GPUs and problems of the training rows; a committee stores them as JSON.

    Parameters
    ----------
    gpus
        Names of GPUs.
    ranges
        Problem parameter to its least and its largest value, where it is a number.
    values
        Problem parameter to its values, where it is a text.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    gpus: tuple[str, ...]
    ranges: dict[str, tuple[FiniteFloat, FiniteFloat]]
    values: dict[str, tuple[str, ...]]

    @classmethod
    def of(cls, rows: pd.DataFrame, spec: Spec) -> Known:
        """From training rows."""
        ranges, values = {}, {}
        for name in spec.problem_columns:
            distinct = rows[name].unique().tolist()
            if all(isinstance(each, str) for each in distinct):
                values[name] = tuple(sorted(distinct))
            else:
                ranges[name] = (float(min(distinct)), float(max(distinct)))
        return cls(tuple(sorted(map(str, rows["gpu"].unique()))), ranges, values)

    def situations(self, rows: pd.DataFrame) -> np.ndarray:
        """Situation of each row that holds a GPU and a problem: objects, shape (rows,)."""
        beyond = np.zeros(len(rows), dtype=bool)
        for name, (least, largest) in self.ranges.items():
            asked = rows[name].to_numpy(dtype=float)
            beyond |= (asked < least) | (asked > largest)
        for name, texts in self.values.items():
            beyond |= ~rows[name].isin(texts).to_numpy()
        found = np.where(beyond, "beyond", "within").astype(object)
        found[~rows["gpu"].isin(self.gpus).to_numpy()] = "new_gpu"
        return found


def validation_folds(
    rows: pd.DataFrame,
    spec: Spec,
    situation: Situation,
    folds: int,
    seed: int,
    new: Sequence[str] = (),
    cards: Mapping[str, str] = MappingProxyType({}),
) -> Folds:
    """Training rows held out as a situation would have them; empty where there are too few.

    Parameters
    ----------
    rows
        Training rows.
    folds
        Folds of sizes (``within``), each held out on all GPUs and with all other parameters. Cards
        are left out one by one (``new_gpu``), the largest problems all at once (``beyond``).
    new
        Problem parameters of which values will be asked that no training problem has; the integer
        with the most values if none is given.
    cards
        GPU to the model of its card.
    """
    if situation == "beyond":
        held = _largest(rows, spec)
        return [(np.flatnonzero(~held), np.flatnonzero(held))] if held.any() else []
    groups = held_together(rows, spec, situation, new, cards)
    count = int(groups.max(initial=-1)) + 1
    if count < 2:
        return []
    wanted = folds
    if situation == "new_gpu":
        sliced = len({cards.get(gpu, gpu) for gpu in rows["gpu"].unique()}) == 1
        wanted = min(count, MOST_SLICE_FOLDS if sliced else MOST_GPU_FOLDS)
    return list(grouped_folds(groups, wanted, seed))


def held_together(
    rows: pd.DataFrame,
    spec: Spec,
    situation: Situation,
    new: Sequence[str] = (),
    cards: Mapping[str, str] = MappingProxyType({}),
) -> np.ndarray:
    """Number of each row's held-out unit, from 0: its card, or its size on all GPUs.

    Where all rows are of one card, its slices are units. int64, shape (rows,). Parameters are those
    of :func:`validation_folds`.
    """
    if situation == "new_gpu":
        codes, gpus = pd.factorize(rows["gpu"])
        of_card = pd.factorize(np.array([cards.get(gpu, gpu) for gpu in gpus], dtype=object))[0]
        return np.asarray(of_card[codes] if of_card.any() else codes, dtype=np.int64)
    groups = row_numbers(rows, list(new) or _size(rows, spec))
    if situation == "within" and not groups.any():
        return row_numbers(rows, spec.problem_columns)
    return groups


def new_parameters(
    rows: pd.DataFrame, problems: Iterable[Mapping[str, Any]], spec: Spec
) -> list[str]:
    """Problem parameters of which ``problems`` have values that no training row has."""
    asked = list(problems)
    return [
        name
        for name in spec.problem_columns
        if {problem[name] for problem in asked} - set(rows[name].unique().tolist())
    ]


def _size(rows: pd.DataFrame, spec: Spec) -> list[str]:
    """The integer parameter with the most values; all parameters where there is no integer."""
    integers = [name for name, one in spec.problem.items() if one.values is None]
    if not integers:
        return spec.problem_columns
    return [max(integers, key=lambda name: rows[name].nunique())]


def _largest(rows: pd.DataFrame, spec: Spec) -> np.ndarray:
    """Rows of the largest problems by memory footprint: booleans, shape (rows,)."""
    columns = Columns(spec.derived, arrays(rows, spec, spec.problem_columns))
    footprints = np.broadcast_to(columns.value(spec.work.footprint_bytes), len(rows))
    distinct = np.unique(np.asarray(footprints, dtype=float))
    if len(distinct) < FEWEST_BEYOND:
        return np.zeros(len(rows), dtype=bool)
    least = distinct[-max(2, int(len(distinct) * BEYOND_SHARE))]
    return np.asarray(footprints >= least)


def drawn(rows: pd.DataFrame, spec: Spec, most: int, seed: int) -> pd.DataFrame:
    """Whole cases of ``rows``, drawn at random until the next would exceed ``most`` rows.

    One case of every GPU stays, however large it is.
    """
    codes = case_numbers(rows, spec)
    sizes = np.bincount(codes)
    order = np.random.default_rng(seed).permutation(len(sizes))
    gpus = rows["gpu"].to_numpy()[np.unique(codes, return_index=True)[1]][order]
    first = np.zeros(len(order), dtype=bool)
    first[np.unique(gpus.astype(str), return_index=True)[1]] = True
    order = np.concatenate([order[first], order[~first]])
    count = max(int(first.sum()), 2, int(np.searchsorted(np.cumsum(sizes[order]), most, "right")))
    return rows[np.isin(codes, order[:count])].reset_index(drop=True)
