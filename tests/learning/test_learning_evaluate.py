"""Evaluation: nothing is dropped, nothing leaks, and figures are those worked out by hand."""

import itertools
import math

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
from launchwise.learning.truth import EXPECTED, NOT_MEASURED, ORACLE, Truth, read_learnt
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


def rows_of(listed, times, slow=()):
    """Measurements of some sizes; those of ``slow`` were launched once."""
    return pd.DataFrame([
        {
            "gpu": GPU,
            **problem(n),
            **configuration,
            "status": "failed" if ms is None else "slow" if (n, place) in slow else "ok",
            "time_ms": np.nan if ms is None else ms,
            "times_ms": np.array([] if ms is None else [ms * 0.5, ms * 1.5]),
        }
        for n, of in times.items()
        for place, (configuration, ms) in enumerate(zip(listed, of, strict=False))
    ])  # fmt: skip


@pytest.fixture(scope="module")
def rows(listed):
    return rows_of(listed, TIMES)


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


def of_model(table, model, n):
    found = table[(table["model"] == model) & (table["n"] == n)]
    assert len(found) == 1
    return found.iloc[0]


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


MS = st.sampled_from([1.0, 4.0, 5.0])
OTHERS = st.lists(st.sampled_from([None, 1.0, 4.0, 5.0]), min_size=2, max_size=3)
NEAR = 25.0  # Percent above the best that are near it


def plain_figures(times, orders, predicted):
    """What :func:`figures` gives, in plain arithmetic; a size's third configuration is usual."""
    found = []
    for n, of in times.items():
        known = {place: ms for place, ms in enumerate(of) if ms is not None}
        best, baseline = min(known.values()), of[0]
        ms = known.get(orders[n][0], math.inf)
        usual = known.get(2, baseline)
        shares = [best / known.get(place, math.inf) for place in orders[n]]
        told = [(predicted[n][place], known[place]) for place in orders[n] if place in known]
        ranks = [pd.Series(each).rank() for each in zip(*told, strict=True)]
        pairs = [one * ms < other * baseline for one in (0.5, 1.5) for other in (0.5, 1.5)]
        found.append({
            **{"fraction": best / ms, "gain": usual / ms, "improvement": baseline / ms},
            "runs": np.mean(pairs) * (orders[n][0] > 0),
            **{f"best_of_{count}": max(shares[:count]) for count in (5, 20)},
            **{"usual": orders[n][0] == 2, "worth": usual / best > 1.05},
            "mape": np.mean([100 * abs(one / other - 1) for one, other in told] or [np.nan]),
            "spearman": ranks[0].corr(ranks[1]) if ranks else np.nan,
        })  # fmt: skip
    table = pd.DataFrame(found)
    with np.errstate(divide="ignore"):
        means = np.exp(np.log(table[["gain", "fraction", "best_of_5", "best_of_20"]]).mean())
    return {
        **{"problems": len(table), "without_time": (table["gain"] == 0).sum()},
        "percent_improved": 100 * (table["improvement"] > 1).mean(),
        "percent_runs_improved": 100 * table["runs"].mean(),
        "improvement_coefficient": table["improvement"].mean(),
        **{f"{name}_geometric_mean": means[name] for name in ("gain", "fraction")},
        **{name: means[name] for name in ("best_of_5", "best_of_20")},
        "fraction_p5": table["fraction"].quantile(0.05),
        "fraction_worst": table["fraction"].min(),
        "harmed": (table["gain"] < 1 / 1.02).sum(),
        "kept_usual": table["usual"].sum(),
        "missed": (table["usual"] & table["worth"]).sum(),
        "worthwhile": table["worth"].sum(),
        **{"intervals": 0, "covered": None},
        "accuracy": (table["fraction"] == 1).mean(),
        "accuracy_near_best": (table["fraction"] > 0.799).mean(),
        "mape_percent": table["mape"].mean(),
        "spearman": table["spearman"].mean(),
        **dict.fromkeys(("fraction_interval", "beside_best_model", "beside_best_heuristic")),
    }


