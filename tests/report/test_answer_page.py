"""The page of one workload on one GPU."""

import json
import re

import pytest
from recomputing.pages import unpacked

from launchwise.report.sweep_page import answers, answers_page
from launchwise.tables.rows import is_baseline
from tests.support.report_study import profile
from tests.support.samples import measurements


def test_the_default_is_marked_at_its_place_among_all_times(stencil_spec):
    rows = measurements(stencil_spec, [{"n": [24], "dtype": ["float32"], "order": [2]}])
    rows = rows.sort_values("time_ms", ascending=False, ignore_index=True)
    rows.loc[is_baseline(rows, stencil_spec), "time_ms"] *= 1.5
    (only,) = answers(rows, stencil_spec)
    text = answers_page(stencil_spec, profile("test"), rows, [only])
    assert only.tied == 0
    found = re.search(r'<script type="application/json" id="page-data">(.*?)</script>', text)
    assert found
    every, default = unpacked(json.loads(found[1])["plots"])["plot-every-0"]["data"]
    assert every["x"] == list(range(1, len(rows) + 1))
    assert every["y"] == sorted(every["y"])
    own = rows[is_baseline(rows, stencil_spec)]["time_ms"].item()
    place = int((rows["time_ms"] <= own).sum())
    assert 1 < place < len(rows)
    assert default["x"] == [place]
    assert default["y"] == [pytest.approx(own, rel=1e-3)]


def test_one_launch_is_nobodys_answer(saxpy_spec):
    rows = measurements(saxpy_spec, [{"n": [64], "dtype": ["float32"]}]).assign(status="slow")
    (found,) = answers(rows, saxpy_spec)
    assert found.configuration is found.time_ms is None
    assert found.statuses == {"slow": len(rows)}
