"""Loads: launches go to the nearest problem, means count by them, blind tests draw from them."""

import random
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from launchwise.experiment.load import Load
from launchwise.learning.evaluation import quality
from launchwise.learning.merit import FEWEST, resampled_means

LOAD = Load("w", ("n", "kind"), {(100, "a"): 6, (1000, "a"): 3, (10, "c"): 50}, {})


def problems(*rows):
    return pd.DataFrame(rows, columns=["n", "kind"])


def test_launches_go_to_the_nearest_problem_with_the_same_texts():
    # 331 / 100 is more than 1000 / 331; no row is of kind c.
    rows = problems((10, "a"), (330, "a"), (332, "a"), (90, "a"), (330, "b"))
    assert LOAD.weights(rows).tolist() == [0, 0, 3, 6, 0]
    # Rows of one problem have its launches each; where no text fits, all count alike.
    assert LOAD.weights(problems((10, "a"), (10, "a"))).tolist() == [9, 9]
    assert LOAD.weights(problems((10, "b"), (20, "b"))).tolist() == [1, 1]


def test_means_count_problems_by_their_weights():
    names = ("fraction", "gain", "best_gain", "least_gain", "most_gain", "best_of_5", "best_of_20")
    rows = pd.DataFrame(dict.fromkeys(names, np.array([0.5, 1.0, 0.9]))).assign(is_usual=False)
    alike, weighed = quality(rows), quality(rows.assign(weight=[3.0, 1.0, 0.0]))
    assert alike["fraction_geometric_mean"] == pytest.approx(0.45 ** (1 / 3))
    assert weighed["fraction_geometric_mean"] == pytest.approx(0.5**0.75)
    assert weighed["best_of_5"] == weighed["gain_geometric_mean"] == pytest.approx(0.5**0.75)


def test_an_interval_of_weighted_means_holds_the_weighted_mean():
    count = 3 * FEWEST
    rows = pd.DataFrame({"model": "m", "gpu": "g", "n": range(count), "fraction": 0.5})
    rows.loc[0, "fraction"] = 0.9
    assert resampled_means(rows, ["n"], 0).interval("m")[0] == 0.5
    heavy = rows.assign(weight=np.where(rows["n"] == 0, 1e6, 1.0))
    low, high = resampled_means(heavy, ["n"], 0).interval("m")
    assert low == pytest.approx(0.5)
    assert high == pytest.approx(0.9, abs=1e-3)


def test_frequent_problems_are_drawn_sooner():
    load = replace(LOAD, counts={(1, "a"): 1, (2, "a"): 99})
    first = [load.drawn(random.Random(seed))[0]["n"] for seed in range(200)]
    assert 190 <= first.count(2) < 200
    assert sorted(one["n"] for one in load.drawn(random.Random(0))) == [1, 2]
