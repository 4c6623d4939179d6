"""Explorers: what they propose, held against lists of small spaces; budgets, ends, resuming."""

import itertools
import json
import os
import random
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from launchwise.measuring.explore import RandomDraws, TransferExplorer
from launchwise.workloads import space
from launchwise.workloads.sampling import Draws, Key
from tests.measuring.conftest import few_candidates
from tests.support.spaces import LARGE, POWERS, PROBLEM, driven, key, large, made

KINDS = [RandomDraws, TransferExplorer]
FACTS = {"gpu_max_threads_per_block": 4}


@st.composite
def small_specs(draw):
    """Up to a hundred configurations, constraints over some, now and then over the baseline."""
    values = {
        "a": draw(st.permutations([1, 2, 4, 8]).map(lambda every: every[:3])),
        "b": draw(st.sampled_from([[1], [1, 3], [5, 1, 3]])),
        "mode": draw(st.sampled_from([["x"], ["y", "x"], ["x", "y", "z"]])),
    }
    asked = ["a * b <= 8", "a != b", "b <= m", "mode == 'x' or a > 1", "a % b == 0", "a > 100"]
    asked.append("a * b <= gpu_max_threads_per_block")
    variants = {"plain": ([], draw(st.sampled_from([[], [], ["a > 100"]])))}
    for name in draw(st.sampled_from([[], ["one"], ["one", "two"]])):
        used = draw(st.sets(st.sampled_from(sorted(values))).map(sorted))
        own = draw(st.lists(st.sampled_from(asked), max_size=2, unique=True))
        variants[name] = (draw(st.permutations(used)), own)
    common = draw(st.lists(st.sampled_from(asked), max_size=1))
    return made(values, variants, [f"variant == 'plain' or {text}" for text in common])


# Every strategy: budgets, feasibility, ends, resuming


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25)
@given(spec=small_specs(), budget=st.integers(0, 130), seed=st.integers(0, 2**48))
def test_proposals_are_feasible_never_twice_within_the_budget_and_cover_a_small_space(
    kind, spec, budget, seed
):
    every = {key(each) for each in space.configurations(spec, PROBLEM, FACTS)}
    found = [each for each, _ in driven(kind(spec, PROBLEM, FACTS, budget, seed))]
    assert len(found) == min(budget, len(every))
    assert {key(each) for each in found} <= every
    assert len({key(each) for each in found}) == len(found)
    assert all(list(each) == spec.tunable_columns for each in found)
    first = space.baseline(spec)
    assert found[:1] == [first][:budget] or key(first) not in every


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=6)
@given(
    spec=st.one_of(small_specs(), st.just(large(["a * b <= 256"], ["tiled", "other"]))),
    seed=st.integers(0, 2**48),
    killed=st.lists(st.integers(0, 40), min_size=1, max_size=2),
    guessed=st.integers(0, 3),
)
@few_candidates()
def test_a_sweep_that_was_killed_goes_on_as_if_nothing_had_happened(
    kind, spec, seed, killed, guessed
):
    small = len(spec.tunables) < len(LARGE)
    likely = space.configurations(spec, PROBLEM, FACTS)[1 : 1 + guessed] if small else []
    others = [({}, driven(RandomDraws(spec, PROBLEM, FACTS, 20, seed)))]
    more = {"prior": others} if kind is TransferExplorer and guessed else {}
    whole = driven(kind(spec, PROBLEM, FACTS, 45, seed, likely, **more))
    for rows in killed:
        known = whole[:rows]
        resumed = kind(spec, PROBLEM, FACTS, 45, seed, likely, known, **more)
        resumed.propose()  # Asked, and killed before it was told.
        resumed = kind(spec, PROBLEM, FACTS, 45, seed, likely, known, **more)
        assert known + driven(resumed) == whole


@few_candidates()
def of_every_kind():
    """What each strategy proposes, as JSON."""
    spec = large(["a * b <= 256"], ["tiled", "other"])
    return json.dumps([driven(kind(spec, PROBLEM, None, 25, 3)) for kind in KINDS])


