"""Trains recommenders of a study in several ways and compares what they reach.

Splits, filter, recommenders and evaluation are those of the pipeline.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from harness.projects import homes_of, own_experiment
from launchwise.base.storage import write_json
from launchwise.experiment.study import Fences, Study
from launchwise.gpus.profile import GpuProfile, read_profile
from launchwise.learning.baselines import BASELINES
from launchwise.learning.features import Domain
from launchwise.learning.merit import geometric_mean, resampled_means
from launchwise.learning.recommenders import recommender_class
from launchwise.learning.splits import Fold, make_splits, read_folds
from launchwise.learning.training_rows import clean
from launchwise.learning.truth import Truth
from launchwise.tables.files import read_table
from launchwise.tables.learning import rows_of_fold
from launchwise.tables.measurements import measurement_schema
from launchwise.tables.rows import row_numbers
from launchwise.workloads.spec import Spec

INTERVAL_SEED = 0
USUAL = "usual"  # kind of a variant that learns nothing and takes what is usual


@dataclass(frozen=True)
class Material:
    """A study with what it is made of.

    ``sweeps``: GPU to its measurements.
    ``folds``: split to its folds.
    """

    study: Study
    spec: Spec
    profiles: dict[str, GpuProfile]
    sweeps: dict[str, pd.DataFrame]
    folds: dict[str, list[Fold]]

    def domain(self, only_features: Sequence[str] | None = None) -> Domain:
        """Candidates of the study; models use ``only_features``, or all."""
        found = Domain.of(self.study, self.spec, self.profiles)
        return replace(found, only_features=only_features) if only_features else found


@dataclass(frozen=True)
class Variant:
    """One way to train: the same for every fold.

    ``name``: tells variants of a table apart.
    ``sweeps``: GPU to the measurements that training may take rows from.
    ``seed``: of the recommender.
    """

    name: str
    kind: str
    sweeps: Mapping[str, pd.DataFrame]
    fences: Fences
    seed: int


@dataclass(frozen=True)
class Trained:
    """First recommendation of a variant for every test case, and what it was trained on.

    ``rows``, ``removed``: training rows of all folds together after the filter, and rows that it
    removed.
    ``problems``: distinct training problems of a fold, mean over the folds.
    """

    recommendations: pd.DataFrame
    rows: int
    removed: int
    problems: int


def seeded(label: str, kind: str, material: Material, fences: Fences, seeds: int) -> list[Variant]:
    """The same training with several seeds of the recommender."""
    sweeps = material.sweeps
    return [Variant(f"{label} {seed}", kind, sweeps, fences, seed) for seed in range(seeds)]


def material_of(name: str) -> Material:
    """A study of ``config.yaml`` on its recorded GPUs."""
    experiment, homes = own_experiment(), homes_of(name)
    study = experiment.studies[name]
    spec = experiment.specs[study.workload]
    schema = measurement_schema(spec)
    sweeps = {
        gpu: read_table(home / f"{study.workload}.parquet", schema) for gpu, home in homes.items()
    }
    profiles = {gpu: read_profile(home / "profile.json", gpu) for gpu, home in homes.items()}
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "splits.json"
        made = make_splits(name, study.splits, spec, sweeps, profiles, leave_out=study.leave_out)
        write_json(path, made)
        folds = {split: read_folds(path, split) for split in study.splits}
    return Material(study, spec, profiles, sweeps, folds)


def answers_by(
    kind: str, domain: Domain, rows: pd.DataFrame, choices: pd.DataFrame, seed: int
) -> pd.DataFrame:
    """First recommendations of a rule or model that learns from rows: GPU, problem, tunables."""
    made = BASELINES.get(kind) or recommender_class(kind, workload=domain.spec.folder)
    recommender = made(domain, seed=seed)
    recommender.fit(rows)
    first = recommender.ranking(choices).first(1)
    return choices[domain.spec.key_columns].iloc[first]


def trained(
    variant: Variant, folds: list[Fold], choices: list[pd.DataFrame], domain: Domain
) -> Trained:
    """Train on every fold and recommend for its test cases.

    ``choices``: candidates of each fold's test cases, with features.
    """
    cleaned = clean(variant.sweeps, folds, domain.spec, variant.fences)
    tables, problems = [], []
    for fold, candidates in zip(folds, choices, strict=True):
        rows = rows_of_fold(cleaned.training, fold.split, fold.fold)
        problems.append(int(row_numbers(rows, domain.spec.problem_columns).max()) + 1)
        first = answers_by(variant.kind, domain, rows, candidates, variant.seed)
        tables.append(first.assign(model=variant.name))
    known, kept = (sum(each[name] for each in cleaned.counts) for name in ("measured", "training"))
    return Trained(pd.concat(tables, ignore_index=True), kept, known - kept, _mean(problems))


def compared(
    material: Material,
    split: str,
    groups: Mapping[str, Sequence[Variant]],
    reference: str,
    domains: Mapping[str, Domain] | None = None,
) -> dict[str, dict[str, Any]]:
    """Quality of groups of variants, and relative to that of one group.

    ``groups``: name to the variants that count as one, such as the seeds of a recommender.
    ``reference``: group that the others are compared with, on the same resampled problems.
    ``domains``: group to its domain; that of the study where it is left out.
    Returns a dictionary: group to ``quality`` (geometric mean over test problems and variants of
    the group), ``interval``, ``over_reference``, ``over_reference_interval``, ``test_cases``,
    ``failed`` (recommendations without a time, of all variants together; one makes the quality 0),
    and means over variants: ``training_rows``, ``training_problems`` and ``removed_rows``. An
    interval is None where there are too few problems.
    """
    folds = material.folds[split]
    found = _trained_groups(material, folds, groups, domains or {})
    answers = [each.recommendations for group in found.values() for each in group]
    truth = Truth(material.sweeps, material.domain())
    rows = judged_by(truth, pd.concat(answers, ignore_index=True))
    group_of = {one.name: group for group, variants in groups.items() for one in variants}
    keys = ["gpu", *material.spec.problem_columns]
    merged = (
        rows.assign(model=rows["model"].map(group_of))
        .groupby(["model", *keys], sort=False)["fraction"]
        .apply(lambda each: geometric_mean(each.to_numpy()))
        .reset_index()
    )
    means = resampled_means(merged, material.spec.problem_columns, INTERVAL_SEED)
    quality = {
        group: geometric_mean(merged.loc[merged["model"] == group, "fraction"].to_numpy())
        for group in groups
    }
    return {
        group: {
            "quality": quality[group],
            "interval": means.interval(group),
            "over_reference": quality[group] / quality[reference],
            "over_reference_interval": means.ratio(group, reference),
            "training_rows": _mean(each.rows for each in of_group),
            "training_problems": _mean(each.problems for each in of_group),
            "removed_rows": _mean(each.removed for each in of_group),
            "failed": int((rows.loc[rows["model"].map(group_of) == group, "fraction"] == 0).sum()),
            "test_cases": len(merged[merged["model"] == group]),
        }
        for group, of_group in found.items()
    }


def _trained_groups(
    material: Material,
    folds: list[Fold],
    groups: Mapping[str, Sequence[Variant]],
    domains: Mapping[str, Domain],
) -> dict[str, list[Trained]]:
    """Every variant of every group, trained; groups of one domain share its candidates."""
    plain = material.domain()
    found: dict[str, list[Trained]] = {}
    kept: dict[int, list[pd.DataFrame]] = {}
    for group, variants in groups.items():
        domain = domains.get(group, plain)
        if id(domain) not in kept:
            kept[id(domain)] = [
                domain.keeping_features(domain.choices(fold.test)) for fold in folds
            ]
        found[group] = [trained(one, folds, kept[id(domain)], domain) for one in variants]
    return found


def judged_by(truth: Truth, answers: pd.DataFrame) -> pd.DataFrame:
    """Answers with ``fraction`` of the best and ``gain`` over the usual choice. Both 0 where the
    answer has no time."""
    found = truth.beside(answers)
    return found.assign(
        fraction=(found["best_ms"] / found["time_ms"]).fillna(0.0),
        gain=(found["usual_ms"] / found["time_ms"]).fillna(0.0),
    )


def _mean(values: Iterable[int]) -> int:
    each = list(values)
    return round(sum(each) / len(each))
