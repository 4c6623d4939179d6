"""The explorer that learns: what it finds, what it avoids and which variants it tries."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

import pytest

from launchwise.measuring.explore import RandomDraws, TreeParzen
from launchwise.workloads.space import Configuration
from tests.support.spaces import LARGE, POWERS, PROBLEM, best, driven, large, made

BEST = {"a": 8, "b": 16, "c": 2, "d": 64, "e": 4, "f": 32, "g": 1}


def smooth(configuration: Configuration) -> float:
    """1 at :data:`BEST` and more with every step away from it; the other variant is worse."""
    steps = [math.log2(int(configuration[name]) / BEST[name]) for name in LARGE]
    slow = {"plain": 8.0, "other": 2.0, "tiled": 1.0}[str(configuration["variant"])]
    return slow * (1 + sum(step * step for step in steps) / 6)


@pytest.mark.slow
def test_the_model_finds_much_better_ones_than_chance_among_millions() -> None:
    constraints = ("a * b * c <= 1024", "a * b >= 32", "a * d % 64 == 0", "g <= e")
    spec = large(constraints, ["other", "tiled"])
    found = {
        kind: statistics.median(
            best(driven(kind(spec, PROBLEM, None, 100, 1000 * seed), smooth)) for seed in range(5)
        )
        for kind in (RandomDraws, TreeParzen)
    }
    # From the best there is, which takes 1: less than half as far.
    assert found[TreeParzen] - 1 < 0.5 * (found[RandomDraws] - 1)


def test_the_model_learns_which_text_and_which_variant_are_good() -> None:
    modes = [f"mode{number}" for number in range(8)]
    values: dict[str, Sequence[int | str]] = {"one": modes, "two": modes, "three": modes}
    names = list(values)
    spec = made(values, {"plain": ([], []), **dict.fromkeys(("bad", "good"), (names, []))})

    def outcome(configuration: Configuration) -> float:
        right = sum(configuration[name] == "mode5" for name in names)
        return (4 - right) * (1.0 if configuration["variant"] == "good" else 3.0)

    late = [driven(TreeParzen(spec, PROBLEM, None, 80, seed), outcome)[50:] for seed in range(4)]
    shares = [sum(each["variant"] == "good" for each, _ in told) / len(told) for told in late]
    assert statistics.median(shares) > 0.7  # Half of them by chance.
    right = [sum(each[name] == "mode5" for each, _ in told for name in names) for told in late]
    assert statistics.median(right) / (30 * 3) > 0.25  # One in eight by chance.


def test_failures_are_avoided_and_stop_nothing() -> None:
    """Half of the space fails, and the best that works lies beside it."""
    spec = large()

    def outcome(configuration: Configuration) -> float | None:
        fails = configuration["variant"] == "tiled" and int(configuration["a"]) > BEST["a"]
        return None if fails else smooth(configuration)

    told = [driven(TreeParzen(spec, PROBLEM, None, 80, seed), outcome) for seed in range(4)]
    assert all(len(each) == 80 for each in told)
    late = [sum(time is None for _, time in each[40:]) / 40 for each in told]
    assert statistics.median(late) < 0.3  # Half of them by chance.
    by_chance = [driven(RandomDraws(spec, PROBLEM, None, 80, seed), outcome) for seed in range(4)]
    assert statistics.median(map(best, told)) < statistics.median(map(best, by_chance))


def test_every_variant_is_tried_before_any_is_tried_again() -> None:
    small: dict[str, tuple[Sequence[str], Sequence[str]]] = {
        f"small{number}": (["a"], []) for number in range(8)
    }
    spec = made(
        dict.fromkeys(LARGE, POWERS),
        {"plain": ([], []), "large": (LARGE, []), "none": (LARGE, ["m > 4"]), **small},
    )
    told = driven(TreeParzen(spec, PROBLEM, None, 10, 1))
    assert {each["variant"] for each, _ in told} == {"plain", "large", *small}


def test_where_nothing_is_known_to_be_good_a_large_variant_is_drawn_more_often() -> None:
    small: dict[str, tuple[Sequence[str], Sequence[str]]] = {
        f"small{number}": (["a", "b"], []) for number in range(8)
    }
    spec = made(dict.fromkeys(LARGE, POWERS), {"plain": ([], []), "large": (LARGE, []), **small})
    told = [driven(TreeParzen(spec, PROBLEM, None, 60, each), lambda _: None) for each in range(4)]
    late = [each["variant"] for rows in told for each, _ in rows[10:]]
    # Every other time, and now and then the others.
    assert 0.4 < late.count("large") / len(late) < 0.75
    assert set(late) >= set(small)


def test_a_small_variant_is_tried_beside_a_large_one() -> None:
    spec = made(
        dict.fromkeys(LARGE, POWERS),
        {"plain": ([], []), "large": (LARGE, []), "small": (["a", "b"], [])},
    )

    def outcome(configuration: Configuration) -> float:
        slow = {"plain": 8.0, "large": 4.0, "small": 1.0}[str(configuration["variant"])]
        return slow * (1 + abs(int(configuration["a"]) - 16))

    told = driven(TreeParzen(spec, PROBLEM, None, 40, 3), outcome)
    assert sum(each["variant"] == "small" for each, _ in told[20:]) > 10
    assert best(told) == 1
