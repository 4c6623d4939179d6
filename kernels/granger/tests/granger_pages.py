"""Sweeps of Granger's study with known times, and what its page says of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from samples import ROOT

from launchwise.experiment.published import Records
from launchwise.gpus.datasheets import described_profile, read_cards, reference_efficiency
from launchwise.learning.analytical import CostModel
from launchwise.report.blocks import Section
from launchwise.report.study_tables import StudyData
from launchwise.workloads.space import baseline
from tests.support.report_study import known_spec, swept_study
from tests.support.shown import notes

Published = dict[str, Records]

FOLDER = ROOT / "kernels" / "granger"
SPEC = known_spec(FOLDER)
PROBLEM = {"county": 5, "countx": 5, "rows": 100, "cols": 10, "dtype": "float32"}
CARDS = ["titan_black", "titan_x", "titan_v", "rtx2080ti", "rtx4070"]

TITLES = ["The published prediction, and the time", "What it got wrong", "Which claims hold"]


def change(published: Published, fact: str, value: str) -> None:
    (row,) = [row for row in published["facts"] if row["fact"] == fact]
    row["value"] = value


def row(variant: str, time_ms: float, **values: Any) -> dict[str, Any]:
    """A measurement of the published size, but for ``values``."""
    known = {**PROBLEM, **baseline(SPEC), "variant": variant, "time_ms": time_ms, "status": "ok"}
    build = {"registers": 56, "spill_bytes": 0, "occupancy": 0.5}
    known |= {"repeats": 5, "relative_error": 0.002, **build}
    return {**known, "max_error": 1e-6, "tolerance": 3e-5, "gpu": "one", "reason": "", **values}


SWEEP = (
    row("published", 0.9, status="unverified", max_error=0.25),
    row("published", 7.0, status="unverified", county=50),
    row("no_duplicates", 0.3),
    row("no_duplicates", 0.28, threads=32),
    row("no_duplicates", 0.1, county=50),
    row("smem", 0.03, threads=64),
    row("smem", 0.02, dtype="float64"),
    row("warp_per_fit", 0.01, status="wrong"),
    row("warp_per_fit", np.nan, status="failed", threads=32),
)


def made(*rows: dict[str, Any], gpus: tuple[str, ...] = ("one",)) -> StudyData:
    """The study of these sweeps; GPUs with a dot are slices."""
    table = pd.DataFrame(list(rows or SWEEP))
    sweeps = {gpu: table.assign(gpu=gpu) for gpu in gpus}
    sizes = {"county": [50]}, {"county": [500]}
    return swept_study(FOLDER, "granger_time", *sizes, sweeps, title="Times")


def words(section: Section) -> str:
    return " ".join(notes(section))


def estimated(variant: str, **tunables: Any) -> dict[str, list[float]]:
    """The cost model's times (µs), and parts, of a configuration on the cards of the source."""
    cards = read_cards()
    efficiency = reference_efficiency(cards)
    profiles = {gpu: described_profile(gpu, cards, efficiency) for gpu in CARDS}
    fixed = {**PROBLEM, **baseline(SPEC), "variant": variant, **tunables}
    rows = pd.DataFrame([{"gpu": gpu, **fixed} for gpu in CARDS])
    estimate = CostModel(SPEC, profiles).estimate(rows)
    times = {"time": estimate.time_ms, **estimate.parts}
    return {name: list(1e3 * values) for name, values in times.items()}
