"""The tables of ``results/`` that a study's figures come from."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from launchwise.experiment.experiment import Experiment
from launchwise.experiment.study import Study
from launchwise.gpus.profile import GpuProfile, read_profile
from launchwise.workloads.spec import Spec

TIMED = ("ok", "slow")  # statuses of rows with a verified result and a time


def unbeaten(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of a problem without those that took more than 1.02 of the time of the one of least most
    in single rounds, and more than that most in every round, and without those that tell nothing
    (an error of 1 or more) beside others."""
    known = [row for row in rows if row["rounds_high_ms"] > 0]
    winner = min(known or rows, key=lambda row: row["rounds_high_ms"])
    found = [
        row
        for row in rows
        if not row["rounds_low_ms"] > winner["rounds_high_ms"]
        or row["time_ms"] <= 1.02 * winner["time_ms"]
    ]
    return [row for row in found if not row["error"] >= 1] or found


def between_visits(row: dict[str, Any]) -> float:
    """Standard error of a time in another visit: half the logarithm of its 95 % limits' ratio."""
    return math.log(row["time_high_ms"] / row["time_low_ms"]) / 2 / 1.96


def ratio_ends(one: dict[str, Any], other: dict[str, Any]) -> tuple[float, float]:
    """Ends of the interval of the ratio of two rows' times. The error is that of the ratio of a row
    in pairs beside another in pairs that is the usual choice or the baseline (``beside``); else
    that of both times."""
    error = math.hypot(one["error"], other["error"])
    if one["ratio_error"] > 0 and other["ratio_error"] > 0:
        for row, reference in ((other, one), (one, other)):
            error = row["ratio_error"] if reference["beside"] else error
    reach, ratio = math.exp(1.96 * error), one["time_ms"] / other["time_ms"]
    return ratio / reach, ratio * reach


