"""Origin of a report (commit, settings, sweeps, models), and quality of a sweep's times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import methodcaller
from typing import Any

import pandas as pd

from launchwise.report import scores, wording
from launchwise.report.blocks import MISSING, Block, Fold, Section
from launchwise.report.fields import (
    Field,
    Value,
    by_gpu,
    decimals,
    field,
    of_texts,
    percents,
    table_of,
)
from launchwise.report.health.sweep_health import held_back
from launchwise.report.study import Run, StudyData
from launchwise.workloads.metrics import STATUSES, UNKNOWN


def provenance(run: Run, studies: Sequence[StudyData]) -> Section:
    """Provenance of every number."""
    facts = [
        ("report written", wording.moment(run.written_at)),
        ("report's code, commit", wording.short(run.commit)),
        ("settings hash", run.settings_hash),
        ("seed of the settings", str(run.seed)),
    ]
    found: list[Block] = [of_texts("This run", ("what", "value"), facts, role="")]
    sweeps: dict[str, dict[str, pd.DataFrame]] = {}
    said: dict[str, dict[str, Mapping[str, Any]]] = {}
    for study in studies:
        sweeps.setdefault(study.spec.workload, {}).update(study.sweeps)
        said.setdefault(study.spec.workload, {}).update(study.sweep_facts)
    for workload, own in sorted(sweeps.items()):
        found.append(by_gpu(f"Measurements of {workload}", "what", SWEEP, own))
        found += quality(workload, own, said[workload])
    packages = of_texts("Packages", ("package", "version"), sorted(run.packages.items()), role="")
    found.append(Fold("Packages of the report's environment", [packages]))
    found += map(_models, studies)
    return Section("provenance", "Provenance", found)


def _listed(values: Iterable[str]) -> str:
    return ", ".join(sorted(set(values)))


def _distinct(title: str, column: str, digits: int = 40) -> Field:
    return field(
        title,
        lambda sweep: _listed(str(value)[:digits] for value in sweep[column].unique()),
        role="wrap",
    )


def _ended(sweep: pd.DataFrame, status: str) -> int:
    return int((sweep["status"] == status).sum())


SWEEP = [
    field("rows", len, wording.count),
    *(
        field(
            f"rows {status.replace('_', ' ')}",
            partial(_ended, status=status),
            wording.count,
        )
        for status in STATUSES
    ),
    field(
        "measured on",
        lambda sweep: wording.days(sweep["measured_at"].str[:10].unique()),
        unit="UTC",
    ),
    field(
        "commit",
        lambda sweep: _listed(wording.short(str(value)) for value in sweep["commit"].unique()),
        role="wrap",
    ),
    _distinct("driver", "driver"),
    _distinct("CUDA toolkit", "toolkit"),
    _distinct("back-end", "backend"),
    _distinct("card, hash of its UUID", "card", 8),
]
"""What is told of a sweep."""


def _models(study: StudyData) -> Fold:
    split = scores.first_split(study)

    def of(model: str, name: str) -> Any:
        folds = scores.folds_of(study, model, split)
        return folds[0].get(name) if folds and "members" not in study.models[model] else None

    def made_with(model: str) -> str:
        known = study.models.get(model, {})
        if "members" in known:
            members = ", ".join(study.title(each) for each in known["members"])
            return f"members={members}; caution={known['caution']:g}"
        return wording.pairs(of(model, "parameters") or {})

    def seconds(model: str) -> float:
        return scores.seconds_to_train(study, model, split)

    fields = [
        field("model", study.title),
        field("hyper-parameters", made_with),
        field("search", lambda model: of(model, "trials"), wording.count, "trials"),
        field("learnt from", lambda model: of(model, "rows"), wording.count, "rows"),
        field("training", seconds, wording.seconds, "s"),
    ]
    title = f"Models of {study.name}, split “{split}”"
    return Fold(title, [table_of(title, fields, study.settings.models)])


TASKS = [
    field(title, methodcaller("get", task), decimals(1))
    for task, title in {
        "total": "in all",
        "start": "opening the device",
        "inputs": "inputs and references",
        "verify": "verifying",
        "warm_up": "warming up",
        "time": "timing",
        "control": "reference kernel",
        "rest": "pauses for a throttled card",
        "energy": "energy loops",
        "write": "writing the journal",
    }.items()
]
"""Seconds of a sweep by task."""


def quality(
    workload: str, sweeps: Mapping[str, pd.DataFrame], facts: Mapping[str, Any]
) -> list[Block]:
    """A fold for the sweeps of one workload: GPU to measurements, and to the table's metadata."""
    timed = {gpu: sweep[sweep["status"] == "ok"] for gpu, sweep in sweeps.items()}
    found: list[Block] = [by_gpu(f"Timed rows of {workload}", "", FIGURES, timed)]
    seconds = {gpu: spent_s(facts.get(gpu, {})) for gpu in sweeps}
    if any(seconds.values()):
        caption = f"Measuring time of {workload} by task, in seconds"
        found.append(by_gpu(caption, "task", TASKS, seconds))
    if rows := [row for gpu in sweeps for row in _joined(gpu, facts.get(gpu, {}))]:
        found.append(table_of(f"Extensions of the sweep of {workload}", JOINED, rows))
    return [Fold(f"Quality of the times of {workload}", found)]


