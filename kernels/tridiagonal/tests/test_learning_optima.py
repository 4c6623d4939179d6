"""Optima by size: against brute force, numbers worked out by hand, and the published table."""

import itertools
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import GridSearchCV, KFold, train_test_split
from sklearn.neighbors import KNeighborsClassifier

from kernels.tridiagonal.learning import optima
from kernels.tridiagonal.learning.optima import FOLDS, SPLITS, TEST_SHARE, classify_optima, split

NAN = float("nan")
STUDY = Path(__file__).resolve().parents[3] / "kernels/tridiagonal/studies/tridiagonal_subsystem"


def measured(times, sizes, choices):
    """Rows of a table of times, a line a size; what is NaN is left out."""
    rows = [
        {"n": size, "m": choice, "time_ms": time}
        for size, line in zip(sizes, times, strict=True)
        for choice, time in zip(choices, line, strict=True)
        if not math.isnan(time)
    ]
    return pd.DataFrame(rows, columns=["n", "m", "time_ms"])


# Observed and corrected


def test_observed_optima_by_hand():
    rows = measured([[3.0, 2.0, 2.0], [5.0, NAN, 4.0]], [100, 10], [4, 8, 16])
    rows = pd.concat(
        [rows, pd.DataFrame({"n": [10, 10, 1], "m": [4, 16, 4], "time_ms": [1.0, NAN, NAN]})]
    )
    found = optima.observed_optima(rows)
    # 10: the faster of two rows of m = 4. 100: the smaller of two as fast. 1: nothing succeeded.
    expected = pd.DataFrame({"n": [10, 100], "m": [4, 8], "time_ms": [1.0, 2.0]})
    pd.testing.assert_frame_equal(found, expected)


def test_corrected_optima_by_hand():
    # 16, 4, 32 breaks the trend. 4, 4 costs 30/20; 16, 16 costs 18/10, though 16 is nearer.
    times = [[30.0, 25.0, 20.0, 40.0], [10.0, NAN, 18.0, 20.0], [9.0, 8.0, 7.0, 6.0]]
    rows = measured(times, [1, 2, 3], [4, 8, 16, 32]).rename(columns={"n": "size", "m": "streams"})
    found = optima.corrected_optima(rows, "size", "streams").set_index("size")
    assert list(found["streams"]) == [4, 4, 32]
    assert list(found["time_ms"]) == [30.0, 10.0, 6.0]
    assert list(found["observed_streams"]) == [16, 4, 32]
    assert list(found["observed_time_ms"]) == [20.0, 10.0, 6.0]


def test_equal_corrections_take_the_smaller_choice():
    times = [[2.0, 2.0, 1.0], [5.0, 1.0, NAN]]
    found = optima.corrected_optima(measured(times, [1, 2], [4, 8, 16]))
    assert list(found["m"]) == [4, 8]


@st.composite
def tables(draw):
    """Times of up to 5 sizes and 4 choices, with gaps, at least one a size."""
    width = draw(st.integers(1, 4))
    time = st.one_of(st.just(NAN), st.integers(1, 12).map(float))
    line = st.lists(time, min_size=width, max_size=width).filter(
        lambda values: not all(map(math.isnan, values))
    )
    return draw(st.lists(line, min_size=1, max_size=5))


@settings(max_examples=50)
@given(tables())
def test_correction_is_the_best_of_all_monotone_choices(times):
    choices, sizes = [4, 8, 16, 20][: len(times[0])], list(range(1, len(times) + 1))
    best = [np.nanargmin(line) for line in times]
    # Products of times have the order of the sums of logarithms, and are exact here.
    paths = {
        path: math.prod(int(line[place]) for line, place in zip(times, path, strict=True))
        for path in itertools.combinations_with_replacement(range(len(choices)), len(times))
        if not any(math.isnan(line[place]) for line, place in zip(times, path, strict=True))
    }
    rows = measured(times, sizes, choices)
    if not paths:
        with pytest.raises(ValueError, match="no choice measured at size"):
            optima.corrected_optima(rows)
        return
    found = optima.corrected_optima(rows)
    path = tuple(choices.index(choice) for choice in found["m"])
    assert paths[path] == min(paths.values())
    kept = [
        sum(a == b for a, b in zip(other, best, strict=True))
        for other, product in paths.items()
        if product == paths[path]
    ]
    assert sum(a == b for a, b in zip(path, best, strict=True)) == max(kept)


@settings(max_examples=20)
@given(tables())
def test_a_correction_says_its_time_rank_and_loss(times):
    choices, sizes = [4, 8, 16, 20][: len(times[0])], list(range(1, len(times) + 1))
    times[0] = [1.0] * len(choices)
    for line in times:
        line[-1] = 3.0  # so that there is a trend
    found = optima.corrected_optima(measured(times, sizes, choices))
    for line, row in zip(times, found.to_dict("records"), strict=True):
        time = line[choices.index(row["m"])]
        assert row["time_ms"] == time
        assert row["rank"] == 1 + sum(other < time for other in line)
        assert row["loss_percent"] == pytest.approx(100 * (time / np.nanmin(line) - 1))


