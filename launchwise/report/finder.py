"""The lookup of the front page: an answer for any size on any GPU, with its basis.

Answers come from the study's product (``results/lookup/``). Where configurations were compared in
pairs, their gains and intervals replace those of the sweep's rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from launchwise.learning.answering import BASES, MEASURED
from launchwise.report import wording
from launchwise.report.blocks import Finder
from launchwise.report.numbers import records
from launchwise.report.study import StudyData
from launchwise.workloads import limits as problem_limits
from launchwise.workloads.parts import Value
from launchwise.workloads.space import used

Z95 = 1.96
"""Half a 95 % interval of a mean in standard errors."""

NEAR = 1.02
"""Largest time ratio to the answer at which another configuration comes close."""

WORDS = {
    "measured": "measured on this GPU",
    "within": "between measured sizes, by the answering model",
    "beyond": "beyond the measured sizes, by the answering model",
    "new_gpu": "no measurement on this GPU: by the answering model",
    "datasheet": "no measurement on this GPU, known from its datasheet: by the answering model",
}
"""Basis of an answer to words."""

assert WORDS.keys() == {*BASES, "datasheet"}

Key = tuple[Value, ...]
Limits = tuple[float | None, float | None]


@dataclass
class Found:
    """An answer as the page shows it; ``interval`` says of how many percent its limits are."""

    gpu: str
    problem: Key
    basis: str
    configuration: dict[str, Value]
    is_usual: bool
    time_ms: float | None
    time_limits: Limits = (None, None)
    gain: float | None = None
    gain_limits: Limits = (None, None)
    improvement: float | None = None
    improvement_limits: Limits = (None, None)
    others: list[dict[str, Value]] = field(default_factory=list)
    paired: bool = False

    @property
    def interval(self) -> int:
        """Percent of the intervals: of measurements, or of answers of a model."""
        return 95 if self.basis == MEASURED else 90


def block(studies: Sequence[StudyData]) -> Finder | None:
    """The lookup over all studies; None where none has answers."""
    known = [study for study in studies if study.answers]
    if not known:
        return None
    return Finder(
        id="find",
        studies=[(study.name, study.settings.title) for study in known],
        first=chosen_problem(known[0]),
    )


def chosen_problem(study: StudyData) -> Mapping[str, Any]:
    """The study, the GPU and the problem that the lookup begins with: one in the middle."""
    gpu = study.whole[0]
    found = [entry for entry in study.answers or () if entry["gpu"] == gpu]
    measured = [entry for entry in found if entry["basis"] == MEASURED] or found
    middle = measured[len(measured) // 2]["problem"]
    problem = {name: middle[name] for name in study.problem_columns}
    return {"study": study.name, "gpu": gpu, "problem": problem}


def answers(study: StudyData) -> list[Found]:
    """Every answer of a study, measured ones with the intervals of their measurements."""
    columns = study.problem_columns
    near = _near_in_sweeps(study)
    pairs = {gpu: _by_problem(rows, columns) for gpu, rows in study.pairs.items()}
    found = []
    for entry in study.answers or ():
        answer = _of_entry(entry, study)
        if answer.basis == MEASURED:
            rows = pairs.get(answer.gpu, {}).get(answer.problem)
            answer = _with_measurements(answer, near.get((answer.gpu, answer.problem)), study)
            if rows is not None:
                answer = _with_pairs(answer, rows, study)
        found.append(answer)
    return found


def _of_entry(entry: Mapping[str, Any], study: StudyData) -> Found:
    columns = study.problem_columns
    return Found(
        gpu=entry["gpu"],
        problem=tuple(entry["problem"][name] for name in columns),
        basis="datasheet" if entry["gpu"] in study.described else entry["basis"],
        configuration=configuration_of(neutral(entry["configuration"], study), study),
        is_usual=entry["is_usual"],
        time_ms=entry["time_ms"],
        time_limits=(entry["time_low_ms"], entry["time_high_ms"]),
        gain=entry["gain"],
        gain_limits=(entry["gain_low"], entry["gain_high"]),
        improvement=entry["improvement"],
        others=[configuration_of(neutral(each, study), study) for each in entry["others"]],
    )


def _by_problem(rows: pd.DataFrame, columns: Sequence[str]) -> dict[Key, list[dict[str, Any]]]:
    found: dict[Key, list[dict[str, Any]]] = {}
    for row in records(rows):
        found.setdefault(tuple(row[name] for name in columns), []).append(row)
    return found


def _near_in_sweeps(study: StudyData) -> dict[tuple[str, Key], list[dict[str, Any]]]:
    """GPU and problem to the measured rows within 2 % of the fastest, fastest first."""
    columns = ["gpu", *study.problem_columns]
    rows = study.measured
    best = rows.groupby(columns)["time_ms"].transform("min")
    kept = rows[rows["time_ms"] <= NEAR * best].sort_values("time_ms", kind="stable")
    found: dict[tuple[str, Key], list[dict[str, Any]]] = {}
    wanted = [*columns, *study.spec.tunable_columns, "time_ms", "relative_error"]
    for row in records(kept[wanted]):
        key = (row["gpu"], tuple(row[name] for name in study.problem_columns))
        found.setdefault(key, []).append(row)
    return found


def _with_measurements(answer: Found, rows: list[dict[str, Any]] | None, study: StudyData) -> Found:
    """The answer with the standard error of its row, and with what comes close in the sweep."""
    others, limits = [], answer.time_limits
    for row in rows or ():
        own = configuration_of(row, study)
        if own == answer.configuration:
            error = row["relative_error"]
            if answer.time_ms is not None and not wording.is_missing(error):
                width = Z95 * float(error) * answer.time_ms
                limits = (answer.time_ms - width, answer.time_ms + width)
        else:
            others.append(own)
    return replace(answer, time_limits=limits, others=others)


def _with_pairs(answer: Found, rows: list[dict[str, Any]], study: StudyData) -> Found:
    """The answer with its gains in pairs, and with what comes close there."""
    by_configuration = [(configuration_of(row, study), row) for row in rows]
    own = next((row for found, row in by_configuration if found == answer.configuration), None)
    if own is None or not _known(own["gain"]):
        return answer
    others = [
        found
        for found, row in by_configuration
        if found != answer.configuration
        and _known(row["gain"])
        and row["gain"] * NEAR >= own["gain"]
    ]
    return replace(
        answer,
        gain=own["gain"],
        gain_limits=_limits(own, "gain"),
        improvement=_number(own["improvement"]),
        improvement_limits=_limits(own, "improvement"),
        others=others,
        paired=True,
    )


def configuration_of(row: Mapping[str, Any], study: StudyData) -> dict[str, Value]:
    """Variant and the tunables that it has, from a row that holds every tunable."""
    spec = study.spec
    return dict(used({name: row[name] for name in spec.tunable_columns}, spec))


def _known(value: Any) -> bool:
    return value is not None and math.isfinite(value)


def _number(value: Any) -> float | None:
    return float(value) if _known(value) else None


def _limits(row: Mapping[str, Any], name: str) -> Limits:
    low, high = _number(row[f"{name}_low"]), _number(row[f"{name}_high"])
    # The reference itself has no error beside itself.
    return (None, None) if low == high else (low, high)


def data(study: StudyData) -> dict[str, Any]:
    """Data of the lookup for the page's script, as JSON values.

    Configurations are listed once; ``entries`` hold, in this order: GPU, problem, basis,
    configuration, whether it is the usual choice, time (ms) and its limits, gain and its limits,
    improvement and its limits, percent of the intervals, other configurations, whether the gains
    were measured in pairs. GPUs, bases and configurations are places in their lists. Values that
    the page offers as a choice have no limit among ``limits``.
    """
    found = answers(study)
    gpus = {gpu: place for place, gpu in enumerate(dict.fromkeys(each.gpu for each in found))}
    bases = list(WORDS)
    configurations: dict[tuple[tuple[str, Value], ...], int] = {}

    def place(configuration: Mapping[str, Value]) -> int:
        return configurations.setdefault(tuple(configuration.items()), len(configurations))

    entries = [
        [
            gpus[each.gpu],
            list(each.problem),
            bases.index(each.basis),
            place(each.configuration),
            int(each.is_usual),
            *map(_rounded, (each.time_ms, *each.time_limits)),
            *map(_rounded, (each.gain, *each.gain_limits)),
            *map(_rounded, (each.improvement, *each.improvement_limits)),
            each.interval,
            [place(other) for other in each.others],
            int(each.paired),
        ]
        for each in found
    ]
    return {
        "title": study.settings.title,
        "workload": study.spec.workload,
        "parameters": [
            {
                "name": name,
                "unit": study.spec.problem[name].unit,
                "free": study.spec.problem[name].values is None,
                "values": sorted({each.problem[place_] for each in found}),
            }
            for place_, name in enumerate(study.problem_columns)
        ],
        "gpus": list(gpus),
        "first": list(found[0].problem) if found else [],
        "bases": [WORDS[name] for name in bases],
        "configurations": [
            {
                "words": wording.configuration(neutral(dict(items), study), study.spec),
                "values": [list(item) for item in items],
            }
            for items in configurations
        ],
        "usual": usual_reasons(study),
        "limits": limits(study),
        "entries": entries,
    }


def limits(study: StudyData) -> list[tuple[str, Any]]:
    """Limits of the problems that a configuration may run: as text, and as nested lists."""
    every = problem_limits.Limits.of(study.spec)
    numbers = replace(every, ranges=tuple(replace(one, values=None) for one in every.ranges))
    return [(text, problem_limits.nested(text)) for text in numbers.texts]


def neutral(configuration: Mapping[str, Value], study: StudyData) -> dict[str, Value]:
    """A configuration with every tunable: those that its variant lacks at their neutral value."""
    return study.spec.neutral | dict(configuration)


def usual_reasons(study: StudyData) -> str:
    """Why the usual choice is usual; empty where the study has none but the baseline."""
    rules = study.settings.usual or study.spec.usual
    return "; ".join(dict.fromkeys(rule.reason for rule in rules))


def _rounded(value: float | None) -> float | None:
    return None if not _known(value) else float(f"{value:.5g}")
