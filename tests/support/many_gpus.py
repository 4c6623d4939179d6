"""Reports of many GPUs: a study's own rows copied to GPUs that are some factor slower."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from launchwise.report.study import StudyData

MOST_PROBLEMS = 6  # Problems of a GPU: the number of GPUs is the question, not that of rows
WITH_MODELS = 30  # GPUs that evaluation and predictions hold: more than a study's page shows

SLOWEST = 8.0
TIMES = ("time_ms", "time_low_ms", "time_high_ms")


def copied(study: StudyData, name: str, count: int) -> StudyData:
    """A study of ``count`` GPUs, each with the rows of one of the study's, slower by a factor.

    ``name``: of the new study; the study's own section stays behind.
    """
    factors = np.exp(np.linspace(0.0, np.log(SLOWEST), count))
    kept = {gpu: _few_problems(study, gpu) for gpu in study.gpus}
    sources = [gpu for gpu in study.gpus if len(kept[gpu])]
    of = {f"gpu{place:04d}": sources[place % len(sources)] for place in range(count)}
    slower = dict(zip(of, factors, strict=True))
    answers: dict[str, list[Mapping[str, Any]]] = {}
    for entry in study.answers or ():
        answers.setdefault(entry["gpu"], []).append(entry)

    def few(table: pd.DataFrame) -> pd.DataFrame:
        first = list(of.items())[:WITH_MODELS]
        parts = [table[table["gpu"] == old].assign(gpu=new) for new, old in first]
        return pd.concat(parts, ignore_index=True).astype(table.dtypes.to_dict())

    return replace(
        study,
        name=name,
        folder=None,
        settings=study.settings.model_copy(update={"title": f"{study.settings.title}, {name}"}),
        profiles={
            new: study.profiles[old].model_copy(update={"name": new}) for new, old in of.items()
        },
        sweeps={
            new: kept[old].assign(gpu=new, time_ms=kept[old]["time_ms"] * slower[new])
            for new, old in of.items()
        },
        sweep_facts={},
        training=few(study.training),
        removed=few(study.removed),
        evaluation=few(study.evaluation),
        predictions=few(study.predictions),
        pairs={},
        peers={},
        blind={},
        scores={},
        counters={},
        facts=_of_gpus(study.facts, dict(list(of.items())[:WITH_MODELS])),
        answers=[
            {**entry, "gpu": new, **_times(entry, slower[new])}
            for new, old in of.items()
            for entry in answers.get(old, [])
        ],
        _known={},
    )


def _of_gpus(facts: Mapping[str, Any], of: Mapping[str, str]) -> dict[str, Any]:
    """A summary of the evaluation with the figures of new GPUs."""
    splits = {
        split: {"all": parts["all"], **{new: parts[old] for new, old in of.items() if old in parts}}
        for split, parts in facts["splits"].items()
    }
    return {**facts, "splits": splits, "predictions": []}


def _times(entry: Mapping[str, Any], factor: float) -> dict[str, float | None]:
    return {name: None if entry[name] is None else factor * entry[name] for name in TIMES}


def _few_problems(study: StudyData, gpu: str) -> pd.DataFrame:
    sweep = study.sweeps[gpu]
    problems = sweep.groupby(study.problem_columns, sort=True).ngroup()
    return sweep[problems < MOST_PROBLEMS].reset_index(drop=True)
