"""What the models of a study say of its test candidates: one table of candidates, one file a model.

``results/learnt/<study>/candidates.parquet`` holds every candidate of every test case, fold by
fold. ``<method>.parquet`` beside it has a row for each of them: what one model or simple rule says.
Evaluation, curves, intervals and the report read these files and fit nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from launchwise.base.errors import UserError
from launchwise.learning.recommender import Recommender
from launchwise.tables.files import read_facts, read_table, write_table
from launchwise.tables.learning import (
    SAID,
    candidates_schema,
    predicted_column,
    said_schema,
)
from launchwise.tables.rows import row_numbers
from launchwise.workloads.spec import Spec

CANDIDATES = "candidates"  # Name of the table of candidates, which no method may have
LONGEST = 50  # Recommendations of a test case that have a rank

MOST_CANDIDATES = 2_000_000_000
"""Most values of a table of candidates: a hundred GPUs with ten thousand rows each take a tenth."""


def said_by(recommender: Recommender, choices: pd.DataFrame) -> pd.DataFrame:
    """What a fitted recommender says of candidates: columns of :data:`SAID`, a row for each."""
    ranking = recommender.ranking(choices)
    losses = recommender.losses(choices)
    with np.errstate(invalid="ignore"):
        told = np.isclose(np.log(ranking.predicted_ms), losses, rtol=0, atol=1e-12)
    gains = np.full((len(choices), 2), np.nan) if ranking.gains is None else ranking.gains
    return said(ranking.rank, ranking.predicted_ms, np.where(told, np.nan, losses), gains)


def said(
    rank: np.ndarray, predicted_ms: np.ndarray, losses: np.ndarray, gains: np.ndarray
) -> pd.DataFrame:
    """Columns of :data:`SAID`; ranks above :data:`LONGEST` are 0, reals have 24 bits.

    ``rank``: from 1 in each case: int64, shape (rows,). ``predicted_ms``, ``losses``: float64,
    shape (rows,); NaN where nothing is predicted, or where the time tells the loss. ``gains``:
    expected gain and its spread: float64, shape (rows, 2).
    """
    reals = np.column_stack([predicted_ms, losses, gains])
    table = pd.DataFrame(_short(reals), columns=list(SAID[1:]))
    table.insert(0, SAID[0], np.where(rank <= LONGEST, rank, 0))
    return table


def _short(values: np.ndarray) -> np.ndarray:
    """Values as float32 tells them: half the space, and nothing is measured more precisely."""
    return values.astype(np.float32).astype(float)


@dataclass(frozen=True)
class Learnt:
    """Candidates of a study's test cases, and what is said of them."""

    candidates: pd.DataFrame  # as `launchwise.tables.learning.candidates_schema` declares them
    # Method to its columns of `SAID` that are not empty, row by row those of ``candidates``.
    said: Mapping[str, pd.DataFrame]
    facts: Mapping[str, Mapping[str, Any]]  # method to how it was made

    @property
    def predicting(self) -> list[str]:
        return [name for name in self.said if not np.isnan(self.times_ms(name)).all()]

    def _values(self, method: str, column: str) -> np.ndarray:
        own = self.said[method]
        return own[column].to_numpy(dtype=float) if column in own else np.full(len(own), np.nan)

    def times_ms(self, method: str) -> np.ndarray:
        """Predicted time of each row: float64, ms, shape (rows,); NaN without one."""
        return self._values(method, "predicted_ms")

    def first(self, method: str) -> np.ndarray:
        """Rows that come first in their case: booleans, shape (rows,)."""
        return self.said[method]["rank"].to_numpy() == 1

    def losses(self, method: str) -> np.ndarray:
        """Log time of each row but for a constant of its case: float64, shape (rows,)."""
        own = self._values(method, "loss")
        with np.errstate(invalid="ignore"):
            return np.where(np.isnan(own), np.log(self.times_ms(method)), own)

    def of_split(self, split: str) -> Learnt:
        """Candidates of one split alone."""
        kept = (self.candidates["split"] == split).to_numpy()
        said = {name: each[kept].reset_index(drop=True) for name, each in self.said.items()}
        return Learnt(self.candidates[kept].reset_index(drop=True), said, self.facts)

    def by_fold(self) -> list[tuple[tuple[str, str], np.ndarray]]:
        """Split and fold, and the numbers of their rows: int64, shape (rows of it,)."""
        codes = row_numbers(self.candidates, ["split", "fold"])
        first = np.unique(codes, return_index=True)[1]
        names = self.candidates[["split", "fold"]].iloc[first].itertuples(index=False, name=None)
        return [(name, np.flatnonzero(codes == code)) for code, name in enumerate(names)]

    def recommended(self, method: str, most: int = LONGEST) -> pd.DataFrame:
        """The first ``most`` candidates of every case by a method. Columns of the candidates,
        ``model``, ``rank``, ``predicted_ms``, ``expected_gain`` and ``spread``. One method at a
        time: those of all methods together take gigabytes of a study of many GPUs."""
        ranks = self.said[method]["rank"].to_numpy()
        rows = np.flatnonzero((ranks > 0) & (ranks <= most))
        reals = ("predicted_ms", "expected_gain", "spread")
        columns = {name: self._values(method, name)[rows] for name in reals}
        found = self.candidates.iloc[rows].assign(rank=ranks[rows], **columns, model=method)
        return found.reset_index(drop=True)

    @cached_property
    def predicted_times(self) -> pd.DataFrame:
        """Every candidate with the times that methods predict (:func:`predicted_column`), ms."""
        found = {predicted_column(name): self.times_ms(name) for name in self.predicting}
        return self.candidates.assign(**found)