@pytest.mark.parametrize(("size", "time"), [(10, NAN), (10, 0.0), (10, -1.0), (0, 1.0), (-5, 1.0)])
def test_rows_without_times_or_with_impossible_ones_are_refused(size, time):
    rows = pd.DataFrame({"n": [size], "m": [4], "time_ms": [time]})
    for function in (optima.observed_optima, optima.corrected_optima):
        with pytest.raises(ValueError, match="must be positive"):
            function(rows)


def test_published_corrections_are_those_of_the_published_times():
    # One time per size, two where it corrects; the order of sizes is all that a correction asks.
    table = pd.read_csv(STUDY / "published" / "optima_float64.csv")
    first = table[["row", "m_observed", "time_observed_ms"]]
    second = table[["row", "m_corrected", "time_corrected_ms"]].dropna()
    names = ["n", "m", "time_ms"]
    rows = pd.concat([first.set_axis(names, axis=1), second.set_axis(names, axis=1)])
    found = optima.corrected_optima(rows)
    assert list(found["m"]) == list(table["m_corrected"])
    assert list(found["observed_m"]) == list(table["m_observed"])


# Classification


def sweep(optimum, choices, factor=2.0):
    """Times that grow by ``factor`` for every place that a choice is away from the optimum."""
    times = [
        [factor ** abs(choices.index(best) - place) for place in range(len(choices))]
        for best in optimum.values()
    ]
    return measured(times, list(optimum), choices)


def test_losses_of_wrong_predictions_by_hand():
    # With 2 choices in turns most neighbours are wrong, and each error doubles the time.
    choices = [4, 8]
    rows = sweep({10.0**i: choices[i % 2] for i in range(12)}, choices)
    table = optima.observed_optima(rows)
    found = classify_optima(table, rows, seed=3)
    assert found.tested == 3 * SPLITS
    assert found.mean < 1
    assert found.loss_percent == pytest.approx(100 * (2 ** (1 - found.mean) - 1))
    assert found.worst_loss_percent == pytest.approx(100)
    assert found.unmeasured == 0
    best = rows.sort_values("time_ms").drop_duplicates("n")
    without = classify_optima(table, best, seed=3)
    assert without.unmeasured == round((1 - found.mean) * found.tested)
    assert without.loss_percent == pytest.approx(0)
    assert without.mean == found.mean
    assert classify_optima(table, rows.iloc[:0], seed=3).unmeasured == found.tested


SEED = 5
NO_ROWS = pd.DataFrame(columns=["n", "m", "time_ms"])


def optima_of(choices):
    """Optima of sizes 100, 200, 300..."""
    return pd.DataFrame({"n": 100 * np.arange(1, len(choices) + 1), "m": choices})


def test_every_choice_must_be_in_the_training_part():
    # Each choice once: no split of 3 to 1 has all of them in training.
    assert classify_optima(optima_of(list(range(12))), NO_ROWS, SEED) is None
    # One size alone of a choice: only splits that train on it count.
    found = classify_optima(optima_of([4] * 15 + [8]), NO_ROWS, SEED)
    assert found.null == 1


@pytest.mark.parametrize("count", [2, 3, 4, 5, 16, 37, 40])
def test_splits_are_those_that_scikit_learn_draws(count):
    for seed in range(SEED, SEED + 20):
        expected = train_test_split(np.arange(count), test_size=TEST_SHARE, random_state=seed)
        for ours, theirs in zip(split(count, seed), expected, strict=True):
            assert ours.tolist() == theirs.tolist()


@pytest.mark.parametrize("seed", range(SEED, SEED + 3))
def test_accuracies_and_neighbours_are_those_of_the_search_of_scikit_learn(seed):
    drawn = np.random.default_rng(seed)
    # Sizes as far apart as drawn: of two that are as near, ours takes the first.
    sizes, choices = np.sort(drawn.choice(10**6, 30, replace=False)), drawn.choice([4, 8, 16], 30)
    found = classify_optima(pd.DataFrame({"n": sizes, "m": choices}), NO_ROWS, seed)
    hits, nulls, neighbours = [], [], set()
    for number in range(seed, seed + SPLITS):
        train, test = split(30, number)
        folds = KFold(FOLDS, shuffle=True, random_state=number)
        search = GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1, 2, 3]}, cv=folds)
        search.fit(sizes[train, None], choices[train])
        hits.append((search.predict(sizes[test, None]) == choices[test]).mean())
        nulls.append((np.bincount(choices[train]).argmax() == choices[test]).mean())
        neighbours.add(search.best_params_["n_neighbors"])
    assert (found.mean, found.least, found.largest) == (np.mean(hits), min(hits), max(hits))
    assert (found.null, found.splits) == (np.mean(nulls), SPLITS)
    assert found.neighbours == tuple(sorted(neighbours))
