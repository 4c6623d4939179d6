"""Origin of a report: commit, settings, sweeps, models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from launchwise.report import models, trust, wording
from launchwise.report.blocks import (
    Block,
    Cell,
    Column,
    Fold,
    Section,
    Table,
    table,
    turned,
)
from launchwise.report.fields import field, table_of
from launchwise.report.overview import Run
from launchwise.report.study import StudyData
from launchwise.workloads.metrics import STATUSES


def provenance(run: Run, studies: Sequence[StudyData]) -> Section:
    """Provenance of every number."""
    facts = [
        ["report written", wording.moment(run.written_at)],
        ["report's code, commit", wording.short(run.commit)],
        ["settings hash", run.settings_hash],
        ["seed of the settings", str(run.seed)],
    ]
    pair = [Column("what", number=False), Column("value", number=False)]
    found: list[Block] = [table("This run", pair, facts)]
    swept = {
        (study.spec.workload, gpu): sweep
        for study in studies
        for gpu, sweep in study.sweeps.items()
    }
    for workload in sorted({name for name, _ in swept}):
        own = {gpu: sweep for (name, gpu), sweep in swept.items() if name == workload}
        found.append(_sweeps_table(workload, own))
        said = {
            gpu: about
            for study in studies
            for gpu, about in study.sweep_facts.items()
            if study.spec.workload == workload
        }
        found += trust.blocks(workload, own, said)
    packages = [[name, version] for name, version in sorted(run.packages.items())]
    found.append(
        Fold(
            "Packages of the report's environment",
            [
                table(
                    "Packages",
                    [Column("package", number=False), Column("version", number=False)],
                    packages,
                )
            ],
        )
    )
    for study in studies:
        found += _model_facts(study)
    return Section("provenance", "Provenance", found)


def _sweeps_table(workload: str, sweeps: Mapping[str, pd.DataFrame]) -> Table:
    def distinct(column: str, digits: int = 40) -> list[Cell]:
        return [
            Cell(
                ", ".join(sorted({str(value)[:digits] for value in sweep[column].unique()})),
                role="wrap",
            )
            for sweep in sweeps.values()
        ]

    rows: list[list[str | Cell]] = [
        ["rows", *(wording.count(len(sweep)) for sweep in sweeps.values())]
    ]
    for status in STATUSES:
        counts = [int((sweep["status"] == status).sum()) for sweep in sweeps.values()]
        rows.append([f"rows {status.replace('_', ' ')}", *map(wording.count, counts)])
    commits = [
        Cell(
            ", ".join(sorted({wording.short(str(value)) for value in sweep["commit"].unique()})),
            role="wrap",
        )
        for sweep in sweeps.values()
    ]
    stamps = [sweep["measured_at"].str[:10].unique() for sweep in sweeps.values()]
    rows += [
        ["measured on (UTC)", *map(wording.days, stamps)],
        ["commit", *commits],
        ["driver", *distinct("driver")],
        ["CUDA toolkit", *distinct("toolkit")],
        ["back-end", *distinct("backend")],
        ["card, hash of its UUID", *distinct("card", 8)],
    ]
    columns = [Column("what", number=False), *(Column(gpu) for gpu in sweeps)]
    return turned(table(f"Measurements of {workload}", columns, rows), "GPU")


def _model_facts(study: StudyData) -> list[Block]:
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
    return [Fold(title, [table_of(title, fields, study.settings.models)])]
