"""How unlike two GPUs are, and whether that is worth knowing."""

import json
import math

import pytest
from samples import ROOT

from launchwise.search.candidates import COEFFICIENTS, away

FOUND = json.loads((ROOT / "benchmarks" / "results" / "likeness.json").read_text())


def facts(kind, gpu):
    folder = {"public": "public/gpus", "recorded": "recorded"}[kind]
    return json.loads((ROOT / "data" / folder / gpu / "profile.json").read_text())


H200, H100 = facts("recorded", "h200"), facts("recorded", "h100")


def test_a_gpu_is_like_itself_then_its_generation_and_least_like_another_maker():
    others = [H200, H100, facts("public", "a4000"), facts("public", "w6600")]
    distances = [away(H200, other) for other in others]
    assert distances[0] == 0
    assert distances == sorted(distances)
    assert len(set(distances)) == 4


@pytest.mark.parametrize("fact", ["sms", "cores", "clock_mhz", "arch", "compute_capability"])
def test_without_a_fact_nothing_is_said(fact):
    short = {name: value for name, value in H100.items() if name != fact}
    assert math.isnan(away(H200, short))
    assert math.isnan(away(short, H200))


@pytest.mark.parametrize("sms", ["many", 0, -1, True])
def test_a_fact_that_is_no_size_is_refused(sms):
    with pytest.raises(ValueError, match=f"sms of a GPU must be a number above 0, not {sms!r}"):
        away(H200, {**H100, "sms": sms})


def test_its_numbers_are_those_of_the_benchmark_and_better_than_a_mean_on_kernels_kept_apart():
    assert FOUND["coefficients"] == COEFFICIENTS
    shares = [
        (each["weighted"]["first"], each["mean"]["first"]) for each in FOUND["held_out"].values()
    ]
    assert sum(weighted for weighted, _ in shares) > sum(mean for _, mean in shares)
