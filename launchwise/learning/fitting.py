"""Fits one model to the training rows of one fold, or as many of them as settings allow."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from launchwise.base.errors import UserError
from launchwise.experiment.settings import Search
from launchwise.experiment.study import ModelEntry
from launchwise.learning.features import Domain
from launchwise.learning.recommender import Recommender
from launchwise.learning.recommenders import recommender_class
from launchwise.learning.row_arrays import ranked
from launchwise.learning.search import held_out_regret, search
from launchwise.learning.splits import Fold, case_codes, case_numbers

KEY = "max_rows_per_fit"  # Key of the settings
CARDS = 2  # Models of card whose rows the cap was chosen by
FASTEST = 16  # Rows of each problem that always stay, the fastest
FEWEST = 64  # Default of `RowCap.fewest`


@dataclass(frozen=True)
class RowCap:
    """Most rows that one fit learns from, and which stay where it would have more.

    Configurations of each problem are left out first: its fastest, its baseline and its usual
    choice stay, others are drawn at random. Once each problem has so few rows that no more may go,
    whole problems are left out; every GPU keeps as many as the others, each another part of them,
    so that together they hold as many problems as they can.
    """

    # Of rows of up to `CARDS` models of card; half as many more of each further model, so
    # that problems of all of them find room. None for all rows.
    most: int | None = None
    seed: int = 0  # of what is drawn
    where: str = "config.yaml"  # file that holds the setting, for messages
    fewest: int = FEWEST  # rows of each problem below which whole problems are left out instead

    def applied(self, rows: pd.DataFrame, domain: Domain, fit: str) -> pd.DataFrame:
        """The rows that stay, in their order; which they are depends on no order.

        ``rows``: training rows, each key once; ``fit``: name of what is fitted, for messages.
        Raises UserError when the rows of one problem of each GPU are more than are allowed.
        """
        if self.most is None:
            return rows
        cards = {domain.profiles[gpu].card_model for gpu in rows["gpu"].unique()}
        most = self.most * max(CARDS, len(cards)) // CARDS
        if len(rows) <= most:
            return rows
        codes, keys = case_codes(rows, domain.spec)
        sizes = np.bincount(codes, minlength=len(keys))
        draws = self._draws(rows, domain)
        places = _places(rows, codes, draws, domain)
        if quota(sizes, most) >= self.fewest:
            # Some problems have one row more than others.
            order = np.lexsort((draws, places))[:most]
            kept = np.zeros(len(rows), dtype=bool)
            kept[order] = True
        else:
            cases = self._cases(keys, np.minimum(sizes, self.fewest), fit, most)
            kept = cases[codes] & (places < self.fewest)
        return rows[kept].reset_index(drop=True)

    def _draws(self, rows: pd.DataFrame, domain: Domain) -> np.ndarray:
        """A random number of each row that depends on its key and the seed: uint64, (rows,)."""
        hashes = pd.util.hash_pandas_object(rows[domain.spec.key_columns], index=False)
        salt = np.random.default_rng(self.seed).integers(2**63, dtype=np.uint64)
        mixed = (hashes.to_numpy() ^ salt) * np.uint64(0x9E3779B97F4A7C15)
        return np.asarray(mixed ^ (mixed >> np.uint64(32)))

    def _cases(
        self, keys: Sequence[tuple[Any, ...]], sizes: np.ndarray, fit: str, most: int
    ) -> np.ndarray:
        """Which cases stay, of so many rows each: booleans, shape (cases,)."""
        order, gpus = in_turn(keys, self.seed)
        if (least := int(sizes[order[:gpus]].sum())) > most:
            message = (
                f"is {most}, but {fit} needs at least {least} rows, of one problem of each "
                f"of its {gpus} GPUs"
            )
            raise UserError(self.where, KEY, message)
        found = np.zeros(len(sizes), dtype=bool)
        found[order[np.cumsum(sizes[order]) <= most]] = True
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


CROSS_VALIDATION_FOLDS = 10

Facts = dict[str, Any]


def fitted_to(
    rows: pd.DataFrame,
    fold: Fold,
    name: str,
    entry: ModelEntry,
    domain: Domain,
    options: Search,
    seed: int,
    journal: Path | None = None,
    blamed: tuple[str, ...] = (),
) -> tuple[Recommender, Facts]:
    """A model of a study that is fitted to the rows of a fold, and facts of it.

    ``rows``: with the features of the domain.
    ``name``, ``entry``: of the settings.
    ``options``, ``seed``, ``journal``: search of hyper-parameters, its seed, and the folder of its
        trials.
    ``blamed``: file of the settings that holds the hyper-parameters, and their key there.
    Raises UserError when the model cannot be fitted.
    """
    kind = recommender_class(entry.kind, f"models.{name}", domain.spec.folder)
    with blaming(name, entry, *blamed):
        searched = search(
            kind,
            domain,
            rows,
            fixed=dict(entry.parameters),
            trials=options.trials if entry.trials is None else entry.trials,
            folds=options.folds,
            max_rows=options.max_rows,
            seed=seed,
            journal=journal,
            name=f"{fold.split}/{fold.fold}",
            objective=options.objective,
        )
        model = kind(domain, **{"seed": seed, **searched.parameters, **entry.parameters})
        started = time.perf_counter()
        model.fit(rows)
        seconds = time.perf_counter() - started
    return model, {
        "rows": len(rows),
        "cases": int(case_numbers(rows, domain.spec).max()) + 1,
        "parameters": model.parameters,
        "trials": searched.trials,
        "objective": searched.value,
        "seconds_search": searched.seconds,
        "seconds_fit": seconds,
        **model.summary(),
    }


def cross_validation(recommender: Recommender, rows: pd.DataFrame, seed: int) -> Facts:
    """Ten-fold score: share of held-out cases whose recommendation is the best or near it.

    ``rows``: of several cases, with the features of the domain.
    """
    fresh = type(recommender)(recommender.domain, **recommender.parameters)
    regret = held_out_regret(fresh, rows, CROSS_VALIDATION_FOLDS, seed, judged=1)
    near = np.log1p(recommender.domain.near_best_percent / 100)
    return {
        "cross_validation": {
            "folds": min(CROSS_VALIDATION_FOLDS, len(regret)),
            "accuracy": float((regret <= 1e-12).mean()),
            "accuracy_near_best": float((regret <= near + 1e-12).mean()),
            "fraction": float(np.exp(-regret.mean())),
        }
    }


@contextmanager
def blaming(name: str, entry: ModelEntry, where: str = "", key: str = "") -> Iterator[None]:
    """Turn a library's error about a fixed hyper-parameter into a UserError.

    ``where``, ``key``: file of the settings that holds the hyper-parameters, and their key there.
    """
    where, key = where or "the settings", key or f"models.{name}.parameters"
    try:
        yield
    except UserError as error:
        if not error.key.startswith("models.parameters"):
            raise
        below = error.key.removeprefix("models.parameters")
        raise UserError(where, f"{key}{below}", error.message) from error
    except OSError:
        raise
    except Exception as error:
        if not entry.parameters:
            raise
        first = str(error).strip().splitlines()
        raise UserError(where, key, first[0] if first else repr(error)) from error
