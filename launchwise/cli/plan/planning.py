"""Which problems of a study to measure next, for ``launchwise plan``."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from launchwise.base.errors import UserError
from launchwise.base.storage import write_text
from launchwise.cli.gpu_names import gpu_named
from launchwise.cli.plan.candidates import Candidate, candidates_on, lean
from launchwise.cli.plan.overlay import as_text, settings_of
from launchwise.cli.studies import find_profile, read_experiment, study_domain, sweep_file
from launchwise.experiment.experiment import Experiment
from launchwise.experiment.loading import insist_on_kernel
from launchwise.experiment.study import Blind, Range, Study
from launchwise.learning.blind.answering import distinct_problems
from launchwise.learning.design.greedy import Design, design
from launchwise.learning.design.kriging import Kriging
from launchwise.learning.design.landscapes import Distances, Landscapes
from launchwise.learning.features import Domain
from launchwise.learning.splits import Case, asked_about
from launchwise.tables.files import read_table
from launchwise.tables.measurements import measurement_schema
from launchwise.workloads.metrics import MEASURED
from launchwise.workloads.spec import Spec

COMMAND = "plan"

TARGETS = 96
"""Problems per GPU that stand for the declared ranges: drawn as a blind test draws them."""


MOST_CASES = 2000
"""Measured cases that the model is fitted to: its time grows with the cube of their number."""


@dataclass(frozen=True)
class Question:
    """Arguments of the command."""

    study: str
    # Time to measure, on all GPUs together.
    minutes: float
    # Names (see :mod:`launchwise.cli.gpu_names`); every live GPU of the study if there are none.
    gpus: Sequence[str]
    # Settings; each file overrides those before it.
    files: Sequence[Path]


@dataclass(frozen=True)
class Plan:
    """What to measure next."""

    question: Question
    # Cases, their minutes, and what is expected of answers before and after each.
    design: Design
    # The cases, with their rows.
    candidates: list[Candidate]
    # Overlay that measures them.
    settings: dict[str, Any]

    def write(self, path: Path) -> None:
        """Write the overlay."""
        head = (
            f"Problems that `launchwise plan {self.question.study}` chose, behind those of today."
        )
        write_text(path, as_text(self.settings, head))


def planned(asked: Question, root: Path) -> Plan:
    """Plan for the project in ``root``.

    Raises
    ------
    UserError
        When there is no such study or live GPU, its ranges are open, the time is too short for any
        problem, or nothing is left to gain.
    """
    experiment = read_experiment(asked.files, root)
    insist_on_kernel(asked.study, experiment, COMMAND)
    study = experiment.studies[asked.study]
    spec = experiment.specs[study.workload]
    gpus = _live_gpus(asked, experiment)
    ranges = declared_ranges(study, spec)
    rows = _rows(asked.study, gpus, experiment)
    profiles = {
        gpu: find_profile(gpu, experiment, COMMAND) for gpu in {**rows, **dict.fromkeys(gpus)}
    }
    domain = study_domain(study, spec, profiles)
    targets = {gpu: _drawn(ranges, domain, gpu) for gpu in gpus}
    candidates = [
        each
        for gpu in gpus
        for each in candidates_on(gpu, targets[gpu], rows.get(gpu), study, domain, experiment)
    ]
    known = _landscapes(rows, domain, gpus)
    wanted = [case for cases in targets.values() for case in cases]
    cases = [each.case for each in candidates]
    model = Kriging.fitted(known, Distances.over([*wanted, *cases, *known.cases]))
    costs = np.array([each.minutes for each in candidates])
    found = design(model, known.cases, cases, wanted, costs, asked.minutes)
    if not found.steps:
        raise UserError(COMMAND, "--minutes", _nothing(asked, model, known, wanted, candidates))
    by_case = {each.case.key: each for each in candidates}
    chosen = [lean(by_case[step.case.key], spec) for step in found.steps]
    blocks = {
        gpu: [block for each in chosen if each.case.gpu == gpu for block in each.blocks]
        for gpu in gpus
        if any(each.case.gpu == gpu for each in chosen)
    }
    settings = settings_of(experiment, asked.study, [each.case for each in chosen], blocks)
    return Plan(asked, found, chosen, settings)


def _nothing(
    asked: Question,
    model: Kriging,
    known: Landscapes,
    wanted: Sequence[Case],
    candidates: Sequence[Candidate],
) -> str:
    cheapest = min(candidates, key=lambda each: each.minutes, default=None)
    if cheapest is not None and cheapest.minutes > asked.minutes:
        return (
            f"{asked.minutes:g} min are too few: the shortest problem takes "
            f"{cheapest.minutes:.2g} min on {cheapest.case.gpu}"
        )
    deviations = np.sqrt(np.maximum(np.diag(model.posterior(known.cases, wanted)), 0))
    percent = 100 * np.expm1(model.slope * deviations.mean())
    return (
        f"nothing is left to gain: answers in the declared ranges are expected within "
        f"{percent:.2g} % of the best, and no further problem would change that"
    )


def _live_gpus(asked: Question, experiment: Experiment) -> list[str]:
    """GPUs that may measure: those that are named, or all of the study."""
    entries = experiment.settings.gpus
    own = [gpu for gpu in experiment.gpus_of(asked.study) if entries[gpu].source == "live"]
    named = [gpu_named(each, experiment, COMMAND, "--gpu") for each in asked.gpus]
    for gpu in named:
        if gpu in own:
            continue
        source = entries[gpu].source if gpu in entries else "described"
        is_known = {
            "recorded": f"{gpu} is recorded: to measure more, let it be live with extend: true",
            "described": f"{gpu} is known from its datasheet alone: add a live GPU to the settings",
        }
        message = is_known.get(source, f"{gpu} is no GPU of {asked.study}")
        raise UserError(COMMAND, "--gpu", message)
    if not own:
        message = f"{asked.study} has no live GPU: add one to the settings, gpus: "
        raise UserError(COMMAND, "--gpu", message + "{local: {source: live}}")
    return list(dict.fromkeys(named)) or own


def declared_ranges(study: Study, spec: Spec) -> Blind:
    """Problems that a study is asked about: those of its blind test, else all of the workload.

    Raises
    ------
    UserError
        When a parameter has no largest value.
    """
    if study.blind is not None:
        return study.blind.model_copy(update={"problems": TARGETS})
    found: dict[str, Any] = {}
    for name, parameter in spec.problem.items():
        if parameter.values is not None:
            found[name] = list(parameter.values)
        elif parameter.maximum is None:
            message = f"problem.{name} has no maximum: give it one, or the study ranges (blind)"
            raise UserError(COMMAND, study.workload, message)
        else:
            low = max(1, parameter.minimum or 1)
            found[name] = Range(minimum=low, maximum=parameter.maximum, scale="logarithmic")
    return Blind(problems=TARGETS, parameters=found)


def _rows(study: str, gpus: Sequence[str], experiment: Experiment) -> dict[str, pd.DataFrame]:
    """Rows of the study's problems on every GPU that has been measured."""
    asked = experiment.studies[study]
    spec = experiment.specs[asked.workload]
    columns = [*spec.key_columns, "status", "time_ms", "card", "measured_at"]
    found = {}
    for gpu in dict.fromkeys([*experiment.gpus_of(study), *gpus]):
        path = sweep_file(gpu, spec.workload, experiment)
        if path.is_file():
            rows = read_table(path, measurement_schema(spec), columns)
            # Of other problems, a sweep may hold what other studies compare.
            found[gpu] = rows[asked_about(asked, rows)].reset_index(drop=True)
    return found


def _drawn(ranges: Blind, domain: Domain, gpu: str) -> list[Case]:
    """Problems of the declared ranges: the same for every GPU that can run them."""
    drawn = distinct_problems(ranges, domain, gpu, set(), COMMAND)
    return [Case(gpu, problem) for problem in itertools.islice(drawn, TARGETS)]


def _landscapes(
    rows: Mapping[str, pd.DataFrame], domain: Domain, gpus: Sequence[str]
) -> Landscapes:
    """Measured candidates of all GPUs; of very many those of ``gpus`` first."""
    tables = [each[each["status"].isin(MEASURED)] for each in rows.values()]
    tables = [each[domain.is_candidate(each)] for each in tables if len(each)]
    tables = [each for each in tables if len(each)]
    if not tables:
        return Landscapes((), np.zeros((0, 0)))
    known = Landscapes.of(pd.concat(tables, ignore_index=True), domain)
    order = sorted(range(len(known.cases)), key=lambda place: known.cases[place].gpu not in gpus)
    return known.only(order[:MOST_CASES])
