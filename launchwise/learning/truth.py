"""What was measured of the test cases of a study: the unfiltered sweep, outliers included."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from launchwise.learning import merit
from launchwise.learning.features import Domain
from launchwise.learning.row_arrays import configuration_codes, keys_of
from launchwise.learning.splits import case_codes
from launchwise.search.candidates import Key
from launchwise.tables.files import read_table
from launchwise.tables.measurements import measurement_schema
from launchwise.tables.rows import fastest_rows
from launchwise.tables.times import SWEEP, with_judged_times
from launchwise.workloads.metrics import MEASURED
from launchwise.workloads.spec import Spec

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
        baseline = measured[domain.is_baseline(measured)].set_index("case")
        usual = measured[domain.is_usual(measured)].set_index("case")
        best = fastest_rows(measured, ["case"], domain.spec).set_index("case")
        self._best = best.reindex(range(len(keys)))
        self._baseline = baseline.reindex(range(len(keys)))
        # If the usual choice failed or was not measured, the baseline stands in for it.
        usual_ms = usual["time_ms"].reindex(range(len(keys)))
        self._usual_ms = usual_ms.fillna(self._baseline["time_ms"]).to_numpy(dtype=float)
        self._times = {
            case: times.to_numpy(dtype=float) for case, times in measured.groupby("case")["time_ms"]
        }
        limit = self._best["time_ms"].to_numpy(dtype=float) * (1 + NEEDLE_PERCENT / 100)
        near = measured["time_ms"].to_numpy(dtype=float) <= limit[measured["case"].to_numpy()]
        cases = measured["case"].to_numpy()
        self._needle_index = np.bincount(cases[near], minlength=len(keys))
        self._measured = np.bincount(cases, minlength=len(keys))

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
        cases = table["case"].to_numpy()
        table["baseline_ms"] = self._baseline["time_ms"].to_numpy()[cases]
        table["usual_ms"] = self._usual_ms[cases]
        table["best_ms"] = self._best["time_ms"].to_numpy()[cases]
        table["baseline_times"] = self._baseline["times_ms"].to_numpy()[cases]
        table["configurations"] = self._measured[cases]
        table["needle_index"] = self._needle_index[cases]
        return table

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
        times = self._times[case]
        limit = float(self._baseline["time_ms"].iloc[case])
        return merit.expected_best(times, count), merit.chance_below(times, limit, count)

    def random_shares(self, case: int, longest: int) -> np.ndarray:
        """Expected best time over the best of k random measurements, k = 1 to ``longest``."""
        times = np.sort(self._times[case])
        return np.asarray(_weights(len(times), longest) @ (times[0] / times))


@lru_cache(maxsize=16)
def _weights(count: int, longest: int) -> np.ndarray:
    """:func:`merit.draws_weights` of 1 to ``longest`` draws: float64, shape (longest, count)."""
    return np.array([merit.draws_weights(count, draws) for draws in range(1, longest + 1)])
