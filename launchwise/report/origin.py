"""Origin of a report: commit, settings, sweeps, models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd

from launchwise.report import models, trust, wording
from launchwise.report.blocks import Block, Fold, Section
from launchwise.report.fields import Field, by_gpu, field, of_texts, table_of
from launchwise.report.overview import Run
from launchwise.report.study import StudyData
from launchwise.workloads.statuses import STATUSES


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
        found += trust.blocks(workload, own, said[workload])
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
    split = models.first_split(study)

    def of(model: str, name: str) -> Any:
        folds = models.folds_of(study, model, split)
        return folds[0].get(name) if folds and "members" not in study.models[model] else None

    def made_with(model: str) -> str:
        known = study.models.get(model, {})
        if "members" in known:
            members = ", ".join(study.title(each) for each in known["members"])
            return f"members={members}; caution={known['caution']:g}"
        return wording.pairs(of(model, "parameters") or {})

    def seconds(model: str) -> float:
        return models.seconds_to_train(study, model, split)

    fields = [
        field("model", study.title),
        field("hyper-parameters", made_with),
        field("search", lambda model: of(model, "trials"), wording.count, "trials"),
        field("learnt from", lambda model: of(model, "rows"), wording.count, "rows"),
        field("training", seconds, wording.seconds, "s"),
    ]
    title = f"Models of {study.name}, split “{split}”"
    return Fold(title, [table_of(title, fields, study.settings.models)])
