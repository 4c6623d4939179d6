"""The acoustic space: its published size, its launches, its builds."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from launchwise.measuring.source_states import deciding_files
from launchwise.workflow.plan import sources
from launchwise.workloads import space
from launchwise.workloads.launch_shapes import launch_shapes
from launchwise.workloads.loading import load_workload
from launchwise.workloads.space import configurations
from launchwise.workloads.spec import Spec
from launchwise.workloads.workload import builds_in_order

DTYPES, ORDERS = ("float32", "float64"), (2, 8, 16)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n", "padded"), [(64, False), (65, True), (550, True), (1024, False)])
def test_the_acoustic_space_has_its_published_size(
    acoustic_spec: Spec, n: int, padded: bool, dtype: str, order: int
) -> None:
    problem = {"n": n, "dtype": dtype, "order": order}
    found = space.configurations(acoustic_spec, problem)
    ladder = [each for each in found if each["variant"] in ("linear", "block3d", "omp_tile")]
    counts = Counter((each["variant"], each["row_padding"]) for each in ladder)
    # The paper's 16 best tiles are blocks up to n = 512.
    blocks = 105 + (16 if n <= 512 else 0)
    expected = {("linear", 0): 1, ("block3d", 0): blocks, ("omp_tile", 0): 90}
    if padded:
        expected[("block3d", 1)] = 42
    assert counts == expected
    assert found[0] == space.baseline(acoustic_spec)
    assert found[0]["variant"] == "linear"
    assert len({tuple(each.items()) for each in found}) == len(found)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("n", [20, 23, 64, 100, 257])
def test_a_launch_covers_the_interior_and_wastes_less_than_a_block(
    acoustic_spec: Spec, n: int, order: int
) -> None:
    problem = {"n": n, "dtype": "float32", "order": order}
    interior = n - order
    for configuration in space.configurations(acoustic_spec, problem):
        if configuration["variant"] == "openmp":
            assert launch_shapes(acoustic_spec, problem, configuration) == []
            continue
        block, grid = space.launch(acoustic_spec, problem, configuration)
        # Columns hold integers whatever the type says of them in general.
        bx, by, bz, tx, ty, tz = (int(configuration[name]) for name in space_names())
        if str(configuration["variant"]).startswith("stream"):
            continue
        if configuration["variant"] in ("block3d", "shared_tile"):
            assert block == (bx, by, bz)
            for blocks, width in zip(grid, block, strict=True):
                assert (blocks - 1) * width < interior <= blocks * width
            continue
        assert block == (128, 1, 1)
        assert grid[1:] == (1, 1)
        tiles = [-(-interior // width) for width in (tx, ty, tz)]
        assert all(
            (count - 1) * width < interior <= count * width
            for count, width in zip(tiles, (tx, ty, tz), strict=True)
        )
        threads = tiles[0] * tiles[1] * tiles[2]
        assert (grid[0] - 1) * 128 < threads <= grid[0] * 128


def space_names() -> tuple[str, ...]:
    return ("bx", "by", "bz", "tx", "ty", "tz")


def test_the_builds_of_the_acoustic_workload_serve_every_configuration(
    acoustic_folder: Path, acoustic_spec: Spec
) -> None:
    workload = load_workload(acoustic_folder, acoustic_spec)
    small = {"n": 65, "dtype": "float32", "order": 8}
    large = {"n": 1300, "dtype": "float32", "order": 8}
    found = builds_in_order(workload, [small, large])
    for problem in (small, large):
        for configuration in configurations(acoustic_spec, problem):
            assert workload.build(problem, configuration) in found
        assert set(workload.check_builds(problem)) <= set(found)
    # Four variants, one of them padded too, in two types of index; and the check.
    plain = [each for each in found if not {"TILE_Y", "TILE_I"} & {*dict(each.defines)}]
    assert len(plain) == 2 * 5 + 1
    # Clang's indices are of one type.
    assert sum(build.offloads for build in found) == 87
    index = {dict(build.defines).get("INDEX") for build in found}
    assert index == {"int", "long long", None}


def test_host_code_that_the_workload_imports_decides_what_is_measured(
    acoustic_folder: Path, root: Path
) -> None:
    found = {path.relative_to(root).as_posix() for path in deciding_files(acoustic_folder)}
    own = {f"kernels/acoustic/host/{name}.py" for name in ("stencil", "workload")}
    python = {path for path in found if path.endswith(".py")}
    assert python == {*own, "launchwise/workloads/inputs.py"}


def test_sources_are_what_kernels_are_made_from() -> None:
    found = sources("kernels/acoustic")
    assert {"kernels/acoustic/linear.cu", "kernels/acoustic/spec.yaml"} <= set(found)
    assert {"kernels/common/uniform.cuh", "kernels/common/largest.cuh"} <= set(found)
    assert "kernels/common/bulk_copy.cuh" in found
    assert "kernels/acoustic/README.md" not in found
