"""Problems, configurations and launches, held against brute force."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launchwise.experiment.study_checks import check_space
from launchwise.workloads import space
from launchwise.workloads.checks.corners import corner_problems
from tests.support.samples import profile
from tests.support.spaces import made

CONSTRAINTS = {
    "a * b <= 8": lambda a, b, m: a * b <= 8,
    "a != b": lambda a, b, m: a != b,
    "b <= m": lambda a, b, m: b <= m,
    "m == 3 or a > 1": lambda a, b, m: m == 3 or a > 1,
    "a + b > 100": lambda a, b, m: a + b > 100,
}
"""Constraints as a spec has them, each with the same in Python."""
DTYPES = ("float32", "float64")


@given(
    st.sets(st.sampled_from(sorted(CONSTRAINTS))).map(tuple),
    st.sets(st.sampled_from(sorted(CONSTRAINTS))).map(tuple),
    st.integers(1, 6),
)
def test_enumeration_finds_exactly_what_brute_force_finds(constraints, of_variant, m):
    # The variant's list is in another order than the tunables: columns must not move.
    variants = {"plain": ([], []), "tiled": (["b", "a"], of_variant)}
    spec = made({"a": [1, 2, 4, 8], "b": [1, 3, 5]}, variants, constraints)
    expected = set()
    for variant, a, b in [("plain", 1, 1), *itertools.product(["tiled"], (1, 2, 4, 8), (1, 3, 5))]:
        asked = constraints + (of_variant if variant == "tiled" else ())
        if all(CONSTRAINTS[text](a, b, m) for text in asked):
            expected.add((variant, a, b))
    found = [tuple(each.values()) for each in space.configurations(spec, {"m": m})]
    assert set(found) == expected
    assert len(found) == len(expected)
    assert all(list(each) == ["variant", "a", "b"] for each in space.configurations(spec, {"m": m}))
    if ("plain", 1, 1) in expected:
        assert found[0] == ("plain", 1, 1)
    assert found == [tuple(each.values()) for each in space.configurations(spec, {"m": m})]


def test_corners_have_a_problem_that_the_baseline_may_run(stencil_spec):
    own = [*stencil_spec.constraints, "variant != 'linear' or n % 1000 == 7"]
    spec = stencil_spec.model_copy(update={"constraints": own})
    first = space.baseline(spec)
    assert any(space.feasible(spec, each, first) for each in corner_problems(spec))


def test_rows_of_float64_that_are_aligned_are_not_padded(stencil_spec):
    padded = {
        (n, dtype): any(
            each["row_padding"]
            for each in space.configurations(stencil_spec, {"n": n, "dtype": dtype, "order": 2})
        )
        for n, dtype in itertools.product((48, 64), DTYPES)
    }
    assert padded == {
        **{(64, "float32"): False, (64, "float64"): False},
        **{(48, "float32"): True, (48, "float64"): False},
    }


def test_a_smaller_gpu_leaves_fewer_configurations(stencil_spec):
    problem = {"n": 64, "dtype": "float32", "order": 2}
    gpu = {"gpu_max_threads_per_block": 256}
    found = space.configurations(stencil_spec, problem, gpu)
    every = space.configurations(stencil_spec, problem)
    assert found == [
        each
        for each in every
        if each["variant"] != "block3d" or each["bx"] * each["by"] * each["bz"] <= 256
    ]
    assert 0 < len(found) < len(every)
    facts = space.gpu_facts(profile(compute_capability=(8, 6)).model_dump())
    assert facts["gpu_compute_capability"] == 86


@pytest.mark.parametrize("order", [2, 8, 16])
@pytest.mark.parametrize("n", [20, 23, 64, 100, 257])
def test_a_launch_covers_the_interior_and_wastes_less_than_a_block(stencil_spec, n, order):
    problem = {"n": n, "dtype": "float32", "order": order}
    interior = n - order
    for configuration in space.configurations(stencil_spec, problem):
        block, grid = space.launch(stencil_spec, problem, configuration)
        if configuration["variant"] == "block3d":
            assert block == tuple(configuration[name] for name in ("bx", "by", "bz"))
            for blocks, width in zip(grid, block, strict=True):
                assert (blocks - 1) * width < interior <= blocks * width
            continue
        assert (block, grid[1:]) == ((64, 1, 1), (1, 1))
        threads = interior * interior * -(-interior // int(configuration["tz"]))
        assert (grid[0] - 1) * 64 < threads <= grid[0] * 64


def test_problems_keep_the_order_of_the_blocks_and_repeat_nothing(stencil_spec):
    blocks = [
        {"order": [8, 2], "n": [64, 32], "dtype": ["float64"]},
        {"n": [64, 100], "dtype": ["float64"], "order": [2]},
    ]
    found = space.problems(stencil_spec, blocks)
    assert [tuple(each.values()) for each in found] == [
        *((64, "float64", 8), (64, "float64", 2), (32, "float64", 8), (32, "float64", 2)),
        (100, "float64", 2),
    ]
    assert all(list(each) == stencil_spec.problem_columns for each in found)


BLOCK = {"n": [64, 65], "dtype": ["float32"], "order": [2]}


def test_blocks_that_narrow_a_problem_add_up(stencil_spec):
    blocks = {**BLOCK, "only": {"variant": ["block3d"], "bx": [8]}}
    rows = {**BLOCK, "n": [65, 66], "only": {"variant": ["block3d"], "bz": [1], "by": [1, 2]}}
    found = space.narrowings(stencil_spec, [blocks, rows])
    key = (65, "float32", 2)
    assert found == {
        (64, "float32", 2): [space.Part(blocks["only"])],
        key: [space.Part(blocks["only"]), space.Part(rows["only"])],
        (66, "float32", 2): [space.Part(rows["only"])],
    }
    assert space.problems(stencil_spec, [blocks, rows]) == [
        {"n": n, "dtype": "float32", "order": 2} for n in (64, 65, 66)
    ]
    problem = {"n": 65, "dtype": "float32", "order": 2}
    listed = space.configurations(stencil_spec, problem, None, found[key])
    whole = space.configurations(stencil_spec, problem)
    assert listed[0] == whole[0]
    assert len({tuple(each.values()) for each in listed}) == len(listed)
    wanted = [
        each
        for each in whole[1:]
        if each["variant"] == "block3d"
        and (each["bx"] == 8 or (each["bz"] == 1 and each["by"] in (1, 2)))
    ]
    assert sorted(map(str, listed[1:])) == sorted(map(str, wanted))


def test_a_problem_that_also_stands_alone_is_measured_whole(stencil_spec):
    narrow = {**BLOCK, "only": {"tz": [1]}}
    for blocks in ([narrow, BLOCK], [BLOCK, narrow]):
        assert set(map(str, space.narrowings(stencil_spec, blocks).values())) == {"[]"}
    problem = {"n": 65, "dtype": "float32", "order": 2}
    assert space.configurations(stencil_spec, problem, None, []) == space.configurations(
        stencil_spec, problem
    )


def test_a_space_that_no_list_could_hold_is_checked_all_the_same():
    # 8^30 configurations of each variant: going through them would never end.
    names = [f"t{number}" for number in range(30)]
    values = dict.fromkeys(names, (1, 2, 4, 8, 16, 32, 64, 128))
    shapes = {"plain": ([], []), "one": (names, []), "other": (names, ["t0 > 64"])}
    check_space(made(values, shapes), [{"m": 3}])
    shapes["never"] = (names, ["t0 > 128"])
    with pytest.raises(ValueError, match=r"variants\.never\.constraints"):
        check_space(made(values, shapes), [{"m": 3}])


def test_labels_name_what_a_variant_uses_and_no_more(stencil_spec):
    problem = {"n": 65, "dtype": "float32", "order": 2}
    labels = [
        space.label(each, stencil_spec) for each in space.configurations(stencil_spec, problem)
    ]
    assert labels[0] == "linear"
    assert "column tz=2" in labels
    assert "block3d row_padding=1 bx=32 by=4 bz=1" in labels
    assert len(set(labels)) == len(labels)
