"""Verdicts on answers that were measured again."""

import math

import numpy as np
import pandas as pd
import pytest
from samples import ROOT

from launchwise.base.typed import read_yaml
from launchwise.learning.contests import Gain, verdict, verdicts
from launchwise.tables.measurements import recheck_schema
from launchwise.workloads.space import baseline, configurations

PROBLEM = {"n": 256, "dtype": "float32", "order": 2}
VERDICTS = ROOT / "tests/learning/data/verdicts.yaml"


@pytest.mark.parametrize(("now", "before", "paired", "said"), read_yaml(VERDICTS))
def test_a_verdict_compares_intervals(now, before, paired, said):
    assert verdict(Gain(*now), Gain(*before), paired, 0.01)[0] == said


def row(configuration, roles, gain, **changed):
    """A row of pairs."""
    limits = {
        f"{name}{suffix}": gain
        for name in ("gain", "improvement")
        for suffix in ("", "_low", "_high")
    }
    origin = {"card": "c", "driver": "2", "toolkit": "13"}
    return {
        "gpu": "h200", **PROBLEM, **configuration, "roles": roles, "status": "ok", "reason": "",
        **limits, **origin, **changed,
    }  # fmt: skip


def judged(spec, own, earlier=None):
    """The verdict on one answer, whose sweep was measured with driver 1."""
    configuration = {name: own[name] for name in spec.tunable_columns}
    expected = {
        "gpu": "h200",
        "problem": PROBLEM,
        "configuration": configuration,
        "default": "usual",
        "basis": "measured",
        "gain": 1.3,
        "interval": None,
    }
    sweep = pd.DataFrame([{**own, "driver": "1"}])
    table = verdicts([expected], pd.DataFrame([own]), earlier, sweep, spec, 0.01)
    recheck_schema(spec).insist("table", table)
    return table.iloc[0]


@pytest.fixture
def other(stencil_spec):
    """A configuration that is not the default."""
    listed = configurations(stencil_spec, PROBLEM)
    return next(each for each in listed if each != baseline(stencil_spec))


def test_earlier_pairs_count_more_than_the_expectation(stencil_spec, other):
    own = row(other, "recommended", 1.29)
    found = judged(stencil_spec, own)
    assert (found["verdict"], found["known_by"], found["known_gain"]) == ("holds", "measured", 1.3)
    assert (found["known_driver"], found["driver"]) == ("1", "2")
    earlier = pd.DataFrame([row(other, "best", 1.5, driver="0")])
    found = judged(stencil_spec, own, earlier)
    assert (found["verdict"], found["known_by"], found["known_gain"]) == ("stale", "pairs", 1.5)
    assert found["known_driver"] == "0"


@pytest.mark.parametrize(
    ("status", "said"), [("wrong", "stale"), ("failed", "unknown"), ("out_of_memory", "unknown")]
)
def test_what_does_not_run_has_no_gain(stencil_spec, other, status, said):
    found = judged(stencil_spec, row(other, "recommended", np.nan, status=status, reason="why"))
    assert found["verdict"] == said
    assert "why" in found["reason"]
    assert math.isnan(found["gain"])


def test_the_default_cannot_be_stale(stencil_spec):
    own = row(baseline(stencil_spec), "baseline+usual+recommended", np.nan)
    assert judged(stencil_spec, own)["verdict"] == "holds"
