"""Laws of streams against the paper's tables, planted coefficients and brute force.

The tables are those of M. Veneva, T. Imamura, "ML-Based Optimum Number of CUDA Streams for the GPU
Implementation of the Tridiagonal Partition Method" (2024), measured on an RTX 2080 Ti.
"""

from math import isnan, log2

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from published_tables import table

from kernels.tridiagonal.recommenders.stream_law import choice, laws
from kernels.tridiagonal.recommenders.stream_law.laws import STREAMS
from launchwise.base.errors import UserError

OPTIMA = table("tridiagonal_streams", "optima")
PREDICTED = dict(zip(OPTIMA["n"].astype(float), OPTIMA["streams_predicted"], strict=True))
"""The published predictions, by N."""
STAGES = table("tridiagonal_streams", "stages").rename(
    columns=lambda name: name.removesuffix("_ms")
)
SIZES = [digit * 10.0**power for power in range(3, 8) for digit in (1, 2.5, 4, 5, 7.5, 8)] + [1e8]

times = st.floats(1e-3, 1e3)
sizes = st.floats(1e3, 1e8)


def predictions(sum_law, overhead_law):
    return {n: laws.predicted_streams(n, sum_law, overhead_law) for n in PREDICTED}


def rows_of(sum_law, overhead_law, noise=0.0):
    """Rows of every published N and s; overheads and sums off by ``noise`` of the sum."""
    rng = np.random.default_rng(7)
    rows = pd.DataFrame([(n, s) for n in SIZES for s in STREAMS], columns=["n", "streams"])
    exact = sum_law.predict(SIZES) * (1 + noise * rng.standard_normal(len(SIZES)))
    rows["sum_ms"] = np.repeat(exact, len(STREAMS))
    errors = noise * rng.standard_normal(len(rows)) * rows["sum_ms"]
    rows["overhead_ms"] = overhead_law.predict(rows["n"], rows["streams"]) + errors
    rows["time_ms"] = rows["overhead_ms"] + rows["sum_ms"] / rows["streams"]
    return rows


def test_the_published_laws_make_the_25_published_predictions():
    assert len(PREDICTED) == 25
    assert predictions(laws.PUBLISHED_SUM, laws.PUBLISHED_OVERHEAD) == PREDICTED


@given(sizes, st.floats(1e-3, 1e3), st.permutations(STREAMS))
def test_a_unit_of_time_or_the_order_of_streams_changes_no_choice(n, unit, order):
    made = laws.SumLaw(unit * 2e-6, unit * 0.1), laws.LinearOverheadLaw(unit * 0.01, unit * 2e-7, 0)
    expected = laws.predicted_streams(
        n, laws.SumLaw(2e-6, 0.1), laws.LinearOverheadLaw(0.01, 2e-7, 0)
    )
    assert laws.predicted_streams(n, *made, streams=order) == expected


@given(sizes, times, st.floats(1, 100))
def test_dearer_streams_are_never_more(n, tau, factor):
    cheap, dear = (
        laws.predicted_streams(n, laws.PUBLISHED_SUM, laws.CreationLaw(cost))
        for cost in (tau, factor * tau)
    )
    assert dear <= cheap


def test_streams_by_gomez_luna_are_the_published_ones():
    sums = choice.overlapped_ms(STAGES)
    np.testing.assert_allclose(sums, STAGES["sum"], rtol=1e-12)
    found = [round(laws.PUBLISHED_CREATION.optimum(sum_ms), 1) for sum_ms in sums]
    assert found == STAGES["streams_gomez_luna"].tolist()
    assert [laws.PUBLISHED_CREATION.best_of(sum_ms) for sum_ms in sums] == [8, 8, 16, 32, 32]


@given(times, times)
def test_the_best_allowed_streams_are_the_nearest_power_of_2(sum_ms, tau):
    # sum / s + tau * s has the same value for s_opt * f and s_opt / f.
    law = laws.CreationLaw(tau)
    power = float(np.clip(log2(law.optimum(sum_ms)), 0, 5))
    assert abs(log2(law.best_of(sum_ms)) - power) <= 0.5 + 1e-9