JOINED = [
    field("GPU", "gpu"),
    field("card", "card"),
    field("measured", "measured"),
    field("rows", "rows", wording.count),
    field("measured again", "anchors", wording.count),
    field("repeated time / original time", "median_ratio", wording.fixed),
    field("lowest", "lowest_ratio", wording.fixed),
    field("highest", "highest_ratio", wording.fixed),
]


def _joined(gpu: str, facts: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A row per card that measured an extension of a sweep."""
    for entry in facts.get("joined", []):
        for card, found in entry["cards"].items():
            measured = entry["first_measured_at"][:10]
            own = {"gpu": gpu, "card": card[:8], "measured": measured, "rows": entry["rows"]}
            yield {**found, **own}


def spent_s(facts: Mapping[str, Any]) -> dict[str, float]:
    """Seconds per task, summed over the shards of a sweep; empty if not recorded."""
    found: dict[str, float] = {}
    for shard in facts.get("shards", [facts]):
        for task, seconds in shard.get("seconds", {}).items():
            found[task] = found.get(task, 0.0) + float(seconds)
    return found


def _counted(chosen: Callable[[pd.DataFrame], pd.Series], known: str) -> Value:
    """Number of ``chosen`` rows; None if the sweep lacks the column ``known``."""

    def counted(rows: pd.DataFrame) -> int | None:
        unknown = rows[known].isna() | (rows[known] == UNKNOWN)
        return None if unknown.all() else int(chosen(rows).sum())

    return counted


def _relative_error(rows: pd.DataFrame, share: float) -> float:
    return float(rows["relative_error"].quantile(share))


def _clocks(rows: pd.DataFrame) -> str:
    clocks = rows["sm_clock_mhz"].dropna()
    return f"{clocks.min():.0f} to {clocks.max():.0f}" if len(clocks) else MISSING


FIGURES = [
    *(
        field(
            f"relative error of the median, {name}",
            partial(_relative_error, share=share),
            percents(2),
            "%",
        )
        for name, share in (("median", 0.5), ("95th percentile", 0.95))
    ),
    field(
        "rows with a repeat outside the Tukey limits",
        _counted(lambda rows: rows["outlier_repeats"] > 0, "spread_ms"),
        wording.count,
    ),
    field(
        "rows timed as replayed graphs",
        _counted(lambda rows: rows["timer"] == "graph", "spread_ms"),
        wording.count,
    ),
    field(
        "rows measured twice",
        _counted(lambda rows: rows["attempt"] > 1, "control_ratio"),
        wording.count,
    ),
    field("rows on a throttled card", _counted(held_back, "throttle"), wording.count),
    field(
        "largest drift of the reference kernel",
        lambda rows: (rows["control_ratio"] - 1).abs().max(),
        percents(2),
        "%",
    ),
    field("SM clock", _clocks, unit="MHz"),
]
"""Quality figures of the timed rows of a sweep."""
