"""Sizes near wanted ones that meet conditions."""

import itertools
import math
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from samples import ROOT

from launchwise.base.expressions import evaluate
from launchwise.base.typed import read_yaml
from launchwise.workloads.checks.fitting_sizes import Condition, Search, parts
from launchwise.workloads.parts import ProblemParameter

LARGE = (1, 1 << 20)


def nearest(texts, wanted, limits=None, names=None):
    """The nearest problem of integers between ``limits``."""
    ranges = {name: (limits or {}).get(name, LARGE) for name in wanted}
    parameters = {
        name: ProblemParameter(type="integer", minimum=low, maximum=high)
        for name, (low, high) in ranges.items()
    }
    conditions = [Condition.of(part, parameters, names) for text in texts for part in parts(text)]
    search = Search(parameters, wanted, conditions)
    first = search.nearest()
    assert first == Search(parameters, wanted, conditions).nearest()
    return first


@pytest.mark.parametrize(
    ("text", "wanted", "expected"), read_yaml(ROOT / "tests/workloads/data/fitting_sizes.yaml")
)
def test_one_size_is_moved_to_the_nearest_that_fits(text, wanted, expected):
    assert nearest([text], {"n": wanted}) == (None if expected is None else {"n": expected})


def test_values_of_a_configuration_are_read():
    names = {"block_size_x": 64}
    assert nearest(["n % (4 * block_size_x) == 0"], {"n": 1037}, names=names) == {"n": 1024}
    # A condition on the configuration alone is met by no size.
    assert nearest(["block_size_x > 64", "n > 3"], {"n": 2}, names=names) is None


def distance(one, other):
    """How far apart two problems are in size."""
    pairs = [sorted((one[name], other[name])) for name in one]
    return sum(math.log((high + 1) / (low + 1)) for low, high in pairs)


ONE = st.sampled_from(
    [
        *("n % {a} == 0", "n % {a} == {b}", "(n + {b}) % {a} == 0", "n >= {b}", "n <= {a} + {b}"),
        *("round_up(n, {a}) == n", "n // {a} * {a} == n", "n * n >= {b}", "n % {a} != 0"),
        *("log2(n) == log2(n) // 1", "n == {b}", "n in ({a}, {b})", "{a} % n == 0"),
    ]
)
TWO = st.sampled_from(
    [
        *("n % m == 0", "m <= n", "n * m % {a} == 0", "n == 2 * m", "n + m == {b}", "m % {a} == 0"),
        *("n >= 2 * m + {a}", "n * m <= {b}", "n % {a} == 0", "(n - m) % {a} == 0"),
    ]
)
NUMBERS = {"a": st.integers(1, 20), "b": st.integers(1, 60)}


@settings(max_examples=100)
@given(st.lists(ONE, min_size=1, max_size=2), st.integers(1, 60), st.fixed_dictionaries(NUMBERS))
def test_one_size_is_the_nearest_of_all(texts, wanted, numbers):
    texts = [text.format(**numbers) for text in texts]
    fitting = [{"n": n} for n in range(1, 61) if all(evaluate(t, {"n": n}) for t in texts)]
    found = nearest(texts, {"n": wanted}, {"n": (1, 60)})
    if not fitting:
        assert found is None
    else:
        assert found in fitting
        least = min(distance({"n": wanted}, each) for each in fitting)
        assert distance({"n": wanted}, found) == pytest.approx(least)


@settings(max_examples=80)
@given(
    st.lists(TWO, min_size=1, max_size=2),
    st.tuples(st.integers(1, 40), st.integers(1, 40)),
    st.fixed_dictionaries(NUMBERS),
)
@example(["n * m % {a} == 0", "n == 2 * m"], (1, 1), {"a": 11, "b": 1})
def test_two_sizes_fit_if_any_do(texts, wanted, numbers):
    texts = [text.format(**numbers) for text in texts]
    limits = {"n": (1, 40), "m": (1, 40)}
    every = [{"n": n, "m": m} for n, m in itertools.product(range(1, 41), repeat=2)]
    fitting = [each for each in every if all(evaluate(text, each) for text in texts)]
    found = nearest(texts, {"n": wanted[0], "m": wanted[1]}, limits)
    if found is not None:
        assert found in fitting
    elif fitting:
        raise AssertionError(f"{texts} at {wanted}: {fitting[0]} was not found")


def test_a_search_that_finds_nothing_ends_soon():
    wanted = {name: 1000 for name in "abcdef"}
    parameters = {name: ProblemParameter(type="integer") for name in wanted}
    texts = ["a * b * c * d * e * f % 7 == 9", "a % 2 == 0", "b <= a", "f % c == d"]
    conditions = [Condition.of(text, parameters) for text in texts]
    begun = time.process_time()
    assert Search(parameters, wanted, conditions).nearest() is None
    assert time.process_time() - begun < 2


@pytest.mark.parametrize(
    ("wanted", "texts", "expected"), read_yaml(ROOT / "tests/workloads/data/listed_sizes.yaml")
)
def test_of_listed_values_the_nearest_that_fits_is_taken(wanted, texts, expected):
    listed = {"n": ProblemParameter(type="integer", values=[64, 256, 1024])}
    conditions = [Condition.of(text, listed) for text in texts]
    assert Search(listed, {"n": wanted}, conditions).nearest() == {"n": expected}
