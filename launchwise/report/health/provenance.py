"""Origin of a report: commit, settings, sweeps and packages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from launchwise.report import wording
from launchwise.report.blocks import Block, Fold, Section
from launchwise.report.fields import Field, field, of_texts, table_of
from launchwise.report.study import Run, StudyData

MODELS = "data/{study}.models.json"
"""Path of the training records of a study's models, below the report's folder."""


def provenance(run: Run, studies: Sequence[StudyData]) -> Section:
    """Provenance of every number."""
    facts = [
        ("report written", wording.moment(run.written_at)),
        ("report's code, commit", wording.short(run.commit)),
        ("settings hash", run.settings_hash),
        ("seed of the settings", str(run.seed)),
    ]
    sweeps = {
        (study.spec.workload, gpu): {
            "workload": study.spec.workload,
            "gpu": gpu,
            "rows": sweep,
            "joined": study.sweep_facts.get(gpu, {}).get("joined", []),
        }
        for study in sorted(studies, key=lambda one: one.spec.workload)
        for gpu, sweep in study.sweeps.items()
    }
    found: list[Block] = [
        of_texts("This run", ("what", "value"), facts, role=""),
        table_of("Origin of the sweeps", SWEEPS, sweeps.values()),
    ]
    if joined := [row for sweep in sweeps.values() for row in _joined(sweep)]:
        found.append(table_of("Extensions of the sweeps", JOINED, joined))
    packages = of_texts("Packages", ("package", "version"), sorted(run.packages.items()), role="")
    found.append(Fold("Packages of the report's environment", [packages]))
    found.append(table_of("Hyper-parameters, searches and fits of the models", RECORDS, studies))
    return Section("provenance", "Provenance", found)


def _listed(values: Iterable[str]) -> str:
    return ", ".join(sorted(set(values)))


def _distinct(title: str, column: str, digits: int = 40) -> Field:
    def value(sweep: Mapping[str, Any]) -> str:
        return _listed(str(each)[:digits] for each in sweep["rows"][column].unique())

    return field(title, value, role="wrap")


def _days(sweep: Mapping[str, Any]) -> str:
    rows: pd.DataFrame = sweep["rows"]
    return wording.days(rows["measured_at"].str[:10].unique())


SWEEPS = [
    field("sweep", "workload"),
    field("GPU", "gpu"),
    field("rows", lambda sweep: len(sweep["rows"]), wording.count),
    field("measured on", _days, unit="UTC"),
    _distinct("commit", "commit", 12),
    _distinct("driver", "driver"),
    _distinct("CUDA toolkit", "toolkit"),
    _distinct("back-end", "backend"),
    _distinct("card, hash of its UUID", "card", 8),
]

RECORDS = [
    field("study", "name"),
    field(
        "file",
        lambda study: MODELS.format(study=study.name),
        link=lambda study: MODELS.format(study=study.name),
    ),
]

JOINED = [
    field("sweep", "workload"),
    field("GPU", "gpu"),
    field("card", "card"),
    field("measured", "measured"),
    field("rows", "rows", wording.count),
    field("measured again", "anchors", wording.count),
    field("repeated time / original time", "median_ratio", wording.fixed),
    field("lowest", "lowest_ratio", wording.fixed),
    field("highest", "highest_ratio", wording.fixed),
]


def _joined(sweep: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A row per card that measured an extension of a sweep."""
    for entry in sweep["joined"]:
        for card, found in entry["cards"].items():
            measured = {"measured": entry["first_measured_at"][:10], "rows": entry["rows"]}
            yield {**sweep, **found, **measured, "card": card[:8]}
