"""A product of the acoustic workload, and the table of its answers."""

from __future__ import annotations

from pathlib import Path

import pytest
from exported import GPUS, SIZES, UNKNOWN
from samples import ROOT

from launchwise.experiment.study import ModelEntry, Study
from launchwise.exporting.table import AnswerTable, answer_table
from launchwise.gpus.profile import read_profile
from launchwise.learning.features import Domain
from launchwise.learning.final import Final, fit_final, read_final
from launchwise.tables.files import read_table
from launchwise.tables.measurements import measurement_schema
from launchwise.tables.times import judged_times
from launchwise.workloads.spec import Spec


@pytest.fixture(scope="module")
def domain(acoustic_spec: Spec) -> Domain:
    folders = {gpu: ROOT / "data" / "recorded" / gpu for gpu in (*GPUS, UNKNOWN)}
    profiles = {gpu: read_profile(path / "profile.json", gpu) for gpu, path in folders.items()}
    return Domain(acoustic_spec, profiles)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, domain: Domain) -> Path:
    """The product of a study of a few sizes."""
    schema = measurement_schema(domain.spec)
    paths = {gpu: ROOT / "data" / "recorded" / gpu / "acoustic.parquet" for gpu in GPUS}
    sweeps = {gpu: read_table(path, schema) for gpu, path in paths.items()}
    sweeps = {
        gpu: rows[rows["n"].isin(SIZES) & (rows["order"] == 2)] for gpu, rows in sweeps.items()
    }
    study = Study(
        title="t",
        question="q",
        workload="acoustic",
        models=["chosen"],
        splits={"s": {"kind": "leave_one_gpu_out", "title": "t"}},
    )
    parameters = {"members": "knn, lightgbm, nearest_size"}
    entry = ModelEntry(kind="committee", title="chosen", parameters=parameters)
    found = tmp_path_factory.mktemp("final") / "tiles"
    times = {gpu: judged_times(rows, None, domain.spec) for gpu, rows in sweeps.items()}
    fit_final(study, "chosen", entry, domain, sweeps, times, list(paths.values()), 1, found)
    return found


@pytest.fixture(scope="module")
def final(folder: Path, domain: Domain) -> Final:
    return read_final(folder, domain)


@pytest.fixture(scope="module")
def table(final: Final) -> AnswerTable:
    return answer_table(final, "tiles", [UNKNOWN])
