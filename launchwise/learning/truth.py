"""Test cases of a study: what its models say of them, and what was measured.

``results/learnt/<study>/candidates.parquet`` holds every candidate of every test case, fold by
fold. ``<method>.parquet`` beside it has a row for each of them: what one model or simple rule says.
Evaluation, curves, intervals and the report read these files and fit nothing. What was measured is
the unfiltered sweep, outliers included.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from launchwise.base.errors import UserError
from launchwise.learning import merit
from launchwise.learning.features import Domain
from launchwise.learning.recommender import Recommender
from launchwise.learning.row_arrays import configuration_codes, keys_of
from launchwise.learning.splits import case_codes
from launchwise.tables.files import read_facts, read_table, write_table
from launchwise.tables.learning import SAID, candidates_schema, predicted_column, said_schema
from launchwise.tables.measurements import measurement_schema
from launchwise.tables.rows import fastest_rows, row_numbers
from launchwise.tables.times import SWEEP, with_judged_times
from launchwise.workloads.metrics import MEASURED
from launchwise.workloads.spec import Spec

if TYPE_CHECKING:
    # Whoever scores answers needs no optimizer.
    from launchwise.search.candidates import Key

CANDIDATES = "candidates"  # Name of the table of candidates, which no method may have
LONGEST = 50  # Recommendations of a test case that have a rank

MOST_CANDIDATES = 2_000_000_000
"""Most values of a table of candidates: a hundred GPUs with ten thousand rows each take a tenth."""


def said_by(recommender: Recommender, choices: pd.DataFrame) -> pd.DataFrame:
    """What a fitted recommender says of candidates: columns of :data:`SAID`, a row for each."""
    ranking = recommender.ranking(choices)
    unknown = np.full((len(choices), 2), np.nan)
    losses = unknown[:, 0] if ranking.losses is None else ranking.losses
    gains = unknown if ranking.gains is None else ranking.gains
    return said(ranking.rank, ranking.predicted_ms, losses, gains)


def said(
    rank: np.ndarray, predicted_ms: np.ndarray, losses: np.ndarray, gains: np.ndarray
) -> pd.DataFrame:
    """Columns of :data:`SAID`; ranks above :data:`LONGEST` are 0, reals have 24 bits.

    ``rank``: from 1 in each case: int64, shape (rows,). ``predicted_ms``, ``losses``: float64,
    shape (rows,); NaN where nothing is predicted, or where the time tells the loss. ``gains``:
    expected gain and its spread: float64, shape (rows, 2).
    """
    # Half the space, and nothing is measured more precisely.
    reals = np.column_stack([predicted_ms, losses, gains]).astype(np.float32).astype(float)
    table = pd.DataFrame(reals, columns=list(SAID[1:]))
    table.insert(0, SAID[0], np.where(rank <= LONGEST, rank, 0))
    return table


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


def write_said(path: Path, table: pd.DataFrame, facts: Mapping[str, Any]) -> None:
    """Write what one method says (:func:`said`); ``facts`` tell how it was made."""
    write_table(path, table, said_schema(), facts, SAID[1:])


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


SHORT_LISTS = {5: "best_of_5", 20: "best_of_20"}
"""Numbers of measured recommendations, and the column of the resulting quality."""

NEEDLE_PERCENT = 5.0
"""The needle index counts configurations within this of the best time, %: the fewer there are, the
harder it is to find one."""

NOT_MEASURED = "not measured"
EXPECTED = "expected"  # Status of random draws: an expected value, without a configuration
ORACLE = "oracle"


class Truth:
    """Measured rows of every case, outliers included.

    ``sweeps``: GPU to its measurements, with judged times or with the sweep's own.
    ``domain``: its candidates bound what counts as the best.
    """

    def __init__(self, sweeps: Mapping[str, pd.DataFrame], domain: Domain) -> None:
        self._domain = domain
        columns = self.columns(domain.spec)
        known = (each if "basis" in each else each.assign(basis=SWEEP) for each in sweeps.values())
        rows = pd.concat([each[columns] for each in known], ignore_index=True)
        rows = rows[domain.is_candidate(rows)].reset_index(drop=True)
        codes, keys = case_codes(rows, domain.spec)
        self._numbers = {key: number for number, key in enumerate(keys)}
        self._rows = rows.assign(
            case=codes,
            configuration=configuration_codes(rows, domain.spec.tunable_columns, domain.spec),
        )
        measured = self._rows[self._rows["status"].isin(MEASURED)]
        cases = measured["case"].to_numpy()
        baseline = measured[domain.is_baseline(measured)].set_index("case")
        usual = measured[domain.is_usual(measured)].set_index("case")
        self._best = fastest_rows(measured, ["case"], domain.spec).set_index("case")
        self._best = self._best.reindex(range(len(keys)))
        of_cases = pd.DataFrame({"baseline_ms": baseline["time_ms"]}, index=self._best.index)
        # If the usual choice failed or was not measured, the baseline stands in for it.
        of_cases["usual_ms"] = (
            usual["time_ms"].reindex(of_cases.index).fillna(of_cases["baseline_ms"])
        )
        of_cases["best_ms"] = self._best["time_ms"]
        of_cases["baseline_times"] = baseline["times_ms"]
        limit = of_cases["best_ms"].to_numpy(dtype=float) * (1 + NEEDLE_PERCENT / 100)
        near = measured["time_ms"].to_numpy(dtype=float) <= limit[cases]
        of_cases["configurations"] = np.bincount(cases, minlength=len(keys))
        of_cases["needle_index"] = np.bincount(cases[near], minlength=len(keys))
        self._of_cases = of_cases

    @classmethod
    def read(
        cls,
        gpus: Sequence[str],
        sweeps: Sequence[Path],
        judged: Mapping[str, pd.DataFrame],
        domain: Domain,
    ) -> Truth:
        """The sweeps of some GPUs, a file each, with their judged times by GPU."""
        schema, tables = measurement_schema(domain.spec), {}
        columns = [name for name in cls.columns(domain.spec) if name in schema.columns]
        for gpu, sweep in zip(gpus, sweeps, strict=True):
            rows = read_table(sweep, schema, columns)
            tables[gpu] = with_judged_times(rows, judged[gpu], domain.spec, sweep)
        return cls(tables, domain)

    @staticmethod
    def columns(spec: Spec) -> list[str]:
        return [*spec.key_columns, "status", "time_ms", "times_ms", "basis"]

    def numbers(self, keys: Iterable[tuple[Any, ...]]) -> np.ndarray:
        """Number of each case's key; -1 for what no sweep holds."""
        return np.array([self._numbers.get(key, -1) for key in keys], dtype=np.int64)

    def beside(self, recommendations: pd.DataFrame) -> pd.DataFrame:
        """``recommendations`` with their measured columns. Adds ``case``, ``status``, ``time_ms``,
        ``times_ms``, ``basis`` and, of the case, ``baseline_ms``, ``baseline_times``, ``usual_ms``,
        ``best_ms``, ``configurations`` (that have a time) and ``needle_index`` (those of them
        within :data:`NEEDLE_PERCENT` of the best)."""
        table = self._joined(recommendations, ["status", "time_ms", "times_ms", "basis"])
        table["status"] = table["status"].fillna(NOT_MEASURED)
        table["basis"] = table["basis"].fillna("").where(table["time_ms"].notna(), "")
        of_cases = self._of_cases.iloc[table["case"].to_numpy()].reset_index(drop=True)
        return pd.concat([table, of_cases], axis=1)

    def timed(self, candidates: pd.DataFrame) -> pd.DataFrame:
        """The rows of ``candidates`` that have a measured time. Adds ``case``, ``status`` and
        ``time_ms``."""
        table = self._joined(candidates, ["status", "time_ms"])
        return table[table["time_ms"].notna()].reset_index(drop=True)

    def sweep_of(self, case: int) -> tuple[list[Key], np.ndarray]:
        """Candidates of a case number: values of their tunables, and times in ms. The times are
        float64 of shape (candidates,), inf for those that failed."""
        keys, times, places = self._sweeps
        return [keys[place] for place in places[case]], times[places[case]]

    @cached_property
    def _sweeps(self) -> tuple[list[Key], np.ndarray, Mapping[Any, Any]]:
        """Key and time (ms, inf for what failed) of every row, and each case's rows."""
        keys = keys_of(self._rows, self._domain.spec.tunable_columns)
        known = self._rows["time_ms"].where(self._rows["status"].isin(MEASURED), np.inf)
        return keys, known.to_numpy(dtype=float), dict(self._rows.groupby("case").indices)

    def _measured_ms(self, case: int) -> np.ndarray:
        _, times, places = self._sweeps
        own = times[places[case]]
        return own[np.isfinite(own)]

    def _joined(self, rows: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
        """``rows`` with the number of their case and measured columns."""
        spec = self._domain.spec
        codes, keys = case_codes(rows, spec)
        keyed = rows.assign(
            case=self.numbers(keys)[codes],
            configuration=configuration_codes(rows, spec.tunable_columns, spec),
        )
        known = self._rows[["case", "configuration", *columns]]
        return keyed.merge(known, on=["case", "configuration"], how="left")

    def best(self, cases: np.ndarray) -> pd.DataFrame:
        """The best configuration of each case number: one row each, in order."""
        return self._best.iloc[cases].reset_index(drop=True)

    def draws(self, case: int, count: int) -> tuple[float, float]:
        """Expected best of ``count`` random measurements (ms), and the chance that it beats the
        baseline."""
        limit = float(self._of_cases["baseline_ms"].iloc[case])
        return merit.smallest_of_draws(self._measured_ms(case), count, limit)

    def random_shares(self, case: int, longest: int) -> np.ndarray:
        """Expected best time over the best of k random measurements, k = 1 to ``longest``."""
        times = np.sort(self._measured_ms(case))
        return np.asarray(_weights(len(times), longest) @ (times[0] / times))


@lru_cache(maxsize=16)
def _weights(count: int, longest: int) -> np.ndarray:
    """:func:`merit.draws_weights` of 1 to ``longest`` draws: float64, shape (longest, count)."""
    return np.array([merit.draws_weights(count, draws) for draws in range(1, longest + 1)])