def test_of_equal_streams_the_fewest_are_used():
    # 8 / 2 + 2 = 8 / 4 + 4.
    sum_law, overhead_law, backwards = laws.SumLaw(0, 8), laws.CreationLaw(1), STREAMS[::-1]
    assert laws.predicted_streams(1e3, sum_law, overhead_law, backwards) == 2
    assert overhead_law.best_of(8, backwards) == 2
    rows = pd.DataFrame({"n": 1e3, "streams": backwards, "sum_ms": 8.0})
    rows["time_ms"] = rows["sum_ms"] / rows["streams"] + rows["streams"]
    table = choice.compare_optima(rows, sum_law, overhead_law, overhead_law)
    assert table["measured_streams"].tolist() == [2]


def test_streams_that_cost_nothing_are_all_used():
    assert laws.CreationLaw(0.0).optimum(1.0) == float("inf")
    assert laws.CreationLaw(0.0).best_of(1.0) == 32


PLANTED = [
    laws.PUBLISHED_OVERHEAD,
    laws.CreationLaw(0.03),
    laws.LinearOverheadLaw(per_stream=0.02, share=3e-7, constant=0.05),
    laws.SmoothOverheadLaw(constant=0.1, scale=0.2, exponent=0.8),
]


def coefficients(law):
    return list(vars(law).values())


def named(law):
    return type(law).__name__


@pytest.mark.parametrize("law", PLANTED, ids=named)
def test_fits_find_planted_overheads(law):
    exact = type(law).fit(rows_of(laws.PUBLISHED_SUM, law))
    np.testing.assert_allclose(coefficients(exact), coefficients(law), rtol=1e-5)


@pytest.mark.parametrize("law", [law for law in PLANTED if law.relative], ids=named)
def test_fits_find_planted_overheads_in_noise(law):
    noisy = type(law).fit(rows_of(laws.PUBLISHED_SUM, law, noise=0.01))
    np.testing.assert_allclose(coefficients(noisy), coefficients(law), rtol=0.05)


def test_a_coefficient_of_0_is_found():
    rows = pd.DataFrame({"n": [1.0, 2.0, 3.0], "streams": 1, "sum_ms": [1.0, 2.0, 3.0]})
    assert coefficients(laws.SumLaw.fit(rows)) == pytest.approx([1.0, 0.0], abs=1e-9)


@pytest.mark.parametrize("kind", [laws.SumLaw, laws.RelativeSumLaw], ids=lambda kind: kind.__name__)
def test_fits_find_planted_sums_in_noise(kind):
    planted = kind(2e-6, 0.15)
    rows = rows_of(planted, laws.CreationLaw(0.01), noise=0.01)
    found = kind.fit(rows)
    assert found.slope == pytest.approx(2e-6, rel=0.02)
    # An error of 1 % of 200 ms hides a constant of .15 ms from absolute errors.
    if kind.relative:
        assert found.constant == pytest.approx(0.15, rel=0.02)


@pytest.mark.parametrize(
    ("kind", "query"),
    [
        (laws.OverheadLaw, "n <= 1e6"),
        (laws.OverheadLaw, "streams == 4"),
        (laws.LinearOverheadLaw, "n == 1e6"),
        (laws.LinearOverheadLaw, "streams == 4"),
        (laws.SmoothOverheadLaw, "n == 1e6"),
        (laws.SmoothOverheadLaw, "streams == 1"),
        (laws.SumLaw, "n == 1e6"),
        (laws.CreationLaw, "n < 0"),
    ],
)
def test_rows_that_do_not_determine_a_law_are_refused(kind, query):
    rows = rows_of(laws.PUBLISHED_SUM, laws.PUBLISHED_OVERHEAD).query(query)
    with pytest.raises(UserError, match=f"{len(kind.observations(rows))} rows do not determine"):
        kind.fit(rows)


