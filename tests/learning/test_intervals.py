"""Intervals over problems: what they hold, what they compare, and when there are none."""

import numpy as np
import pandas as pd
import pytest

from launchwise.learning import merit
from launchwise.learning.merit import FEWEST, resampled_means


def evaluation(fractions, gpus=1):
    """Rows of an evaluation: fractions of every model, shape (problems, GPUs) or (problems,)."""
    rows = []
    for model, values in fractions.items():
        table = np.broadcast_to(np.asarray(values).reshape(len(values), -1), (len(values), gpus))
        for (n, gpu), fraction in np.ndenumerate(table):
            rows.append({"model": model, "gpu": f"gpu{gpu}", "n": n, "fraction": fraction})
    return pd.DataFrame(rows)


def means(fractions, gpus=1, seed=0):
    """Resampled means of :func:`evaluation`."""
    return resampled_means(evaluation(fractions, gpus), ["n"], seed)


def drawn(count, seed):
    """Fractions whose logarithms are normal with mean -0.05."""
    return np.exp(np.random.default_rng(seed).normal(-0.05, 0.04, count))


def test_an_interval_holds_the_true_mean_as_often_as_it_says():
    held = 0
    for seed in range(120):
        low, high = means({"a": drawn(40, seed)}, seed=seed).interval("a") or (0, 0)
        held += low <= np.exp(-0.05) <= high
    # 95 %, with a standard error of 2 %.
    assert 0.89 <= held / 120 <= 0.99


def test_a_ratio_is_taken_problem_by_problem():
    hard = drawn(30, 1)
    found = means({"a": hard, "b": hard * 0.99, "c": drawn(30, 2)})
    assert found.ratio("b", "a") == pytest.approx((0.99, 0.99))
    wide = found.interval("a") or (0, 0)
    assert wide[1] - wide[0] > 0.01
    low, high = found.ratio("c", "a") or (0, 0)
    assert low < 1 < high
    assert found.ratio("a", "a") == (1, 1)


def test_the_same_problem_on_more_gpus_is_no_second_problem():
    once = drawn(20, 3)
    one, four = means({"a": once}).interval("a"), means({"a": once}, gpus=4).interval("a")
    assert one == pytest.approx(four)


def test_one_problem_on_many_gpus_is_sampled_by_gpu():
    found = means({"a": drawn(6, 4).reshape(1, 6)}, gpus=6)
    low, high = found.interval("a") or (0, 0)
    assert low < high


@pytest.mark.parametrize("count", [1, 2, FEWEST - 1])
def test_of_few_problems_there_is_no_interval(count):
    found = means({"a": drawn(count, 5), "b": drawn(count, 6)})
    assert found.interval("a") is None
    assert found.ratio("a", "b") is None
    assert means({"a": drawn(FEWEST, 5)}).interval("a") is not None


def test_what_has_no_time_pulls_the_interval_down():
    fractions = np.ones(10)
    fractions[3] = 0
    low, high = means({"a": fractions}).interval("a") or (0, 0)
    assert low < 0.1
    assert high == 1


def test_methods_on_different_problems_are_refused():
    rows = evaluation({"a": drawn(8, 1), "b": drawn(8, 2)}).iloc[:-1]
    with pytest.raises(ValueError, match="not evaluated on the same problems"):
        resampled_means(rows, ["n"], 0)


def test_figures_of_nothing_are_unknown():
    assert merit.improved_runs(np.ones(1), np.ones(1)) == 0
    none = np.array([])
    for found in (
        merit.geometric_mean(none),
        merit.improvement_coefficient(none, none),
        merit.percent_improved(none),
        merit.improved_runs(none, np.array([1.0])),
        merit.null_accuracy([]),
    ):
        assert np.isnan(found)
