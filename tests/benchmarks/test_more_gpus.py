"""Copies of GPUs for the benchmark of the main job are cards of their own with valid sweeps."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml
from harness.more_gpus import LARGEST_CHANGE, LEAST_CHANGE, multiply_gpus
from harness.projects import find_studies, read_settings
from samples import measurements, profile

from launchwise.gpus.profile import read_profile, write_profile
from launchwise.tables.files import read_facts, read_table, write_table
from launchwise.tables.measurements import measurement_schema
from launchwise.workloads.spec import Spec

STUDY = "stencil_block"
SLICES = ("big", "big.sm16")


@pytest.fixture
def project(tmp_path: Path, stencil_spec: Spec) -> Path:
    """A study of a card and its slice, with problems that are left out on one of them."""
    rows = measurements(stencil_spec, [{"n": [64], "dtype": ["float32"], "order": [2]}])
    for gpu in SLICES:
        folder = tmp_path / "data" / "recorded" / gpu
        described = profile(gpu, device_name="Big", card="0123456789abcdef")
        write_profile(folder / "profile.json", described)
        schema = measurement_schema(stencil_spec)
        write_table(folder / "stencil.parquet", rows.assign(gpu=gpu), schema, {"made": "up"})
    folder = tmp_path / "kernels" / "stencil" / "studies" / STUDY
    folder.mkdir(parents=True)
    study = {"splits": {"it": {}}, "leave_out": {"big": {"n": [7]}}}
    (folder / "study.yaml").write_text(yaml.safe_dump(study))
    recorded = {gpu: {"source": "recorded"} for gpu in SLICES}
    gpus = {**recorded, "other": {"source": "recorded", "studies": ["another"]}}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump({"gpus": gpus}))
    return tmp_path


def test_a_copy_is_a_card_of_its_own_with_other_times(project: Path, stencil_spec: Spec) -> None:
    assert multiply_gpus(project, 3, [STUDY]) == 6
    gpus = read_settings(project)["gpus"]
    assert len(gpus) == 7
    schema = measurement_schema(stencil_spec)
    recorded = read_table(project / "data/recorded/big/stencil.parquet", schema)
    seen = [recorded["time_ms"].to_numpy()]
    for number in (1, 2):
        copies = [f"{gpu}.copy{number}" for gpu in SLICES]
        profiles = [read_profile(project / gpus[c]["path"] / "profile.json", c) for c in copies]
        # A slice is one of the copied card.
        assert {(one.card_model, one.card) for one in profiles} == {
            (f"Big {number}", profiles[0].card)
        }
        assert profiles[0].card != "0123456789abcdef"
        path = project / gpus[copies[0]]["path"] / "stencil.parquet"
        rows = read_table(path, schema)
        assert read_facts(path) == {"made": "up"}
        assert set(rows["gpu"]) == {copies[0]}
        timed = recorded["time_ms"].notna()
        assert (rows["time_ms"].notna() == timed).all()
        changes = np.abs(np.log(rows["time_ms"] / recorded["time_ms"])[timed])
        assert changes.between(LEAST_CHANGE, LARGEST_CHANGE).all()
        assert all((rows["time_ms"] != each)[timed].all() for each in seen)
        seen.append(rows["time_ms"].to_numpy())
    left_out = find_studies(project)[STUDY]["leave_out"]
    assert left_out == {name: {"n": [7]} for name in ("big", "big.copy1", "big.copy2")}


def test_copies_are_the_same_again(project: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    again = tmp_path_factory.mktemp("again") / "project"
    shutil.copytree(project, again)
    for folder in (project, again):
        multiply_gpus(folder, 2, [STUDY])
    name = "data/recorded/big.copy1/stencil.parquet"
    assert (project / name).read_bytes() == (again / name).read_bytes()
