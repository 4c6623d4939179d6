"""Training rows and Tukey's fences, against hand computations and what must never change."""

import numpy as np
import pandas as pd
import pytest
import stencil
from exported import problem
from hypothesis import given, settings
from hypothesis import strategies as st
from studies import by_size, study

from launchwise.base.errors import UserError
from launchwise.experiment.study import Fences
from launchwise.learning.features import Domain
from launchwise.learning.splits import ALL, Case, Fold
from launchwise.learning.training_rows import clean, fences_ms, prepared
from launchwise.tables.files import read_table, write_table
from launchwise.tables.learning import removed_schema, training_schema
from launchwise.workloads import space
from launchwise.workloads.metrics import MEASURED

GPU = stencil.GPUS[0]
SCOPES = st.sampled_from(["problem", "global"])
STATUSES = [*["ok"] * 6, "slow", "wrong", "unverified", "failed", "timeout", "out_of_memory"]


def sweep(spec, times, statuses=None):
    """Size to the times of its first configurations, all ok unless ``statuses`` says otherwise."""
    listed = space.configurations(spec, problem(100))
    rows = []
    for n, values in times.items():
        named = (statuses or {}).get(n, ["ok"] * len(values))
        for configuration, time_ms, status in zip(listed, values, named, strict=False):
            # Even a wrong row has a time.
            known = {"status": status, "time_ms": time_ms, "registers": 32, "spill_bytes": 0}
            rows.append({"gpu": "a", **problem(n), **configuration, **known})
    return pd.DataFrame(rows)


def fold(train, test):
    cases = [tuple(Case("a", problem(n)) for n in sizes) for sizes in (train, test)]
    return Fold("it", ALL, *cases)


def cleaned(spec, rows, one, scope="problem", factor=1.5):
    fences = Fences(scope=scope, factor=factor, sides="both")
    return clean({"a": rows}, [one], spec, fences)


def names(rows, spec):
    found = list(rows[spec.key_columns].itertuples(index=False, name=None))
    assert len(set(found)) == len(found)
    return set(found)


def random_sweep(spec, seed, statuses):
    """Three sizes of 30 heavy-tailed times each, so that fences have something to remove."""
    random = np.random.default_rng(seed)
    times = {n: np.exp(1.5 * random.standard_t(2, 30).clip(-20, 20)).tolist() for n in (64, 70, 80)}
    return sweep(spec, times, {n: random.choice(statuses, 30).tolist() for n in times})


def tukey_fences(values, factor=1.5):
    """Bounds of all values together."""
    low, high = fences_ms(np.array(values), np.zeros(len(values), np.int64), "global", factor)
    assert len({*low}) == len({*high}) == 1
    return low[0], high[0]


def test_fences_by_hand():
    # Quartiles 3 and 7, so 4 between them: 3 - 6 and 7 + 6.
    assert tukey_fences(np.array([1, 2, 3, 4, 5, 6, 7, 8, 100.0])) == (-3.0, 13.0)
    assert tukey_fences(np.array([1, 2, 3, 4, 5, 6, 7, 8, 100.0]), 0.5) == (1.0, 9.0)
    # Between ranks by interpolation: 1.75 and 3.25 of 1, 2, 3, 4.
    assert tukey_fences(np.array([4, 1, 3, 2.0])) == pytest.approx((-0.5, 5.5))


@pytest.mark.parametrize("values", [[], [1.0, 2.0, 900.0], [5.0] * 9, [5.0] * 9 + [6.0]])
def test_there_are_no_fences_for_few_values_or_without_spread(values):
    if values:
        assert tukey_fences(values) == (-np.inf, np.inf)
    bounds = fences_ms(np.array(values), np.zeros(len(values), np.int64), "problem")
    assert [{*each} for each in bounds] == ([{0.0}, {np.inf}] if values else [set()] * 2)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=80), st.integers(0, 10**6))
