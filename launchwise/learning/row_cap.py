"""Which rows a fit learns from where it would have more than the settings allow.

Configurations of each problem are left out first: its fastest, its baseline and its usual choice
stay, others are drawn at random. Once each problem has so few rows that no more may go, whole
problems are left out; every GPU keeps as many as the others, each another part of them, so that
together they hold as many problems as they can.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from launchwise.base.errors import UserError
from launchwise.learning.features import Domain
from launchwise.learning.row_arrays import ranked
from launchwise.learning.splits import case_codes

KEY = "max_rows_per_fit"  # Key of the settings
CARDS = 2  # Models of card whose rows the cap was chosen by
FASTEST = 16  # Rows of each problem that always stay, the fastest
FEWEST = 64  # Default of `RowCap.fewest`


@dataclass(frozen=True)
class RowCap:
    """Most rows that one fit learns from."""

    # Of rows of up to `CARDS` models of card; half as many more of each further model, so
    # that problems of all of them find room. None for all rows.
    most: int | None = None
    seed: int = 0  # of what is drawn
    where: str = "config.yaml"  # file that holds the setting, for messages
    fewest: int = FEWEST  # rows of each problem below which whole problems are left out instead

    def exceeded(self, rows: int) -> bool:
        """Whether some of so many rows are left out."""
        return self.most is not None and rows > self.most

    def applied(self, rows: pd.DataFrame, domain: Domain, fit: str) -> pd.DataFrame:
        """The rows that stay, in their order; which they are depends on no order.

        ``rows``: training rows, each key once; ``fit``: name of what is fitted, for messages.
        Raises UserError when the rows of one problem of each GPU are more than are allowed.
        """
        if self.most is None:
            return rows
        cards = {domain.profiles[gpu].card_model for gpu in rows["gpu"].unique()}
        scaled = replace(self, most=self.most * max(CARDS, len(cards)) // CARDS)
        return scaled._kept(rows, domain, fit) if scaled.exceeded(len(rows)) else rows

    def _kept(self, rows: pd.DataFrame, domain: Domain, fit: str) -> pd.DataFrame:
        assert self.most is not None
        codes, keys = case_codes(rows, domain.spec)
        sizes = np.bincount(codes, minlength=len(keys))
        draws = self._draws(rows, domain)
        places = _places(rows, codes, draws, domain)
        if quota(sizes, self.most) >= self.fewest:
            # Some problems have one row more than others.
            order = np.lexsort((draws, places))[: self.most]
            kept = np.zeros(len(rows), dtype=bool)
            kept[order] = True
        else:
            cases = self._cases(keys, np.minimum(sizes, self.fewest), fit)
            kept = cases[codes] & (places < self.fewest)
        return rows[kept].reset_index(drop=True)

    def _draws(self, rows: pd.DataFrame, domain: Domain) -> np.ndarray:
        """A random number of each row that depends on its key and the seed: uint64, (rows,)."""
        hashes = pd.util.hash_pandas_object(rows[domain.spec.key_columns], index=False)
        salt = np.random.default_rng(self.seed).integers(2**63, dtype=np.uint64)
        mixed = (hashes.to_numpy() ^ salt) * np.uint64(0x9E3779B97F4A7C15)
        return np.asarray(mixed ^ (mixed >> np.uint64(32)))

    def _cases(self, keys: Sequence[tuple[Any, ...]], sizes: np.ndarray, fit: str) -> np.ndarray:
        """Which cases stay, of so many rows each: booleans, shape (cases,)."""
        assert self.most is not None
        order, gpus = in_turn(keys, self.seed)
        if (least := int(sizes[order[:gpus]].sum())) > self.most:
            message = (
                f"is {self.most}, but {fit} needs at least {least} rows, of one problem of each "
                f"of its {gpus} GPUs"
            )
            raise UserError(self.where, KEY, message)
        found = np.zeros(len(sizes), dtype=bool)
        found[order[np.cumsum(sizes[order]) <= self.most]] = True
        return found


ALL_ROWS = RowCap()  # No cap


def _places(rows: pd.DataFrame, codes: np.ndarray, draws: np.ndarray, domain: Domain) -> np.ndarray:
    """Place of each row among those of its case, what always stays first: int64, (rows,).

    ``codes``: number of each row's case: int64, shape (rows,); ``draws``: a random number of each
    row: shape (rows,).
    """
    times = rows["time_ms"].to_numpy(dtype=float)
    first = ranked(codes, times, draws)[1] <= FASTEST
    first |= domain.is_usual(rows) | domain.is_baseline(rows)
    return ranked(codes, ~first, draws)[1] - 1


def told(rows: int) -> str:
    """That rows were left out, for a log."""
    return f"{rows} rows left out: {KEY} allows no more"


def quota(sizes: np.ndarray, most: int) -> int:
    """Rows that every case may keep where ``most`` are kept of all.

    ``sizes``: rows of each case: int64, shape (cases,), more than ``most`` together.
    """
    ordered = np.sort(sizes)
    # Rows that stay if each case keeps as many as one of them has.
    total = np.cumsum(ordered) + ordered * np.arange(len(ordered) - 1, -1, -1)
    whole = int(np.searchsorted(total, most, side="right"))
    rest = most - int(ordered[:whole].sum())
    return rest // (len(ordered) - whole)


def in_turn(keys: Sequence[tuple[Any, ...]], seed: int) -> tuple[np.ndarray, int]:
    """Cases in the order in which they are taken, and how many GPUs there are. GPUs take turns,
    each with one problem. All go round the same circle of problems, which is drawn at random, from
    starts that lie evenly apart. ``keys``: of each case: its GPU, then its problem."""
    gpus = _numbers([key[0] for key in keys])
    problems = _numbers([key[1:] for key in keys])
    many, count = int(gpus.max()) + 1, int(problems.max()) + 1
    places = np.random.default_rng(seed).permutation(count)[problems]
    _, turns = ranked(gpus, (places - gpus * count // many) % count)
    return np.lexsort((gpus, turns)), many


def _numbers(values: Sequence[Any]) -> np.ndarray:
    """Number of each value among the sorted ones: int64, shape (values,)."""
    numbers = {value: number for number, value in enumerate(sorted(set(values), key=repr))}
    return np.array([numbers[value] for value in values], dtype=np.int64)