def write_candidates(folder: Path, candidates: pd.DataFrame, spec: Spec, made_from: str) -> None:
    """Write the table of candidates; ``made_from`` tells which ones, to the files beside it."""
    schema = candidates_schema(spec)
    write_table(folder / f"{CANDIDATES}.parquet", candidates, schema, {CANDIDATES: made_from})


def write_said(path: Path, table: pd.DataFrame, facts: Mapping[str, Any]) -> None:
    """Write what one method says (:func:`said`); ``facts`` tell how it was made."""
    write_table(path, table, said_schema(), facts)


def read_learnt(folder: Path, methods: Iterable[str], spec: Spec) -> Learnt:
    """Read what some methods say of the test candidates of a study. Raises UserError when a file is
    missing or damaged, or was made for other candidates."""
    path = folder / f"{CANDIDATES}.parquet"
    candidates = read_table(path, candidates_schema(spec), most_values=MOST_CANDIDATES)
    wanted = read_facts(path)[CANDIDATES]
    found, facts = {}, {}
    for name in methods:
        file = folder / f"{name}.parquet"
        table, facts[name] = read_table(file, said_schema()), read_facts(file)
        if facts[name].get(CANDIDATES) != wanted or len(table) != len(candidates):
            message = f"is of other test candidates: run snakemake -R learn_{folder.name}"
            raise UserError(file, "", message)
        # Most methods leave columns empty: of a study of many GPUs they take gigabytes.
        filled = [each for each in table if each == SAID[0] or table[each].notna().any()]
        found[name] = table[filled]
    return Learnt(candidates, found, facts)


def check_settings(learnt: Learnt, models: Mapping[str, Any], folder: Path) -> None:
    """Insist that models were made with today's settings.

    ``models``: name to entry of the settings. Raises UserError when a file is of other settings.
    """
    for name, entry in models.items():
        made = learnt.facts[name]["entry"]
        if made != entry:
            message = (
                f"was made with {made}, not with {entry}: run snakemake -R learn_{folder.name}"
            )
            raise UserError(folder / f"{name}.parquet", "", message)