@settings(max_examples=25)
@given(st.lists(times, min_size=7, max_size=7), st.lists(st.floats(-1, 9), min_size=5, max_size=5))
def test_overheads_put_into_times_are_measured_again(stage_ms, overheads):
    stages = pd.DataFrame([stage_ms], columns=[*choice.SERIAL, *choice.OVERLAPPED]).assign(n=100)
    planted = [0.0, *overheads]
    runs = pd.DataFrame({"n": 100, "streams": STREAMS})
    runs["time_ms"] = [
        sum(stage_ms[:3]) + sum(stage_ms[3:]) / streams + overhead
        for streams, overhead in zip(STREAMS, planted, strict=True)
    ]
    rows = choice.overhead_rows(stages, runs.sample(frac=1, random_state=0))
    assert rows["streams"].tolist() == list(STREAMS)
    np.testing.assert_allclose(rows["overhead_ms"], planted, atol=1e-9 * sum(stage_ms))
    np.testing.assert_allclose(rows["sum_ms"], sum(stage_ms[3:]))


def runs_of(*lines):
    return pd.DataFrame(list(lines), columns=["n", "streams", "time_ms"])


def test_failed_runs_are_left_out():
    runs = runs_of((4e5, 1, 3.0), (4e5, 2, float("nan")), (4e5, 4, 2.5))
    rows = choice.overhead_rows(STAGES, runs)
    assert rows["streams"].tolist() == [1, 4]
    # Three quarters of the sum of 1.10432 ms saved, but only half a ms gained.
    assert rows["overhead_ms"].tolist() == pytest.approx([0.0, 0.75 * 1.10432 - 0.5])


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([(4e5, 1, 3.0), (4e5, 1, 3.1)], "measured twice"),
        ([(4e5, 2, 3.0)], "400000.0 lacks"),
        ([(4e5, 1, float("nan")), (4e5, 2, 3.0)], "400000.0 lacks"),
        ([(3e5, 1, 3.0)], "300000.0 lacks"),
    ],
)
def test_incomplete_measurements_are_refused(lines, message):
    with pytest.raises(UserError, match=message):
        choice.overhead_rows(STAGES, runs_of(*lines))
    with pytest.raises(UserError, match="measured twice"):
        choice.overhead_rows(pd.concat([STAGES, STAGES]), runs_of((4e5, 1, 3.0)))


def test_splits_are_3_to_1_of_whole_sizes_and_seeded():
    rows = rows_of(laws.PUBLISHED_SUM, laws.PUBLISHED_OVERHEAD)
    train, test = choice.split_rows(rows, 1)
    assert len(test) == 8 * 6
    assert sorted([*train.index, *test.index]) == rows.index.tolist()
    assert set(train["n"]).isdisjoint(test["n"])
    assert choice.split_rows(rows, 1)[1].index.equals(test.index)
    assert not choice.split_rows(rows, 2)[1].index.equals(test.index)
    with pytest.raises(UserError, match="at least 2 sizes"):
        choice.split_rows(rows.query("n == 1e3"))


def test_goodness_of_fit_by_hand():
    # Errors 1, 0, -1 and variance 2/3 of 1, 2, 3: as bad as their mean. An N has one sum.
    rows = pd.DataFrame(
        {"n": [1, 2, 3, 3], "streams": [1, 1, 1, 2], "sum_ms": [1.0, 2.0, 3.0, 3.0]}
    )
    found = choice.goodness_of_fit(laws.SumLaw(0, 2), rows)
    # Relative to sums of 1, 2 and 3: 1, 0 and -1/3.
    expected = {"r2": 0.0, "mse": 2 / 3, "rmse": (2 / 3) ** 0.5, "relative": (10 / 27) ** 0.5}
    assert found == pytest.approx(expected)
    assert isnan(choice.goodness_of_fit(laws.SumLaw(0, 2), rows[:1])["r2"])
    assert all(map(isnan, choice.goodness_of_fit(laws.SumLaw(0, 2), rows[:0]).values()))


def test_every_candidate_is_scored_on_training_rows():
    law = laws.LinearOverheadLaw(per_stream=0.02, share=3e-7, constant=0.05)
    chosen = choice.choose_law(rows_of(laws.PUBLISHED_SUM, law), laws.OVERHEAD_LAWS)
    assert list(chosen.scores) == [kind.__name__ for kind in laws.OVERHEAD_LAWS]
    right = chosen.scores.pop("LinearOverheadLaw")
    assert right < 1e-6
    assert min(chosen.scores.values()) > 0.01


