"""Problems that a GPU may measure next, each with its rows and its time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from launchwise.cli.plan.costs import RowTime
from launchwise.cli.plan.overlay import blocks_like, trained_on
from launchwise.experiment.experiment import Experiment
from launchwise.experiment.study import Study
from launchwise.learning.design.landscapes import Distances
from launchwise.learning.features import Domain
from launchwise.learning.splits import Case, cases_in
from launchwise.workloads.space import Problem, configurations, gpu_facts, narrowings
from launchwise.workloads.spec import Spec


@dataclass(frozen=True)
class Candidate:
    """A case that may be measured."""

    case: Case
    # Problem blocks that measure it.
    blocks: list[dict[str, Any]]
    # Configurations.
    rows: int
    # Estimated time.
    minutes: float


def candidates_on(
    gpu: str,
    targets: Sequence[Case],
    rows: pd.DataFrame | None,
    study: Study,
    domain: Domain,
    experiment: Experiment,
) -> list[Candidate]:
    """Problems that a GPU has not measured, and that a split of the study may learn from.

    Parameters
    ----------
    targets
        Drawn problems; those that the sweep lists for the study join them.
    rows
        What the GPU has measured; None before its first sweep.

    Raises
    ------
    UserError
        When the strategy of the sweep does not say how many rows a problem has.
    """
    spec, profile = domain.spec, domain.profiles[gpu]
    swept = [Case(gpu, each) for each in experiment.problems_of(gpu, study.workload)]
    listed = [case for case in swept if trained_on(study, case.problem) == {}] or swept
    known = {case.key for case in cases_in(rows, spec)} if rows is not None else set()
    asked = [
        case
        for case in {case.key: case for case in (*listed, *targets)}.values()
        if case.key not in known and trained_on(study, case.problem) is not None
    ]
    if not asked:
        return []
    apart = Distances.over([*listed, *asked]).between(asked, listed).sum(axis=0)
    measured = pd.DataFrame() if rows is None else rows
    cost = RowTime.of_sweep(measured, spec, profile.memory_bandwidth_gbs)
    found = []
    for case, distances in zip(asked, apart, strict=True):
        nearest = listed[int(np.argmin(distances))].problem
        blocks, count = _measured_as(nearest, case, study, domain, experiment)
        if count:
            minutes = max(cost.minutes(spec, case.problem, count), 1e-6)
            found.append(Candidate(case, blocks, count, minutes))
    return found


def _measured_as(
    nearest: Problem, case: Case, study: Study, domain: Domain, experiment: Experiment
) -> tuple[list[dict[str, Any]], int]:
    """Blocks that measure a case as the sweep measures its nearest problem, and their rows."""
    spec, strategy = domain.spec, experiment.sweeps[study.workload].strategy
    if strategy.kind != "exhaustive":
        if strategy.budget is None:
            message = "give a budget: without one no problem has a number of rows to plan with"
            raise experiment.error(f"sweeps.{study.workload}.strategy", message)
        return [{name: [value] for name, value in case.problem.items()}], strategy.budget
    listed = experiment.blocks_of(case.gpu, study.workload)
    blocks = blocks_like(nearest, case.problem, listed, spec, study)
    facts = gpu_facts(domain.profiles[case.gpu].model_dump())
    part = narrowings(spec, blocks)[tuple(case.problem.values())]
    return blocks, len(configurations(spec, case.problem, facts, part))


def lean(candidate: Candidate, spec: Spec) -> Candidate:
    """The same without blocks that measure nothing beside the others."""
    if len(candidate.blocks) < 2:
        return candidate
    problem = candidate.case.problem

    def count(blocks: list[dict[str, Any]]) -> int:
        part = narrowings(spec, blocks)[tuple(problem.values())]
        return len(configurations(spec, problem, None, part))

    kept: list[dict[str, Any]] = []
    for block in sorted(candidate.blocks, key=lambda each: -count([each])):
        if not kept or count([*kept, block]) > count(kept):
            kept.append(block)
    return replace(candidate, blocks=kept)
