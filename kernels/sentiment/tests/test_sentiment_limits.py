"""Recorded runs of the sentiment kernels beside limits that count no tensor core and no cache."""

from __future__ import annotations

from launchwise.gpus.profile import read_profile
from launchwise.learning.rooflines import limits_ms
from launchwise.tables.files import read_table
from launchwise.tables.measurements import measurement_schema
from launchwise.workloads.spec import load_spec
from tests.support.samples import ROOT


def test_some_run_beats_the_roofline_without_tensor_cores_and_cache() -> None:
    spec = load_spec(ROOT / "kernels/sentiment")
    folder = ROOT / "data/recorded/h200"
    rows = read_table(folder / "sentiment.parquet", measurement_schema(spec))
    rows = rows[rows["time_ms"].notna()]
    known = {"h200": read_profile(folder / "profile.json", "h200")}
    beaten = rows["time_ms"].to_numpy() < limits_ms(rows, spec, known)["roofline"]
    assert beaten.mean() > 0.05
