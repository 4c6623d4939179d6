"""What an answer states as sure, by hand: a made-up model ranks the candidates."""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from launchwise.learning.answering import answers
from launchwise.learning.features import Domain
from launchwise.learning.final import Final
from launchwise.learning.recommender import Ranking
from launchwise.learning.row_arrays import least_ms
from launchwise.learning.splits import Case
from launchwise.tables.rows import Z95
from launchwise.tables.times import PAIRS, SWEEP
from launchwise.workloads.space import configurations, used
from tests.support.samples import profile

PROBLEM = {"n": 64, "dtype": "float32", "order": 2}
GPUS = {
    "known": profile("known"),
    "other": profile("other", device_name="Another GPU"),
    "described": profile("described", source="described"),
}


@pytest.fixture
def final(stencil_spec, tmp_path):
    """A product that learnt from one card. It expects a gain of 1.2 over the usual choice, with a
    spread that leaves 1.2 / e^0.2 to 1.2 e^0.2, and a baseline slower than the usual choice. At
    n = 96 measured are 1 ms, 1.2 ms of the usual choice and 1.5 ms of the baseline."""
    listed = configurations(stencil_spec, PROBLEM)
    other, best = (
        next(one for one in listed if one["variant"] == v) for v in ("column", "block3d")
    )
    usual = {"reason": "it is", "configuration": used(other, stencil_spec)}
    domain = Domain(stencil_spec, GPUS, {"variant": ["linear", "column"]}, usual=[usual])

    def ranking(rows):
        first = int(np.flatnonzero(~domain.is_usual(rows) & ~domain.is_baseline(rows))[0])
        order = np.array([first, *(row for row in range(len(rows)) if row != first)])
        rank = np.empty(len(rows), dtype=int)
        rank[order] = np.arange(1, len(rows) + 1)
        expected = np.where(domain.is_baseline(rows), 0.8, 1.0)
        expected[first] = 1.2
        gains = np.column_stack([expected, np.full(len(rows), 0.19)])
        return Ranking(order, rank, np.where(rank == 1, 1e-9, 1.0), gains)

    told = {"gpu": "known", "alike": 1, "unsure": 1.0, "error": 0.01, "blind": False}
    told |= {"time_low_ms": 0.9, "time_high_ms": 1.1, "ratio_error": math.log(1.05) / Z95}
    swept = [
        {**PROBLEM, **told, **one, "n": n, "rank": rank, "time_ms": ms, "basis": basis,
         "is_usual": rank == 2, "is_baseline": rank == 3}
        for n in (32, 96)
        for rank, (one, ms, basis) in enumerate(
            ((best, 1.0, SWEEP), (other, 1.2, PAIRS), (listed[0], 1.5, PAIRS)), start=1
        )
    ]  # fmt: skip
    offset = {"cases": 50, "gain": (-1.0, 1.0), "time": (-0.5, 0.5)}
    facts = {
        "gpus": ["known"],
        "intervals": {name: offset for name in ("within", "beyond", "new_gpu")},
        "gain_intervals": None,
        "time_intervals": None,
    }
    found = Final(tmp_path, domain, pd.DataFrame(swept), facts)
    found.__dict__["recommender"] = SimpleNamespace(ranking=ranking)
    return found


def first(final, gpu="known", n=64, **asked):
    return answers(final, [Case(gpu, {**PROBLEM, "n": n})], **asked)[0].suggestions[0]


def test_no_time_is_shorter_than_any_run(final):
    rows = pd.DataFrame([{**PROBLEM, "gpu": "known"}])
    (shortest,) = least_ms(rows, final.spec, GPUS)
    found = first(final)
    assert found.expected_ms == pytest.approx(shortest)
    assert found.interval_ms == pytest.approx((shortest, shortest * np.exp(0.5)))


def test_gains_are_over_the_usual_choice_and_improvements_over_the_baseline(final):
    found = first(final)
    assert found.gain == pytest.approx(1.2)
    assert found.improvement == pytest.approx(1.5)
    assert found.gain_interval == pytest.approx((1.2 * np.exp(-0.2), 1.2 * np.exp(0.2)))


@pytest.mark.parametrize(("gpu", "n"), [("other", 64), ("described", 64), ("known", 128)])
def test_nothing_is_sure_of_another_card_or_at_sizes_beyond_the_sweeps(final, gpu, n):
    found = first(final, gpu, n)
    assert found.gain == pytest.approx(1.2)
    assert found.gain_interval is found.interval_ms is None


def test_a_gain_that_only_may_be_reached_leaves_the_usual_choice(final):
    assert not first(final, least_gain=0.9).is_usual
    assert first(final, least_gain=1.1).is_usual
    assert first(final, n=128, least_gain=0.9).is_usual


def test_blind_tests_stretch_what_is_asked_as_they_ask(final):
    final.facts["gain_intervals"] = {"stretch": 2.0}
    final.facts["time_intervals"] = {"stretch": 3.0}
    assert first(final).gain_interval == pytest.approx((1.2 * np.exp(-0.4), 1.2 * np.exp(0.4)))
    low, high = first(final).interval_ms
    assert high / low == pytest.approx(np.exp(1.5))
    assert first(final, n=128).expected_ms is None


def test_what_cannot_be_told_apart_is_not_called_the_fastest(final):
    rows = final.fastest
    rows.loc[rows["rank"] == 1, ["time_ms", "alike"]] = [2.0, 2]
    (found,) = answers(final, [Case("known", {**PROBLEM, "n": 96})])
    # 1.2 ms are 40 % less than 2.
    assert found.why.startswith(
        "one of 2 measured configurations that cannot be told apart, of which one was measured "
        "40.0 % shorter"
    )


def test_what_was_measured_is_beside_its_own_references(final):
    found = first(final, n=96)
    assert (found.expected_ms, found.interval_ms) == (1.0, (0.9, 1.1))
    assert (found.gain, found.improvement) == (1.2, 1.5)
    assert found.gain_interval == pytest.approx((1.2 / 1.05, 1.2 * 1.05))
    assert found.improvement_interval == pytest.approx((1.5 / 1.05, 1.5 * 1.05))
    assert not found.paired
    assert not found.is_usual
    usual = first(final, n=96, least_gain=1.3)
    assert (usual.expected_ms, usual.gain, usual.gain_interval) == (1.2, 1.0, None)
    assert usual.paired
    assert usual.is_usual
    assert first(final, n=96, least_gain=1.1).expected_ms == 1.0
