"""Evaluation: nothing is dropped, nothing leaks, and figures are those worked out by hand."""

import itertools

import numpy as np
import pandas as pd
import pytest
from exported import problem
from hypothesis import given, settings
from hypothesis import strategies as st
from said import learnt_of
from studies import entry, learning

from launchwise.base.errors import UserError
from launchwise.base.storage import read_sealed_json
from launchwise.learning import curves as learning_curves
from launchwise.learning.baselines import BASELINES
from launchwise.learning.curves import ALL_GPUS, LONGEST, RANDOM, SEARCH, reached
from launchwise.learning.evaluation import evaluate, figures, summarise, write_evaluation
from launchwise.learning.features import Domain
from launchwise.learning.learn import Asked, learn
from launchwise.learning.regression import RESOLUTION
from launchwise.learning.splits import ALL, Case, Fold
from launchwise.learning.truth import NOT_MEASURED, ORACLE, Truth, read_learnt
from launchwise.tables.files import read_table
from launchwise.tables.learning import curves_schema, evaluation_schema
from launchwise.workloads import space
from tests.support.samples import measurements, profile

GPU = "test"
# Times of the baseline and three blocks, ms; None failed on the GPU.
TIMES = {64: [4.0, 1.0, 2.0, None], 100: [8.0, None, 16.0, 5.0]}
NEVER = 4
"""A configuration that no sweep holds."""


def case(n):
    return Case(GPU, problem(n))


FOLD = Fold("it", ALL, (case(200),), (case(64), case(100)))


@pytest.fixture(scope="module")
def domain(stencil_spec, listed):
    usual = {"configuration": space.used(listed[2], stencil_spec), "reason": "it is"}
    return Domain(stencil_spec, {GPU: profile()}, usual=[usual])


@pytest.fixture(scope="module")
def listed(stencil_spec):
    """Five configurations, the baseline first; the third is usual."""
    return space.configurations(stencil_spec, problem(100))[:5]


@pytest.fixture(scope="module")
def rows(listed):
    rows = [
        {
            "gpu": GPU,
            **problem(n),
            **configuration,
            "status": "failed" if time_ms is None else "ok",
            "time_ms": np.nan if time_ms is None else time_ms,
            "times_ms": np.array([] if time_ms is None else [time_ms * 0.5, time_ms * 1.5]),
        }
        for n, times in TIMES.items()
        for configuration, time_ms in zip(listed, times, strict=False)
    ]
    return pd.DataFrame(rows)


@pytest.fixture(scope="module")
def truth(domain, rows):
    return Truth({GPU: rows}, domain)


def test_the_usual_choice_counts_and_what_is_not_verified_does_not(domain, rows, listed):
    rows = rows.assign(status=rows["status"].where(rows.index != 2, "unverified"))
    found = Truth({GPU: rows}, domain)
    first = found.beside(pd.DataFrame([{"gpu": GPU, **problem(64), **listed[0]}]))
    assert first["usual_ms"].item() == 4.0
    assert found.sweep_of(first["case"].item())[1].tolist() == [4.0, 1.0, np.inf, np.inf]
    # A search on a GPU knows its other problems once.
    fold = Fold("it", ALL, (case(64),), (case(100),))
    assert len(learning_curves.Known(fold, found, domain.spec).losses(case(100))) == 1


