"""The product of a study: its answering model, fitted to all measured rows.

A folder with the fitted model (``recommender/``), the fastest configurations of each measured
problem (``measured.parquet``) and facts (``final.json``). It answers users, and guesses what a
sweep measures first; no test problem scores it. Its intervals are stretched until they hold what
blind tests measured: problems that somebody draws differ more from a sweep than the sweep's sizes
differ from each other.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from launchwise.base.errors import UserError
from launchwise.learning.answers import Calibration, Offsets, read_product_facts
from launchwise.learning.conformal import FEWEST, Known, calibration, limits_around
from launchwise.learning.features import Domain
from launchwise.learning.recommender import Recommender
from launchwise.learning.recommenders import recommender_class
from launchwise.learning.row_arrays import records_of
from launchwise.learning.splits import case_columns, cases_in, key_of
from launchwise.tables.files import read_table
from launchwise.tables.learning import fastest_measured_schema
from launchwise.workloads.sampling import LISTABLE, Draws
from launchwise.workloads.space import Configuration, Problem, baseline, feasible, gpu_facts, plain
from launchwise.workloads.spec import Spec

FACTS_FILE = "final.json"
MEASURED_FILE = "measured.parquet"
MODEL_FOLDER = "recommender"
PREDICTOR_FOLDER = "predictor"
"""Folder of the cost model with trees, which predicts times on GPUs without measurements."""


@dataclass(frozen=True)
class Final:
    """A study's product, read from its folder."""

    folder: Path  # where it lies
    domain: Domain  # workload, GPUs and candidates that it answers for
    fastest: pd.DataFrame  # see `launchwise.learning.product.fastest_measured`
    facts: Mapping[str, Any]  # what `launchwise.learning.product.write_product` wrote
    made: Recommender | None = None  # the fitted model, in the process that fitted it

    @property
    def spec(self) -> Spec:
        return self.domain.spec

    @cached_property
    def intervals(self) -> Mapping[str, Offsets]:
        return {name: Offsets(**one) for name, one in self.facts["intervals"].items()}

    @cached_property
    def known(self) -> Known:
        """What each GPU measured, in blind tests, too."""
        return Known.of(self._best, self.spec)

    @cached_property
    def swept(self) -> Known:
        """What the sweeps measured, of which models learn."""
        return Known.of(self.measured, self.spec)

    @cached_property
    def measured(self) -> pd.DataFrame:
        """The fastest row of each case of the sweeps."""
        return self._best[~self._best["blind"]].reset_index(drop=True)

    @cached_property
    def tested(self) -> pd.DataFrame:
        """The fastest row of each case that only a blind test measured."""
        return self._best[self._best["blind"]].reset_index(drop=True)

    @property
    def _best(self) -> pd.DataFrame:
        return self.fastest[self.fastest["rank"] == 1]

    @cached_property
    def by_case(self) -> Mapping[tuple[Any, ...], list[dict[str, Any]]]:
        """Key of each measured case (:attr:`Case.key`) to its rows of ``fastest``, in order."""
        found: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        for row in records_of(self.fastest):
            found.setdefault(key_of(row, self.spec), []).append(row)
        return found

    @cached_property
    def recommender(self) -> Recommender:
        """The fitted model, loaded when it is first asked: measured problems need none. Raises
        UserError when it is missing or damaged."""
        if self.made is not None:
            return self.made
        path = self.folder / FACTS_FILE
        kind = recommender_class(self.facts["kind"], "", self.spec.folder, path)
        return kind.load(self.folder / MODEL_FOLDER, self.domain)

    @cached_property
    def predictor(self) -> Recommender:
        """The cost model with trees, fitted to the same rows."""
        return recommender_class("learnt").load(self.folder / PREDICTOR_FOLDER, self.domain)


def read_final(folder: Path, domain: Domain) -> Final:
    """Read a study's product. Raises UserError when the folder holds none, one of another workload,
    or damaged tables."""
    if not (folder / FACTS_FILE).is_file():
        message = f"is missing: make it with snakemake --cores all -- final_{folder.name}"
        raise UserError(folder, "", message)
    facts = read_product_facts(folder / FACTS_FILE)
    if facts["workload"] != domain.spec.workload:
        message = f"is of {facts['workload']}, not of {domain.spec.workload}"
        raise UserError(folder / FACTS_FILE, "workload", message)
    fastest = read_table(folder / MEASURED_FILE, fastest_measured_schema(domain.spec))
    return Final(folder, domain, fastest, facts)


