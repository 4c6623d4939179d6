"""Selections from measurements: rows numbered by key, the fastest per key, the baseline's."""

import numpy as np
import pandas as pd
import pytest

from launchwise.learning.features import Domain
from launchwise.tables.rows import Z95, fastest_rows, is_baseline, row_numbers
from launchwise.tables.times import with_judged_limits
from launchwise.workloads.space import baseline
from tests.support.samples import measurements

KEY = ["n", "dtype"]


@pytest.fixture
def rows(saxpy_spec):
    """A sweep in which several configurations of every problem share the least time."""
    table = measurements(saxpy_spec, [{"n": [64, 100], "dtype": ["float32", "float64"]}])
    tied = table.groupby(KEY).cumcount() % 7 == 3
    return table.assign(time_ms=table["time_ms"].where(~tied, 1e-6))


@pytest.mark.parametrize("seed", range(5))
def test_equal_times_fall_to_the_first_configuration_whatever_the_order_of_rows(
    rows, saxpy_spec, seed
):
    shuffled = rows.sample(frac=1, random_state=seed)
    found = fastest_rows(shuffled, KEY, saxpy_spec)
    assert found["time_ms"].is_monotonic_increasing
    assert rows.loc[found.index].equals(found)
    # Computed by hand: the least tuple of (time, configuration) of each problem.
    names = saxpy_spec.tunable_columns
    chosen = found.set_index(KEY)[["time_ms", *names]]
    for key, part in shuffled.groupby(KEY):
        least = min(part[["time_ms", *names]].itertuples(index=False, name=None))
        assert tuple(chosen.loc[key]) == least


def told_apart(one, other):
    """Whether the interval of the ratio of two rows' times does not hold 1."""
    error = np.hypot(one["error"], other["error"])
    for row, reference in ((one, other), (other, one)):
        if reference["beside"] and row["ratio_error"] > 0 and reference["ratio_error"] > 0:
            error = row["ratio_error"]
    return abs(np.log(one["time_ms"] / other["time_ms"])) > Z95 * error


@pytest.mark.parametrize("seed", range(20))
def test_the_fastest_is_one_that_cannot_be_told_apart(rows, saxpy_spec, seed):
    """The usual choice, else one of pairs, else the simplest; computed row by row. None that lost
    every round to the fastest in pairs. What is beside it is told by the same ratios."""
    random = np.random.default_rng(seed)
    names = saxpy_spec.tunable_columns
    times, paired = random.lognormal(0, 0.1, len(rows)), random.random(len(rows)) < 0.5
    table = rows.assign(
        time_ms=times,
        error=random.choice([np.nan, 0.001, 0.02, 0.2], len(rows)),
        basis=np.where(paired, "pairs", "sweep"),
        rounds_low_ms=np.where(paired, times * random.uniform(0.98, 1, len(rows)), np.nan),
        rounds_high_ms=np.where(paired, times * random.uniform(1, 1.02, len(rows)), np.nan),
        is_usual=rows.groupby(KEY).cumcount() == random.integers(40),
    )
    table["ratio_error"] = np.where(paired, random.choice([0.002, 0.05], len(rows)), np.nan)
    found = fastest_rows(table.sample(frac=1, random_state=seed), KEY, saxpy_spec)
    assert found["time_ms"].is_monotonic_increasing
    # What is not judged errs by half a percent.
    table, found = (
        each.assign(beside=each["is_usual"] | is_baseline(each, saxpy_spec)).fillna(
            {"error": 0.005}
        )
        for each in (table, found)
    )
    beaten = left_out = far = 0
    for key, part in table.groupby(KEY):
        winner = part.loc[part["rounds_high_ms"].idxmin()]
        lost = (part["rounds_low_ms"] > winner["rounds_high_ms"]) & (
            part["time_ms"] > 1.02 * winner["time_ms"]
        )
        usual_row = part[part["is_usual"]].iloc[0] if part["is_usual"].any() else None
        whole, part, beaten = part, part[~lost], beaten + lost.sum()
        surest = part.loc[(np.log(part["time_ms"]) + Z95 * part["error"]).idxmin()]
        near = part[[not told_apart(one, surest) for _, one in part.iterrows()]]
        (row,) = found[(found[KEY] == list(key)).all(axis=1)].to_dict("records")
        beside = [
            one["time_ms"] / row["time_ms"]
            for _, one in whole.iterrows()
            if not told_apart(one, row)
        ]
        assert row["alike"] == sum(ratio <= 1.1 for ratio in beside)
        assert row["unsure"] == max(1, *(ratio * (ratio > 1.1) for ratio in beside))
        far += row["unsure"] > 1
        # An error of 20 % leaves much undecided: what is slower by more than 2 % is not named.
        slower = near["time_ms"] > 1.02 * surest["time_ms"]
        near, left_out = near[~slower], left_out + slower.sum()
        reference = baseline(saxpy_spec) if usual_row is None else usual_row
        if near["is_usual"].any():
            assert row["is_usual"]
            continue
        candidates = near[near["basis"] == "pairs"] if (near["basis"] == "pairs").any() else near
        assert row["basis"] == candidates["basis"].iloc[0]
        differs = sum(candidates[name] != reference[name] for name in names)
        assert sum(row[name] != reference[name] for name in names) == differs.min()
        # Times do not decide: the next visit would order them in another way.
        simplest = candidates[differs == differs.min()]
        least = min(simplest[names].itertuples(index=False, name=None))
        assert tuple(row[name] for name in names) == least
    assert min(beaten, left_out, far) > 0


def test_baseline_rows_have_every_value_of_the_baseline(rows, saxpy_spec):
    found = is_baseline(rows, saxpy_spec)
    assert found.dtype == bool
    assert len(rows[found]) == len(rows[KEY].drop_duplicates())
    for name, value in baseline(saxpy_spec).items():
        assert set(rows.loc[found, name]) == {value}
    assert (Domain(saxpy_spec, {}).is_baseline(rows) == found).all()
    assert is_baseline(rows.iloc[:0], saxpy_spec).shape == (0,)


@pytest.mark.parametrize("ordered", [False, True])
def test_rows_are_numbered_as_groups_are(rows, ordered):
    shuffled = rows.sample(frac=1, random_state=1)
    random = np.random.default_rng(0)
    # Of more combinations than an integer holds.
    many = pd.DataFrame({name: random.permutation(1000) for name in "abcdefgh"})
    for table, key in (
        (shuffled, ["gpu", "dtype", "n", "threads"]), (pd.concat([many, many]), list("abcdefgh"))
    ):  # fmt: skip
        groups = table.groupby(key, sort=ordered).ngroup()
        assert row_numbers(table, key, ordered=ordered).tolist() == groups.tolist()


SURE = {"gain_low": 1.09, "gain_high": 1.11, "improvement_low": 1.9, "improvement_high": 2.1}


def test_pairs_are_as_sure_as_they_were_judged_and_no_surer(saxpy_spec):
    rows = measurements(saxpy_spec, [{"n": [64], "dtype": ["float32"]}])
    pairs = rows.head(2).assign(gain=1.1, improvement=2.0, **SURE)
    judged = rows.head(1).assign(blind=False, ratio_error=np.log(1.1) / Z95)
    found = with_judged_limits(pairs, judged, saxpy_spec)[[*SURE]].to_numpy()
    assert np.allclose(found, [[1.0, 1.21, 2 / 1.1, 2.2], [*SURE.values()]])
