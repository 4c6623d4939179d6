"""Which problems of a study to measure next, for ``launchwise plan``."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from launchwise.base.errors import UserError
from launchwise.base.names import assigned
from launchwise.base.typed import yaml_text
from launchwise.cli.next_problems import Candidate, candidates_on, trained_on
from launchwise.cli.words import find_profile, gpu_named, read_experiment, sweep_file
from launchwise.experiment.discovery import STUDY_FILE
from launchwise.experiment.experiment import Experiment
from launchwise.experiment.loading import insist_on_kernel
from launchwise.experiment.study import Blind, ProblemSplit, Range, Study
from launchwise.learning.blind import distinct_problems
from launchwise.learning.features import Domain
from launchwise.learning.kriging import (
    ENOUGH,
    LEAST_GAIN,
    Distances,
    Ending,
    Kriging,
    Landscapes,
    Step,
    design,
)
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


def planned(
    study: str, minutes: float, named: Sequence[str], files: Sequence[Path], target: Path
) -> tuple[dict[str, Any], str]:
    """Plan for the project in this folder, as ``--json`` prints it, and its overlay. ``minutes``:
    time to measure, on all GPUs together. ``named``: GPUs by the words of a user; every live GPU of
    the study if there are none. ``target``: where the overlay is written. Raises UserError when
    there is no such study or live GPU, its ranges are open, the time is too short for any problem,
    or nothing is left to gain."""
    experiment = read_experiment(files, Path.cwd())
    insist_on_kernel(study, experiment, COMMAND)
    asked = experiment.studies[study]
    spec = experiment.specs[asked.workload]
    gpus = _live_gpus(study, named, experiment)
    ranges = declared_ranges(asked, spec)
    rows = _rows(study, gpus, experiment)
    profiles = {
        gpu: find_profile(gpu, experiment, COMMAND) for gpu in dict.fromkeys([*rows, *gpus])
    }
    domain = Domain.of(asked, spec, profiles)
    targets = {gpu: _drawn(ranges, domain, gpu) for gpu in gpus}
    candidates = [
        each
        for gpu in gpus
        for each in candidates_on(gpu, targets[gpu], rows.get(gpu), asked, domain, experiment)
    ]
    known = _landscapes(rows, domain, gpus)
    wanted = [case for cases in targets.values() for case in cases]
    cases = [each.case for each in candidates]
    model = Kriging.fitted(known, Distances.over([*wanted, *cases, *known.cases]))
    costs = np.array([each.minutes for each in candidates])
    found = design(model, known.cases, cases, wanted, costs, minutes)
    if not found.steps:
        raise UserError(COMMAND, "--minutes", _nothing(minutes, model, known, wanted, candidates))
    by_case = {each.case.key: each for each in candidates}
    chosen = [by_case[step.case.key] for step in found.steps]
    facts = {
        "study": study,
        "minutes": minutes,
        "expected_percent_over_best": percent(found.regret),
        "problems": list(map(_facts_of, found.steps, chosen)),
        "ended": found.ended,
        "overlay": str(target),
    }
    return facts, _overlay(experiment, study, chosen)


def _facts_of(step: Step, candidate: Candidate) -> dict[str, Any]:
    return {
        "gpu": step.case.gpu,
        "problem": step.case.problem,
        "rows": candidate.rows,
        "minutes": candidate.minutes,
        "expected_percent_over_best": percent(step.regret),
    }


def _nothing(
    minutes: float,
    model: Kriging,
    known: Landscapes,
    wanted: Sequence[Case],
    candidates: Sequence[Candidate],
) -> str:
    cheapest = min(candidates, key=lambda each: each.minutes, default=None)
    if cheapest is not None and cheapest.minutes > minutes:
        return (
            f"{minutes:g} min are too few: the shortest problem takes "
            f"{cheapest.minutes:.2g} min on {cheapest.case.gpu}"
        )
    deviations = np.sqrt(np.maximum(np.diag(model.posterior(known.cases, wanted)), 0))
    within = percent(model.slope * deviations.mean())
    return (
        f"nothing is left to gain: answers in the declared ranges are expected within "
        f"{within:.2g} % of the best, and no further problem would change that"
    )


def _live_gpus(study: str, words: Sequence[str], experiment: Experiment) -> list[str]:
    """GPUs that may measure: those that are named, or all of the study."""
    entries = experiment.settings.gpus
    own = [gpu for gpu in experiment.gpus_of(study) if entries[gpu].source == "live"]
    named = [gpu_named(each, experiment, COMMAND, "--gpu") for each in words]
    for gpu in named:
        if gpu in own:
            continue
        source = entries[gpu].source if gpu in entries else "described"
        is_known = {
            "recorded": f"{gpu} is recorded: to measure more, let it be live with extend: true",
            "described": f"{gpu} is known from its datasheet alone: add a live GPU to the settings",
        }
        message = is_known.get(source, f"{gpu} is no GPU of {study}")
        raise UserError(COMMAND, "--gpu", message)
    if not own:
        message = f"{study} has no live GPU: add one to the settings, gpus: "
        raise UserError(COMMAND, "--gpu", message + "{local: {source: live}}")
    return list(dict.fromkeys(named)) or own


def declared_ranges(study: Study, spec: Spec) -> Blind:
    """Problems that a study is asked about: those of its blind test, else all of the workload.
    Raises UserError when a parameter has no largest value."""
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
    asked = experiment.with_drawn(study)
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


def _overlay(experiment: Experiment, study: str, chosen: Sequence[Candidate]) -> str:
    """Settings that measure what is chosen behind what is measured today, as YAML."""
    asked = changed = experiment.studies[study]
    lists: dict[str, list[Any]] = {}
    for each in chosen:
        gpu = each.case.gpu
        lists.setdefault(gpu, [*experiment.blocks_of(gpu, asked.workload)]).extend(each.blocks)
        for name, more in (trained_on(changed, each.case.problem) or {}).items():
            split = changed.splits[name]
            train = {**split.train, **more}  # type: ignore[union-attr]
            splits = {**changed.splits, name: split.model_copy(update={"train": train})}
            changed = changed.model_copy(update={"splits": splits})
    content: dict[str, Any] = {
        "gpus": {gpu: {"problems": {asked.workload: each}} for gpu, each in lists.items()}
    }
    grown = {
        name: {"train": split.train}
        for name, split in changed.splits.items()
        if isinstance(split, ProblemSplit) and split != asked.splits[name]
    }
    # A derived study has no file: its splits follow from what is measured.
    if grown and (experiment.study_folders[study] / STUDY_FILE).is_file():
        content["studies"] = {study: {"splits": grown}}
    head = f"# Problems that `launchwise plan {study}` chose, behind those of today.\n"
    return head + yaml_text(content)


ENDINGS: dict[Ending, str] = {
    "budget": "no further problem fits into the time",
    "candidates": "every candidate is chosen",
    "enough": f"answers are then expected within {100 * ENOUGH:g} % of the best",
    "gain": f"no further problem is expected to gain {100 * LEAST_GAIN:g} %",
}
"""Why a plan has no further problem."""


def percent(regret: float) -> float:
    """Time over the best, %, of a logarithm of time / best."""
    return float(100 * np.expm1(regret))


def as_text(plan: Mapping[str, Any], files: Sequence[Path], top: int) -> str:
    """Lines for a terminal: the gain, the first ``top`` problems, and how to run all of them."""
    problems, overlay = plan["problems"], plan["overlay"]
    rows, minutes = (sum(each[name] for each in problems) for name in ("rows", "minutes"))
    before, after = (each["expected_percent_over_best"] for each in (plan, problems[-1]))
    lines = [
        f"{len(problems)} problems, {rows} rows, {minutes:.2g} of {plan['minutes']:g} min",
        f"expected time of answers over the best, in the declared ranges: {before:.2f} % now, "
        f"{after:.2f} % then",
    ]
    for number, each in enumerate(problems[:top], start=1):
        lines.append(
            f"{number}. {assigned(each['problem'])} on {each['gpu']}: {each['rows']} rows, "
            f"{each['minutes']:.2g} min; then {each['expected_percent_over_best']:.2f} %"
        )
    if more := len(problems[top:]):
        lines.append(f"and {more} more (--top {len(problems)})")
    words = ["snakemake", "--cores", "all", "--configfile", *map(str, files), overlay]
    words += ["--", f"final_{plan['study']}"]
    return "\n".join(
        [*lines, f"no more: {ENDINGS[plan['ended']]}", f"{overlay}; run: {shlex.join(words)}"]
    )
