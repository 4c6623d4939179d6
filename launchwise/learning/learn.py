"""One learning job a study: fit each model of each fold once, ask each test candidate once.

Each model has one file of what it says (:mod:`launchwise.learning.truth`), with the digest of all
that decides it: a model is made again where its file is missing or made from something else, and
the others stay. The answering method is made of the files of its members. No model of a fold is
kept.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from launchwise.base.errors import UserError
from launchwise.base.places import versions
from launchwise.base.scripting import log
from launchwise.base.storage import digest, digest_files
from launchwise.base.work import in_parallel
from launchwise.experiment.settings import Search
from launchwise.experiment.study import ModelEntry
from launchwise.learning.baselines import BASELINES
from launchwise.learning.features import Domain
from launchwise.learning.fitting import KEY, RowCap, cross_validation, fitted_to
from launchwise.learning.recommender import Recommender, ranked
from launchwise.learning.recommenders import COMMITTEE, members_of
from launchwise.learning.recommenders.committee import (
    CONTENDERS,
    CommitteeRecommender,
    Experience,
    judged,
)
from launchwise.learning.splits import ALL, Fold, case_numbers
from launchwise.learning.training_rows import TrainingRows
from launchwise.learning.truth import CANDIDATES, read_learnt, said, said_by, write_said
from launchwise.tables.files import read_facts, write_table
from launchwise.tables.learning import candidates_schema

Said = dict[str, tuple[pd.DataFrame, dict[str, Any]]]
"""Method to what it says of the candidates of a fold, and facts of it."""


@dataclass(frozen=True)
class Asked:
    """A model of a study."""

    entry: ModelEntry  # of the settings
    # Digest of all that decides what it says, beside candidates and training rows.
    made_from: str = ""
    journal: Path | None = None  # file that keeps the trials of its search
    # File of the settings that holds the hyper-parameters, and their key there.
    blamed: tuple[str, ...] = ()

    @classmethod
    def of(cls, one: Mapping[str, Any], profiles: Sequence[Path]) -> Asked:
        """A model as the rule of its study gives it.

        ``one``: ``entry``, ``blamed``, ``journal``, and what decides what is fitted: ``code`` and
        ``spec`` (digests of sources and of the spec), ``inputs`` (files); ``profiles``: files of
        the GPUs' profiles.
        """
        made_from = digest([one["entry"], origin(one, profiles)])
        entry, journal = ModelEntry.model_validate(one["entry"]), Path(one["journal"])
        return cls(entry, made_from, journal, tuple(one["blamed"] or ()))


def origin(one: Mapping[str, Any], profiles: Sequence[Path]) -> str:
    """Digest of sources, spec and files that decide what a method says, see :meth:`Asked.of`."""
    inputs = digest_files([Path(path) for path in (*one["inputs"], *profiles)])
    return digest([one["code"], one["spec"], inputs])


@dataclass(frozen=True)
class Learning:
    """What a study learns from and is asked."""

    models: Mapping[str, Asked]  # name to model, in the order of the settings
    known: TrainingRows  # training rows and folds
    domain: Domain  # workload, GPUs and candidates
    options: Search  # search of hyper-parameters
    seed: int  # of all
    cap: RowCap  # most rows that a fold learns from
    # Digest of all that decides what simple rules say, beside candidates and training rows.
    rules: str = ""

    def members(self, model: str) -> list[str]:
        """Members of a committee; none of another model."""
        entry = self.models[model].entry
        return members_of(entry.parameters, self.models) if entry.kind == COMMITTEE else []


def learn(asked: Learning, folder: Path, made_from: str, processes: int = 1) -> list[str]:
    """Write what every model and simple rule says of the test candidates of every fold.

    Returns the methods that were made; others were there. ``folder``: of the study's files
    (:mod:`launchwise.learning.truth`); ``made_from``: digest of the training rows, the folds and
    the candidates; ``processes``: folds are fitted in so many processes at once. Raises UserError
    when there are no training rows, or a model cannot be fitted.
    """
    if asked.known.rows.empty:
        raise UserError("training rows", "", "there are none")
    stale = [
        name
        for name in (*BASELINES, *asked.models)
        if not _is_of(folder / f"{name}.parquet", made_from, origin_of(asked, name))
    ]
    fitted = [name for name in stale if name in BASELINES or not asked.members(name)]
    if fitted or not _is_of(folder / f"{CANDIDATES}.parquet", made_from):
        _write_fitted(asked, fitted, folder, made_from, processes)
    for name in stale:
        if name not in fitted:
            _write_consensus(asked, name, folder, made_from)
    return stale


def _is_of(path: Path, candidates: str, origin: str | None = None) -> bool:
    """Whether a file is of these candidates and was made from that, if asked."""
    try:
        facts = read_facts(path)
    except UserError:
        return False
    return facts.get(CANDIDATES) == candidates and origin in (None, facts.get("made_from"))


def _write_fitted(
    asked: Learning, names: Sequence[str], folder: Path, made_from: str, processes: int
) -> None:
    """Write the test candidates, and what these models and simple rules say of them."""

    def of_fold(fold: Fold) -> tuple[pd.DataFrame, Said]:
        return _of_fold(asked, fold, names)

    parts = in_parallel(of_fold, list(asked.known.folds), processes)
    candidates = pd.concat([table for table, _ in parts], ignore_index=True)
    schema, path = candidates_schema(asked.domain.spec), folder / f"{CANDIDATES}.parquet"
    # Which ones they are, to the files beside it.
    write_table(path, candidates, schema, {CANDIDATES: made_from})
    for name in names:
        table = pd.concat([found[name][0] for _, found in parts], ignore_index=True)
        own = [found[name][1] for _, found in parts]
        trained = None if name in BASELINES else _sum(own, "seconds_search", "seconds_fit")
        seconds = trained, _sum(own, "seconds_asked")
        facts = _facts(asked, name, own, made_from, seconds)
        write_said(folder / f"{name}.parquet", table, facts)


def _sum(facts: Sequence[Mapping[str, Any]], *names: str) -> float:
    return float(sum(each[name] or 0.0 for each in facts for name in names))


def origin_of(asked: Learning, name: str) -> str:
    """Digest of what decides what a method says; of a committee also that of its members."""
    if name in BASELINES:
        return asked.rules
    members = asked.members(name)
    others = {each: origin_of(asked, each) for each in (*members, *(CONTENDERS if members else ()))}
    return digest([asked.models[name].made_from, others])


def _facts(
    asked: Learning,
    name: str,
    own: Sequence[Mapping[str, Any]],
    made_from: str,
    seconds: tuple[float | None, float],
) -> dict[str, Any]:
    """Facts of a method, in its file.

    ``own``: facts of each fold, none of a committee; ``seconds``: what it took to fit it, None
    where nothing is fitted, and to ask it.
    """
    folds, one = asked.known.folds, asked.models.get(name)
    named = [
        {"split": fold.split, "fold": fold.fold, **facts}
        for fold, facts in zip(folds, own, strict=bool(own))
    ]
    dropped = {each for facts in own for each in facts.get("features_dropped", ())}
    return {
        "model": name,
        "kind": one.entry.kind if one else name,
        "entry": one.entry.model_dump(mode="json") if one else {},
        "seed": asked.seed,
        "folds": named,
        "cases": sum(len(fold.test) for fold in folds),
        "seconds_to_train": seconds[0],
        "seconds_to_recommend": seconds[1],
        "features_dropped": sorted(dropped),
        "versions": versions(),
        "made_from": origin_of(asked, name),
        CANDIDATES: made_from,
    }


def _of_fold(asked: Learning, fold: Fold, methods: Sequence[str]) -> tuple[pd.DataFrame, Said]:
    """Candidates of a fold's test cases, and what methods say of them."""
    domain = asked.domain
    every = asked.known.of_fold(fold, domain.spec)
    learnt = asked.cap.applied(every, domain, f"fold {fold.split}/{fold.fold}")
    left_out = len(every) - len(learnt)
    if left_out:
        message = "%s %s: %d rows left out: %s allows no more"
        log.info(message, fold.split, fold.fold, left_out, KEY)
    choices = domain.choices(fold.test)
    candidates = choices.assign(split=fold.split, fold=fold.fold)
    found: Said = {}
    prepared: tuple[pd.DataFrame, pd.DataFrame] | None = None
    for name in methods:
        if name in BASELINES:
            rule = BASELINES[name](domain).fit(every)
            found[name] = _asked_of(rule, choices, {})
            continue
        if prepared is None:
            prepared = domain.keeping_features(learnt), domain.keeping_features(choices)
        one = asked.models[name]
        known = (domain, asked.options, asked.seed, one.journal, one.blamed)
        model, facts = fitted_to(prepared[0], fold, name, one.entry, *known)
        # For the published comparison, which is the first split: it takes ten more fits.
        first = fold.fold == ALL and fold.split == asked.known.folds[0].split
        if model.cross_validated and first and facts["cases"] > 1:
            facts |= cross_validation(model, prepared[0], asked.seed)
        found[name] = _asked_of(model, prepared[1], {"rows_left_out": left_out, **facts})
    return candidates, found


