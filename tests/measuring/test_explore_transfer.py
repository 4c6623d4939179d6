"""The explorer that starts from other GPUs: what they say comes first, and is outlived if wrong."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Sequence

import pytest

from launchwise.measuring.explore import RandomDraws, TransferExplorer, TreeParzen
from launchwise.search.transfer_search import SURE
from launchwise.workloads.sampling import Draws
from launchwise.workloads.space import Configuration, baseline, feasible
from launchwise.workloads.spec import Spec
from tests.support.spaces import LARGE, POWERS, PROBLEM, Outcome, best, driven, key, large, made

Rows = list[tuple[Configuration, float | None]]
BEST = {"a": 8, "b": 16, "c": 2, "d": 64, "e": 4, "f": 32, "g": 1}
CONSTRAINTS = ("a * b * c <= 1024", "a * b >= 32", "a * d % 64 == 0", "g <= e")


def bowl(moved: float = 0.0, unit: float = 1.0) -> Outcome:
    """Time that is smallest near :data:`BEST`: ``moved`` steps away from it along every axis."""

    def outcome(configuration: Configuration) -> float:
        steps = [math.log2(int(configuration[name]) / BEST[name]) - moved for name in LARGE]
        slow = {"plain": 8.0, "other": 2.0, "tiled": 1.0}[str(configuration["variant"])]
        return unit * slow * (1 + sum(step * step for step in steps) / 6)

    return outcome


def measured(spec: Spec, outcome: Outcome, rows: int = 120) -> Rows:
    """A sweep of another GPU."""
    return driven(TreeParzen(spec, PROBLEM, None, rows, 99), outcome)


@pytest.mark.slow
def test_among_millions_another_gpu_saves_most_of_the_measurements() -> None:
    spec = large(CONSTRAINTS, ["other", "tiled"])
    prior = [measured(spec, bowl(0.4, 3.0)), measured(spec, bowl(-0.3))]

    def reached(kind: Callable[..., RandomDraws], budget: int, **how: Sequence[Rows]) -> float:
        seeds = (1, 2, 3)
        runs = [driven(kind(spec, PROBLEM, None, budget, each, **how), bowl()) for each in seeds]
        return statistics.median(map(best, runs))

    with_others = reached(TransferExplorer, 20, prior=prior)
    # With a fifth, and with half of the measurements of those that start from nothing.
    assert with_others <= reached(TreeParzen, 100)
    assert with_others <= reached(TransferExplorer, 40)
    assert with_others < 1.2


def test_what_is_fast_on_another_gpu_comes_after_the_baseline_and_the_guesses() -> None:
    spec = large()
    rows = measured(spec, bowl(), 60)
    ranked = sorted(rows, key=lambda row: row[1] or math.inf)
    guess: Configuration = {**dict.fromkeys(LARGE, 2), "variant": "tiled"}
    explorer = TransferExplorer(spec, PROBLEM, None, 4, 1, [guess], prior=[rows])
    found = [each for each, _ in driven(explorer, bowl())]
    assert found[0] == baseline(spec)
    assert {name: found[1][name] for name in guess} == guess
    # Which of the fastest ones depends on what those two took.
    fastest = [key(each) for each, _ in ranked[:5]]
    assert key(found[2]) in fastest
    assert key(found[3]) in fastest


def test_what_is_infeasible_here_or_unknown_is_not_taken_from_elsewhere() -> None:
    spec = large(["a * b <= gpu_max_threads_per_block"])
    facts = {"gpu_max_threads_per_block": 64}
    elsewhere: Rows = [
        ({**dict.fromkeys(LARGE, 128), "variant": "tiled"}, 0.1),  # Needs more threads.
        ({**dict.fromkeys(LARGE, 3), "variant": "tiled"}, 0.1),  # Values that are gone.
        ({**dict.fromkeys(LARGE, 1), "variant": "gone"}, 0.1),
        ({**dict.fromkeys(LARGE, 4), "variant": "tiled"}, 0.2),
        ({**dict.fromkeys(LARGE, 8), "variant": "tiled"}, 0.8),
    ]
    explorer = TransferExplorer(spec, PROBLEM, facts, 30, 1, prior=[elsewhere])
    found = [each for each, _ in driven(explorer)]
    assert [found[1][name] for name in LARGE] == [4] * len(LARGE)
    assert len(found) == 30
    assert all(feasible(spec, PROBLEM, each, facts) for each in found)


def test_gpus_that_only_failed_are_as_good_as_none() -> None:
    spec = large()
    failed: Rows = [(each, None) for each, _ in measured(spec, bowl(), 30)]
    runs = [
        driven(TransferExplorer(spec, PROBLEM, None, 30, 1, prior=prior), bowl())
        for prior in ([], [failed], [[]])
    ]
    assert runs[0] == runs[1] == runs[2]


def test_with_other_gpus_a_killed_sweep_goes_on_as_if_nothing_had_happened() -> None:
    spec = large(CONSTRAINTS, ["other", "tiled"])
    prior = [driven(RandomDraws(spec, PROBLEM, None, 80, 99), bowl(0.4))]
    whole = driven(TransferExplorer(spec, PROBLEM, None, 45, 3, prior=prior))
    for rows in (1, 17, 44):
        resumed = TransferExplorer(spec, PROBLEM, None, 45, 3, (), whole[:rows], prior)
        assert whole[:rows] + driven(resumed) == whole


def test_a_small_space_is_measured_whole_whatever_others_say() -> None:
    spec = made({"a": POWERS, "b": [1, 2]}, {"plain": ([], []), "tiled": (["a", "b"], ["a > b"])})
    rows: Rows = [({"variant": "tiled", "a": 8, "b": 2}, 1.0)]
    found = driven(TransferExplorer(spec, PROBLEM, None, 1000, 1, prior=[rows]))
    sampled = Draws(spec, PROBLEM, None, 1).sample(random.Random(1), 1000)
    every = [baseline(spec), *sampled]
    assert {key(each) for each, _ in found} == {key(each) for each in every}


def test_rows_of_another_strategy_are_taken_in() -> None:
    """A journal that was begun with random draws: its rows need not be candidates."""
    spec = large(CONSTRAINTS, ["other", "tiled"])
    known = driven(RandomDraws(spec, PROBLEM, None, 40, 5), bowl())
    late = driven(TransferExplorer(spec, PROBLEM, None, 60, 1, known=known), bowl())
    assert len(late) == 20
    assert best(late) < best(known)


def test_a_search_ends_where_little_is_to_be_gained() -> None:
    spec = large([*CONSTRAINTS, "c <= 4", "e == 4", "f == 32", "g == 1"], ["other", "tiled"])
    prior = [measured(spec, bowl(1.5), 100)]
    smooth = bowl()

    def rough(configuration: Configuration) -> float:
        """What no neighbour tells: from nothing to as much again."""
        return (smooth(configuration) or 0.0) * (
            1 + random.Random(str(key(configuration))).random()
        )

    def searched(percent: float | None, known: Rows = ()) -> Rows:
        explorer = TransferExplorer(spec, PROBLEM, None, 70, 3, (), known, prior, percent)
        return driven(explorer, rough)

    to_the_end, careful, coarse = searched(None), searched(2.0), searched(30.0)
    assert len(to_the_end) == 70
    # However coarse: the square root of the 776 candidates.
    assert 28 == len(coarse) < len(careful) < 70
    # The limit says when to end and nothing else.
    assert careful == to_the_end[: len(careful)]
    assert coarse == to_the_end[: len(coarse)]
    assert best(careful) == best(to_the_end) <= best(coarse)
    # Told its journal it ends at the same row, and with a smaller limit it goes on.
    for rows in (len(careful) - 3, len(careful)):
        assert careful[:rows] + searched(2.0, careful[:rows]) == careful
    assert coarse + searched(2.0, coarse) == careful


def test_how_sure_a_search_is_is_said_at_its_end() -> None:
    spec = large(CONSTRAINTS, ["other", "tiled"])
    prior = [measured(spec, bowl(0.4), 80)]

    def said(rows: int, percent: float | None) -> dict[str, float]:
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
