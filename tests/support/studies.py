"""A small study that learns in memory: rows of the tests' workload, folds, models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from launchwise.experiment.settings import Search
from launchwise.experiment.study import Fences, ModelEntry, Study
from launchwise.learning.baselines import BASELINES
from launchwise.learning.features import Domain
from launchwise.learning.final import Final
from launchwise.learning.fitting import ALL_ROWS, RowCap
from launchwise.learning.learn import Asked, Learning
from launchwise.learning.product import fit_answering, learnt_from, write_product
from launchwise.learning.recommenders import COMMITTEE, MEMBERS, members_of
from launchwise.learning.splits import Fold
from launchwise.learning.training_rows import TrainingRows, clean
from launchwise.tables.times import judged_times


def entry(kind: str, **parameters: Any) -> ModelEntry:
    """A model without search."""
    return ModelEntry(kind=kind, title=kind, trials=0, parameters=parameters)


def study(model: str, **asked: Any) -> Study:
    """A study of the tests' workload, of one model; GPUs are left out unless it asks otherwise."""
    splits = {"s": {"kind": "leave_one_gpu_out", "title": "t"}}
    named = {"title": "t", "question": "q", "workload": "stencil", "models": [model]}
    return Study.model_validate({**named, "splits": splits, **asked})


def by_size(train: Sequence[int], test: Sequence[int]) -> dict[str, Any]:
    """Splits of a study that holds sizes out."""
    parts = {"train": {"n": [*train]}, "test": {"n": [*test]}}
    return {"sizes": {"kind": "problems", "title": "t", **parts}}


def fit_final(
    study: Study,
    name: str,
    entry: ModelEntry,
    domain: Domain,
    sweeps: Mapping[str, pd.DataFrame],
    times: Mapping[str, pd.DataFrame],
    sources: Sequence[Path],
    seed: int,
    folder: Path,
) -> Final:
    """Fit one model to all measured rows of a study and write the product, without intervals.

    ``name``, ``entry``: the model; members of a committee are plain kinds and simple rules.
    ``sweeps``, ``times``, ``sources``: GPU to its measurements and to its judged times; files of
        the sweeps.
    """
    members = members_of(entry.parameters, MEMBERS) if entry.kind == COMMITTEE else []
    plain = {
        each: Asked(ModelEntry(kind=each, title=each)) for each in members if each not in BASELINES
    }
    learnt = learnt_from(study, domain, sweeps)
    known = TrainingRows(learnt.training, ())
    asked = Learning({**plain, name: Asked(entry)}, known, domain, Search(), seed, ALL_ROWS)
    with TemporaryDirectory() as scratch:
        fit_answering(asked, name, learnt, sweeps, Path(scratch, "fitted"))
        return write_product(Path(scratch, "fitted"), folder, times, sources, {}, domain)


def fit_product(
    folder: Path,
    domain: Domain,
    sweeps: Mapping[str, pd.DataFrame],
    model: ModelEntry,
    times: Mapping[str, pd.DataFrame] | None = None,
    seed: int = 1,
    **asked: Any,
) -> Final:
    """The product of a :func:`study` that one model answers, written to ``folder``. ``times`` are
    those of the sweeps where none are given."""
    if times is None:
        times = {gpu: judged_times(rows, (), domain.spec) for gpu, rows in sweeps.items()}
    known = (domain, sweeps, times, (), seed, folder)
    return fit_final(study(model.title, **asked), model.title, model, *known)


def learning(
    models: Mapping[str, Asked],
    domain: Domain,
    sweeps: Mapping[str, pd.DataFrame],
    folds: Sequence[Fold],
    options: Search | None = None,
    cap: RowCap = ALL_ROWS,
    rules: str = "",
) -> Learning:
    """What a study learns from its sweeps, with seed 7."""
    rows = clean(sweeps, list(folds), domain.spec, Fences()).training
    known = TrainingRows(rows, folds)
    return Learning(models, known, domain, options or Search(), 7, cap, rules)
