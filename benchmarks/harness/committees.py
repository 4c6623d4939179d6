"""The answering model in variants, on recorded blind tests and on the splits of studies.

Nothing that is asked for is among the rows that are learnt from: the run ends where it would be.
Domains, splits, filter and training rows are those of the pipeline.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from harness.ablated import Material, folds_of, material_of
from harness.blind import judged_by, read_test
from launchwise.learning.clean import clean
from launchwise.learning.evaluate import Truth
from launchwise.learning.features import Domain
from launchwise.learning.final import learnt_from
from launchwise.learning.merit import HARM_PERCENT
from launchwise.learning.recommender import Recommender, Tried
from launchwise.learning.recommenders import COMMITTEE, recommender_class
from launchwise.learning.row_cap import ALL_ROWS, RowCap
from launchwise.learning.splits import Case, Fold, among
from launchwise.tables.folds import rows_of_fold


@dataclass(frozen=True)
class Variant:
    """One way to fit the answering model.

    Attributes
    ----------
    settings
        What differs from the default, in words.
    parameters
        Of the committee.
    all_cards
        The product of a blind test learns from every GPU of the study, the tested one included.
    inherits
        A product of several cards takes over the plans of the splits' folds.
    cap
        Most rows that a fit learns from; its seed is that of the task.
    """

    settings: str
    parameters: dict[str, Any] = field(default_factory=dict)
    all_cards: bool = False
    inherits: bool = True
    cap: RowCap = ALL_ROWS


@dataclass(frozen=True)
class Task:
    """A variant on a blind test or on a split.

    Attributes
    ----------
    name
        Of the variant.
    kind
        ``blind`` or ``splits``.
    part
        GPU of the blind test, or name of the split.
    """

    name: str
    variant: Variant
    seed: int
    kind: str
    study: str
    part: str


@dataclass(frozen=True)
class Outcome:
    """Answers of a task.

    Attributes
    ----------
    rows
        ``fraction`` of the best and whether the answer is ``harmed`` (slower than the usual
        choice), has an ``interval`` of its gain, and is ``covered`` by it; one row per problem.
    fit_s, answer_s
        CPU time, s.
    """

    task: Task
    rows: pd.DataFrame
    fit_s: float
    answer_s: float


def fitted(
    task: Task,
    domain: Domain,
    rows: pd.DataFrame,
    asked: Sequence[Case],
    expected: Sequence[Case] = (),
    tried: Sequence[Tried] = (),
) -> tuple[Recommender, float]:
    """The variant fitted to training rows, and the CPU time of that, s.

    Parameters
    ----------
    asked
        Cases that it will be asked about.
    expected, tried
        What it is told beforehand (see :meth:`Recommender.expect` and :meth:`Recommender.inherit`).

    Raises
    ------
    ValueError
        When a row is of a problem that will be asked for.
    """
    if seen := int(among(rows, asked, domain.spec).sum()):
        raise ValueError(f"{task.study}, {task.part}: {seen} training rows are of test problems")
    rows = replace(task.variant.cap, seed=task.seed).applied(rows, domain, task.part)
    model = recommender_class(COMMITTEE)(domain, seed=task.seed, **task.variant.parameters)
    model.expect(expected)
    model.inherit(tried)
    before = time.process_time()
    model.fit(rows)
    return model, time.process_time() - before


def answered(model: Recommender, choices: pd.DataFrame, truth: Truth) -> tuple[pd.DataFrame, float]:
    """First recommendations as in :attr:`Outcome.rows`, and the CPU time of answering, s."""
    before = time.process_time()
    ranking = model.ranking(choices)
    answer_s = time.process_time() - before
    first = ranking.first(1)
    assert ranking.gains is not None
    _, least, most = ranking.gains[first].T
    table = choices[model.domain.spec.key_columns].iloc[first].reset_index(drop=True)
    judged = judged_by(truth, table)
    interval = pd.notna(least) & ~model.domain.is_usual(table)
    rows = pd.DataFrame(
        {
            "fraction": judged["fraction"],
            "harmed": judged["gain"] < 1 / (1 + HARM_PERCENT / 100),
            "interval": interval,
            "covered": interval & (judged["gain"] >= least) & (judged["gain"] <= most),
        }
    )
    return rows, answer_s


def fits_of_folds(
    task: Task,
    material: Material,
    domain: Domain,
    sweeps: Mapping[str, pd.DataFrame],
    folds: Sequence[Fold],
) -> Iterator[tuple[Fold, Recommender, float]]:
    """Each fold with the variant fitted to its training rows, and the CPU time of that, s."""
    if material.study.train_on == "candidates":
        sweeps = {gpu: rows[domain.is_candidate(rows)] for gpu, rows in sweeps.items()}
    training = clean(sweeps, list(folds), domain.spec, material.study.fences).training
    for fold in folds:
        rows = domain.keeping_features(rows_of_fold(training, fold.split, fold.fold))
        yield fold, *fitted(task, domain, rows, fold.test, fold.test)


def on_split(task: Task) -> Outcome:
    """Answers for the test problems of a split."""
    material = material_of(task.study)
    domain = material.domain()
    truth = Truth(material.sweeps, domain)
    tables, fit_s, answer_s = [], 0.0, 0.0
    folds = material.folds[task.part]
    for fold, model, seconds in fits_of_folds(task, material, domain, material.sweeps, folds):
        choices = domain.keeping_features(domain.choices(fold.test))
        rows, more_s = answered(model, choices, truth)
        tables.append(rows)
        fit_s, answer_s = fit_s + seconds, answer_s + more_s
    return Outcome(task, pd.concat(tables, ignore_index=True), fit_s, answer_s)


def on_blind_test(task: Task) -> Outcome:
    """Answers for the problems of a blind test; fits of folds to take plans from are not timed."""
    material = material_of(task.study)
    test = read_test(task.part, task.study, material)
    domain = test.domain
    sweeps = material.sweeps if task.variant.all_cards else test.known(material)
    training = learnt_from(material.study, domain, sweeps).training
    several = len({domain.profiles[gpu].card_model for gpu in sweeps}) > 1
    with tempfile.TemporaryDirectory() as scratch:
        tried = []
        if several and task.variant.inherits:
            made = folds_of(task.study, material.study, material.spec, material.profiles, sweeps)
            folds = [fold for of_split in made.values() for fold in of_split]
            for fold, model, _ in fits_of_folds(task, material, domain, sweeps, folds):
                folder = Path(scratch) / fold.split / fold.fold
                model.save(folder)
                tried.append(Tried(folder, training[among(training, fold.test, domain.spec)]))
        model, fit_s = fitted(task, domain, training, test.cases, tried=tried)
    choices = domain.keeping_features(domain.choices(test.cases))
    rows, answer_s = answered(model, choices, test.truth)
    return Outcome(task, rows, fit_s, answer_s)


KINDS = {"blind": on_blind_test, "splits": on_split}


def run(task: Task) -> Outcome:
    """Answer what a task asks."""
    return KINDS[task.kind](task)
