"""The product of a study: its answering model, fitted to all measured rows.

A folder with the fitted model (``recommender/``), the fastest configurations of each measured
problem (``measured.parquet``) and facts (``final.json``). It answers users; no test problem scores
it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from launchwise.base import provenance
from launchwise.base.errors import UserError
from launchwise.base.scripting import log
from launchwise.base.storage import (
    digest_files,
    new_folder,
    write_sealed_json,
)
from launchwise.experiment.study import ModelEntry, Study
from launchwise.learning.calibration import calibrate
from launchwise.learning.clean import clean
from launchwise.learning.features import Domain
from launchwise.learning.one_core import complaint, watched
from launchwise.learning.recommender import FACTS_FILE as MODEL_FACTS_FILE
from launchwise.learning.recommender import Recommender, Tried
from launchwise.learning.recommenders import kinds_of, recommender_class
from launchwise.learning.recommenders.committee import CommitteeRecommender
from launchwise.learning.row_cap import ALL_ROWS, RowCap
from launchwise.learning.splits import (
    ALL,
    Case,
    Fold,
    among,
    asked_about,
    case_columns,
    cases_in,
)
from launchwise.learning.stored import read_product_facts, read_recommender_facts
from launchwise.tables.files import read_table, write_table
from launchwise.tables.folds import FOLDS
from launchwise.tables.learning import fastest_measured_schema
from launchwise.tables.rows import row_numbers
from launchwise.tables.times import GAIN_LIMITS
from launchwise.workloads.spec import Spec
from launchwise.workloads.statuses import MEASURED

FACTS_FILE = "final.json"
MEASURED_FILE = "measured.parquet"
MODEL_FOLDER = "recommender"

RANKED = 10
"""Measured configurations of each case that a product holds, the fastest first."""

JUDGED_COLUMNS = ("time_ms", "time_low_ms", "time_high_ms", "basis", *GAIN_LIMITS)
"""What a product holds of judged times."""


@dataclass(frozen=True)
class Learnt:
    """Training data of a study's product.

    Parameters
    ----------
    asked
        GPU to the measurements that the study asks about.
    cases
        Their problems, GPU by GPU.
    training
        The rows that models are fitted to: candidates only where the study says so, filtered.
    left_out
        Rows that ``cap`` left out of them.
    """

    asked: dict[str, pd.DataFrame]
    cases: tuple[Case, ...]
    training: pd.DataFrame
    left_out: int = 0


def learnt_from(
    study: Study, domain: Domain, sweeps: Mapping[str, pd.DataFrame], cap: RowCap = ALL_ROWS
) -> Learnt:
    """All measured rows of a study.

    Raises
    ------
    UserError
        When nothing was.
    """
    spec = domain.spec
    asked = {gpu: rows[asked_about(study, rows)] for gpu, rows in sweeps.items()}
    asked = {gpu: rows for gpu, rows in asked.items() if rows["status"].isin(MEASURED).any()}
    if not asked:
        raise UserError("the sweeps", "", "hold no measured row of the study")
    cases = tuple(case for rows in asked.values() for case in cases_in(rows, spec))
    rows = asked
    if study.train_on == "candidates":
        rows = {gpu: each[domain.is_candidate(each)] for gpu, each in asked.items()}
    training = clean(rows, [Fold("final", ALL, cases, ())], spec, study.fences).training
    training = training.drop(columns=FOLDS).astype({"gpu": object})
    kept = cap.applied(training, domain, "the product")
    return Learnt(asked, cases, kept, len(training) - len(kept))


def fit_final(
    study: Study,
    name: str,
    entry: ModelEntry,
    domain: Domain,
    sweeps: Mapping[str, pd.DataFrame],
    times: Mapping[str, pd.DataFrame],
    sources: Sequence[Path],
    seed: int,
    folder: Path,
    tried: Mapping[Path, Sequence[Case]] = MappingProxyType({}),
    cap: RowCap = ALL_ROWS,
) -> dict[str, Any]:
    """Fit a study's answering model to all its measured rows, and write the folder.

    Parameters
    ----------
    name, entry
        The model.
    sweeps
        GPU to its measurements.
    times
        GPU to judged times (see :mod:`launchwise.tables.times`): they say which of the fastest to
        answer with. Models learn from the sweeps.
    sources
        Files of the sweeps: their digest names what was learnt from.
    folder
        Written anew.
    tried
        Where the model was saved that was fitted to a fold of the study, to the fold's test cases.
    cap
        Most rows that it learns from.

    Returns
    -------
    dict
        The facts.

    Raises
    ------
    UserError
        When nothing was measured, or the model cannot be fitted.
    """
    spec = domain.spec
    learnt = learnt_from(study, domain, sweeps, cap)
    recommender = _fitted(name, entry, domain, learnt.training, tried, seed)
    new_folder(folder)
    recommender.save(folder / MODEL_FOLDER)
    judged = {gpu: times[gpu] for gpu in learnt.asked}
    fastest = fastest_measured(judged, domain)
    write_table(folder / MEASURED_FILE, fastest, fastest_measured_schema(spec))
    facts = {
        **{"study": folder.name, "workload": spec.workload, "model": name, "kind": entry.kind},
        **_what_was_learnt(learnt, domain, sweeps),
        **{"seed": seed, "sweeps": digest_files(list(sources)), "versions": provenance.versions()},
        "time_intervals": _time_intervals(recommender, domain, learnt.training, judged),
        **recommender.summary(),
    }
    write_sealed_json(folder / FACTS_FILE, facts)
    return facts


def _fitted(
    name: str,
    entry: ModelEntry,
    domain: Domain,
    training: pd.DataFrame,
    tried: Mapping[Path, Sequence[Case]],
    seed: int,
) -> Recommender:
    """The model, fitted to training rows; the log says where it takes too much memory or time."""
    kind = recommender_class(entry.kind, f"models.{name}", domain.spec.folder)
    recommender = kind(domain, **{"seed": seed, **entry.parameters})
    recommender.inherit(
        [Tried(path, training[among(training, held, domain.spec)]) for path, held in tried.items()]
    )
    with watched(kind) as use:
        recommender.fit(training)
    if greed := complaint([use]):
        log.warning("models.%s: %s", name, greed)
    return recommender


def _time_intervals(
    recommender: Recommender,
    domain: Domain,
    training: pd.DataFrame,
    judged: Mapping[str, pd.DataFrame],
) -> dict[str, Any] | None:
    """Calibration of the intervals of a committee's times; None for other models."""
    if not isinstance(recommender, CommitteeRecommender):
        return None
    calibration = calibrate(recommender, domain, training, judged)
    return None if calibration is None else asdict(calibration)