@pytest.mark.parametrize("law", PLANTED, ids=named)
def test_the_law_that_made_the_rows_is_chosen(law):
    rows = rows_of(laws.PUBLISHED_SUM, law, noise=0.001)
    found = choice.choose_law(rows, laws.OVERHEAD_LAWS)
    assert type(found.law) is type(law)
    assert found.law == type(law).fit(rows)
    # Nothing predicts noise: the score of the true law is the noise.
    assert 0.0005 < found.scores[named(law)] < 0.01


def test_relative_sums_are_chosen_where_small_ones_are_as_noisy_as_large_ones():
    rows = rows_of(laws.PUBLISHED_SUM, laws.PUBLISHED_OVERHEAD, noise=0.02)
    assert isinstance(choice.choose_law(rows, laws.SUM_LAWS).law, laws.RelativeSumLaw)


def test_a_law_that_cannot_be_fitted_is_not_chosen():
    rows = rows_of(laws.PUBLISHED_SUM, laws.PUBLISHED_OVERHEAD, noise=0.001).query("n <= 1e6")
    found = choice.choose_law(rows, laws.OVERHEAD_LAWS)
    assert found.scores["OverheadLaw"] == float("inf")
    assert not isinstance(found.law, laws.OverheadLaw)


def test_of_one_size_no_law_is_chosen():
    rows = rows_of(laws.PUBLISHED_SUM, laws.PUBLISHED_OVERHEAD).query("n == 1e6")
    with pytest.raises(UserError, match="too few for any of OverheadLaw, CreationLaw"):
        choice.choose_law(rows, laws.OVERHEAD_LAWS)


def test_held_out_errors_are_worse_than_fitted_ones():
    # Two N for each fit of 2 coefficients: no error on them, and on the third the bend.
    # The second row of the third N is no second observation of its sum.
    rows = pd.DataFrame({"n": [1.0, 2.0, 3.0, 3.0], "streams": 1, "sum_ms": [1.0, 2.0, 6.0, 6.0]})
    # Predicted from the other two: 6 - 4 * 2, the mean 3.5, and 1 + 2: off by 3, 1.5 and 3 ms.
    expected = np.sqrt((3.0**2 + 0.75**2 + 0.5**2) / 3)
    found = choice.cross_validated_error(laws.SumLaw, rows, folds=3)
    assert found == pytest.approx(expected)


def published_rows():
    """The two N whose best is mispredicted; only the times of two s each are published."""
    known = {1e5: {1: 1.230176, 2: 1.239040}, 5e5: {4: 4.046112, 8: 4.029888}}
    runs = [(n, s, known[n].get(s, 9.0)) for n in known for s in STREAMS]
    sums = {1e5: 0.1, 5e5: 1.2416}
    return runs_of(*runs).assign(sum_ms=lambda rows: rows["n"].map(sums))


def compared(rows):
    return choice.compare_optima(
        rows, laws.PUBLISHED_SUM, laws.PUBLISHED_OVERHEAD, laws.PUBLISHED_CREATION
    )


def test_the_published_mistakes_cost_what_is_published():
    table = compared(published_rows().sample(frac=1, random_state=0))
    assert table["n"].tolist() == [1e5, 5e5]
    assert table["measured_streams"].tolist() == [1, 8]
    assert table["predicted_streams"].tolist() == [2, 4]
    assert table["predicted_lost_ms"].tolist() == pytest.approx([0.008864, 0.016224])
    assert table["predicted_lost_percent"].tolist() == pytest.approx([0.7205, 0.4026], abs=1e-4)
    # sqrt(.1 / .004448) and sqrt(1.2416 / .004448); by the law of the sum the first has .366 ms.
    assert table["baseline_optimum"].tolist() == pytest.approx([4.74, 16.71], abs=0.005)
    assert table["baseline_streams"].tolist() == [4, 16]
    assert table["baseline_lost_percent"].tolist() == pytest.approx([631.6, 123.3], abs=0.05)


def test_a_choice_that_was_not_measured_has_no_time():
    table = compared(published_rows().query("streams != 2"))
    assert table["predicted_streams"].tolist() == [2, 4]
    assert np.isnan(table["predicted_ms"]).tolist() == [True, False]
    assert np.isnan(table["predicted_lost_percent"]).tolist() == [True, False]
