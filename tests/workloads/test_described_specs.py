"""Specs with ``arguments``: what is derived, and what is wrong with them in one line."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from launchwise.base.errors import UserError
from launchwise.base.expressions import evaluate
from launchwise.base.storage import digest
from launchwise.experiment.discovery import derived_study, derived_sweep, problems_in
from launchwise.workloads.builds import Build, macros_of
from launchwise.workloads.completion import completed
from launchwise.workloads.declared.content import Source
from launchwise.workloads.declared.declared_workload import load_workload
from launchwise.workloads.declared.expected import called
from launchwise.workloads.launch_shapes import Limits
from launchwise.workloads.space import configurations, feasible
from launchwise.workloads.spec import load_spec
from launchwise.workloads.workload import builds_in_order
from tests.support.spec_changes import MISTAKES, changed

CONVOLUTION = Path(__file__).resolve().parents[2] / "docs" / "tutorial" / "example" / "convolution"
SMALL = {"w": 40, "h": 24}


@pytest.fixture
def folder(tmp_path):
    """The convolution in one file, to change."""
    return Path(shutil.copytree(CONVOLUTION, tmp_path / "convolution"))


def drawn(folder, seed):
    """Content of the arrays of a small problem."""
    return Source(folder, load_spec(folder)).content(SMALL, SMALL, seed).arrays


ROLES = [("input", {}), ("output", {}), ("scratch", {})]
ROLES += [("inout", {}), ("inout", {"restore": False}), ("scratch", {"fill": "zeros"})]


@given(
    st.lists(
        st.tuples(st.sampled_from(ROLES), st.sampled_from([2, 4, 8]), st.integers(1, 9)),
        min_size=1,
        max_size=5,
    )
)
def test_work_counts_each_array_once_for_each_way_and_twice_where_it_is_kept(arrays):
    arguments = {
        f"a{place}": {"type": f"int{8 * size}", "shape": [f"{count} * n"], "role": role, **more}
        for place, ((role, more), size, count) in enumerate(arrays)
    }
    work = completed({"arguments": arguments, "problem": {"n": {"type": "integer"}}})["work"]
    nbytes = {role: 0 for role in ("input", "output", "inout", "scratch", "kept")}
    for (role, more), size, count in arrays:
        nbytes[role] += 7 * count * size
        kept = more == ({"fill": "zeros"} if role == "scratch" else {})
        nbytes["kept"] += 7 * count * size * (role in ("inout", "scratch") and kept)
    keys = ("bytes", "footprint_bytes", "items", "precision")
    found = {name: evaluate(work[name], {"n": 7}) for name in keys}
    written = [7 * count for (role, _), _, count in arrays if role in ("output", "inout")]
    assert (found["items"], found["precision"]) == ([*written, 1][0], "float32")
    assert found["bytes"] == nbytes["input"] + nbytes["output"] + 2 * nbytes["inout"]
    assert found["footprint_bytes"] == sum(nbytes.values())


def test_limits_of_the_gpu_are_constraints():
    spec = load_spec(CONVOLUTION)
    gpu = {"gpu_max_threads_per_block": 256, "gpu_memory_bytes": 1 << 30}
    gpu["gpu_shared_per_block_bytes"] = 48 << 10
    found = configurations(spec, SMALL, gpu)
    assert found
    assert all(each["block_size_x"] * each["block_size_y"] <= 256 for each in found)
    largest = {**found[0], "block_size_x": 128, "block_size_y": 32}
    assert not feasible(spec, SMALL, largest, {**gpu, "gpu_max_threads_per_block": 1024})


def test_features_are_derived_and_finite():
    spec = load_spec(CONVOLUTION)
    gpu = {"gpu_sms": 132, "gpu_l2_bytes": 50 << 20}
    for configuration in configurations(spec, SMALL):
        values = [spec.value(text, SMALL, configuration, gpu) for text in spec.features.values()]
        assert np.isfinite(values).all()
    assert {"log_w", "log_h", "log_block_size_x", "log_rounds", "last_round"} <= set(spec.features)


def test_a_text_has_a_feature_per_value_but_the_first(folder):
    layout = {"kind": "build", "values": ["rows", "columns", "tiles"]}
    used = [*load_spec(folder).variants["tiled"].tunables, "layout"]
    changes = {"tunables.layout": layout, "variants.tiled.tunables": used}
    spec = load_spec(changed(folder, {**changes, "baseline.layout": "rows"}))
    first = configurations(spec, SMALL)[0]
    found = {
        layout: {
            name: spec.value(text, SMALL, {**first, "layout": layout})
            for name, text in spec.features.items()
            if "layout" in name
        }
        for layout in ("rows", "columns", "tiles")
    }
    assert found == {
        "rows": {"is_layout_columns": 0, "is_layout_tiles": 0},
        "columns": {"is_layout_columns": 1, "is_layout_tiles": 0},
        "tiles": {"is_layout_columns": 0, "is_layout_tiles": 1},
    }


def test_conditions_of_the_problem_alone_are_its_limits(folder):
    of_problem = ["w % 4 == 0", "w >= 2 * h"]
    conditions = [*of_problem, "w % block_size_x == 0", "log2(w) > 3"]
    spec = load_spec(changed(folder, {"constraints": [*conditions, "block_size_x <= 64"]}))
    assert spec.problem_constraints == [*of_problem, "log2(w) > 3"]
    limits = Limits.of(spec)
    assert list(limits.conditions) == of_problem
    assert limits.hold({"w": 80, "h": 40})
    assert not limits.hold({"w": 76, "h": 40})
    assert not limits.hold({"w": 82, "h": 40})


def test_own_work_features_and_constraints_stay(folder):
    own = {"items": "w", "item": "columns", "bytes": "w", "flop": "w", "footprint_bytes": "w"}
    spec = load_spec(changed(folder, {"work": own, "features": {"mine": "w"}}))
    assert spec.work.item == "columns"
    assert spec.features == {"mine": "w"}


@pytest.mark.parametrize("what", MISTAKES["arguments"])
def test_a_mistake_is_one_line_with_file_and_key(folder, what):
    changes, said = MISTAKES["arguments"][what]
    with pytest.raises(UserError) as refused:
        load_spec(changed(folder, changes))
    assert said in str(refused.value)
    assert "spec.yaml" in str(refused.value)


STRANGERS = Path(__file__).resolve().parents[1] / "strangers"


def test_repetitions_of_a_kernel_know_the_problem_and_the_counters_around_them(tmp_path):
    inner = load_spec(STRANGERS / "bitonic_sort").variants["global_memory"].kernels[0].repeat
    assert inner == {"stage": "log_n", "step": "stage + 1"}
    folder = Path(shutil.copytree(STRANGERS / "red_black", tmp_path / "red_black"))

    key = "variants.global_memory.kernels.0.repeat"
    load_spec(changed(folder, {key: {"again": "sweep + nx"}}))
    for name in ("sweep", "nx"):
        with pytest.raises(UserError, match=f"0.repeat.{name}: is already a name of the spec"):
            load_spec(changed(folder, {key: {name: "2"}}))
    with pytest.raises(UserError, match="unknown name 'swep'"):
        load_spec(changed(folder, {key: {"again": "swep"}}))


def test_inputs_follow_the_seed_and_the_reference_is_right():
    spec = load_spec(CONVOLUTION)
    inputs = drawn(CONVOLUTION, 7)
    again = drawn(CONVOLUTION, 7)
    other = drawn(CONVOLUTION, 8)
    assert inputs["image"].shape == (28, 44)
    assert inputs["image"].dtype == np.float32
    assert np.array_equal(inputs["image"], again["image"])
    assert not np.array_equal(inputs["image"], other["image"])
    expected = called(CONVOLUTION, spec, SMALL, inputs)
    assert expected.shape == (24, 40)
    assert expected.dtype == np.float64
    y, x = 5, 11
    window = inputs["image"][y : y + 5, x : x + 5].astype(float)
    assert expected[y, x] == pytest.approx((window * inputs["filter"]).sum())


@pytest.mark.parametrize(
    ("fill", "expected"),
    [
        ("iota", [0, 1, 2, 3]),
        ("zeros", [0, 0, 0, 0]),
        ({"value": 2.5}, [2.5] * 4),
        ({"file": "in.npy"}, [5, 6, 7, 8]),
    ],
)
def test_structured_fills(folder, fill, expected):
    np.save(folder / "in.npy", np.array([5, 6, 7, 8], np.float32))
    changed(folder, {"arguments.image.shape": [4], "arguments.image.fill": fill})
    assert drawn(folder, 1)["image"].tolist() == expected


def test_a_build_has_the_variants_tunables_and_its_own_macros(folder):
    spec = load_spec(changed(folder, {"macros": {"PIXELS": "block_size_x * tile_size_x"}}))
    every = builds_in_order(load_workload(folder, spec), [SMALL])
    builds = [build for build in every if build.kernels]
    assert len(builds) == len(configurations(spec, SMALL))
    assert dict(builds[0].defines) == {
        **{"PIXELS": "16", "block_size_x": "16", "block_size_y": "16"},
        **{"tile_size_x": "1", "tile_size_y": "1"},
    }
    renamed = "convolution_kernel", f"convolution_kernel_{builds[0].key}"
    assert macros_of(builds[0]) == [renamed, *builds[0].defines]


def test_naming_kernels_changes_no_key_of_a_file_with_macros_of_ours():
    # Recorded rows and journals hold these keys.
    assert Build.of("linear.cu", {"REAL": "float"}).key == digest(
        ["linear.cu", [("REAL", "float")]]
    )
    assert Build.of("a.cu", {}).key != Build.of("a.cu", {}, ["a"]).key


def test_problems_and_study_are_derived():
    spec = load_spec(CONVOLUTION)
    sweep = derived_sweep(spec)
    found = problems_in(sweep.problems)
    assert len(found) == 25
    assert {problem["w"] for problem in found} == {16, 108, 724, 4871, 32768}
    study = derived_study(spec, found)
    (split,) = study.splits.values()
    assert split.kind == "problems"
    train, test = set(split.train["w"]), set(split.test["w"])
    assert train | test == {problem["w"] for problem in found}
    assert not train & test
    # Between measured sizes, never beyond.
    assert min(train) < min(test) <= max(test) < max(train)


def test_too_few_sizes_give_no_study():
    spec = load_spec(CONVOLUTION)
    assert derived_study(spec, [{"w": 4096, "h": 4096}]) is None
    assert derived_study(spec, []) is None


def test_a_reference_by_a_variant_is_built_though_no_row_is_it(tmp_path):
    own = Path(__file__).resolve().parents[1] / "strangers" / "five_point_mean"
    folder = Path(shutil.copytree(own, tmp_path / own.name))
    spec = load_spec(changed(folder, {"variants.naive.constraints": ["block_size_x > 16"]}))
    problem = {"nx": 100, "ny": 100}
    neutral = {name: one.neutral for name, one in spec.tunables.items()}
    reference = {"variant": "naive", **neutral}
    assert reference not in configurations(spec, problem)
    workload = load_workload(folder, spec)
    assert workload.build(problem, reference) in builds_in_order(workload, [problem])
