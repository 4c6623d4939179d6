"""Blind tests: problems that are drawn keep their constraints; figures, worked out by hand."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from samples import ROOT, profile

from launchwise.base.errors import UserError
from launchwise.experiment.load import Load
from launchwise.experiment.study import Blind
from launchwise.gpus.profile import read_profile
from launchwise.learning.blind import (
    Frozen,
    blocks_of,
    check_measured_after,
    draw_problems,
    freeze,
    read_frozen,
    score,
    summarise,
)
from launchwise.learning.features import Domain
from launchwise.workloads import space
from tests.support.spaces import made


def drawn(constraints, count, measured=(), largest=1 << 29, load=None):
    """Problems of a blind test of a workload with constraints, beside measured sizes."""
    spec = made({"threads": [32, 64]}, {"plain": (["threads"], [])}, constraints)
    h200 = read_profile(ROOT / "data" / "recorded" / "h200" / "profile.json", "h200")
    domain = SimpleNamespace(spec=spec, narrowed=spec, profiles={"h200": h200})
    blind = Blind(parameters={"m": {"minimum": 1000, "maximum": largest}}, problems=count)
    tables = [pd.DataFrame({"m": [m]}) for m in measured]
    return draw_problems(blind, domain, "h200", tables, "1", load)


@pytest.mark.parametrize(
    ("constraint", "fits"),
    [
        ("m % 3 == 0", lambda m: m % 3 == 0),
        ("m % 4096 == 0", lambda m: m % 4096 == 0),
        ("log2(m) == log2(m) // 1", lambda m: m & (m - 1) == 0),
    ],
)
def test_drawn_problems_fit(constraint, fits):
    sizes = {int(problem["m"]) for problem in drawn([constraint], 4)}
    assert len(sizes) == 4
    assert all(1000 <= m <= 1 << 29 and fits(m) for m in sizes)


def test_what_any_table_holds_is_not_drawn():
    problems = drawn([], 3, [1000, 1003, 1004], largest=1005)
    assert {problem["m"] for problem in problems} == {1001, 1002, 1005}


def test_a_drawn_problem_has_a_configuration_that_may_run_it():
    problems = drawn(["m % 2 == 0 or threads == 48"], 3, largest=1005)
    assert {problem["m"] for problem in problems} == {1000, 1002, 1004}


def test_no_size_is_drawn_that_was_measured_of_another_type(stencil_spec):
    ranges = {
        "n": {"minimum": 1000, "maximum": 1003},
        "dtype": ["float32", "float64"],
        "order": [2],
    }
    blind = Blind(parameters=ranges, problems=3)
    domain = Domain(stencil_spec, {"h200": profile("h200")})
    measured = pd.DataFrame([{"n": 1000, "dtype": "float32", "order": 2}])
    for seed in "1234":
        problems = draw_problems(blind, domain, "h200", [measured], seed)
        assert sorted(problem["n"] for problem in problems) == [1001, 1002, 1003]


def test_problems_of_a_load_come_first():
    load = Load("w", ("m",), {(7,): 1, (1000,): 9, (8,): 1}, {})
    sizes = [problem["m"] for problem in drawn([], 3, [1000], largest=1001, load=load)]
    assert sorted(sizes) == [7, 8, 1001]


def test_ranges_without_a_problem_that_fits_are_told():
    with pytest.raises(UserError, match="hold 0 problems that were not measured, not 4"):
        drawn(["m == 7"], 4)


FROZEN = Frozen(
    study="s",
    workload="w",
    gpu="new",
    seed=1,
    commit="c",
    frozen_at="2026-01-01T00:00:00+00:00",
    product={"model": "chosen", "gpus": {"old": {}}},
    answers=[{"problem": {"n": 1}}],
    digest="d",
)

ROWS = pd.DataFrame(
    {
        "n": [1, 2, 3, 4, 5],
        # The last but one is the usual choice, the last has no time.
        "is_usual": [False, False, False, True, False],
        "fraction": [1.0, 0.8, 0.9, 0.5, 0.0],
        "best_of_5": [1.0, 0.9, 0.9, 0.5, 0.4],
        "best_of_20": [1.0, 1.0, 1.0, 0.5, 0.5],
        "gain": [1.2, 0.97, 0.99, 1.0, 0.0],
        "gain_low": [1.195, 0.95, 0.98, 1.0, np.nan],
        "gain_high": [1.205, 0.98, 1.0, 1.0, np.nan],
        "best_gain": [1.2, 1.04, 1.051, 2.0, 1.049],
        "improvement": [2.4, 1.94, 1.98, 2.0, 0.0],
        "expected_gain_low": [1.1, 0.98, 0.9, 1.0, 1.0],
        "expected_gain_high": [1.2, 1.1, 1.1, 1.0, 1.2],
        "measured_ms": [1.0, 2.0, 4.0, 8.0, np.nan],
        "expected_ms": [1.1, 1.9, 4.0, 10.0, 5.0],
        "expected_ms_low": [0.9, 1.8, np.nan, 9.0, 4.0],
        "expected_ms_high": [1.0, 1.95, np.nan, 11.0, 6.0],
    }
)


def test_figures_of_a_blind_test_by_hand():
    found = summarise(FROZEN, ROWS)
    assert (found["problems"], found["new_gpu"], found["model"]) == (5, True, "chosen")
    # More than 2 % slower, or without a time; of the latter no interval says that it is slower.
    assert (found["harmed"], found["slower"]) == (2, 2)
    # Gains of more than 5 % were possible at three; the usual choice misses one of them.
    assert (found["kept_usual"], found["missed"], found["worthwhile"]) == (1, 1, 3)
    # Expected gains of what is not usual: 1.2 and .99 lie inside, .97 and 0 do not.
    assert (found["intervals"], found["covered"]) == (4, 0.5)
    # Of three times with an interval the first lies at its end.
    assert (found["times"], found["times_covered"]) == (3, pytest.approx(1 / 3))
    # 10, 5, 0 and 25 %.
    assert found["time_error_percent"] == pytest.approx(7.5)
    assert (found["fraction_worst"], found["fraction_p5"]) == (0.0, pytest.approx(0.1))
    assert found["best_of_5"] == pytest.approx((0.9 * 0.9 * 0.5 * 0.4) ** 0.2)
    assert len(found["fraction_interval"]) == 2
    # A GPU that the product knew, and harm that is not sure.
    frozen = FROZEN.model_copy(update={"gpu": "old"})
    found = summarise(frozen, ROWS.iloc[[1]].assign(gain_high=1.05))
    assert (found["new_gpu"], found["harmed"], found["slower"]) == (False, 1, 0)


PROBLEM = {"n": 64, "dtype": "float32", "order": 2}


@pytest.fixture
def contest(stencil_spec):
    """A domain, a sweep and an answer: six candidates of 6 to 1 ms, the first suggested first."""
    domain = Domain(stencil_spec, {"new": profile("new")}, {"variant": ["linear", "block3d"]})
    listed = space.configurations(stencil_spec, PROBLEM)
    named = [one for one in listed if one["variant"] != "column"][:6]
    other = next(one for one in listed if one["variant"] == "column")
    told = zip([*named, other], [6.0, 5.0, 4.0, 3.0, 2.0, 1.0, 0.1], strict=True)
    rows = [{**PROBLEM, **each, "status": "ok", "time_ms": ms} for each, ms in told]
    known = {"is_usual": False, "expected_ms": 6.0, "interval_ms": None, "gain": 1.2}
    suggested = [{"configuration": each, **known, "gain_interval": [1.1, 1.3]} for each in named]
    answer = {"problem": PROBLEM, "basis": "within", "suggestions": suggested}
    return domain, pd.DataFrame(rows), FROZEN.model_copy(update={"answers": [answer]})


def pairs_of(frozen, **recommended):
    """Two are recommended: the answer stands second, a later one of another configuration first."""
    first, *others = (each["configuration"] for each in frozen.answers[0]["suggestions"][:4])
    roles = ("recommended+best", 2.0), ("near+recommended", 1.5), ("usual", 1.0), ("near", 1.9)
    rows = [
        {"roles": roles, "status": "ok", "time_ms": 1.0, "gain": gain, "gain_low": gain - 0.1,
         "gain_high": gain + 0.1, "improvement": 2 * gain, **configuration}
        for (roles, gain), configuration in zip(roles, [others[0], first, *others[1:]], strict=True)
    ]  # fmt: skip
    rows[1].update(recommended)
    return pd.DataFrame([{**PROBLEM, **row} for row in rows])


def test_scores_by_hand(contest):
    domain, sweep, frozen = contest
    (row,) = score(frozen, domain, sweep, pairs_of(frozen)).to_dict("records")
    assert (row["status"], row["fraction"], row["best_gain"]) == ("ok", 0.75, 2.0)
    assert (row["gain"], row["gain_low"], row["gain_high"]) == (1.5, 1.4, 1.6)
    assert row["improvement"] == 3.0
    # Of five answers the best takes 2 ms; what is no candidate is nobody's best.
    assert (row["best_of_5"], row["best_of_20"]) == (0.5, 1.0)
    assert (row["expected_gain_low"], row["expected_gain_high"]) == (1.1, 1.3)
    wrong = pairs_of(frozen, status="wrong", time_ms=np.nan, gain=1.5)
    (row,) = score(frozen, domain, sweep, wrong).to_dict("records")
    assert (row["status"], row["fraction"], row["gain"], row["improvement"]) == ("wrong", 0, 0, 0)


def test_an_answer_that_ran_alone_has_the_time_of_the_sweep(contest):
    domain, sweep, frozen = contest
    alone = pairs_of(frozen, time_ms=np.nan, gain=1.0)[1:2]
    (row,) = score(frozen, domain, sweep, alone).to_dict("records")
    assert (row["fraction"], row["gain"], row["measured_ms"]) == (1, 1, 6.0)


def test_only_what_is_verified_is_measured_as_an_answer(contest, stencil_spec):
    racing = stencil_spec.variants["column"].model_copy(update={"verified": False})
    variants = {**stencil_spec.variants, "column": racing}
    study = SimpleNamespace(candidates={}, constraints=[])
    (block,) = blocks_of(contest[2], study, stencil_spec.model_copy(update={"variants": variants}))
    assert block["only"] == {"variant": ["linear", "block3d"]}


def test_answers_are_of_what_nobody_measured_and_stay_as_they_were(tmp_path, contest):
    spec, path = contest[0].spec, tmp_path / "frozen.json"
    final = SimpleNamespace(spec=spec, fastest=pd.DataFrame([PROBLEM]), facts={})
    when = FROZEN.frozen_at
    with pytest.raises(UserError, match="was measured: this is no blind test"):
        freeze(path, "s", "new", final, [PROBLEM], 1, "c", when, lambda case: None)
    assert not path.exists()
    freeze(path, "s", "new", final, [], 1, "c", when, lambda case: None)
    assert read_frozen(path).frozen_at == when
    path.write_text(path.read_text().replace('"seed": 1', '"seed": 2'))
    with pytest.raises(UserError, match="the answers were changed"):
        read_frozen(path)
    check_measured_after(FROZEN, {"pairs": pd.DataFrame({"measured_at": [when]})})
    with pytest.raises(UserError, match="is before the answers were frozen"):
        check_measured_after(FROZEN, {"pairs": pd.DataFrame({"measured_at": ["2025-12-31"]})})
