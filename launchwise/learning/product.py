"""Makes the product of a study: fits its answering model to all measured rows, adds what is known.

The model is fitted where all models of the study are (:mod:`launchwise.learning.learn`), into a
folder of its own. What is held true of times comes later, with pairs: then the product is written
(:mod:`launchwise.learning.final`).
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from launchwise.base.errors import UserError
from launchwise.base.places import versions
from launchwise.base.storage import (
    digest,
    digest_files,
    new_folder,
    read_sealed_json,
    write_sealed_json,
)
from launchwise.experiment.study import Study
from launchwise.learning.answers import Offsets, Situation
from launchwise.learning.baselines import BASELINES
from launchwise.learning.features import Domain
from launchwise.learning.final import (
    FACTS_FILE,
    MEASURED_FILE,
    MODEL_FOLDER,
    PREDICTOR_FOLDER,
    Final,
    calibrate,
)
from launchwise.learning.fitting import ALL_ROWS, RowCap
from launchwise.learning.learn import Learning, origin_of
from launchwise.learning.recommender import Recommender
from launchwise.learning.recommenders import COMMITTEE, recommender_class
from launchwise.learning.recommenders.committee import CommitteeRecommender
from launchwise.learning.splits import ALL, Case, Fold, asked_about, case_columns, cases_in
from launchwise.learning.training_rows import clean
from launchwise.tables.files import write_table
from launchwise.tables.learning import FOLDS, fastest_measured_schema
from launchwise.tables.rows import fastest_rows, row_numbers
from launchwise.tables.times import JUDGED
from launchwise.workloads.metrics import MEASURED

RANKED = 10  # Measured configurations of each case that a product holds, the fastest first


def fastest_measured(times: Mapping[str, pd.DataFrame], domain: Domain) -> pd.DataFrame:
    """The fastest candidates of each measured case, its usual choice and its baseline. Returns a
    table as :func:`launchwise.tables.learning.fastest_measured_schema` declares it: the cases in
    order, of each the fastest (:func:`launchwise.tables.rows.fastest_rows`), then the others by
    ascending time. ``times``: GPU to judged times."""
    spec = domain.spec
    columns = [*JUDGED, "status", "blind"]
    rows = pd.concat(
        [table[[*spec.key_columns, *columns]] for table in times.values()], ignore_index=True
    )
    rows = rows[rows["status"].isin(MEASURED) & domain.is_candidate(rows)]
    rows = rows.drop(columns="status").reset_index(drop=True)
    keys = case_columns(spec)
    rows["is_usual"], rows["is_baseline"] = domain.is_usual(rows), domain.is_baseline(rows)
    cases = row_numbers(rows, keys, ordered=True)
    configurations = row_numbers(rows, spec.tunable_columns, ordered=True)
    named = fastest_rows(rows, keys, spec)
    for name in ("alike", "unsure"):
        rows[name] = named[name].groupby(cases[named.index]).first().to_numpy()[cases]
    order = np.lexsort(
        (configurations, rows["time_ms"].to_numpy(), ~rows.index.isin(named.index), cases)
    )
    rows = rows.iloc[order].reset_index(drop=True)
    rows["rank"] = rows.groupby(cases[order]).cumcount() + 1
    kept = (rows["rank"] <= RANKED) | rows["is_usual"] | rows["is_baseline"]
    return rows.loc[kept, [*fastest_measured_schema(spec).columns]].reset_index(drop=True)


FITTED_FILE = "fitted.json"  # Facts of the folder of a fitted model


@dataclass(frozen=True)
class Measured:
    """Training data of a study's product."""

    asked: dict[str, pd.DataFrame]  # GPU to the measurements that the study asks about
    cases: tuple[Case, ...]  # their problems, GPU by GPU
    # The rows that models are fitted to: candidates only where the study says so, filtered.
    training: pd.DataFrame
    left_out: int = 0  # rows that `cap` left out of them


def learnt_from(
    study: Study, domain: Domain, sweeps: Mapping[str, pd.DataFrame], cap: RowCap = ALL_ROWS
) -> Measured:
    """All measured rows of a study; UserError when nothing was."""
    spec = domain.spec
    asked = {gpu: rows[asked_about(study, rows)] for gpu, rows in sweeps.items()}
    asked = {gpu: rows for gpu, rows in asked.items() if rows["status"].isin(MEASURED).any()}
    if not asked:
        raise UserError("the sweeps", "", "hold no measured row of the study")
    cases = tuple(case for rows in asked.values() for case in cases_in(rows, spec))
    rows = asked
    if study.train_on == "candidates":
        rows = {gpu: each[domain.is_candidate(each)] for gpu, each in asked.items()}
    training = clean(rows, [Fold("final", ALL, cases, ())], spec, study.fences).training
    training = training.drop(columns=FOLDS).astype({"gpu": object})
    kept = cap.applied(training, domain, "the product")
    return Measured(asked, cases, kept, len(training) - len(kept))