def test_fences_of_many_cases_are_those_of_each(numbers, seed):
    cases = np.unique(numbers, return_inverse=True)[1]
    times = np.random.default_rng(seed).choice([1.0, 2.0, 2.5, 3.0, 7.0, 90.0], len(cases))
    low, high = fences_ms(times, cases, "problem", 0.7)
    for case in range(cases.max() + 1):
        wanted = np.exp(tukey_fences(np.log(times[cases == case]), 0.7))
        assert set(zip(low[cases == case], high[cases == case], strict=True)) == {tuple(wanted)}


@settings(max_examples=10)
@given(st.integers(0, 10**6), st.floats(1e-6, 1e6))
def test_scaling_the_times_changes_nothing_within_a_problem(stencil_spec, seed, factor):
    rows = random_sweep(stencil_spec, seed, ["ok"])
    # Each problem by a factor of its own.
    scale = rows["n"].map({64: factor, 70: 1.0, 80: 1 / factor})
    scaled = rows.assign(time_ms=rows["time_ms"] * scale)
    before, after = (cleaned(stencil_spec, one, fold([64, 70, 80], [])) for one in (rows, scaled))
    assert names(before.training, stencil_spec) == names(after.training, stencil_spec)


@settings(max_examples=10)
@given(st.integers(0, 10**6), SCOPES, st.sampled_from([0.5, 1.5]))
def test_removed_and_kept_are_the_measured_training_rows_and_no_test_row(
    stencil_spec, seed, scope, factor
):
    rows = random_sweep(stencil_spec, seed, STATUSES)
    found = cleaned(stencil_spec, rows, fold([64, 80], [70]), scope, factor)
    kept = names(found.training, stencil_spec)
    gone = found.removed[found.removed["scope"] == scope]
    removed = names(gone, stencil_spec)
    assert not kept & removed
    believed = rows[rows["status"].isin(MEASURED) & (rows["n"] != 70)]
    assert kept | removed == names(believed, stencil_spec)
    assert not (found.removed["n"] == 70).any()
    outside = (gone["time_ms"] < gone["lower_ms"]) | (gone["time_ms"] > gone["upper_ms"])
    assert outside.all()
    count = found.counts[0]
    assert (count["rows"], count["measured"]) == (60, len(believed))
    assert count["training"] == len(kept)
    assert count["removed"][scope]["rows"] == len(removed)
    training_schema(stencil_spec).insist("table", found.training)
    removed_schema(stencil_spec).insist("table", found.removed)


@settings(max_examples=10)
@given(st.integers(0, 10**6), SCOPES)
def test_times_of_test_problems_have_no_part_in_the_fences(stencil_spec, seed, scope):
    rows = random_sweep(stencil_spec, seed, ["ok"])
    other = rows.assign(time_ms=rows["time_ms"].where(rows["n"] != 70, 1e9))
    first, second = (
        cleaned(stencil_spec, one, fold([64, 80], [70]), scope) for one in (rows, other)
    )
    pd.testing.assert_frame_equal(first.training, second.training)
    pd.testing.assert_frame_equal(first.removed, second.removed)


def test_the_global_scope_removes_a_large_problem_where_the_other_removes_nothing(stencil_spec):
    # Of 1 .. 8, 1000 and 2000 the quartiles are 3.25 and 7.75: fences at -5.75 and 16.75.
    rows = sweep(stencil_spec, {64: [float(i) for i in range(1, 9)], 400: [1000.0, 2000.0]})
    found = cleaned(stencil_spec, rows, fold([64, 400], []), "global", 2.0)
    assert sorted(found.removed["time_ms"]) == [1000.0, 2000.0]
    assert set(found.removed["scope"]) == {"global"}
    assert found.removed["lower_ms"].tolist() == [-5.75, -5.75]
    assert found.removed["upper_ms"].tolist() == [16.75, 16.75]
    assert found.training["n"].tolist() == [64] * 8
    assert found.counts[0]["removed"]["global"] == {
        "rows": 2, "percent": 20.0, "problems_touched": 1, "problems_lost": 1
    }  # fmt: skip
    assert found.counts[0]["removed"]["problem"]["rows"] == 0
    assert len(cleaned(stencil_spec, rows, fold([64, 400], [])).training) == 10