CALIBRATED = "within"
"""Situation of the problems of blind tests: their GPU was swept, their sizes lie in between."""


def calibrate(
    final: Final, times: Mapping[str, pd.DataFrame]
) -> tuple[Calibration | None, Calibration | None]:
    """How intervals of times and of gains did on blind problems (:func:`calibration`).

    ``times``: GPU to judged times (:func:`launchwise.tables.times.times_schema`), those of blind
    tests among them; no model learnt from these.
    """
    spec, domain = final.spec, final.domain
    blind = blind_rows(times)
    asked = cases_in(blind, spec)
    if len(asked) < FEWEST:
        return None, None
    choices = domain.choices(asked)
    ranking = final.recommender.ranking(domain.keeping_features(choices))
    first = ranking.first(1)
    rows = choices.iloc[first].reset_index(drop=True)
    situations = final.swept.situations(rows)
    within = (situations == CALIBRATED)[:, None]
    time_ms = time_of(blind, rows, spec)
    limits = limits_around(ranking.predicted_ms[first], situations, final.intervals)
    of_times = calibration(np.where(within, limits, np.nan), time_ms)
    if ranking.gains is None:
        return of_times, None
    usual = domain.is_usual(choices)
    beside = rows[case_columns(spec)].merge(choices[usual], on=case_columns(spec), how="left")
    expected, spread = ranking.gains[first].T
    limits = limits_around(expected, situations, final.intervals, spread)
    other = within & ~domain.is_usual(rows)[:, None]
    gains = time_of(blind, beside, spec) / time_ms
    return of_times, calibration(np.where(other, limits, np.nan), gains)


def blind_rows(times: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Judged times of the problems that blind tests measured, of all GPUs."""
    return pd.concat([table[table["blind"]] for table in times.values()], ignore_index=True)


def time_of(measured: pd.DataFrame, rows: pd.DataFrame, spec: Spec) -> np.ndarray:
    """Measured time of each row: float64, ms, shape (rows,); NaN where it was not measured."""
    known = measured[[*spec.key_columns, "time_ms"]]
    found = rows[spec.key_columns].merge(known, on=spec.key_columns, how="left")["time_ms"]
    return found.to_numpy(dtype=float)


SAMPLED_CANDIDATES = 10_000
"""Number of sampled candidates to rank if the space is too large to list."""


def recommended_guesses(
    model_folder: Path, domain: Domain, gpu: str, problem: Problem, count: int
) -> list[Configuration]:
    """The first ``count`` feasible configurations that a fitted model recommends, best first.

    In a space of more than :data:`LISTABLE` configurations the best of a random sample, which is
    always the same. ``model_folder``: a study's product (``results/final/<study>``). ``domain``:
    the workload, ``gpu``'s profile and what may be recommended. ``gpu``, ``problem``: what is to be
    measured; the model need not have learnt from them. Raises UserError when the folder holds no
    model, or one of another workload; when the GPU or the problem is unknown.
    """
    recommender = read_final(model_folder, domain).recommender
    facts = gpu_facts(domain.profiles[gpu].model_dump())
    columns = domain.spec.tunable_columns
    if Draws(domain.spec, problem, facts, 0).size <= LISTABLE:
        table = recommender.recommend(gpu, [problem])
    else:
        table = recommender.rank(_sample(domain, gpu, problem))
    found: list[Configuration] = []
    for row in records_of(table[columns]):
        named = plain(row, columns)
        # A recommendation may be the baseline whatever the constraints say; a guess may not.
        if len(found) < count and feasible(domain.spec, problem, named, facts):
            found.append(named)
    return found


def _sample(domain: Domain, gpu: str, problem: Problem) -> pd.DataFrame:
    """Feasible candidates drawn at random, the baseline first."""
    if complaint := domain.spec.check_problem(problem):
        raise UserError("recommend", "problem", complaint)
    facts = gpu_facts(domain.profiles[gpu].model_dump())
    draws = Draws(domain.narrowed, problem, facts, 0)
    first = baseline(domain.spec)
    rest = [each for each in draws.sample(random.Random(0), SAMPLED_CANDIDATES) if each != first]
    return pd.DataFrame([first, *rest]).assign(gpu=gpu, **problem)
