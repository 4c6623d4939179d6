"""Fit models of a study: search and fit for every split and fold, a folder for each model."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from launchwise.base import provenance
from launchwise.base.errors import UserError
from launchwise.base.parallel import in_parallel
from launchwise.base.scripting import log
from launchwise.base.storage import digest, digest_files, own_place, read_json, write_sealed_json
from launchwise.experiment.settings import Search
from launchwise.experiment.study import ModelEntry
from launchwise.learning.features import Domain
from launchwise.learning.fits import ROW, Fits
from launchwise.learning.one_core import Use, complaint, watched
from launchwise.learning.recommender import Recommender
from launchwise.learning.recommenders import recommender_class
from launchwise.learning.row_cap import ALL_ROWS, RowCap, told
from launchwise.learning.search import held_out_regret, search
from launchwise.learning.splits import ALL, case_numbers
from launchwise.learning.training_rows import TrainingFold, read_training

SUMMARY_FILE = "summary.json"
CROSS_VALIDATION_FOLDS = 10


@dataclass(frozen=True)
class Asked:
    """A model that is to be trained.

    Parameters
    ----------
    entry
        Of the settings.
    folder
        Where ``<split>/<fold>/`` and ``summary.json`` go, in place of what was there; that stays
        where training fails.
    made_from
        Digest of all that decides what is fitted; kept in the summary.
    journal
        File that keeps the trials of its search.
    blamed
        File of the settings that holds the hyper-parameters, and their key there.
    """

    entry: ModelEntry
    folder: Path
    made_from: str = ""
    journal: Path | None = None
    blamed: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, one: Mapping[str, Any], folder: Path, common: Sequence[Any], profiles: Sequence[Path]
    ) -> Asked:
        """A model as the rule of its study gives it.

        Parameters
        ----------
        one
            ``entry``, ``blamed``, ``journal``, and what decides what is fitted: ``code`` and
            ``spec`` (digests of sources and of the spec), ``inputs`` (files).
        common
            What decides it for all models of the study.
        profiles
            Files of the GPUs' profiles.
        """
        inputs = digest_files([Path(path) for path in (*one["inputs"], *profiles)])
        made_from = digest([common, one["entry"], one["code"], one["spec"], inputs])
        entry, journal = ModelEntry.model_validate(one["entry"]), Path(one["journal"])
        return cls(entry, folder, made_from, journal, tuple(one["blamed"] or ()))


def train_models(
    asked: Mapping[str, Asked],
    domain: Domain,
    training: str | Path,
    options: Search,
    seed: int,
    processes: int = 1,
    cap: RowCap = ALL_ROWS,
) -> dict[str, dict[str, Any]]:
    """Fit models on every fold of every split and write all of it.

    What several models need of a fold is fitted once (see :class:`Fits`).

    Parameters
    ----------
    asked
        Name of a model in the settings to what is asked of it.
    training
        File of training rows.
    processes
        Folds are fitted in so many processes at once.
    cap
        Most rows that a fold learns from.

    Returns
    -------
    dict
        The summary of each model: rows and those left out, hyper-parameters, objective, seconds,
        features dropped, and the model's own record, fold by fold.

    Raises
    ------
    UserError
        When the kind of model or a parameter is unknown or out of range, or there are no rows.
    """
    home = domain.spec.folder
    kinds = {n: recommender_class(e.entry.kind, f"models.{n}", home) for n, e in asked.items()}
    known = read_training(training, domain.spec)
    if known.rows.empty:
        raise UserError(training, "", "holds no training rows")

    with _successors(asked) as beside:

        def fit(fold: TrainingFold) -> dict[str, tuple[dict[str, Any], Use]]:
            every = known.of_fold(fold.split, fold.fold)
            learnt = cap.applied(every, domain, f"fold {fold.split}/{fold.fold}")
            rows = domain.keeping_features(learnt)
            rows[ROW] = np.arange(len(rows))
            fits = Fits()
            found = {}
            for name, one in beside.items():
                with blaming(name, one.entry, *one.blamed), watched(kinds[name]) as use:
                    facts = _fit_fold(kinds[name], one, domain, rows, options, seed, fold, fits)
                found[name] = ({"rows_left_out": len(every) - len(learnt), **facts}, use)
            return found

        folds = in_parallel(fit, list(known.folds), processes)
        _tell_left_out(known.folds, folds)
        return _summarised(beside, known.folds, folds, seed)


@contextmanager
def _successors(asked: Mapping[str, Asked]) -> Iterator[dict[str, Asked]]:
    """``asked`` with folders beside their own, which they replace at the end, all or none."""
    beside = {
        name: replace(one, folder=one.folder.with_name(f".{one.folder.name}.new"))
        for name, one in asked.items()
    }
    for one in beside.values():
        shutil.rmtree(own_place(one.folder), ignore_errors=True)
    try:
        yield beside
        for name, one in asked.items():
            shutil.rmtree(own_place(one.folder), ignore_errors=True)
            beside[name].folder.rename(one.folder)
    finally:
        for one in beside.values():
            shutil.rmtree(one.folder, ignore_errors=True)


def _tell_left_out(
    folds: Sequence[TrainingFold], fitted: Sequence[Mapping[str, tuple[dict[str, Any], Use]]]
) -> None:
    """Say in the log which folds learnt from some of their rows alone; all models from the same."""
    for fold, facts in zip(folds, fitted, strict=True):
        for left_out in {of_model["rows_left_out"] for of_model, _ in facts.values()} - {0}:
            log.info("%s %s: %s", fold.split, fold.fold, told(left_out))


def _summarised(
    asked: Mapping[str, Asked],
    folds: Sequence[TrainingFold],
    fitted: Sequence[Mapping[str, tuple[dict[str, Any], Use]]],
    seed: int,
) -> dict[str, dict[str, Any]]:
    """Write the summary of each model; one that took more than its core is told in the log."""
    summaries = {}
    for name, one in asked.items():
        own = [
            {"split": fold.split, "fold": fold.fold, **facts[name][0]}
            for fold, facts in zip(folds, fitted, strict=True)
        ]
        if greed := complaint(facts[name][1] for facts in fitted):
            log.warning("models.%s: %s", name, greed)
        summaries[name] = {
            "model": name,
            "kind": one.entry.kind,
            "seed": seed,
            "folds": own,
            "seconds_to_train": sum(each["seconds_search"] + each["seconds_fit"] for each in own),
            "features_dropped": sorted({one for each in own for one in each["features_dropped"]}),
            "beyond_one_core": greed,
            "versions": provenance.versions(),
            "made_from": one.made_from,
        }
        write_sealed_json(one.folder / SUMMARY_FILE, summaries[name])
    return summaries


def stale(asked: Mapping[str, Asked]) -> dict[str, Asked]:
    """The models that are missing or were made from something else; all if there are none.

    Where nothing is missing or old, somebody asked for all of them anew.
    """
    found = {
        name: one
        for name, one in asked.items()
        if not (one.folder / SUMMARY_FILE).is_file()
        or read_json(one.folder / SUMMARY_FILE).get("made_from") != one.made_from
    }
    return found or dict(asked)


@contextmanager
def blaming(name: str, entry: ModelEntry, where: str = "", key: str = "") -> Iterator[None]:
    """Turn a library's error about a fixed hyper-parameter into a UserError.

    Parameters
    ----------
    where, key
        File of the settings that holds the hyper-parameters, and their key there.
    """
    where, key = where or "the settings", key or f"models.{name}.parameters"
    try:
        yield
    except UserError as error:
        if not error.key.startswith("models.parameters"):
            raise
        below = error.key.removeprefix("models.parameters")
        raise UserError(where, f"{key}{below}", error.message) from error
    except OSError:
        raise
    except Exception as error:
        if not entry.parameters:
            raise
        first = str(error).strip().splitlines()
        raise UserError(where, key, first[0] if first else repr(error)) from error


def _fit_fold(
    kind: type[Recommender],
    one: Asked,
    domain: Domain,
    rows: pd.DataFrame,
    options: Search,
    seed: int,
    fold: TrainingFold,
    fits: Fits,
) -> dict[str, Any]:
    entry = one.entry
    found = search(
        kind,
        domain,
        rows,
        fixed=dict(entry.parameters),
        trials=options.trials if entry.trials is None else entry.trials,
        folds=options.folds,
        max_rows=options.max_rows,
        seed=seed,
        journal=one.journal,
        name=f"{fold.split}/{fold.fold}",
        objective=options.objective,
    )
    parameters = {"seed": seed, **found.parameters, **entry.parameters}
    recommender = kind(domain, **parameters)
    recommender.expect(fold.test)
    recommender.share(fits)
    fitted, seconds = fits.fit(recommender, rows)
    fits.save(fitted, one.folder / fold.split / fold.fold)
    cases = int(case_numbers(rows, domain.spec).max()) + 1
    # For the published comparison, which has no transfer: ten more fits of every fold would cost.
    scored = kind.cross_validated and fold.fold == ALL and cases > 1
    return {
        "rows": len(rows),
        "cases": cases,
        "parameters": fitted.get_params(),
        "trials": found.trials,
        "objective": found.value,
        "seconds_search": found.seconds,
        "seconds_fit": seconds,
        **fitted.summary(),
        **(_cross_validation(fitted, rows, seed) if scored else {}),
    }


def _cross_validation(recommender: Recommender, rows: pd.DataFrame, seed: int) -> dict[str, Any]:
    """Ten-fold score: share of held-out cases whose recommendation is the best or near it."""
    fresh = type(recommender)(recommender.domain, **recommender.get_params())
    regret = held_out_regret(fresh, rows, CROSS_VALIDATION_FOLDS, seed, judged=1)
    near = np.log1p(recommender.domain.near_best_percent / 100)
    return {
        "cross_validation": {
            "folds": min(CROSS_VALIDATION_FOLDS, len(regret)),
            "accuracy": float((regret <= 1e-12).mean()),
            "accuracy_near_best": float((regret <= near + 1e-12).mean()),
            "fraction": float(np.exp(-regret.mean())),
        }
    }
