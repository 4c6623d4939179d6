"""What to use, and what it would take, on GPUs that nobody measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from launchwise.learning.analytical import CostModel
from launchwise.learning.features import Domain
from launchwise.learning.recommender import Recommender
from launchwise.learning.recommenders import BY_COST, recommender_class
from launchwise.learning.rooflines import limits_ms
from launchwise.learning.splits import Case
from launchwise.workloads.space import Problem


def fitted_predictors(domain: Domain, measurements: pd.DataFrame) -> dict[str, Recommender]:
    """A recommender of each of :data:`BY_COST`, fitted to all that was measured of a study.

    Parameters
    ----------
    measurements
        See :meth:`launchwise.learning.recommender.Recommender.fit`.
    """
    return {kind: recommender_class(kind)(domain).fit(measurements) for kind in BY_COST}


def predict_unmeasured(
    domain: Domain,
    gpus: Sequence[str],
    problems: Sequence[Problem],
    predictors: Mapping[str, Recommender],
    top: int = 1,
) -> pd.DataFrame:
    """The fastest configurations by each predictor, and their predicted times.

    Parameters
    ----------
    gpus
        GPUs of the domain; each needs a profile and no measurement.
    problems
        Of the domain's workload. One that no configuration fits but the baseline has that one.
    top
        Configurations of each problem, from the fastest.

    Returns
    -------
    pandas.DataFrame
        One row a (predictor, GPU, problem, rank), as
        :func:`launchwise.tables.schemas.unmeasured_schema` declares it.
    """
    choices = domain.choices([Case(gpu, problem) for gpu in gpus for problem in problems])
    known = choices.assign(baseline=domain.is_baseline(choices))
    key = ["gpu", *domain.spec.problem_columns]
    found = []
    for name, predictor in predictors.items():
        ranked = predictor.rank(known)
        start = ranked.loc[ranked["baseline"], [*key, "predicted_ms"]]
        start = start.rename(columns={"predicted_ms": "baseline_ms"})
        first = ranked[ranked["rank"] <= top].merge(start, on=key, how="left")
        found.append(first.drop(columns="baseline").assign(predictor=name))
    table = pd.concat(found, ignore_index=True)
    limits = limits_ms(table, domain.spec, domain.profiles)
    for name, times in limits.items():
        table[f"{name}_ms"] = times
    table["bound_by"] = CostModel(domain.spec, domain.profiles).estimate(table).bound_by()
    return table.astype({"rank": np.int64})