def recommended(listed, choices, predicted=None, model="mine"):
    """Size to the numbers of the configurations recommended for it, best first."""
    rows = [
        {
            "study": "s", "model": model, "split": "it", "fold": ALL, "gpu": GPU, **problem(n),
            "rank": rank + 1, **listed[number],
            "predicted_ms": predicted[n][rank] if predicted else np.nan,
        }
        for n, numbers in choices.items()
        for rank, number in enumerate(numbers)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def evaluated(recommendations, folds, truth, domain, random_draws):
    """Evaluation of recommendations and of the times predicted with them."""
    learnt = learnt_of(recommendations, domain.spec)
    timed = truth.timed(learnt.predicted_times)
    known = timed, reached(learnt, truth)
    return evaluate("s", learnt, folds, truth, *known, domain, random_draws, "chosen")[0]


def of(table, model, n):
    found = table[(table["model"] == model) & (table["n"] == n)]
    assert len(found) == 1
    return found.iloc[0]


def test_figures_of_a_recommendation_by_hand(listed, truth, domain):
    table = evaluated(recommended(listed, {64: [2], 100: [2]}), [FOLD], truth, domain, [])
    small, large = of(table, "mine", 64), of(table, "mine", 100)
    assert (small["time_ms"], small["baseline_ms"], small["best_ms"]) == (2.0, 4.0, 1.0)
    assert (small["improvement"], small["fraction"]) == (2.0, 0.5)
    # Repeats 1 and 3 against the baseline's 2 and 6: 3 of 4 pairs are faster.
    assert small["improved_runs"] == 0.75
    assert (large["improvement"], large["fraction"]) == (0.5, 5 / 16)
    assert (small["status"], small["role"], small["study"]) == ("ok", "model", "s")
    # The third is usual: 2 and 16 ms.
    table = evaluated(recommended(listed, {64: [1], 100: [0]}), [FOLD], truth, domain, [])
    for n, gain, improvement in ((64, 2.0, 4.0), (100, 2.0, 1.0)):
        found = of(table, "mine", n)
        assert (found["gain"], found["improvement"]) == (gain, improvement)


@pytest.mark.parametrize(
    ("n", "number", "status"), [(64, 3, "failed"), (64, NEVER, NOT_MEASURED), (100, 1, "failed")]
)
def test_a_recommendation_without_a_time_is_counted_and_not_dropped(
    listed, truth, domain, n, number, status
):
    other = 100 if n == 64 else 64
    table = evaluated(recommended(listed, {n: [number], other: [2]}), [FOLD], truth, domain, [])
    found = of(table, "mine", n)
    assert found["status"] == status
    assert np.isnan(found["time_ms"])
    assert (found["improvement"], found["fraction"], found["improved_runs"]) == (0, 0, 0)
    assert found["best_ms"] == min(time for time in TIMES[n] if time is not None)
    mine = table[table["model"] == "mine"]
    figured = figures(mine, 2.0)
    assert (figured["problems"], figured["without_time"]) == (2, 1)
    assert (figured["fraction_worst"], figured["fraction_geometric_mean"]) == (0, 0)
    assert figured["harmed"] >= 1
    # The mean keeps the zero of what has no time.
    ratio = of(table, "mine", other)["improvement"]
    assert figured["improvement_coefficient"] == pytest.approx(ratio / 2)
    assert figured["percent_improved"] == 50.0 * (ratio > 1)


def test_a_recommendation_that_was_launched_once_has_that_time(listed, domain):
    told = zip(listed, ("ok", "ok", "slow"), (4.0, 1.0, 16.0), strict=False)
    rows = [
        {"gpu": GPU, **problem(64), **each, "status": status, "time_ms": ms, "times_ms": [ms]}
        for each, status, ms in told
    ]
    truth = Truth({GPU: pd.DataFrame(rows)}, domain)
    fold = Fold("it", ALL, (case(200),), (case(64),))
    table = evaluated(recommended(listed, {64: [2]}), [fold], truth, domain, [1])
    found = of(table, "mine", 64)
    assert (found["status"], found["time_ms"]) == ("slow", 16.0)
    assert (found["improvement"], found["fraction"]) == (0.25, 1 / 16)
    # Chance draws it like any other.
    assert of(table, "random_1", 64)["time_ms"] == pytest.approx(7.0)


def test_the_oracle_is_the_fastest_of_what_worked(listed, truth, domain):
    table = evaluated(recommended(listed, {64: [0], 100: [0]}), [FOLD], truth, domain, [])
    for n, number, time_ms in ((64, 1, 1.0), (100, 3, 5.0)):
        found = of(table, ORACLE, n)
        assert (found["time_ms"], found["fraction"]) == (time_ms, 1.0)
        assert found[domain.spec.tunable_columns].to_dict() == listed[number]
    # Recommending the baseline improves neither the problem nor a single run.
    untouched = of(table, "mine", 64)
    assert (untouched["improvement"], untouched["improved_runs"]) == (1.0, 0.0)


def test_random_draws_are_expectations_over_what_was_measured(listed, truth, domain):
    table = evaluated(recommended(listed, {64: [0], 100: [0]}), [FOLD], truth, domain, [1, 2, 9])
    # Of 4, 1 and 2; then pairs (4, 1), (4, 2), (1, 2); then all of them.
    expected = {"random_1": 7 / 3, "random_2": 4 / 3, "random_9": 1.0}
    chances = {"random_1": 2 / 3, "random_2": 1.0, "random_9": 1.0}
    for model, time_ms in expected.items():
        found = of(table, model, 64)
        assert found["time_ms"] == pytest.approx(time_ms)
        assert found["improvement"] == pytest.approx(4 / time_ms)
        assert found["improved_runs"] == pytest.approx(chances[model])
        assert found["role"] == "baseline"


def test_intervals_and_losses_of_answers_are_counted(listed, truth, domain):
    table = evaluated(recommended(listed, {64: [2], 100: [2]}), [FOLD], truth, domain, [])
    of_one = table[table["model"] == "mine"].iloc[[0] * 8]
    rows = of_one.assign(
        gain=[1.5, 2.0, 1.0, 1.0, 0.985, 0.975, 0.0, 1.1],
        least_gain=[1.2, 1.2, 1.0, 1.0, 0.9, 1.0, np.nan, 1.1],
        most_gain=[1.8, 1.8, 1.0, 1.0, 1.1, 1.2, np.nan, 1.1],
        is_usual=[False, False, True, True, False, False, False, False],
        usual_ms=1.0,
        best_ms=[0.5, 0.5, 0.9, 0.96, 0.9, 1.0, 1.0, 0.9],
    )
    found = figures(rows, 2.0)
    # The usual choice's own gain is 1 for certain: that covers nothing.
    assert (found["intervals"], found["covered"]) == (5, pytest.approx(3 / 5))
    # Slower by more than 2 %, or without a time.
    assert found["harmed"] == 2
    assert (found["kept_usual"], found["missed"], found["worthwhile"]) == (2, 1, 5)


def test_summary_by_hand(listed, truth, domain):
    predicted = {64: [1.0, 3.0, 4.0, 9.0], 100: [5.0, 8.0, 8.0, 9.0]}
    recommendations = recommended(listed, {64: [2, 1, 0, 3], 100: [3, 2, 0, 1]}, predicted)
    table = evaluated(recommendations, [FOLD], truth, domain, [1])
    schema = evaluation_schema(domain.spec)
    schema.insist("evaluation", table[list(schema.columns)])
    facts = {"mine": {"title": "Mine", "seconds_to_train": 2.0}}
    summary = summarise(table, domain.spec, 2.0, facts)
    assert summary["models"]["mine"] == {"role": "model", "title": "Mine", "seconds_to_train": 2.0}
    part = summary["splits"]["it"]["all"]
    assert part == summary["splits"]["it"][GPU]
    assert part["problems"] == 2
    assert part["null_accuracy"] == 0.5
    mine = part["models"]["mine"]
    # Fractions 1/2 and 1; improvements 2 and 8/5.
    assert mine["fraction_geometric_mean"] == pytest.approx(0.5**0.5)
    assert mine["fraction_p5"] == pytest.approx(0.525)
    assert mine["fraction_worst"] == 0.5
    assert mine["accuracy"] == mine["accuracy_near_best"] == 0.5
    assert mine["improvement_coefficient"] == pytest.approx(1.8)
    assert mine["percent_improved"] == 100.0
    assert mine["harmed"] == 0
    # Two problems are too few for an interval.
    assert mine["fraction_interval"] is mine["beside_best_model"] is None
    # Pairs below: 3 of 4 of (1, 3) against (2, 6); 2.5 | 7.5 against 4 | 12: 3 of 4.
    assert mine["percent_runs_improved"] == 75.0
    # 64: predicted 1, 3, 4 of measured 2, 1, 4: off by 50, 200 and 0 %, ranks (1, 2, 3)|(2, 1, 3).
    # 100: predicted 5, 8, 8 of 5, 16, 8: off by 0, 50 and 0 %, ranks (1, 2.5, 2.5)|(1, 3, 2).
    assert mine["mape_percent"] == pytest.approx((250 / 3 + 50 / 3) / 2)
    assert mine["spearman"] == pytest.approx((0.5 + 3**0.5 / 2) / 2)
    # The oracle predicts nothing: JSON has null for that.
    assert part["models"][ORACLE]["mape_percent"] is None
    assert part["models"][ORACLE]["accuracy"] == 1.0
    # Of rules the best one stands beside a model: .5 ** .5 beside .5.
    many = pd.concat([table.assign(n=table["n"] + 1000 * place) for place in range(3)])
    own = many[many["model"] == "mine"]
    shares = {"untuned": 0.25, "usual": 0.5, "nearest_size": 0.125}
    rules = [own.assign(model=each, role="baseline", fraction=f) for each, f in shares.items()]
    summary = summarise(pd.concat([many, *rules]), domain.spec, 2.0, facts)
    low, high = summary["splits"]["it"]["all"]["models"]["mine"]["beside_best_heuristic"]
    assert 1 <= low < 2**0.5 < high <= 2


@settings(max_examples=10)
@given(st.data())
def test_no_recommendation_beats_the_oracle(listed, truth, domain, data):
    numbers = st.permutations(range(5))
    tables = [
        recommended(listed, {n: list(data.draw(numbers)) for n in TIMES}, model=model)
        for model in ("mine", "yours")
    ]
    draws = data.draw(st.lists(st.integers(1, 6), unique=True, max_size=3))
    table = evaluated(pd.concat(tables), [FOLD], truth, domain, draws)
    assert len(table) == 2 * (2 + 1 + len(draws))
    assert (table.loc[table["model"] == ORACLE, "fraction"] == 1).all()
    assert (table["fraction"] <= 1 + 1e-12).all()
    assert (table.loc[table["time_ms"].isna(), "fraction"] == 0).all()
    known = table[table["time_ms"].notna()]
    assert (known["fraction"] > 0).all()


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({64: [1]}, "mine recommends for 1 of 2 test problems and for 0 others"),
        (
            {64: [1], 100: [0], 200: [0]},
            "mine recommends for 2 of 2 test problems and for 1 others",
        ),
    ],
)
def test_recommendations_for_other_problems_than_the_test_ones_are_refused(
    listed, truth, domain, choices, message
):
    with pytest.raises(UserError, match=message) as caught:
        evaluated(recommended(listed, choices), [FOLD], truth, domain, [])
    assert caught.value.key == f"it.{ALL}"