def test_another_process_proposes_the_same(root):
    """Python's own hashes of text differ from process to process: nothing may hang on them."""
    script = "import tests.measuring.test_explore as t; print(t.of_every_kind())"
    other = "1" if os.environ.get("PYTHONHASHSEED") == "2" else "2"
    said = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONHASHSEED": other, "PYTHONPATH": f"{root}:{root}/tests/support"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert said == of_every_kind() + "\n"
    assert [len(each) for each in json.loads(said)] == [25] * len(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_another_seed_draws_something_else(kind):
    drawn = [driven(kind(large(), PROBLEM, None, 30, seed)) for seed in (1, 2, 2**32 + 1)]
    second = [[key(each) for each, _ in told[1:]] for told in drawn]
    assert not set(second[0]) & set(second[1])
    assert not set(second[0]) & set(second[2])


@pytest.mark.parametrize("kind", KINDS)
def test_asked_twice_it_says_the_same_and_what_it_said_may_be_changed(kind):
    explorer = kind(large(), PROBLEM, None, 30, 1)
    driven(explorer, most=15)
    first = explorer.propose()
    kept = dict(first)
    first["a"] = -1
    assert explorer.propose() == kept


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=10)
@given(spec=st.one_of(small_specs(), st.just(large(["a * b <= 256"]))), seed=st.integers(0, 99))
@few_candidates()
def test_what_is_likely_next_changes_nothing_and_random_draws_know_it(kind, spec, seed):
    explorer, silent = (kind(spec, PROBLEM, FACTS, 30, seed) for _ in range(2))
    ahead = []
    while (proposed := explorer.propose()) is not None:
        assert proposed == silent.propose()
        assert kind is TransferExplorer or not ahead or proposed == ahead[0]
        ahead = explorer.likely(4)
        keys = [key(each) for each in ahead]
        assert len({*keys, key(proposed)}) == len(keys) + 1 <= 5
        assert all(space.feasible(spec, PROBLEM, each, FACTS) for each in ahead)
        for one in (explorer, silent):
            one.tell(proposed, float(len(repr(proposed))))
    assert silent.propose() is None


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_a_journal_count_against_the_budget_once(kind):
    known = driven(kind(large(), PROBLEM, None, 12, 1))
    twice = known + [(each, 1.0) for each, _ in known]
    assert len(driven(kind(large(), PROBLEM, None, 20, 1, known=twice))) == 8
    assert kind(large(), PROBLEM, None, 12, 1, known=known).propose() is None
    assert kind(large(), PROBLEM, None, 5, 1, known=known).propose() is None
    # Those of a variant that is not verified do not count.
    spec = large((), ["tiled", "other"])
    racing = {"other": spec.variants["other"].model_copy(update={"verified": False})}
    spec = spec.model_copy(update={"variants": {**spec.variants, **racing}})
    others = [({**each, "variant": "other"}, 1.0) for each, _ in known[1:]]
    assert len(driven(kind(spec, PROBLEM, None, 12, 1, known=others))) == 12


@pytest.mark.parametrize("kind", KINDS)
def test_the_baseline_comes_first_then_the_guesses_that_are_allowed(kind):
    spec = large(["a * b <= 256"])
    tile = {**dict.fromkeys(LARGE, 2), "variant": "tiled"}
    good = [{**tile, "a": 64}, {**tile, "b": 64}]
    bad = [
        {**tile, "a": 128, "b": 128},
        {**tile, "a": 3},
        {**tile, "variant": "gone"},
        {**tile, "variant": "plain"},
        {"variant": "tiled"},
    ]
    guesses = [bad[0], good[0], *bad[1:], space.baseline(spec), good[1], good[0]]
    found = [each for each, _ in driven(kind(spec, PROBLEM, None, 10, 1, guesses))]
    assert found[:3] == [space.baseline(spec), *good]
    assert all(list(each) == spec.tunable_columns for each in found)
    assert not any(each in found for each in bad)
    # A journal that already has the first guess.
    resumed = kind(spec, PROBLEM, None, 10, 1, guesses, [(good[0], 1.0)])
    assert [each for each, _ in driven(resumed)][:2] == [space.baseline(spec), good[1]]


@pytest.mark.parametrize("kind", KINDS)
def test_a_baseline_with_a_value_that_its_variant_cannot_be_set_to_is_well(kind):
    spec = made({"a": POWERS, "b": [0, 5]}, {"plain": (["a"], [])}, neutral={"a": 0}, b=5)
    found = [each for each, _ in driven(kind(spec, PROBLEM, None, 50, 1))]
    assert found[0] == {"variant": "plain", "a": 0, "b": 5}
    assert {key(each) for each in found[1:]} == {("plain", a, 0) for a in POWERS}


