"""Intervals hold as many held-out cases as they say, and none is told by itself."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stencil import slice_of_card

from launchwise.learning.answers import Offsets
from launchwise.learning.conformal import (
    SPREAD_FLOOR,
    Errors,
    Known,
    limits_around,
    quantiles,
    table_of,
    with_limits,
)
from launchwise.learning.features import Domain
from launchwise.learning.splits import Case, Fold

SIZES = list(range(100, 1100, 10))
SPREAD = 0.04


@pytest.fixture(scope="module")
def domain(stencil_spec):
    return Domain(stencil_spec, {name: slice_of_card(name) for name in ("card", "other")})


def case(n, gpu="card"):
    return Case(gpu, {"n": n, "dtype": "float32", "order": 2})


def answers(errors, sizes, split="s", **more):
    """Answers whose gain is off by these errors, in units of their spread."""
    width = SPREAD + SPREAD_FLOOR
    table = pd.DataFrame({"n": sizes, "dtype": "float32", "order": 2, "gpu": "card"})
    given = {"split": split, "fold": "all", "expected_gain": 1.5, "spread": SPREAD}
    given |= {"predicted_ms": 2.0, "is_usual": False}
    off = np.exp(errors * width)
    return table.assign(**given, gain=1.5 * off, time_ms=2.0 / off, **more)


def folds(split="s", train=(10, 2000)):
    return [Fold(split, "all", tuple(case(n) for n in train), tuple(case(n) for n in SIZES))]


def covered(table):
    inside = (table["gain"] >= table["least_gain"]) & (table["gain"] <= table["most_gain"])
    return float(inside.mean())


def test_nine_of_ten_cases_lie_inside(domain):
    shares = []
    for seed in range(20):
        table = answers(np.random.default_rng(seed).standard_t(4, len(SIZES)), SIZES)
        shares.append(covered(with_limits(table, Errors.of(table, folds(), domain))))
    assert 0.88 < np.mean(shares) < 0.92


def test_a_case_has_no_part_in_its_own_interval(domain):
    """A problem that is off by far lies outside; on another GPU it does not help, either."""
    errors = np.random.default_rng(1).normal(size=len(SIZES))
    errors[7] = 40.0
    table = pd.concat([answers(errors, SIZES), answers(errors, SIZES)], ignore_index=True)
    table["gpu"] = np.repeat(["card", "other"], len(SIZES))
    train = (case(10), case(2000), case(10, "other"), case(2000, "other"))
    tests = tuple(case(n, gpu) for gpu in ("card", "other") for n in SIZES)
    known = Errors.of(table, [Fold("s", "all", train, tests)], domain)
    found = with_limits(table, known)
    assert (found["most_gain"] < found["gain"])[[7, 7 + len(SIZES)]].all()
    others = Errors.of(table[table["n"] != SIZES[7]], [Fold("s", "all", train, tests)], domain)
    assert known.offsets("within", 7) == others.offsets("within") != known.offsets("within")


def test_what_no_held_out_case_was_like_has_no_limits(domain):
    """Another card than that of all training cases, and a type that none of them has."""
    another = domain.profiles["other"].model_copy(update={"device_name": "Another"})
    asked = replace(domain, profiles={**domain.profiles, "other": another})
    table = answers(np.random.default_rng(4).normal(size=len(SIZES)), SIZES)
    table.loc[0, "gpu"], table.loc[1, "dtype"] = "other", "float64"
    table.loc[[2, 3], "n"] = 9, 2001
    known = Errors.of(table, folds(), asked)
    assert known.situations[:5].tolist() == ["unlike", *["beyond"] * 3, "within"]
    assert with_limits(table, known)["least_gain"].isna()[:5].tolist() == [True] * 4 + [False]


def test_each_gpu_is_within_what_it_measured_itself_and_near_enough(stencil_spec):
    """Every number between measured ones is not enough: a wide mesh has a hole."""
    sizes = [2**k for k in range(3, 11)]

    def at(n, order):
        return Case("card", {"n": n, "dtype": "float32", "order": order})

    grid = [at(n, order) for n in sizes for order in (2, 4, 8)]
    known = Known.of(
        table_of([*grid, at(1024, 64), case(10, "other"), case(40, "other")]), stencil_spec
    )
    asked = [case(700), case(700, "other"), case(30, "other"), case(10, "third")]
    asked += [replace(case(300), problem={**case(300).problem, "dtype": "float64"})]
    asked += [at(8, 64), at(1000, 64)]
    found = ["within", "beyond", "within", "new_gpu", "beyond", "beyond", "within"]
    assert known.situations(table_of(asked)).tolist() == found


def test_situations_have_intervals_of_their_own(domain):
    """What was asked beyond the training sizes is off by more, and tells nothing of the others."""
    errors = np.random.default_rng(2).normal(size=len(SIZES))
    near, far = answers(errors, SIZES), answers(errors * 9, SIZES, "far")
    table = pd.concat([near, far], ignore_index=True)
    both = [*folds(), *folds("far", (10, 20))]
    known = Errors.of(table, both, domain)
    assert set(known.by_situation()) == {"within", "beyond"}
    within, beyond = (known.by_situation()[each] for each in ("within", "beyond"))
    assert np.ptp(beyond.gain) > 5 * np.ptp(within.gain)
    limited = with_limits(table, known)
    # No test case tells how far beyond an answer is.
    assert limited.loc[limited["split"] == "far", "least_gain"].isna().all()
    assert 0.85 < covered(limited[limited["split"] == "s"]) < 0.97


def test_too_few_cases_take_those_of_all_situations_and_then_none(domain):
    errors = np.random.default_rng(3).normal(size=40)
    few = answers(errors[:10], SIZES[:10], "far")
    table = pd.concat([answers(errors[10:], SIZES[10:40]), few], ignore_index=True)
    known = Errors.of(table, [*folds(), *folds("far", (10, 20))], domain)
    assert known.offsets("beyond").cases == 10
    assert known.offsets("beyond").gain == quantiles(known.gains)
    alone = Errors.of(few, folds("far", (10, 20)), domain)
    assert alone.offsets("beyond") == Offsets(10, None, None)

    # Of 19 errors the least and the largest hold nine of ten others; fewer do not.
    assert quantiles(np.arange(19.0)) == (0.0, 18.0)
    assert quantiles(np.arange(18.0)) is None


def test_the_usual_choice_gains_exactly_nothing(domain):
    table = answers(np.zeros(len(SIZES)), SIZES)
    table.loc[:3, "is_usual"] = True
    known = Errors.of(table, folds(), domain)
    assert np.isnan(known.gains[:4]).all()
    limited = with_limits(table, known)
    assert (limited.loc[:3, ["least_gain", "most_gain"]] == 1.0).all(axis=None)


@given(st.lists(st.floats(-50, 50), max_size=60))
def test_quantiles_need_nineteen_errors(errors):
    found = quantiles(np.array([*errors, np.nan]))
    assert (found is None) == (len(errors) < 19)
    if found is not None:
        assert min(errors) <= found[0] <= found[1] <= max(errors)


def test_limits_are_around_what_is_expected():
    asked = np.array(["within", "new_gpu", "beyond"], dtype=object)
    offsets = {"within": Offsets(20, (-1.0, 2.0), (-0.1, 0.2)), "beyond": Offsets(3)}
    values = np.array([2.0, 2.0, 2.0])
    gains = limits_around(values, asked, offsets, np.full(3, 0.09))
    assert gains[0] == pytest.approx(2 * np.exp([-0.1, 0.2]))
    assert limits_around(values, asked, offsets)[0] == pytest.approx(2 * np.exp([-0.1, 0.2]))
    assert np.isnan(gains[1:]).all()
