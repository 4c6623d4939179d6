"""How far times can be trusted, as the report tells it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from launchwise.report.blocks import MISSING, Fold
from launchwise.report.health import provenance
from launchwise.workloads.metrics import absent, named
from launchwise.workloads.spec import Spec
from tests.support.samples import measurements


def told(sweep: pd.DataFrame, facts: dict[str, Any] | None = None) -> dict[str, list[str]]:
    """What is told of one sweep: first cell of every row to the others."""
    (fold,) = provenance.quality("stencil", {"g": sweep}, {"g": facts or {}})
    assert isinstance(fold, Fold)
    found = {}
    for block in fold.blocks:
        for row in block.rows:  # type: ignore[union-attr]
            first, *rest = [cell.text for cell in row.cells]
            found[first] = rest
    return found


def test_doubts_are_counted(stencil_spec: Spec) -> None:
    sweep = measurements(stencil_spec)
    ok = sweep.index[sweep["status"] == "ok"]
    sweep.loc[ok[:3], "attempt"] = 2
    sweep.loc[ok[:2], "throttle"] = "sw_power_cap+sync_boost"
    sweep.loc[ok[2:4], "throttle"] = "display_clock"
    sweep.loc[ok[:5], "outlier_repeats"] = 1
    sweep.loc[ok[0], "control_ratio"] = 0.9
    sweep.loc[ok[1], "sm_clock_mhz"] = 1500.0
    found = told(sweep)
    assert found["rows measured twice"] == ["3"]
    assert found["rows on a throttled card"] == ["2"]
    assert found["rows with a repeat outside the Tukey limits"] == ["5"]
    assert found["largest drift of the reference kernel (%)"] == ["10.00"]
    assert found["SM clock (MHz)"] == ["1500 to 1980"]


def test_a_sweep_says_what_it_does_not_know(stencil_spec: Spec) -> None:
    lacking = absent(named("spread_ms", "throttle", "control_ratio", "sm_clock_mhz"))
    found = told(measurements(stencil_spec).assign(**lacking))
    known = {"relative error of the median, median (%)"}
    known |= {"relative error of the median, 95th percentile (%)"}
    assert {what for what, values in found.items() if values != [MISSING]} == known


def test_seconds_of_all_shards_are_added(stencil_spec: Spec) -> None:
    shards = [{"seconds": {"total": 2.0, "time": 1.0}}, {"seconds": {"total": 3.0, "rest": 0.5}}]
    found = told(measurements(stencil_spec), {"shards": shards})
    assert found["in all"] == ["5.0"]
    assert found["timing"] == ["1.0"]
    assert found["pauses for a throttled card"] == ["0.5"]
    assert found["energy loops"] == [MISSING]
    assert provenance.spent_s({"seconds": {"total": 1.5}}) == {"total": 1.5}
    assert np.isclose(sum(provenance.spent_s({}).values()), 0)
