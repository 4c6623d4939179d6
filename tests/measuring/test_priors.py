"""What other GPUs measured, as a file that a sweep starts from."""

import re

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from launchwise.base.errors import UserError
from launchwise.measuring.earlier_rows import read_prior, write_prior
from launchwise.tables.files import read_facts
from launchwise.workloads.near_problems import nearest, own_prior, with_expected
from tests.support.spaces import made

SPEC = made({"a": [1, 2, 4]}, {"plain": ([], []), "tiled": (["a"], [])})


def sweep(rows):
    return pd.DataFrame(rows, columns=["m", "variant", "a", "time_ms", "status"])


A100 = sweep(
    [
        (4, "plain", 1, 2.0, "ok"),
        (4, "tiled", 2, 1.0, "ok"),
        (4, "tiled", 4, float("nan"), "launch_failed"),
        (64, "plain", 1, 9.0, "ok"),
        (64, "tiled", 4, 5.0, "slow"),
    ]
)
T4 = sweep([(4, "tiled", 1, 7.0, "ok"), (4, "tiled", 2, 3.0, "unverified")])


FACTS = {"sms": 108, "arch": "sm_80"}


def written(path, sizes, spec=SPEC):
    sweeps = {"a100": A100, "t4": T4}
    return write_prior(path, spec, sweeps, [{"m": size} for size in sizes], {"a100": FACTS})


def test_each_problem_has_the_rows_of_every_gpu(tmp_path):
    assert written(tmp_path / "p.parquet", [4, 64]) == 0
    prior = read_prior(tmp_path / "p.parquet", SPEC)
    assert prior({"m": 4}) == [
        (FACTS, [(["plain", 1], 2.0), (["tiled", 2], 1.0), (["tiled", 4], None)]),
        # What was not verified says nothing.
        ({}, [(["tiled", 1], 7.0)]),
    ]
    # One launch that was far too slow is a time.
    assert prior({"m": 64}) == [(FACTS, [(["plain", 1], 9.0), (["tiled", 4], 5.0)])]


def test_a_problem_that_nobody_measured_has_the_rows_of_the_nearest_one(tmp_path):
    assert written(tmp_path / "p.parquet", [8, 40]) == 2
    prior = read_prior(tmp_path / "p.parquet", SPEC)
    assert len(prior({"m": 8})) == 2
    assert prior({"m": 40}) == [(FACTS, [(["plain", 1], 9.0), (["tiled", 4], 5.0)])]
    assert read_facts(tmp_path / "p.parquet")["priors"] == [
        {"problem": {"m": 8}, "from": {"m": 4}, "gpus": ["a100", "t4"]},
        {"problem": {"m": 40}, "from": {"m": 64}, "gpus": ["a100"]},
    ]


def test_without_any_row_there_is_no_prior_and_no_error(tmp_path):
    failed = A100.assign(status="launch_failed", time_ms=float("nan"))
    for sweeps in ({}, {"a100": failed}):
        assert write_prior(tmp_path / "p.parquet", SPEC, sweeps, [{"m": 4}], {}) == 0
        assert read_prior(tmp_path / "p.parquet", SPEC)({"m": 4}) == []


def test_a_problem_that_was_not_asked_for_and_another_workload_are_refused(tmp_path):
    written(tmp_path / "p.parquet", [4])
    prior = read_prior(tmp_path / "p.parquet", SPEC)
    with pytest.raises(UserError, match=re.escape("priors: has none for m=5")):
        prior({"m": 5})
    other = made({"b": [1, 2, 4]}, {"plain": ([], []), "tiled": (["b"], [])})
    with pytest.raises(UserError):
        read_prior(tmp_path / "p.parquet", other)


def test_texts_count_before_sizes_and_sizes_by_their_ratio():
    measured = [("float64", 100), ("float32", 100_000), ("float32", 1000)]
    assert nearest(("float32", 100), measured) == ("float32", 1000)
    assert nearest(("float32", 20_000), measured) == ("float32", 100_000)
    assert nearest(("float16", 100), measured) == ("float64", 100)
    assert nearest(("float32", 1), []) is None


def test_what_a_model_expects_weighs_as_much_as_all_that_is_known():
    assert with_expected([], "model") == ["model"]
    assert with_expected(["a", "b"], "model") == ["a", "b", "model", "model"]


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(-5, 10**9)), min_size=1))
def test_what_was_measured_is_nearest_to_itself(measured):
    assert all(nearest(each, measured) == each for each in measured)
    assert nearest(("c", 7), measured) == nearest(("c", 7), measured[::-1])


def test_the_two_nearest_problems_of_the_same_gpu_are_known():
    measured = {
        (4,): [(["plain", 1], 9.0)],
        (8,): [(["plain", 1], 8.0), (["tiled", 2], None)],
        (9,): [(["plain", 1], None)],  # Nothing has a time.
        (16,): [(["plain", 1], 7.0)],
        (100,): [(["plain", 1], 6.0)],
    }
    assert own_prior((8,), measured) == [({}, measured[(4,)]), ({}, measured[(16,)])]
    assert own_prior((9,), measured) == [({}, measured[(8,)]), ({}, measured[(16,)])]
    assert own_prior((8,), {(8,): measured[(8,)]}) == []
