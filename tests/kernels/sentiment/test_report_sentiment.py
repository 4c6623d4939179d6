"""The page of the sentiment study, on times that are known."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from kernels.sentiment.host.launches import Choice, intermediate_bytes
from kernels.sentiment.studies.sentiment_inference.section import WORDS
from kernels.sentiment.studies.sentiment_inference.section import sections as own
from launchwise.report.blocks import Block, Bullets, Table
from launchwise.report.page import render
from launchwise.report.published import read_published
from launchwise.report.study import StudyData
from launchwise.workloads.space import baseline
from launchwise.workloads.spec import load_spec
from tests.support.report_study import profile, settings, study

ROOT = Path(__file__).resolve().parents[3]
SPEC = load_spec(ROOT / "kernels" / "sentiment")
TIMES_MS = {name: 80.0 / 2**place for place, name in enumerate(WORDS)}
"""Each step of the ladder halves the time."""
EXACT = [name for name in WORDS if name not in ("tensor_tf32", "tensor_bf16")]


def row(variant: str, time_ms: float, **values: Any) -> dict[str, Any]:
    """A measurement on the device, all cases at once but for ``values``."""
    known = {"batch": 20000, "tokens": 256, "given": "tokens", "memory": "device"}
    known |= {**baseline(SPEC), "variant": variant}
    measured = {"time_ms": time_ms, "status": "ok", "max_error": 1e-7, "tolerance": 1e-5}
    stages = {"setup_ms": 3.0, "h2d_ms": 1.0, "kernels_ms": time_ms, "d2h_ms": 0.5}
    shape = {"registers": 64, "occupancy": 0.5, "class_flips": 0.0}
    return {**known, **measured, **stages, **shape, **values}


def sweep() -> pd.DataFrame:
    """Every variant twice on the device; two of them from host memory, for two batches."""
    rows = [row(name, time) for name, time in TIMES_MS.items()]
    rows += [row(name, 2 * time, warps=4) for name, time in TIMES_MS.items()]
    for batch in (1, 20000):
        rows += [row(name, TIMES_MS[name] + 1, batch=batch, memory="pinned") for name in EXACT[:2]]
    rows += [row(name, 1e-3 * time, batch=1) for name, time in TIMES_MS.items()]
    rows.append(row("naive", 900.0, memory="pinned", chunk=1, streams=4))
    table = pd.DataFrame(rows)
    # One variant rounds: its answers are further off, and two cases change sides.
    rounds = table["variant"] == "tensor_bf16"
    table.loc[rounds, "max_error"] = 1e-3
    table.loc[rounds & (table["batch"] > 1), "class_flips"] = 2.0
    return table.assign(graph=0, gpu="one", workload="sentiment", reason="")


@pytest.fixture(scope="module")
def made() -> StudyData:
    """The study of one GPU."""
    parts = {"train": {"batch": [1]}, "test": {"batch": [20000]}}
    split = {"kind": "problems", "title": "x", **parts}
    return dataclasses.replace(
        study(),
        name="sentiment_inference",
        settings=settings(
            workload="sentiment",
            title="Reviews",
            splits={"batches": split},
            candidates={"variant": EXACT},
        ),
        spec=SPEC,
        profiles={"one": profile("one")},
        sweeps={"one": sweep()},
    )


@pytest.fixture(scope="module")
def published() -> dict[str, list[dict[str, str]]]:
    """The paper's figures."""
    return read_published(ROOT / "kernels" / "sentiment" / "studies" / "sentiment_inference")


def tables(blocks: list[Block]) -> list[Table]:
    """Tables among blocks."""
    return [block for block in blocks if isinstance(block, Table)]


def cells(table: Table, variant: str) -> list[str]:
    """A variant's row of a table, as text."""
    rows = [[cell.text for cell in each.cells] for each in table.rows]
    return next(each for each in rows if variant in each)


def test_the_ladder_says_what_each_step_gained(
    made: StudyData, published: dict[str, list[dict[str, str]]]
) -> None:
    ladder = own(made, published)[0]
    steps = next(block for block in ladder.blocks if isinstance(block, Bullets))
    said = {str(name): str(text) for name, text in steps.items}
    assert "2.00 times as fast as naive" in said["tiled:"]
    # By tensor cores: against the last one without, not against each other.
    assert "16.00 times as fast as fused_case" in said["tensor_bf16:"]
    (table,) = tables(ladder.blocks)
    assert [each.cells[0].text for each in table.rows] == list(WORDS)
    assert "512.0" in cells(table, "tensor_bf16")
    assert "80.00" in cells(table, "naive")


def test_times_are_held_apart(made: StudyData, published: dict[str, list[dict[str, str]]]) -> None:
    times = own(made, published)[1]
    paper, ours, single = tables(times.blocks)
    assert "246.890" in cells(paper, "CPU (C++ with Eigen)")
    # Set-up 3 ms, host to host 81 ms, kernels alone 81 ms as the row's stage says.
    assert {"81.00", "84.00"} <= set(cells(ours, "naive"))
    assert "900.0" in cells(single, "naive")
    assert "0.0450" in cells(single, "naive")


def test_contradictions_of_the_paper_are_computed(
    made: StudyData, published: dict[str, list[dict[str, str]]]
) -> None:
    times = own(made, published)[1]
    doubts = next(block for block in times.blocks if isinstance(block, Bullets))
    said = {str(name): str(text) for name, text in doubts.items}
    assert "12.3 ms per case" in said["CPU (C++ with Eigen):"]
    assert "10.4 TFLOP/s" in said["PyTorch on a CPU:"]
    assert "500 to 682" in said["Speed-up for one case:"]


def test_what_rounds_is_marked(made: StudyData, published: dict[str, list[dict[str, str]]]) -> None:
    (table,) = tables(own(made, published)[-1].blocks)
    assert cells(table, "naive")[-1] == "yes"
    found = cells(table, "tensor_bf16")
    assert found[-1].startswith("no")
    assert found[5:7] == ["2", "20\u202f001"]


def test_the_page_shows_all_of_it(
    made: StudyData, published: dict[str, list[dict[str, str]]]
) -> None:
    page = render("Reviews", "", own(made, published))
    for words in ("From naive to best", "one by one, as published", "Against float64"):
        assert words in page


def test_without_host_rows_there_is_no_table_of_times(made: StudyData) -> None:
    only = sweep()
    less = dataclasses.replace(made, sweeps={"one": only[only["memory"] == "device"]})
    assert [section.title for section in own(less, {})] == [
        "From naive to best",
        "What rounding does to answers",
    ]


def test_bytes_between_kernels() -> None:
    rows = 256 * 100
    moved = {name: intermediate_bytes(Choice(name), rows, 256) for name in WORDS}
    assert moved["naive"] == moved["register_blocked"] == 16 * rows * (150 + 64)
    assert moved["fused_bias_relu"] == moved["naive"] // 2
    assert moved["fused_bias_relu"] > moved["fused_pool"] > 10 * moved["fused_case"]
    # 800 parts of 32 rows, each of one case only; with 24 tokens a case, two cases in most parts.
    assert moved["tensor_bf16"] == 4 * 2 * 64 * 800
    assert intermediate_bytes(Choice("tensor_bf16"), 96, 24) == 4 * 2 * 64 * (3 + 4 - 1)