def fit_answering(
    asked: Learning,
    name: str,
    learnt: Measured,
    sweeps: Mapping[str, pd.DataFrame],
    folder: Path,
    made_from: str = "",
) -> Recommender | None:
    """Fit a study's answering model to all its measured rows; write it and what it learnt from.
    ``folder`` is written anew; nothing happens, and None is returned, where it was made from the
    same: ``made_from`` is the digest of the training rows and of what else all models are made
    from. Raises UserError when the model cannot be fitted."""
    origin = digest([made_from, name, origin_of(asked, name)])
    if made_from and _is_fitted(folder, origin):
        return None
    recommender = _made(asked, name)
    rows = asked.domain.keeping_features(learnt.training)
    recommender.fit(rows)
    new_folder(folder)
    recommender.save(folder / MODEL_FOLDER)
    _predictor(recommender, rows, asked).save(folder / PREDICTOR_FOLDER)
    facts = {
        **{"made_from": origin, "files": _files_in(folder)},
        **{"model": name, "kind": asked.models[name].entry.kind},
        "seed": asked.seed,
        **_what_was_learnt(learnt, asked.domain, sweeps),
        "versions": versions(),
        **recommender.summary(),
    }
    write_sealed_json(folder / FITTED_FILE, facts)
    return recommender


def _is_fitted(folder: Path, origin: str) -> bool:
    """Whether a folder holds what is made from that; a damaged one is made anew."""
    try:
        facts = read_sealed_json(folder / FITTED_FILE)
    except UserError:
        return False
    # Of an interrupted job Snakemake brings back the facts alone.
    return facts["made_from"] == origin and facts["files"] == _files_in(folder)


def _files_in(folder: Path) -> str:
    models = (folder / MODEL_FOLDER, folder / PREDICTOR_FOLDER)
    return digest_files(sorted(path for one in models for path in one.rglob("*") if path.is_file()))


def _predictor(fitted: Recommender, rows: pd.DataFrame, asked: Learning) -> Recommender:
    """The cost model with trees: the member of that kind, else one that is fitted now."""
    kind = recommender_class("learnt")
    known = [each for each in (fitted, *fitted.members) if isinstance(each, kind)]
    return known[0] if known else kind(asked.domain).fit(rows)


def _made(asked: Learning, name: str) -> Recommender:
    """A model of the study, not fitted, with its members."""
    entry, spec = asked.models[name].entry, asked.domain.spec

    def one(model: str) -> Recommender:
        if model in BASELINES:
            return BASELINES[model](asked.domain)
        its = asked.models[model].entry
        kind = recommender_class(its.kind, f"models.{model}", spec.folder)
        return kind(asked.domain, **{"seed": asked.seed, **its.parameters})

    if entry.kind != COMMITTEE:
        return one(name)
    members = {each: one(each) for each in asked.members(name)}
    kinds = {
        each: asked.models[each].entry.kind if each in asked.models else each for each in members
    }
    made = CommitteeRecommender(asked.domain, **{"seed": asked.seed, **entry.parameters})
    return made.of(members, kinds)


def write_product(
    fitted: Path,
    folder: Path,
    times: Mapping[str, pd.DataFrame],
    sources: Sequence[Path],
    intervals: Mapping[Situation, Offsets],
    domain: Domain,
    made: Recommender | None = None,
) -> Final:
    """Write the product of a study.

    ``fitted``, ``folder``: of the fitted model (:func:`fit_answering`), and of the product, which
        is written anew.
    ``times``: GPU to judged times (see :mod:`launchwise.tables.times`): they say which of the
        fastest to answer with. Models learn from the sweeps.
    ``sources``: files of the sweeps: their digest names what was learnt from.
    ``intervals``: situation to the interval of its answers.
    ``made``: the fitted model, where this process made it: its libraries answer faster.
    Raises UserError when the folder of the fitted model is damaged.
    """
    facts = read_sealed_json(fitted / FITTED_FILE)
    if facts.pop("files") != _files_in(fitted):
        raise UserError(fitted, "", f"is damaged: delete it, then make final_{folder.name} again")
    facts.pop("made_from")
    new_folder(folder)
    for name in (MODEL_FOLDER, PREDICTOR_FOLDER):
        shutil.copytree(fitted / name, folder / name)
    judged = {gpu: times[gpu] for gpu in facts["gpus"]}
    fastest = fastest_measured(judged, domain)
    write_table(folder / MEASURED_FILE, fastest, fastest_measured_schema(domain.spec))
    facts |= {
        **{"study": folder.name, "workload": domain.spec.workload},
        "sweeps": digest_files(list(sources)),
        "intervals": {situation: asdict(each) for situation, each in intervals.items()},
    }
    found = Final(folder, domain, fastest, facts, made)
    both = zip(("time_intervals", "gain_intervals"), calibrate(found, judged), strict=True)
    facts |= {name: None if one is None else asdict(one) for name, one in both}
    write_sealed_json(folder / FACTS_FILE, facts)
    return found


def _what_was_learnt(
    learnt: Measured, domain: Domain, sweeps: Mapping[str, pd.DataFrame]
) -> dict[str, Any]:
    """Facts of the rows that a model learnt from."""
    asked = learnt.asked
    return {
        "gpus": {gpu: domain.profiles[gpu].device_name for gpu in asked},
        "measurements": {gpu: measurements(sweeps[gpu]) for gpu in asked},
        "rows": len(learnt.training),
        "rows_left_out": learnt.left_out,
        "cases": len(learnt.cases),
        "commits": sorted({str(one) for rows in asked.values() for one in rows["commit"].unique()}),
    }


def measurements(rows: pd.DataFrame) -> dict[str, list[str]]:
    """With what and when a sweep was measured, as far as it says so. Returns ``drivers`` and
    ``toolkits``, sorted; ``days``: the first and the last, as YYYY-MM-DD."""

    def known(column: str) -> list[str]:
        return sorted({str(one) for one in rows[column].dropna().unique()} - {""})

    days = sorted({each[:10] for each in known("measured_at")})
    return {"drivers": known("driver"), "toolkits": known("toolkit"), "days": days[:1] + days[-1:]}