@pytest.mark.parametrize("kind", KINDS)
def test_needles_in_a_space_that_nobody_could_list_are_all_found(kind):
    """8 ** 30 configurations of two variants, eight of one allowed and none of the other."""
    names = [f"t{number}" for number in range(30)]
    chained = [f"{here} == {there}" for here, there in itertools.pairwise(names)]
    never = (names, ["t0 * t1 * t2 > 128 ** 3"])
    variants = {"plain": ([], []), "never": never, "tiled": (names, chained)}
    spec = made(dict.fromkeys(names, POWERS), variants)
    found = [each for each, _ in driven(kind(spec, PROBLEM, None, 50, 1))]
    assert sorted(int(each["t0"]) for each in found[1:]) == POWERS
    assert {each["variant"] for each in found[1:]} == {"tiled"}
    if kind is not TransferExplorer:  # It begins far away from the baseline, whatever the seed.
        second = [driven(kind(spec, PROBLEM, None, 2, seed))[1][0]["t0"] for seed in range(6)]
        assert len(set(second)) > 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_constraint_is_not_asked_where_an_earlier_one_refuses(kind):
    """Division by zero in the second, which the first forbids once ``g`` is known."""
    rare = ["b == d", "d == e", "e == f"]
    constraints = ["a != 0 or g == 1", "variant == 'plain' or g != 1", "64 // a == b * c", *rare]
    values = {"a": [0, *POWERS], **dict.fromkeys("bcdefg", POWERS)}
    spec = made(values, {"plain": ([], []), "tiled": (LARGE, constraints)})
    found = driven(kind(spec, PROBLEM, None, 60, 1))
    assert len(found) == 60
    assert all(64 // int(each["a"]) == int(each["b"]) * int(each["c"]) for each, _ in found[1:])


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_but_failures_stops_nothing(kind):
    assert len(driven(kind(large(), PROBLEM, None, 40, 1), lambda _: None)) == 40


# Random draws


@pytest.mark.parametrize(
    ("spec", "names", "chances"),
    [
        # Few enough to be listed: of all variants.
        (made({"a": [1, 2], "b": [1, 3, 5]}, {"plain": (["a"], []), "x": (["a", "b"], ["a < b"])}),
         ["variant", "a", "b"], 5),
        # Too many: three blocks of sixty-four, and a variant of as many.
        (large(["a * b <= 2"], ["tiled", "other"]), ["variant", "a", "b"], 6),
    ],
)  # fmt: skip
def test_every_feasible_configuration_is_as_likely_as_any_other(spec, names, chances):
    first = space.baseline(spec)
    drawn = Counter[tuple[Any, ...]]()
    for seed in range(600):
        proposed = RandomDraws(spec, PROBLEM, None, 2, seed, known=[(first, 1.0)]).propose()
        drawn[tuple(proposed[name] for name in names)] += 1
    assert len(drawn) == chances
    # Chi-squared with 5 degrees of freedom exceeds 26 once in ten thousand.
    mean = 600 / chances
    assert sum((count - mean) ** 2 / mean for count in drawn.values()) < 26


# Draws by themselves


@pytest.mark.parametrize(("variant", "left"), [("plain", 1), ("tiled", 2), ("large", 8)])
def test_that_nothing_is_left_of_a_variant_is_known_once_it_was_asked_for(variant, left):
    same = [f"a == {name}" for name in LARGE]
    spec = made(
        dict.fromkeys(LARGE, POWERS),
        {"plain": ([], []), "tiled": (["a"], ["a < 4"]), "large": (LARGE, same)},
    )
    draws, unwanted = Draws(spec, PROBLEM, None, 1), set[Key]()
    while (found := draws.draw(random.Random(1), unwanted, variant)) is not None:
        assert found["variant"] == variant
        assert not draws.ended(variant)
        unwanted.add(draws.key(found))
    assert draws.ended(variant)
    assert len(unwanted) == left


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (made({"a": POWERS}, {"plain": ([], []), "tiled": (["a"], ["a < 64"])}), 7),
        (large(["a * b <= 256"]), 50),
        (large([f"{name} == {LARGE[0]}" for name in LARGE[1:]]), 9),
    ],
)
def test_a_sample_holds_different_feasible_configurations(spec, expected):
    sampled = Draws(spec, PROBLEM, None, 1).sample(random.Random(1), 50)
    assert len({key(each) for each in sampled}) == len(sampled) == expected
    assert all(space.feasible(spec, PROBLEM, each) for each in sampled)
    few = [Draws(spec, PROBLEM, None, 1).sample(random.Random(seed), 3) for seed in range(9)]
    assert len({tuple(map(key, each)) for each in few}) > 5