def test_only_candidates_count_as_the_best(stencil_spec, listed):
    narrow = Domain(stencil_spec, {GPU: profile()}, {"variant": ["column"]})
    sweep = measurements(stencil_spec, [{"n": [64], "dtype": ["float32"], "order": [2]}])
    sweep.loc[sweep["variant"] == "block3d", "time_ms"] /= 100
    one = Fold("it", ALL, (case(200),), (case(64),))
    table = evaluated(
        recommended(listed, {64: [0]}), [one], Truth({GPU: sweep}, narrow), narrow, []
    )
    allowed = sweep[sweep["variant"].isin(["column", "linear"])]
    assert of(table, ORACLE, 64)["time_ms"] == allowed["time_ms"].min()
    assert allowed["time_ms"].min() > sweep["time_ms"].min()


# The whole way from sweep to evaluation


WAY = Fold("it", ALL, (case(64), case(130)), (case(100),))


def test_from_sweep_to_evaluation(sweep, domain, tmp_path):
    models = {"t": Asked(entry("tree"))}
    learn(learning(models, domain, {GPU: sweep}, [WAY]), tmp_path, "it")
    learnt = read_learnt(tmp_path, [*BASELINES, "t"], domain.spec)
    assert learnt.facts["t"]["cases"] == 1
    for method in ("t", "untuned"):
        assert sorted(learnt.recommended(method)["rank"]) == list(range(1, LONGEST + 1))
    # Every candidate has a predicted time, and the first recommendation the least of them.
    times = learnt.predicted_times
    assert len(times) == len(domain.choices(WAY.test))
    first = learnt.recommended("t", 1)["predicted_ms"].item()
    assert first == pytest.approx(times["t_ms"].min(), rel=RESOLUTION)
    truth = Truth({GPU: sweep}, domain)
    files = tmp_path / "table.parquet", tmp_path / "curves.parquet", tmp_path / "summary.json"
    write_evaluation("s", learnt, [WAY], truth, domain, [1, 20], "t", files, processes=1)
    table = read_table(tmp_path / "table.parquet", evaluation_schema(domain.spec))
    assert set(table["model"]) == {"t", ORACLE, "random_1", "random_20", *BASELINES}
    assert (table["n"] == 100).all()
    own = of(table, "t", 100)
    assert own["fraction"] <= own["best_of_5"] <= own["best_of_20"] <= 1
    listed = truth.beside(learnt.recommended("t"))
    for count in (5, 20):
        shares = (listed["best_ms"] / listed["time_ms"])[listed["rank"] <= count]
        assert own[f"best_of_{count}"] == shares.max()
    measured = sweep[(sweep["n"] == 100) & sweep["time_ms"].notna()]["time_ms"]
    assert own["configurations"] == len(measured)
    assert own["needle_index"] == (measured <= 1.05 * measured.min()).sum() > 0
    summary = read_sealed_json(tmp_path / "summary.json")
    assert {each["model"] for each in summary["predictions"]} == {"t"}
    curves = read_table(tmp_path / "curves.parquet", curves_schema())
    drawn = curves[curves["gpu"] == ALL_GPUS].pivot(
        index="measured", columns="model", values="fraction"
    )
    assert list(drawn.index) == list(range(1, LONGEST + 1))
    assert set(drawn) == {"t", RANDOM, SEARCH, *BASELINES}
    # The answer first; then up to twenty in all.
    search = drawn.pop(SEARCH).dropna()
    assert list(search.index) == list(range(1, 21))
    assert search[1] == own["fraction"]
    assert search.is_monotonic_increasing
    assert drawn.loc[[1, 5, 20], "t"].tolist() == [
        own["fraction"], own["best_of_5"], own["best_of_20"]
    ]  # fmt: skip
    assert (drawn.diff().iloc[1:] >= -1e-12).all(axis=None)
    # In random order: the mean of best over time, then that of all pairs.
    shares = (measured.min() / measured).to_numpy()
    assert drawn.loc[1, RANDOM] == pytest.approx(shares.mean())
    pairs = [max(pair) for pair in itertools.combinations(shares, 2)]
    assert drawn.loc[2, RANDOM] == pytest.approx(np.mean(pairs))
