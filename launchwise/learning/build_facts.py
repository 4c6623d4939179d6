"""Compiler facts (registers, spills) of builds, also for rows that were never run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from launchwise.base.errors import UserError
from launchwise.base.storage import read_json, write_json
from launchwise.learning.features import Domain

FACTS = ("registers", "spill_bytes")
"""Registers per thread and spilled bytes per thread of a run's main kernel."""


class BuildFacts:
    """Registers and spills of the builds of some training rows.

    A build is known by the GPU's architecture, the variant, the build tunables and whatever of a
    problem has listed values (a type, an order): nothing else of a row changes its code.

    Parameters
    ----------
    domain
        The workload and the GPUs.
    table
        Index: ``arch`` and the workload's build columns; columns: :data:`FACTS`, float64.
    """

    def __init__(self, domain: Domain, table: pd.DataFrame) -> None:
        self._domain = domain
        self._table = table

    @classmethod
    def of(cls, domain: Domain, rows: pd.DataFrame) -> BuildFacts:
        """Facts from rows of sweeps.

        ``rows``: columns ``gpu``, the problem's, the configuration's and :data:`FACTS`. Raises
        UserError when the rows lack a column: a model that learns without it is another model.
        """
        if absent := [name for name in FACTS if name not in rows]:
            raise UserError("training rows", absent[0], "is missing: the model learns from it")
        keys = _keys(domain, rows)
        of_builds = (
            rows[list(FACTS)].astype(float).groupby([keys[name] for name in keys], sort=True)
        )
        # One launch among thousands may be another kernel of the same build.
        return cls(domain, of_builds.median())

    def beside(self, rows: pd.DataFrame) -> np.ndarray:
        """Facts of each row's build: float64, shape (rows, 2), NaN where it is not known."""
        wanted = pd.MultiIndex.from_frame(_keys(self._domain, rows))
        places = self._table.index.get_indexer(wanted)
        found = self._table.to_numpy()[places]
        found[places < 0] = np.nan
        return found

    def write(self, path: Path) -> None:
        """Write as JSON."""
        table = self._table.reset_index()
        plain = {str(name): values.tolist() for name, values in table.items()}
        write_json(path, {name: _without_nan(values) for name, values in plain.items()})

    @classmethod
    def read(cls, domain: Domain, path: Path) -> BuildFacts:
        """Read what :meth:`write` wrote; UserError when the file is not one for this workload."""
        names = ["arch", *domain.spec.build_columns]
        try:
            table = pd.DataFrame(read_json(path))[[*names, *FACTS]]
            return cls(domain, table.set_index(names).astype(float))
        except (KeyError, ValueError, TypeError) as error:
            raise UserError(path, "", f"holds no facts of builds: {error}") from error


def _keys(domain: Domain, rows: pd.DataFrame) -> pd.DataFrame:
    """Columns that identify a build."""
    archs = {gpu: profile.arch for gpu, profile in domain.profiles.items()}
    keys = rows[domain.spec.build_columns].reset_index(drop=True)
    keys.insert(0, "arch", rows["gpu"].map(archs).to_numpy())
    return keys


def _without_nan(values: list[Any]) -> list[Any]:
    return [None if isinstance(value, float) and np.isnan(value) else value for value in values]