def holds_one(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether :func:`ratio_ends` do not tell two rows apart."""
    low, high = ratio_ends(one, other)
    return low <= 1 <= high


@dataclass(frozen=True)
class Material:
    """A study of the settings and its files below ``results``.

    ``gpus``: in the order of the settings; those without a row of the study are left out.
    ``described``: datasheet-only GPUs.
    ``committee``: the model that answers, if it was chosen before the test.
    """

    name: str
    results: Path
    settings: Study
    spec: Spec
    gpus: list[str]
    described: list[str]
    committee: str | None

    @classmethod
    def of(cls, experiment: Experiment, name: str, results: Path) -> Material:
        """A study of an experiment."""
        study, named = experiment.studies[name], experiment.settings.gpus
        kinds = {model: experiment.model_of(name, model).kind for model in study.models}
        return cls(
            name=name,
            results=results,
            settings=study,
            spec=experiment.specs[study.workload],
            gpus=[
                gpu
                for gpu in experiment.gpus_of(name)
                if not pd.read_parquet(results / f"times/{gpu}/{name}.parquet").empty
            ],
            described=[gpu for gpu, own in named.items() if own.source == "described"],
            committee=next((one for one, kind in kinds.items() if kind == "committee"), None),
        )

    @property
    def problem(self) -> list[str]:
        """Columns of a problem."""
        return self.spec.problem_columns

    @property
    def case(self) -> list[str]:
        """Columns of a problem on a GPU."""
        return ["gpu", *self.problem]

    @cached_property
    def profiles(self) -> dict[str, GpuProfile]:
        """Profiles of the study's GPUs, datasheet-only ones behind them."""
        folder = self.results / "gpus"
        named = [*self.gpus, *self.described]
        return {gpu: read_profile(folder / f"{gpu}.json", gpu) for gpu in named}

    @cached_property
    def whole(self) -> list[str]:
        """GPUs that use all SMs of their card; all GPUs if there are slices only."""
        known = {gpu: self.profiles[gpu] for gpu in self.gpus}
        return [gpu for gpu, one in known.items() if one.sms == one.whole_card_sms] or self.gpus

    def table(self, path: str) -> pd.DataFrame | None:
        """A Parquet table below the results; None if there is none."""
        file = self.results / path
        return pd.read_parquet(file) if file.is_file() else None

    def json(self, path: str) -> Any:
        """A JSON file below the results; None if there is none."""
        file = self.results / path
        return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None

    @cached_property
    def baseline(self) -> dict[str, Any]:
        """The baseline's configuration: tunables that it does not state are neutral."""
        return {**self.spec.neutral, **self.spec.baseline}

    def whole_configuration(self, used: Mapping[str, Any]) -> tuple[Any, ...]:
        """Values of all tunables, neutral where a variant lacks them."""
        every = {**self.spec.neutral, **used}
        return tuple(every[name] for name in self.spec.tunable_columns)

    @cached_property
    def judged(self) -> pd.DataFrame:
        """Candidates of the study with a judged time, or that failed; ``blind`` ones at the end.
        Candidates are the baseline, and rows of verified variants that the study's ``candidates``
        and ``constraints`` allow. ``is_baseline`` tells the former."""
        tables = [
            pd.read_parquet(self.results / f"times/{gpu}/{self.name}.parquet") for gpu in self.gpus
        ]
        rows = pd.concat(tables, ignore_index=True)
        is_baseline = np.ones(len(rows), dtype=bool)
        for name, value in self.baseline.items():
            is_baseline = is_baseline & (rows[name] == value).to_numpy()
        verified = [name for name, one in self.spec.variants.items() if one.verified]
        allowed = rows["variant"].isin(verified).to_numpy()
        for name, values in self.settings.candidates.items():
            allowed = allowed & rows[name].isin(values).to_numpy()
        for text in self.settings.constraints:
            allowed = allowed & self._holds(text, rows)
        rows = rows.assign(is_baseline=is_baseline)[allowed | is_baseline]
        return rows.sort_values("blind", kind="stable").reset_index(drop=True)

    def _holds(self, text: str, rows: pd.DataFrame) -> np.ndarray:
        columns = [*self.problem, *self.spec.tunable_columns]
        return np.array(
            [bool(self.spec.formulas.value(text, row)) for row in records(rows[columns])],
            dtype=bool,
        )

    @cached_property
    def swept(self) -> pd.DataFrame:
        """Candidates of the sweeps, those that failed included."""
        return self.judged[~self.judged["blind"]].reset_index(drop=True)

    @cached_property
    def timed(self) -> pd.DataFrame:
        """Candidates of the sweeps with a time."""
        return self.swept[self.swept["status"].isin(TIMED)].reset_index(drop=True)

    def named(self, case: tuple[Any, ...], rows: list[dict[str, Any]]) -> dict[str, Any]:
        """What counts as the fastest of a problem's rows.

        Of those that nothing beat (:func:`unbeaten`), beside the row whose time and 1.96 errors are
        the least, those that :func:`holds_one`, at most 1.02 times as long. Of these the usual
        choice; one of pairs; the one with the fewest tunables unlike the usual choice, or the
        baseline where that has no row; the least shared memory; the first in the order of tunables.
        """

        def configuration(row: dict[str, Any]) -> tuple[Any, ...]:
            return tuple(row[name] for name in self.spec.tunable_columns)

        usual = self.whole_configuration(self.answers[case]["usual"] if case in self.answers else
                                         self.baseline)  # fmt: skip
        known = usual in map(configuration, rows)
        reference = usual if known else self.whole_configuration(self.baseline)
        for row in rows:
            row["beside"] = row["is_baseline"] or configuration(row) == usual
        unbeaten_ = unbeaten(rows)
        surest = min(unbeaten_, key=lambda row: math.log(row["time_ms"]) + 1.96 * row["error"])

        def unlike(row: dict[str, Any]) -> tuple[Any, ...]:
            own = configuration(row)
            differing = sum(a != b for a, b in zip(own, reference, strict=True))
            stated = self.spec.variants[row["variant"]].shared_bytes
            names = {name: row[name] for name in (*self.problem, *self.spec.tunable_columns)}
            shared = self.spec.formulas.value(str(stated), names) if stated else 0
            return own != usual, row["basis"] != "pairs", differing, shared, own

        near = [row for row in unbeaten_ if holds_one(row, surest)]
        close = [row for row in near if row["time_ms"] <= 1.02 * surest["time_ms"]]
        first = min(close or [surest], key=unlike)
        times = [
            row["time_ms"] / first["time_ms"]
            for row in rows
            if row is first or (row["error"] < 1 and holds_one(row, first))
        ]
        unsure = max(1.0, *(each if each > 1.1 else 1.0 for each in times))
        return first | {"alike": sum(each <= 1.1 for each in times), "unsure": unsure}

    @cached_property
    def best(self) -> pd.DataFrame:
        """:meth:`named` of each problem of the sweeps on each GPU, by GPU and problem."""
        groups = self.timed.groupby(self.case)
        return pd.DataFrame([self.named(case, records(rows)) for case, rows in groups])

    @cached_property
    def time_of(self) -> dict[tuple[Any, ...], tuple[float, str]]:
        """GPU, problem and configuration to time (ms) and its basis."""
        keys = self.timed[self.spec.key_columns].itertuples(index=False, name=None)
        values = zip(self.timed["time_ms"].tolist(), self.timed["basis"].tolist(), strict=True)
        return dict(zip(keys, values, strict=True))

    @cached_property
    def answers(self) -> dict[tuple[Any, ...], dict[str, Any]]:
        """GPU and problem to the product's answer."""
        given = self.json(f"lookup/{self.name}.json") or {"entries": []}
        found = (self._named(given, one) for one in given["entries"])
        return {
            (one["gpu"], *(one["problem"][name] for name in self.problem)): one for one in found
        }

    @staticmethod
    def _named(table: Mapping[str, Any], entry: Mapping[str, Any]) -> dict[str, Any]:
        """An entry of the product's table by names, with an end of each interval by itself."""
        chosen = table["configurations"]

        def ends(limits: Sequence[float] | None, unit: str, of: str) -> dict[str, float | None]:
            low, high = limits or (None, None)
            return {f"{of}_low{unit}": low, f"{of}_high{unit}": high}

        return {
            **{
                name: entry[name]
                for name in ("basis", "paired", "blind", "scale", "alike", "unsure")
            },
            **{name: entry[name] for name in ("time_ms", "gain", "improvement")},
            "gpu": table["devices"][entry["device"]]["name"],
            "problem": dict(zip(table["parameters"], entry["problem"], strict=True)),
            "configuration": chosen[entry["choice"]],
            "usual": chosen[entry["usual"]],
            **ends(entry["interval_ms"], "_ms", "time"),
            **ends(entry["gain_interval"], "", "gain"),
            **ends(entry["improvement_interval"], "", "improvement"),
            "others": [
                {"configuration": chosen[place], "time_ms": time_ms, **ends(limits, "_ms", "time")}
                for place, time_ms, limits in entry["others"]
            ],
        }

    def usual_ms(self, case: tuple[Any, ...]) -> float | None:
        """Time of the usual choice; of the baseline where that has none."""
        usual = self.whole_configuration(self.answers[case]["usual"]) if self.answers else ()
        baseline = self.whole_configuration(self.baseline)
        for one in (usual, baseline):
            if (*case, *one) in self.time_of:
                return self.time_of[(*case, *one)][0]
        return None

    @cached_property
    def first_split(self) -> str:
        """The first split of the settings that was evaluated."""
        known = set(self.evaluation["split"].unique())
        return next((one for one in self.settings.splits if one in known), "")

    @cached_property
    def evaluation(self) -> pd.DataFrame:
        """The evaluation of every model."""
        return pd.read_parquet(self.results / f"evaluation/{self.name}.parquet")


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as mappings from column to value."""
    return [{str(name): row[name] for name in row} for row in table.to_dict("records")]


def geometric_mean(values: Any) -> float:
    """Exponential of the mean logarithm; 0 if a value is 0, NaN of none."""
    array = np.asarray(values, dtype=float)
    if not len(array):
        return float("nan")
    return 0.0 if (array <= 0).any() else float(np.exp(np.mean(np.log(array))))


def bootstrap(values: np.ndarray, seed: int) -> tuple[float, float] | None:
    """95 % of the geometric means of resampled problems.

    2000 draws with replacement of as many problems as there are, by their counts (a multinomial
    distribution); speeds below 1e-6 count as that. None of fewer than five problems.

    ``values``: one per problem, by ascending problem: float64, shape (problems,).
    """
    if len(values) < 5:
        return None
    count = len(values)
    draws = np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), 2000)
    means = draws @ np.log(np.maximum(values, 1e-6)) / count
    low, high = np.exp(np.quantile(means, [0.025, 0.975]))
    return float(low), float(high)
