"""Reports of many GPUs: a study's own rows copied to GPUs that are some factor slower."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from launchwise.exporting.entries import Entry
from launchwise.exporting.table import AnswerTable
from launchwise.learning.answers import Interval
from launchwise.report.study_tables import StudyData

MOST_PROBLEMS = 6  # Problems of a GPU: the number of GPUs is the question, not that of rows
WITH_MODELS = 30  # GPUs that evaluation and predictions hold: more than a study's page shows

SLOWEST = 8.0


def copied(study: StudyData, name: str, count: int) -> StudyData:
    """A study of ``count`` GPUs, each with the rows of one of the study's, slower by a factor.

    ``name``: of the new study; the study's own section stays behind.
    """
    factors = np.exp(np.linspace(0.0, np.log(SLOWEST), count))
    kept = {gpu: _few_problems(study, gpu) for gpu in study.gpus}
    sources = [gpu for gpu in study.gpus if len(kept[gpu])]
    of = {f"gpu{place:04d}": sources[place % len(sources)] for place in range(count)}
    slower = dict(zip(of, factors, strict=True))

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
        evaluation=few(study.evaluation),
        pairs={},
        peers={},
        blind={},
        scores={},
        counters={},
        facts=_of_gpus(study.facts, dict(list(of.items())[:WITH_MODELS])),
        table=study.table and _table(study.table, of, slower),
        _known={},
    )


def _of_gpus(facts: Mapping[str, Any], of: Mapping[str, str]) -> dict[str, Any]:
    """A summary of the evaluation with the figures of new GPUs."""
    splits = {
        split: {"all": parts["all"], **{new: parts[old] for new, old in of.items() if old in parts}}
        for split, parts in facts["splits"].items()
    }
    return {**facts, "splits": splits, "predictions": []}


def _table(table: AnswerTable, of: Mapping[str, str], slower: Mapping[str, float]) -> AnswerTable:
    """Answers of new GPUs, ``slower`` by their factors."""
    devices, entries = [], list[Entry]()
    for place, (new, old) in enumerate(of.items()):
        number, factor = table.number(old), slower[new]
        assert number is not None
        devices.append(replace(table.devices[number], name=new))

        def times(limits: Interval | None, factor: float = factor) -> Interval | None:
            return limits and (limits[0] * factor, limits[1] * factor)

        entries += [
            replace(
                one,
                device=place,
                time_ms=one.time_ms and factor * one.time_ms,
                interval_ms=times(one.interval_ms),
            )
            for one in table.entries
            if one.device == number
        ]
    changed = {"devices": tuple(devices), "entries": tuple(entries)}
    return replace(table, stored=table.stored.model_copy(update=changed))


def _few_problems(study: StudyData, gpu: str) -> pd.DataFrame:
    sweep = study.sweeps[gpu]
    problems = sweep.groupby(study.problem_columns, sort=True).ngroup()
    return sweep[problems < MOST_PROBLEMS].reset_index(drop=True)
