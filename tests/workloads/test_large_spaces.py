"""Spaces too large to go through: what is listed, compiled and learnt of them all the same."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launchwise.base.errors import UserError
from launchwise.learning.features import Domain
from launchwise.learning.splits import Case
from launchwise.workloads import space
from launchwise.workloads.sampling import build_choices
from tests.support.samples import profile
from tests.support.spaces import PROBLEM, made

NAMES = [f"t{number}" for number in range(12)]
VALUES = dict.fromkeys(NAMES, (1, 2, 4, 8, 16, 32, 64, 128))
"""8^12 configurations, 7e10: going through them would never end."""

CONSTRAINTS = ["a * b <= 8", "c != a", "b < c or mode == 'x'", "a + c > 4", "a > 9"]


def test_what_constraints_leave_of_a_huge_space_is_listed():
    equal = [f"{one} == {other}" for one, other in itertools.pairwise(NAMES)]
    spec = made(VALUES, {"plain": ([], []), "tied": (NAMES, equal)})
    found = space.configurations(spec, PROBLEM)
    assert found[0] == space.baseline(spec)
    tied = [[each[name] for name in NAMES] for each in found if each["variant"] == "tied"]
    assert tied == [[value] * len(NAMES) for value in VALUES["t0"]]


def test_a_space_that_is_left_too_large_is_refused_with_a_way_out():
    spec = made(VALUES, {"plain": ([], []), "free": (NAMES, [])})
    with pytest.raises(UserError, match=r"more than 200,000 configurations.*random or transfer"):
        space.configurations(spec, PROBLEM)


@given(
    st.lists(st.sampled_from(CONSTRAINTS), max_size=3),
    st.lists(st.sampled_from(CONSTRAINTS), max_size=2),
    st.sets(st.sampled_from(["a", "b", "c", "mode"])),
)
def test_builds_are_those_that_a_configuration_needs(common, own, build):
    tunables = {**{"a": (1, 2, 4), "b": (1, 3, 9), "c": (2, 5)}, "mode": ("x", "y")}
    variants = {"plain": (["mode"], []), "tiled": (["a", "b", "c", "mode"], own)}
    spec = made(tunables, variants, common, build=build)
    needed = [spec.build_choice(each) for each in space.configurations(spec, PROBLEM)]
    found = [spec.build_choice(each) for each in build_choices(spec, PROBLEM)]
    assert set(found) == set(needed)
    assert len(found) == len(set(found))
    first = space.baseline(spec)
    if space.feasible(spec, PROBLEM, first):
        assert found[0] == spec.build_choice(first)


def test_builds_of_a_huge_space_are_found_without_going_through_it():
    build = ("t0", "t1")
    variants = {"plain": ([], []), "free": (NAMES, ["t0 * t1 <= 4", "t2 + t3 < 100"])}
    spec = made(VALUES, variants, build=build)
    found = [each for each in build_choices(spec, PROBLEM) if each["variant"] == "free"]
    assert [(each["t0"], each["t1"]) for each in found] == [
        (a, b) for a in VALUES["t0"] for b in VALUES["t1"] if a * b <= 4
    ]


def test_models_ask_for_candidates_where_they_cannot_list_all():
    spec = made(VALUES, {"plain": ([], []), "free": (NAMES, [])})
    gpu = profile()
    case = Case(gpu.name, PROBLEM)
    with pytest.raises(UserError, match=r"68,719,476,737 configurations.*restrict candidates"):
        Domain(spec, {gpu.name: gpu}).choices([case])
    few = {name: [1, 2] for name in NAMES[:3]} | {name: [1] for name in NAMES[3:]}
    found = Domain(spec, {gpu.name: gpu}, few).choices([case])
    assert len(found) == 1 + 8
    assert found["variant"].iloc[0] == "plain"
    assert set(found.loc[found["variant"] == "free", "t2"]) == {1, 2}