def _asked_of(
    recommender: Recommender, choices: pd.DataFrame, facts: Mapping[str, Any]
) -> tuple[pd.DataFrame, dict[str, Any]]:
    started = time.perf_counter()
    found = said_by(recommender, choices)
    return found, {**facts, "seconds_asked": time.perf_counter() - started}


def _write_consensus(asked: Learning, name: str, folder: Path, made_from: str) -> None:
    """Write what an answering method says: the consensus of the files of its members."""
    started = time.perf_counter()
    members, domain = asked.members(name), asked.domain
    learnt = read_learnt(folder, dict.fromkeys([*members, *CONTENDERS]), domain.spec)
    entry = asked.models[name].entry
    caution = CommitteeRecommender.Parameters.model_validate(entry.parameters).caution
    trained_on = {(one.split, one.fold): Experience.of(one.train) for one in asked.known.folds}
    parts = []
    for fold, places in learnt.by_fold():
        rows = learnt.candidates.iloc[places].reset_index(drop=True)
        losses = {each: learnt.losses(each)[places] for each in members}
        times = {each: learnt.times_ms(each)[places] for each in members}
        chosen = {each: learnt.first(each)[places] for each in CONTENDERS}
        found = judged(losses, times, chosen, rows, domain, trained_on[fold], caution)
        _, rank = ranked(case_numbers(rows, domain.spec), *found.scores.T)
        assert found.gains is not None
        parts.append(said(rank, found.predicted_ms, np.full(len(rows), np.nan), found.gains))
    known = [learnt.facts[each] for each in members]
    trained, of_members = _sum(known, "seconds_to_train"), _sum(known, "seconds_to_recommend")
    seconds = trained, of_members + time.perf_counter() - started
    facts = _facts(asked, name, [], made_from, seconds)
    facts |= {"members": members, "caution": caution}
    write_said(folder / f"{name}.parquet", pd.concat(parts, ignore_index=True), facts)
