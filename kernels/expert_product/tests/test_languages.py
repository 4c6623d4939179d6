"""The section on languages says what sweeps with known times hold."""

from __future__ import annotations

import dataclasses
from typing import Any

import pandas as pd
import pytest
from samples import ROOT

from kernels.expert_product.studies.expert_product_tile.section import languages, sections
from launchwise.report.blocks import Bullets, Fold, Table
from launchwise.report.study import StudyData
from launchwise.workloads.space import baseline
from launchwise.workloads.spec import load_spec
from tests.support.report_study import profile, settings, study

SPEC = load_spec(ROOT / "kernels" / "expert_product")
LAYER = {"experts": 8, "n": 512, "k": 1024, "dtype": "float16"}
USUAL = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32, "GROUP_M": 8}


def row(rows: int, variant: str, time_ms: float, **values: Any) -> dict[str, Any]:
    known = {"rows": rows, **LAYER, **baseline(SPEC), "variant": variant, "time_ms": time_ms}
    known |= {"status": "ok", "reason": "", "repeats": 5, "relative_error": 0.002}
    build = {"registers": 56, "spill_bytes": 0, "occupancy": 0.5}
    return {**known, **build, "max_error": 1e-6, "tolerance": 3e-5, "gpu": "one", **values}


SWEEP = (
    row(16, "few_rows", 0.010, BLOCK_M=1, BLOCK_N=4),
    row(16, "tensor_tiles", 0.040),
    row(16, "triton", 0.020, BLOCK_M=16),
    row(4096, "tensor_tiles", 0.600),
    row(4096, "triton", 0.200, BLOCK_M=128),
    row(4096, "triton", 0.500, **USUAL),
    row(4096, "triton", 0.100, status="wrong", BLOCK_M=32),
)


def made(*rows: dict[str, Any]) -> StudyData:
    parts = {"train": {"rows": [16]}, "test": {"rows": [4096]}}
    split = {"kind": "problems", "title": "x", **parts}
    return dataclasses.replace(
        study(),
        name="expert_product_tile",
        settings=settings(workload="expert_product", title="Tiles", splits={"rows": split}),
        spec=SPEC,
        profiles={"one": profile("one", 8)},
        sweeps={"one": pd.DataFrame(list(rows))},
    )


def test_languages_are_compared_by_their_fastest_right_configurations() -> None:
    found = languages(made(*SWEEP), "one").set_index("rows")
    assert found["first"].to_dict() == {16: "CUDA", 4096: "Triton"}
    assert found["ratio"].to_dict() == pytest.approx({16: 2.0, 4096: 3.0})
    assert found["rows_an_expert"].to_dict() == {16: 2.0, 4096: 512.0}
    assert found.loc[4096, "usual_ratio"] == pytest.approx(2.5)
    assert pd.isna(found.loc[16, "usual_ratio"])


def test_the_section_says_where_which_language_is_fastest() -> None:
    (section,) = sections(made(*SWEEP), {})
    (said,) = [block for block in section.blocks if isinstance(block, Bullets)]
    text = " ".join(rest for _, rest in said.items)
    assert "CUDA is the fastest language on 1 of 2 problems, none with more than 2.00" in text
    assert "Triton on 1, none with fewer than 512." in text
    (fold,) = [block for block in section.blocks if isinstance(block, Fold)]
    (table,) = fold.blocks
    assert isinstance(table, Table)
    assert [cell.text for cell in table.rows[0].cells][6:] == ["20.0", "10.0", "–", "CUDA", "2.00"]


def test_one_language_alone_is_said_to_be_the_fastest() -> None:
    (section,) = sections(made(*SWEEP[3:]), {})
    (said,) = [block for block in section.blocks if isinstance(block, Bullets)]
    assert said.items[0][1] == "Triton is the fastest language on each of 1 problem."
