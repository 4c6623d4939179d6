"""Products of real studies, fitted to recorded sweeps as the pipeline fits them."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from harness.ablated import material_of
from named_tables import write_lookup
from samples import STENCIL
from stencil import GPUS, TRAINED, slice_of_card, sweep
from studies import fit_final

from launchwise.experiment.study import ModelEntry, Study
from launchwise.exporting.building import answer_table
from launchwise.exporting.table import AnswerTable
from launchwise.gpus.profile import write_profile
from launchwise.learning.features import Domain
from launchwise.learning.final import Final, read_final
from launchwise.report.study_tables import StudyData
from launchwise.tables.files import write_table
from launchwise.tables.measurements import measurement_schema
from launchwise.tables.rows import selected
from launchwise.tables.times import judged_times, with_judged_times
from launchwise.workloads.spec import load_spec

MEMBERS = "lightgbm, knn, best_on_average, nearest_size"
"""Few, and of each kind: with times and without, of which some know no other size."""


@dataclass(frozen=True)
class Product:
    """A study's product, the same as a table of answers, and what the report's lookup reads."""

    final: Final
    table: AnswerTable
    study: StudyData


def product(name: str, folder: Path, **only: list[Any]) -> Product:
    """Fit the product of a study (see :func:`fitted`), and answer every problem of its rows."""
    final, study = fitted(name, folder, **only)
    table = answer_table(final, name)
    return Product(final, table, replace(study, table=table))


def fitted(name: str, folder: Path, **only: list[Any]) -> tuple[Final, StudyData]:
    """Fit the product of a study that has recorded sweeps, a committee of :data:`MEMBERS`.

    ``only``: problem parameter to values: of the sweeps these rows only.
    Returns the product, and what the report knows of the study but its answers.
    """
    made = material_of(name)
    domain, spec = made.domain(), made.spec
    sweeps = {
        gpu: rows[selected(rows, only)].reset_index(drop=True) for gpu, rows in made.sweeps.items()
    }
    times = {gpu: judged_times(rows, (), spec) for gpu, rows in sweeps.items()}
    model = ModelEntry(kind="committee", title="chosen", parameters={"members": MEMBERS})
    fit_final(made.study, "chosen", model, domain, sweeps, times, [], 1, folder)
    study = StudyData(
        name=name,
        settings=made.study,
        spec=spec,
        entries={"chosen": model},
        profiles=made.profiles,
        sweeps={gpu: with_judged_times(rows, times[gpu], spec) for gpu, rows in sweeps.items()},
        evaluation=pd.DataFrame(),
        pairs={},
    )
    return read_final(folder, domain), study


STUDY = "stencil_block"


def stencil_project(root: Path, members: str, more: str = "") -> Path:
    """A project with the tests' workload alone, and the product of its study; the product's folder.

    ``members``: of the committee that answers; ``more``: lines of ``spec.yaml``.
    """
    shutil.copytree(STENCIL, root / "kernels" / "stencil")
    with (root / "kernels" / "stencil" / "spec.yaml").open("a") as written:
        written.write(more)
    spec = load_spec(root / "kernels" / "stencil")
    sweeps = {gpu: sweep(spec, TRAINED, gpu) for gpu in GPUS}
    for gpu, rows in sweeps.items():
        folder = root / "data" / "recorded" / gpu
        folder.mkdir(parents=True)
        write_profile(folder / "profile.json", slice_of_card(gpu))
        write_table(folder / "stencil.parquet", rows, measurement_schema(spec))
    entry = ModelEntry(kind="committee", title="chosen", parameters={"members": members})
    settings = {"workloads": ["kernels"], "gpus": {gpu: {"source": "recorded"} for gpu in GPUS}}
    models = {"chosen": entry.model_dump(exclude_unset=True)}
    (root / "config.yaml").write_text(yaml.safe_dump({**settings, "models": models}))
    study = root / "kernels" / "stencil" / "studies" / STUDY / "study.yaml"
    asked = {**yaml.safe_load(study.read_text()), "models": ["chosen"]}
    study.write_text(yaml.safe_dump(asked))
    domain = Domain(spec, {gpu: slice_of_card(gpu) for gpu in GPUS})
    times = {gpu: judged_times(rows, (), spec) for gpu, rows in sweeps.items()}
    product = root / "results" / "final" / STUDY
    fit_final(
        Study(workload="stencil", **asked), "chosen", entry, domain, sweeps, times, [], 1, product
    )
    write_lookup(product, domain)
    return product
