"""Guesses for an explorer: recommendations of a fitted model, measured first.

This runs beside the measuring process, not inside it: it loads pandas and the model's library.
"""

from __future__ import annotations

import random
from pathlib import Path

import pandas as pd

from launchwise.base.errors import UserError, unknown
from launchwise.learning.features import Domain
from launchwise.learning.final import read_final
from launchwise.workloads.sampling import LISTABLE, Draws
from launchwise.workloads.space import Configuration, Problem, baseline, feasible, gpu_facts

SAMPLED_CANDIDATES = 10_000
"""Number of sampled candidates to rank if the space is too large to list."""


def recommended_guesses(
    model_folder: Path, domain: Domain, gpu: str, problem: Problem, count: int
) -> list[Configuration]:
    """The first ``count`` feasible configurations that a fitted model recommends, best first.

    In a space of more than :data:`LISTABLE` configurations the best of a random sample, which is
    always the same. Raises UserError when the folder holds no model, or one of another workload;
    when the GPU or the problem is unknown.

    Parameters
    ----------
    model_folder
        A study's product (``results/final/<study>``).
    domain
        The workload, ``gpu``'s profile and what may be recommended.
    gpu, problem
        What is to be measured; the model need not have learnt from them.
    """
    recommender = read_final(model_folder, domain).recommender
    if gpu not in domain.profiles:
        raise UserError(model_folder, "gpu", unknown("GPU", gpu, domain.profiles))
    facts = gpu_facts(domain.profiles[gpu].model_dump())
    columns = domain.spec.tunable_columns
    if Draws(domain.spec, problem, facts, 0).size <= LISTABLE:
        table = recommender.recommend(gpu, [problem])
    else:
        table = recommender.rank(_sample(domain, gpu, problem))
    found: list[Configuration] = []
    for values in table[columns].itertuples(index=False, name=None):
        # Plain numbers, which JSON can hold.
        named = {
            name: value if isinstance(value, str) else int(value)
            for name, value in zip(columns, values, strict=True)
        }
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
