"""Explorers that learn: from their own rows, and from other GPUs, which may be wrong."""

import math
import random
import statistics

from launchwise.measuring.explore import RandomDraws, TransferExplorer, neighbours
from launchwise.search.transfer_search import SURE
from launchwise.workloads.sampling import Draws
from launchwise.workloads.space import baseline, feasible
from tests.measuring.conftest import few_candidates
from tests.support.spaces import LARGE, POWERS, PROBLEM, best, driven, key, large, made

BEST = {"a": 8, "b": 16, "c": 2, "d": 64, "e": 4, "f": 32, "g": 1}
CONSTRAINTS = ("a * b * c <= 1024", "a * b >= 32", "a * d % 64 == 0", "g <= e")


def bowl(moved=0.0, unit=1.0):
    """Time that is smallest near :data:`BEST`: ``moved`` steps away from it along every axis."""

    def outcome(configuration):
        steps = [math.log2(int(configuration[name]) / BEST[name]) - moved for name in LARGE]
        slow = {"plain": 8.0, "other": 2.0, "tiled": 1.0}[str(configuration["variant"])]
        return unit * slow * (1 + sum(step * step for step in steps) / 6)

    return outcome


def measured(spec, outcome, rows=120):
    """A search on another GPU."""
    return driven(TransferExplorer(spec, PROBLEM, None, rows, 99), outcome)


def test_what_is_fast_on_another_gpu_comes_after_the_baseline_and_the_guesses():
    spec = large()
    rows = measured(spec, bowl(), 60)
    ranked = sorted(rows, key=lambda row: row[1] or math.inf)
    guess = {**dict.fromkeys(LARGE, 2), "variant": "tiled"}
    explorer = TransferExplorer(spec, PROBLEM, None, 4, 1, [guess], prior=[({}, rows)])
    found = [each for each, _ in driven(explorer, bowl())]
    assert found[0] == baseline(spec)
    assert {name: found[1][name] for name in guess} == guess
    # Which of the fastest ones depends on what those two took.
    fastest = [key(each) for each, _ in ranked[:5]]
    assert key(found[2]) in fastest
    assert key(found[3]) in fastest


def test_what_is_infeasible_here_or_unknown_is_not_taken_from_elsewhere():
    spec = large(["a * b <= gpu_max_threads_per_block"])
    facts = {"gpu_max_threads_per_block": 64}
    elsewhere = [
        ({**dict.fromkeys(LARGE, 128), "variant": "tiled"}, 0.1),  # Needs more threads.
        ({**dict.fromkeys(LARGE, 3), "variant": "tiled"}, 0.1),  # Values that are gone.
        ({**dict.fromkeys(LARGE, 1), "variant": "gone"}, 0.1),
        ({**dict.fromkeys(LARGE, 4), "variant": "tiled"}, 0.2),
        ({**dict.fromkeys(LARGE, 8), "variant": "tiled"}, 0.8),
    ]
    explorer = TransferExplorer(spec, PROBLEM, facts, 30, 1, prior=[({}, elsewhere)])
    found = [each for each, _ in driven(explorer)]
    assert [found[1][name] for name in LARGE] == [4] * len(LARGE)
    assert len(found) == 30
    assert all(feasible(spec, PROBLEM, each, facts) for each in found)


def test_neighbours_are_the_next_numbers_and_every_other_text():
    values = [8, 1, 4, 2]
    assert [neighbours(values, each) for each in (1, 4, 8)] == [[2], [2, 8], [4]]
    assert neighbours(["a", "b", "c"], "b") == ["a", "c"]


def test_gpus_that_only_failed_are_as_good_as_none():
    spec = large()
    failed = [(each, None) for each, _ in measured(spec, bowl(), 30)]
    runs = [
        driven(TransferExplorer(spec, PROBLEM, None, 30, 1, prior=prior), bowl())
        for prior in ([], [({}, failed)], [({}, [])])
    ]
    assert runs[0] == runs[1] == runs[2]


def test_a_small_space_is_measured_whole_whatever_others_say():
    spec = made({"a": POWERS, "b": [1, 2]}, {"plain": ([], []), "tiled": (["a", "b"], ["a > b"])})
    rows = [({"variant": "tiled", "a": 8, "b": 2}, 1.0)]
    found = driven(TransferExplorer(spec, PROBLEM, None, 1000, 1, prior=[({}, rows)]))
    sampled = Draws(spec, PROBLEM, None, 1).sample(random.Random(1), 1000)
    every = [baseline(spec), *sampled]
    assert {key(each) for each, _ in found} == {key(each) for each in every}


def test_rows_of_another_strategy_are_taken_in():
    """A journal that was begun with random draws: its rows need not be candidates."""
    spec = large(CONSTRAINTS, ["other", "tiled"])
    known = driven(RandomDraws(spec, PROBLEM, None, 40, 5), bowl())
    late = driven(TransferExplorer(spec, PROBLEM, None, 60, 1, known=known), bowl())
    assert len(late) == 20
    assert best(late) < best(known)


@few_candidates()
def test_how_sure_a_search_is_is_said_at_its_end():
    spec = large(CONSTRAINTS, ["other", "tiled"])
    prior = [({}, measured(spec, bowl(0.4), 80))]

    def said(rows, percent):
        explorer = TransferExplorer(
            spec, PROBLEM, None, rows, 3, prior=prior, stop_below_percent=percent
        )
        driven(explorer, bowl())
        return explorer.conclusion()

    few, many = said(5, None), said(60, None)
    assert few["within_percent"] == many["within_percent"] == 2
    assert 0 < many["chance_left"] < few["chance_left"] < 1
    assert said(70, 60.0)["chance_left"] <= SURE
    assert RandomDraws(spec, PROBLEM, None, 5, 1).conclusion() == {}


def test_failures_are_avoided_and_stop_nothing():
    """Half of the space fails, and the best that works lies beside it."""
    spec, smooth = large(), bowl()

    def outcome(configuration):
        fails = configuration["variant"] == "tiled" and int(configuration["a"]) > BEST["a"]
        return None if fails else smooth(configuration)

    told = [driven(TransferExplorer(spec, PROBLEM, None, 80, seed), outcome) for seed in range(4)]
    assert all(len(each) == 80 for each in told)
    late = [sum(time is None for _, time in each[40:]) / 40 for each in told]
    assert statistics.median(late) < 0.3  # Half of them by chance.
    by_chance = [driven(RandomDraws(spec, PROBLEM, None, 80, seed), outcome) for seed in range(4)]
    assert statistics.median(map(best, told)) < statistics.median(map(best, by_chance))
