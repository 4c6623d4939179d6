"""The product of a study: its answering model, fitted to all measured rows.

A folder with the fitted model (``recommender/``), the fastest configurations of each measured
problem (``measured.parquet``) and facts (``final.json``). It answers users; no test problem scores
it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from launchwise.base.errors import UserError
from launchwise.learning.features import Domain
from launchwise.learning.recommender import Recommender
from launchwise.learning.recommenders import recommender_class
from launchwise.learning.situations import Known
from launchwise.learning.stored import Offsets, read_product_facts
from launchwise.tables.files import read_table
from launchwise.tables.learning import fastest_measured_schema
from launchwise.workloads.spec import Spec

FACTS_FILE = "final.json"
MEASURED_FILE = "measured.parquet"
MODEL_FOLDER = "recommender"
PREDICTOR_FOLDER = "predictor"
"""Folder of the cost model with trees, which predicts times on GPUs without measurements."""


@dataclass(frozen=True)
class Final:
    """A study's product, read from its folder."""

    # Where it lies.
    folder: Path
    # Workload, GPUs and candidates that it answers for.
    domain: Domain
    # See `launchwise.learning.fastest.fastest_measured`.
    fastest: pd.DataFrame
    # What `launchwise.learning.product.write_product` wrote.
    facts: Mapping[str, Any]

    @property
    def spec(self) -> Spec:
        """The workload."""
        return self.domain.spec

    @cached_property
    def intervals(self) -> Mapping[str, Offsets]:
        """Situation to the interval of answers."""
        return {name: Offsets(**one) for name, one in self.facts["intervals"].items()}

    @cached_property
    def known(self) -> Known:
        """GPUs and problems of the sweeps."""
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
    def places(self) -> Mapping[tuple[Any, ...], Sequence[int]]:
        """Key of a measured case (:attr:`Case.key`) to its rows in ``fastest``."""
        found: dict[tuple[Any, ...], list[int]] = {}
        names = ("gpu", *sorted(self.spec.problem_columns))
        columns = [self.fastest[name].tolist() for name in names]
        for place, key in enumerate(zip(*columns, strict=True)):
            found.setdefault(key, []).append(place)
        return found

    @cached_property
    def recommender(self) -> Recommender:
        """The fitted model, loaded when it is first asked: measured problems need none.

        Raises UserError when it is missing or damaged.
        """
        path = self.folder / FACTS_FILE
        kind = recommender_class(self.facts["kind"], "", self.spec.folder, path)
        return kind.load(self.folder / MODEL_FOLDER, self.domain)

    @cached_property
    def predictor(self) -> Recommender:
        """The cost model with trees, fitted to the same rows."""
        return recommender_class("learnt").load(self.folder / PREDICTOR_FOLDER, self.domain)


def read_final(folder: Path, domain: Domain) -> Final:
    """Read a study's product.

    Raises UserError when the folder holds none, one of another workload, or damaged tables.
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
