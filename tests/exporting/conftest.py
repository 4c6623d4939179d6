"""A product of the tests' own workload, and the table of its answers."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from exported import GPUS, SIZES, UNKNOWN
from stencil import slice_of_card, sweep

from launchwise.experiment.study import ModelEntry, Study
from launchwise.exporting.table import AnswerTable, answer_table
from launchwise.learning.features import Domain
from launchwise.learning.final import Final, read_final
from launchwise.learning.product import fit_final
from launchwise.tables.times import judged_times
from launchwise.workloads.spec import Spec


@pytest.fixture(scope="module")
def domain(stencil_spec: Spec) -> Domain:
    return Domain(stencil_spec, {gpu: slice_of_card(gpu) for gpu in (*GPUS, UNKNOWN)})


@pytest.fixture(scope="module")
def sweeps(stencil_spec: Spec) -> dict[str, pd.DataFrame]:
    """What the product learns from."""
    types = ("float32", "float64")
    return {
        gpu: pd.concat(
            [sweep(stencil_spec, SIZES, gpu, dtype, order=2) for dtype in types],
            ignore_index=True,
        )
        for gpu in GPUS
    }


@pytest.fixture(scope="module")
def folder(
    tmp_path_factory: pytest.TempPathFactory, domain: Domain, sweeps: dict[str, pd.DataFrame]
) -> Path:
    """The product of a study of a few sizes."""
    study = Study(
        title="t",
        question="q",
        workload="stencil",
        models=["chosen"],
        splits={"s": {"kind": "leave_one_gpu_out", "title": "t"}},
    )
    parameters = {"members": "knn, lightgbm, nearest_size"}
    entry = ModelEntry(kind="committee", title="chosen", parameters=parameters)
    found = tmp_path_factory.mktemp("final") / "tiles"
    times = {gpu: judged_times(rows, None, domain.spec) for gpu, rows in sweeps.items()}
    fit_final(study, "chosen", entry, domain, sweeps, times, [], 1, found)
    return found


@pytest.fixture(scope="module")
def final(folder: Path, domain: Domain) -> Final:
    return read_final(folder, domain)


@pytest.fixture(scope="module")
def table(final: Final) -> AnswerTable:
    return answer_table(final, "tiles", [UNKNOWN])