@pytest.mark.parametrize(("sides", "kept"), [("upper", 9), ("both", 8)])
def test_what_is_far_faster_than_all_others_stays_unless_both_fences_filter(
    stencil_spec, sides, kept
):
    rows = sweep(stencil_spec, {64: [0.01, *(1 + i / 10 for i in range(8)), 1000.0]})
    found = clean({"a": rows}, [fold([64], [])], stencil_spec, Fences(sides=sides))
    assert len(found.training) == kept
    assert (0.01 in found.training["time_ms"].tolist()) == (sides == "upper")
    assert 1000.0 not in found.training["time_ms"].tolist()


def test_rows_of_a_test_problem_are_refused(stencil_spec):
    # Of a file: test_learn.py.
    with pytest.raises(UserError, match="a test problem is among the training rows: gpu=a, n=70"):
        cleaned(stencil_spec, random_sweep(stencil_spec, 1, ["ok"]), fold([64, 70], [70]))


def test_a_fold_of_failures_is_an_error(stencil_spec):
    rows = sweep(stencil_spec, {64: [1.0]}, {64: ["failed"]})
    with pytest.raises(UserError, match="no training row was measured") as caught:
        cleaned(stencil_spec, rows, fold([64], []))
    assert caught.value.key == "splits.it"


def test_stage_times_reach_the_training_rows_of_workloads_that_have_stages(stencil_spec, tmp_path):
    staged = stencil_spec.model_copy(update={"stages": {"copy": "in", "run": "on the GPU"}})
    # Fences: 6 inliers and one outlier; test rows: a size that does not train.
    rows = sweep(stencil_spec, {64: [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 90.0], 70: [2.0]})
    rows["copy_ms"] = 0.1 * rows["time_ms"]
    rows["run_ms"] = np.where(rows["time_ms"] > 1.25, np.nan, 0.5)
    found = cleaned(staged, rows, fold([64], [70]))
    assert found.training["time_ms"].tolist() == [1.0, 1.1, 1.2, 1.3, 1.4, 1.5]
    assert found.training["copy_ms"].tolist() == (0.1 * found.training["time_ms"]).tolist()
    assert found.training["run_ms"].isna().tolist() == [False] * 3 + [True] * 3
    write_table(tmp_path / "training.parquet", found.training, training_schema(staged))
    again = read_table(tmp_path / "training.parquet", training_schema(staged))
    assert again["run_ms"].isna().tolist() == found.training["run_ms"].isna().tolist()
    # What was removed is named, not kept.
    assert set(found.removed.columns) == set(removed_schema(staged).columns)
    assert set(removed_schema(staged).columns) == set(removed_schema(stencil_spec).columns)
    with pytest.raises(UserError, match="copy_ms"):
        write_table(
            tmp_path / "wrong.parquet", found.training.assign(copy_ms=-1.0), training_schema(staged)
        )


@pytest.mark.parametrize("train_on", ["all", "candidates"])
def test_a_study_may_learn_of_candidates_alone(stencil_spec, tmp_path, train_on):
    asked = study("knn", splits=by_size([64], [100]), candidates={"bx": [32]}, train_on=train_on)
    domain = Domain.of(asked, stencil_spec, {GPU: stencil.slice_of_card(GPU)})
    sweeps = {GPU: stencil.sweep(stencil_spec, (64, 100), GPU)}
    files = (tmp_path / "splits.json", tmp_path / "training.parquet", tmp_path / "removed.parquet")
    rows = prepared("s", asked, domain, sweeps, {}, files).rows
    assert domain.is_candidate(rows).all() == (train_on == "candidates")