def _what_was_learnt(
    learnt: Learnt, domain: Domain, sweeps: Mapping[str, pd.DataFrame]
) -> dict[str, Any]:
    """Facts of the rows that a model learnt from."""
    asked = learnt.asked
    return {
        "gpus": {gpu: domain.profiles[gpu].device_name for gpu in asked},
        "measurements": {gpu: measurements(sweeps[gpu]) for gpu in asked},
        "rows": len(learnt.training),
        "rows_left_out": learnt.left_out,
        "cases": len(learnt.cases),
        "commits": sorted({str(one) for rows in asked.values() for one in rows["commit"].unique()}),
    }


def measurements(rows: pd.DataFrame) -> dict[str, list[str]]:
    """With what and when a sweep was measured, as far as it says so.

    Returns
    -------
    dict
        ``drivers`` and ``toolkits``, sorted; ``days``: the first and the last, as YYYY-MM-DD.
    """

    def known(column: str) -> list[str]:
        return sorted({str(one) for one in rows[column].dropna().unique()} - {""})

    days = sorted({each[:10] for each in known("measured_at")})
    return {"drivers": known("driver"), "toolkits": known("toolkit"), "days": days[:1] + days[-1:]}


def fastest_measured(times: Mapping[str, pd.DataFrame], domain: Domain) -> pd.DataFrame:
    """The fastest candidates of each measured case, its usual choice and its baseline.

    Parameters
    ----------
    times
        GPU to judged times.

    Returns
    -------
    pandas.DataFrame
        As :func:`launchwise.tables.learning.fastest_measured_schema` declares it: the cases in
        order, of each the configurations by ascending time.
    """
    spec = domain.spec
    columns = [*JUDGED_COLUMNS, "status", "blind"]
    rows = pd.concat(
        [table[[*spec.key_columns, *columns]] for table in times.values()], ignore_index=True
    )
    rows = rows[rows["status"].isin(MEASURED) & domain.is_candidate(rows)]
    rows = rows.drop(columns="status").reset_index(drop=True)
    keys = case_columns(spec)
    # A problem that was swept since needs no blind test.
    swept = among(rows, cases_in(rows[~rows["blind"]], spec), spec)
    rows = rows[~(rows["blind"] & swept)].reset_index(drop=True)
    rows["is_usual"], rows["is_baseline"] = domain.is_usual(rows), domain.is_baseline(rows)
    cases = row_numbers(rows, keys, ordered=True)
    configurations = row_numbers(rows, spec.tunable_columns, ordered=True)
    order = np.lexsort((configurations, rows["time_ms"].to_numpy(), cases))
    rows = rows.iloc[order].reset_index(drop=True)
    rows["rank"] = rows.groupby(cases[order]).cumcount() + 1
    kept = (rows["rank"] <= RANKED) | rows["is_usual"] | rows["is_baseline"]
    return rows.loc[kept, [*fastest_measured_schema(spec).columns]].reset_index(drop=True)