@settings(max_examples=15)
@given(st.data())
def test_figures_are_those_of_plain_arithmetic(listed, domain, data):
    sizes = (64, 100)
    times = {n: [data.draw(MS), *data.draw(OTHERS)] for n in sizes}
    slow = data.draw(st.sets(st.tuples(st.sampled_from(sizes), st.integers(1, 3))))
    orders = {
        n: data.draw(st.permutations(range(5)))[: data.draw(st.integers(1, 5))] for n in sizes
    }
    predicted = {n: data.draw(st.lists(MS, min_size=5, max_size=5)) for n in sizes}
    truth = Truth({GPU: rows_of(listed, times, slow)}, domain)
    said = {n: [predicted[n][place] for place in order] for n, order in orders.items()}
    table = evaluated(recommended(listed, orders, said), [FOLD], truth, domain, [1, 2])
    schema = evaluation_schema(domain.spec)
    schema.insist("evaluation", table[list(schema.columns)])
    facts = {"mine": {"title": "Mine", "seconds_to_train": 2.0}}
    summary = summarise(table, domain.spec, NEAR, facts)
    assert summary["models"]["mine"] == {"role": "model", **facts["mine"]}
    part = summary["splits"]["it"]["all"]
    assert part == summary["splits"]["it"][GPU]
    wanted = plain_figures(times, orders, predicted)
    wanted = {name: None if pd.isna(value) else value for name, value in wanted.items()}
    assert part["models"]["mine"] == {name: pytest.approx(one) for name, one in wanted.items()}
    for n, of in times.items():
        known = [ms for ms in of if ms is not None]
        own = of_model(table, ORACLE, n)
        assert (own["time_ms"], own["fraction"], own["best_of_5"]) == (min(known), 1, 1)
        assert of[listed.index(own[domain.spec.tunable_columns].to_dict())] == min(known)
        first = orders[n][0]
        status = NOT_MEASURED if first >= len(of) else "failed" if of[first] is None else "ok"
        status = "slow" if status == "ok" and (n, first) in slow else status
        assert of_model(table, "mine", n)["status"] == status
        for count in (1, 2):
            drawn = [min(each) for each in itertools.combinations(known, min(count, len(known)))]
            random = of_model(table, f"random_{count}", n)
            assert random["time_ms"] == pytest.approx(np.mean(drawn))
            assert random["improved_runs"] == pytest.approx(np.mean(np.array(drawn) < of[0]))
            assert (random["role"], random["status"]) == ("baseline", EXPECTED)


def test_a_model_stands_beside_the_rule_that_is_best_on_average(listed, truth, domain):
    table = evaluated(recommended(listed, {64: [2], 100: [3]}), [FOLD], truth, domain, [])
    many = pd.concat([table.assign(n=table["n"] + 1000 * place) for place in range(3)])
    own = many[many["model"] == "mine"].assign(fraction=1.0)
    shares = {"untuned": 0.5, "usual": [1, 1, 1, 1, 1, 0.4], "nearest_size": 0.45}
    rules = [own.assign(model=each, role="baseline", fraction=f) for each, f in shares.items()]
    others = many[many["model"] != "mine"]
    found = summarise(pd.concat([others, own, *rules]), domain.spec, 2.0, {})["splits"]["it"]["all"]
    low, high = found["models"]["mine"]["beside_best_heuristic"]
    assert 1 <= low < 0.4 ** (-1 / 6) < high < 2
    assert found["models"]["mine"]["beside_best_model"] == (1, 1)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({64: [1]}, "mine recommends for 1 of 2 test problems and for 0 others"),
        ({64: [1], 100: [0], 200: [0]}, "for 2 of 2 test problems and for 1 others"),
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
    assert of_model(table, ORACLE, 64)["time_ms"] == allowed["time_ms"].min()
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
    own = of_model(table, "t", 100)
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
