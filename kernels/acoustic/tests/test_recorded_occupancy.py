"""Recorded occupancy of the stencil's blocks against what an SM of these cards holds."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from samples import ROOT

SWEEPS = sorted((ROOT / "data" / "recorded").glob("h?00*/acoustic.parquet"))


@pytest.mark.parametrize("path", SWEEPS, ids=lambda path: path.parent.name)
def test_recorded_blocks_fill_the_warps_of_an_sm_or_its_blocks(path: Path) -> None:
    columns = ["variant", "bx", "by", "bz", "registers", "occupancy"]
    rows = pd.read_parquet(path, columns=columns)
    rows = rows[(rows["variant"] == "block3d") & rows["occupancy"].notna()]
    warps = -(-(rows["bx"] * rows["by"] * rows["bz"]) // 32)
    assert len(rows)
    # 64 warps, 32 blocks, and 65 536 registers, which warps take in portions of 256.
    most = (64 // warps).clip(upper=32)
    fit = 65_536 // (-(-rows["registers"] // 8) * 256 * warps)
    assert (rows["occupancy"] == most.clip(upper=fit) * warps / 64).all()