@dataclass(frozen=True)
class Final:
    """A study's product, read from its folder.

    Parameters
    ----------
    folder
        Where it lies.
    domain
        Workload, GPUs and candidates that it answers for.
    fastest
        See :func:`fastest_measured`.
    facts
        What :func:`fit_final` wrote.
    """

    folder: Path
    domain: Domain
    fastest: pd.DataFrame
    facts: Mapping[str, Any]

    @property
    def spec(self) -> Spec:
        """The workload."""
        return self.domain.spec

    @property
    def kinds(self) -> list[str]:
        """Kinds that the model is made of, its own and those of its members."""
        facts = read_recommender_facts(self.folder / MODEL_FOLDER / MODEL_FACTS_FILE)
        entry = {"kind": self.facts["kind"], "parameters": facts.parameters}
        return kinds_of(entry, self.spec.folder)

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
    def places(self) -> Mapping[tuple[Any, ...], Sequence[int]]:
        """Key of a measured case (:attr:`Case.key`) to its rows in ``fastest``."""
        found: dict[tuple[Any, ...], list[int]] = {}
        names = ("gpu", *sorted(self.spec.problem_columns))
        columns = [self.fastest[name].tolist() for name in names]
        for place, key in enumerate(zip(*columns, strict=True)):
            found.setdefault(key, []).append(place)
        return found

    def has_measured(self, case: Case) -> bool:
        """Whether a case was measured: no model answers it."""
        return case.key in self.places

    @cached_property
    def recommender(self) -> Recommender:
        """The fitted model, loaded when it is first asked: measured problems need none.

        Raises
        ------
        UserError
            When it is missing or damaged.
        """
        path = self.folder / FACTS_FILE
        kind = recommender_class(self.facts["kind"], "", self.spec.folder, path)
        return kind.load(self.folder / MODEL_FOLDER, self.domain)


def read_final(folder: Path, domain: Domain) -> Final:
    """Read a study's product.

    Raises
    ------
    UserError
        When the folder holds none, one of another workload, or damaged tables.
    """
    if not (folder / FACTS_FILE).is_file():
        message = f"is missing: make it with snakemake --cores all -- final_{folder.name}"
        raise UserError(folder, "", message)
    facts = read_product_facts(folder / FACTS_FILE)
    if facts["workload"] != domain.spec.workload:
        message = f"is of {facts['workload']}, not of {domain.spec.workload}"
        raise UserError(folder / FACTS_FILE, "workload", message)
    fastest = read_table(folder / MEASURED_FILE, fastest_measured_schema(domain.spec))
    return Final(folder, domain, fastest, facts)
