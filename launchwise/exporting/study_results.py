"""The results of a study: what is learnt, then its evaluation, product and answers.

Both parts are functions of their own: where answers are compared in pairs on a live GPU, what they
take is measured in between."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from launchwise.base.scripting import log
from launchwise.base.storage import digest, digest_files
from launchwise.base.typed import Strict
from launchwise.experiment.load import load_of
from launchwise.experiment.settings import Search
from launchwise.experiment.study import Study
from launchwise.exporting.building import answer_table
from launchwise.exporting.table import write_answer_table
from launchwise.learning.evaluation import write_evaluation
from launchwise.learning.features import Domain, read_domain
from launchwise.learning.fitting import RowCap
from launchwise.learning.learn import Asked, Learning, learn, origin
from launchwise.learning.predicting import predict_published
from launchwise.learning.product import fit_answering, learnt_from, write_product
from launchwise.learning.recommender import Recommender
from launchwise.learning.splits import read_folds
from launchwise.learning.training_rows import prepared
from launchwise.learning.truth import CANDIDATES, Truth, check_settings, read_learnt
from launchwise.tables.files import read_tables
from launchwise.tables.measurements import measurement_schema
from launchwise.tables.times import times_schema


class StudySettings(Strict):
    """Settings of a study, as its rules give them."""

    name: str
    entry: dict[str, Any]  # the study without titles
    folder: Path  # of its workload
    own_folder: Path
    question: dict[str, Any]  # see `launchwise.learning.features.read_domain`
    # Name to ``entry`` (of the settings, its name as title), ``blamed`` (file and key of its
    # hyper-parameters), ``journal`` (of its search), ``code`` and ``spec`` (digests of its sources
    # and of the spec), and ``inputs`` (files that decide what it learns).
    models: dict[str, dict[str, Any]]
    rules: dict[str, Any]  # `code`, `spec` and `inputs` of the simple rules, likewise
    answering: str  # model that answers users
    # GPUs that it learns from; those and datasheet-only ones, which are answered for.
    gpus: list[str]
    answered: list[str]
    described: dict[str, str]  # datasheet-only GPUs to their cards
    blamed: dict[str, list[str]]  # split to the file that holds it and its key there
    # Search of hyper-parameters; seed of all; parameters of
    # :class:`launchwise.learning.fitting.RowCap`.
    search: dict[str, Any]
    seed: int
    cap: dict[str, Any]
    least_gain: float | None  # see `least_gain` of the settings


class StudyFiles(Strict):
    """Files of a study: what :func:`learn_study` writes, then what :func:`evaluate_study` does."""

    splits: Path
    training: Path
    removed: Path
    learnt: list[Path]
    fitted: Path

    rows: Path
    curves: Path
    summary: Path
    final: Path
    lookup: Path
    published: Path


def domain_of(asked: StudySettings, gpus: Sequence[str], profiles: Sequence[Path]) -> Domain:
    """The workload of a study on some GPUs, a profile each, as it asks about it."""
    return read_domain(asked.folder, gpus, profiles, asked.question)


def learn_study(
    asked: StudySettings,
    domain: Domain,
    sweeps: Sequence[Path],
    profiles: Sequence[Path],
    files: StudyFiles,
    processes: int,
) -> Recommender | None:
    """Write splits, training rows, what each model says of test candidates, the fitted model.
    Returns that; None where it was there.

    ``domain``: with the GPUs that it learns from, and maybe more.
    ``sweeps``, ``profiles``: of the GPUs that it learns from, a file each.
    """
    tables = read_tables(asked.gpus, sweeps, measurement_schema(domain.spec))
    study = Study.model_validate(asked.entry)
    prepared_files = files.splits, files.training, files.removed
    known = prepared(asked.name, study, domain, tables, asked.blamed, prepared_files)
    learning = Learning(
        {name: Asked.of(one, profiles) for name, one in asked.models.items()},
        known,
        domain,
        Search.model_validate(asked.search),
        asked.seed,
        RowCap(**asked.cap),
        origin(asked.rules, profiles),
    )
    settings = [asked.question, asked.search, asked.seed, asked.cap]
    made_from = digest([digest_files([files.splits, files.training]), settings])
    made = learn(learning, files.learnt[0].parent, made_from, processes)
    for name in learning.models:
        log.info("%s: %s", name, "made" if name in made else "as it was")
    rows = learnt_from(study, domain, tables, learning.cap)
    # The product learns from test problems, too.
    of_all = digest([made_from, digest_files(list(sweeps))])
    return fit_answering(learning, asked.answering, rows, tables, files.fitted.parent, of_all)


def evaluate_study(
    asked: StudySettings,
    domain: Domain,
    sweeps: Sequence[Path],
    judged: Sequence[Path],
    cards: Path,
    files: StudyFiles,
    processes: int,
    made: Recommender | None = None,
) -> None:
    """Write the evaluation, the product, its answers, predictions of published times.

    ``domain``: with the GPUs that are answered for.
    ``sweeps``, ``judged``: measurements and judged times of the GPUs that it learns from.
    ``made``: what :func:`learn_study` returned.
    """
    folder = files.learnt[0].parent
    methods = [path.stem for path in files.learnt if path.stem != CANDIDATES]
    said = read_learnt(folder, methods, domain.spec)
    check_settings(said, {name: one["entry"] for name, one in asked.models.items()}, folder)
    times = read_tables(asked.gpus, judged, times_schema(domain.spec))
    truth = Truth.read(asked.gpus, sweeps, times, domain)
    folds = read_folds(files.splits)
    study = Study.model_validate(asked.entry)
    load = load_of(study.load, domain.spec)
    evaluation = files.rows, files.curves, files.summary
    intervals = write_evaluation(
        asked.name,
        said,
        folds,
        truth,
        domain,
        study.random_draws,
        asked.answering,
        evaluation,
        processes,
        load,
    )
    product = write_product(
        files.fitted.parent, files.final.parent, times, sweeps, intervals, domain, made
    )
    declared = study.blind.parameters if study.blind else None
    table = answer_table(
        product, asked.name, asked.answered, asked.least_gain, processes, declared, times, load
    )
    write_answer_table(files.lookup, table)
    log.info("%d answers on %d GPUs", len(table.entries), len(asked.answered))
    predict_published(files.published, product, asked.own_folder, cards, asked.described)
