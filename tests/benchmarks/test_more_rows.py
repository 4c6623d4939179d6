"""More rows for the benchmark of the main job are a valid sweep."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from harness.more_rows import STUDY, SWEEPS, multiply_rows, new_sizes
from harness.projects import find_studies
from samples import measurements

from launchwise.tables.files import read_facts, read_table, write_table
from launchwise.tables.measurements import measurement_schema
from launchwise.workloads import space
from launchwise.workloads.spec import Spec


def test_new_sizes_are_free_and_unaligned() -> None:
    added = new_sizes([64, 66, 100], 4)
    assert added == {64: [65, 67, 68], 66: [69, 70, 71], 100: [101, 102, 103]}


def test_multiplied_rows_are_a_valid_sweep_of_larger_splits(
    tmp_path: Path, stencil_spec: Spec
) -> None:
    path = tmp_path / SWEEPS.replace("*", "test")
    schema = measurement_schema(stencil_spec)
    # Rows of 64 points are aligned: they have no padded configurations.
    blocks = [{"n": [64, 100], "dtype": ["float32", "float64"], "order": [8]}]
    recorded = measurements(stencil_spec, blocks)
    write_table(path, recorded, schema, {"made": "up"})
    splits = {"paper": {"kind": "problems", "train": {"n": [64]}, "test": {"n": [100]}}}
    settings = {"studies": {STUDY: {"splits": splits}}}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(settings))

    rows = multiply_rows(tmp_path, 3)

    larger = read_table(path, schema)
    assert read_facts(path) == {"made": "up"}
    assert len(larger) == rows
    for problem in space.problems(stencil_spec, [{**blocks[0], "n": [65, 66, 101, 102]}]):
        listed = space.configurations(stencil_spec, problem)
        mine = larger.loc[(larger[list(problem)] == list(problem.values())).all(axis=1)]
        assert len(mine) == len(listed)
        assert (mine["times_ms"].str[0] == mine["time_ms"]).all()
    ratio = larger.loc[larger["n"] == 102, "time_ms"].mean()
    ratio /= larger.loc[larger["n"] == 100, "time_ms"].mean()
    assert ratio == pytest.approx((102 / 100) ** 3, rel=0.02)
    paper = find_studies(tmp_path)[STUDY]["splits"]["paper"]
    assert paper["train"] == {"n": [64, 65, 66]}
    assert paper["test"] == {"n": [100, 101, 102]}
    assert paper["kind"] == "problems"
