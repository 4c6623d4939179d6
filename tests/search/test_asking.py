"""A search that is asked and told, as scripts and other tuners use it."""

import itertools
import math
import re

import pytest
from samples import ROOT

from launchwise.base.typed import read_yaml
from launchwise.search import Search
from launchwise.search.candidates import fastest_elsewhere

WRONG = read_yaml(ROOT / "tests/search/data/wrong.yaml")

SPACE = {
    "block": [32, 64, 128, 256, 512],
    "unroll": [1, 2, 4, 8],
    "layout": ["rows", "columns"],
    "padded": [False, True],
}
COUNT = math.prod(map(len, SPACE.values()))


def time_ms(configuration, best=128):
    """A bowl with its bottom at ``best``; none for a large block that is much unrolled."""
    if configuration["block"] == 512 and configuration["unroll"] == 8:
        return None
    steps = math.log2(configuration["block"] / best), math.log2(configuration["unroll"] / 2)
    slow = {"rows": 1.0, "columns": 1.6}[configuration["layout"]]
    return slow * (1.1 - 0.1 * configuration["padded"] + 0.2 * sum(each**2 for each in steps))


def rows(best):
    """All rows of another GPU."""
    every = [dict(zip(SPACE, key, strict=True)) for key in itertools.product(*SPACE.values())]
    return [(each, time_ms(each, best)) for each in every]


def measured(search, most):
    """Ask and tell so often, or until nothing is left."""
    found = []
    while len(found) < most and (configuration := search.ask()) is not None:
        assert search.ask() == configuration
        search.tell(configuration, time_ms(configuration))
        found.append(configuration)
    return found


def until_best(search):
    """Configurations until the fastest of all was measured."""
    found = []
    while search.best is None or search.best[1] > 1.0:
        found += measured(search, 1)
    return found


def test_everything_is_asked_for_once_and_the_best_is_kept():
    search = Search(SPACE)
    assert search.best is None
    found = measured(search, 1000)
    assert len(found) == len({tuple(each.values()) for each in found}) == COUNT
    best = {"block": 128, "unroll": 2, "layout": "rows", "padded": True}
    assert search.best == (best, 1.0)
    assert search.ask() is None
    assert search.chance_left() == 0
    assert search.is_sure()


def test_rows_of_another_gpu_come_first_and_are_outlived():
    search = Search(SPACE, known=[rows(64)])
    first, *_ = measured(search, 12)
    assert (first["block"], first["unroll"]) == (64, 2)
    assert search.best[0]["block"] == 128


def test_a_search_ends_when_it_is_sure_and_not_before_some_measurements():
    search = Search(SPACE, known=[rows(128), rows(64)])
    asked = 0
    while not search.is_sure(percent=5):
        configuration = search.ask()
        search.tell(configuration, time_ms(configuration))
        asked += 1
    # However sure it is: the square root of their number.
    assert 9 <= asked < COUNT / 2
    assert search.best[1] <= 1.05


def test_what_is_fast_on_any_gpu_comes_first():
    losses = [{("a",): 0.0, ("b",): 0.4, ("c",): 0.2}, {("a",): 0.9, ("b",): 0.1, ("d",): 0.0}]
    for known in (losses, losses[::-1]):
        assert sorted(fastest_elsewhere(known, 2)) == [("a",), ("d",)]
        assert fastest_elsewhere(known, 9)[2:] == [("b",), ("c",)]


def test_rows_of_a_gpu_that_is_more_alike_count_more():
    like = {"sms": 100, "cores": 10_000, "clock_mhz": 1000, "memory_bandwidth_gbs": 1000}
    like |= {"arch": "sm_80", "compute_capability": [8, 0]}
    unlike = {**like, "sms": 10, "arch": "gfx90a"}
    known, gpus = [rows(32), rows(512)], [like, unlike]

    def first(gpu, known_gpus):
        return Search(SPACE, known=known, gpu=gpu, known_gpus=known_gpus).ask()["block"]

    assert (first(like, gpus), first(unlike, gpus)) == (32, 512)
    # A GPU of which nothing is known, or not enough: all count the same.
    assert first({**like, "arch": None}, gpus) == first(like, None) == first(None, gpus) == 128


def test_winners_without_times_are_the_first_and_shorten_a_search():
    winner = {"block": 64, "unroll": 2, "layout": "rows", "padded": True}
    strange = {**winner, "block": 48}
    assert measured(Search(SPACE, winners=[[winner, strange]]), 1) == [winner]
    guided, alone = (Search(SPACE, winners=each) for each in ([[winner]], []))
    assert len(until_best(guided)) < len(until_best(alone))


def test_only_what_is_allowed_is_asked_for():
    search = Search(SPACE, lambda each: each["block"] * each["unroll"] <= 256, [rows(512)])
    assert all(each["block"] * each["unroll"] <= 256 for each in measured(search, 1000))


def test_what_was_not_asked_for_is_taken_in():
    search = Search({"block": [32, 64, 128]})
    search.tell({"block": 64}, 0.5)
    assert search.best == ({"block": 64}, 0.5)
    assert len(measured_of(search)) == 2
    # In a space of which candidates are drawn, too.
    large = Search(LARGE)
    large.tell(dict.fromkeys(LARGE, 17), 0.5)
    assert large.best == (dict.fromkeys(LARGE, 17), 0.5)


def test_what_is_no_time_is_a_failure():
    known = [({"block": 1}, 0.0), ({"block": 2}, math.nan), ({"block": 3}, None)]
    search = Search({"block": [1, 2, 3, 4]}, known=[[*known, ({"block": 4}, 2)]])
    assert search.ask() == {"block": 4}
    for place, time in enumerate([-1.0, math.inf, 0.0], 1):
        search.tell({"block": place}, time)
    assert search.best is None
    search.tell({"block": 4}, 3)
    search.best[0]["block"] = 0
    assert search.best == ({"block": 4}, 3.0)


def measured_of(search):
    """All that is left, every time 1 ms."""
    found = []
    while (configuration := search.ask()) is not None:
        search.tell(configuration, 1.0)
        found.append(configuration)
    return found


LARGE = {f"t{place}": [*range(1, 33)] for place in range(8)}
KNOWN_OF_LARGE = [(dict.fromkeys(LARGE, 32), 1.0), (dict.fromkeys(LARGE, 1), 5.0)]


def test_a_space_that_cannot_be_listed_is_drawn_from():
    search = Search(LARGE, known=[KNOWN_OF_LARGE], seed=3)
    assert search.ask() == dict.fromkeys(LARGE, 32)


@pytest.mark.parametrize(("arguments", "said"), WRONG["made"])
def test_what_makes_no_search_is_said(arguments, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        Search(**arguments)


@pytest.mark.parametrize(("method", "given", "said"), WRONG["asked"])
def test_what_a_search_cannot_be_asked_is_said(method, given, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        getattr(two(), method)(*given)


def test_a_space_has_a_configuration_and_each_is_told_once():
    with pytest.raises(ValueError, match="no configuration is allowed"):
        Search({"block": [1]}, lambda _: False)
    with pytest.raises(ValueError, match=re.escape("was told before: {'block': 1}")):
        [each.tell({"block": 1}, 1.0) for each in 2 * [two()]]


def two():
    """A search among two, one of which is not allowed."""
    return Search({"block": [1, 2]}, lambda each: each["block"] == 1)
