"""The acoustic space: its published size, tiles, launches, builds, costs, recorded occupancy."""

import csv
import math
from collections import Counter

import pytest

from launchwise.measuring.source_states import deciding_files
from launchwise.workflow.plan import sources
from launchwise.workloads import space
from launchwise.workloads.declared.declared_workload import load_workload
from launchwise.workloads.space import configurations
from launchwise.workloads.workload import builds_in_order
from tests.support.host_device import METHOD, HostDevice, measured_rows

DTYPES, ORDERS = ("float32", "float64"), (2, 8, 16)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n", "padded"), [(64, False), (65, True), (550, True), (1024, False)])
def test_the_acoustic_space_has_its_published_size(acoustic_spec, n, padded, dtype, order):
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


def test_blocks_cover_the_interior_and_waste_less_than_one(acoustic_spec):
    problem = {"n": 100, "dtype": "float32", "order": 8}
    for configuration in space.configurations(acoustic_spec, problem):
        if configuration["variant"] in ("block3d", "shared_tile"):
            block, grid = space.launch(acoustic_spec, problem, configuration)
            for blocks, width in zip(grid, block, strict=True):
                assert (blocks - 1) * width < 92 <= blocks * width


def test_the_builds_of_the_acoustic_workload_serve_every_configuration(
    acoustic_folder, acoustic_spec
):
    workload = load_workload(acoustic_folder, acoustic_spec)
    small = {"n": 65, "dtype": "float32", "order": 8}
    large = {"n": 1300, "dtype": "float32", "order": 8}
    found = builds_in_order(workload, [small, large])
    for problem in (small, large):
        for configuration in configurations(acoustic_spec, problem):
            assert workload.build(problem, configuration) in found
        assert set(workload.check_builds(problem)) <= set(found)
    index = {dict(build.defines).get("INDEX") for build in found}
    assert index == {"int", "long long", None}


def test_host_code_that_the_workload_imports_decides_what_is_measured(acoustic_folder, root):
    found = {path.relative_to(root).as_posix() for path in deciding_files(acoustic_folder)}
    own = {f"kernels/acoustic/host/{name}.py" for name in ("stencil", "workload")}
    python = {path for path in found if path.endswith(".py")}
    assert python == {*own, "launchwise/workloads/inputs.py"}


def test_sources_are_what_kernels_are_made_from():
    found = sources("kernels/acoustic")
    assert {"kernels/acoustic/linear.cu", "kernels/acoustic/spec.yaml"} <= set(found)
    assert {"kernels/common/uniform.cuh", "kernels/common/largest.cuh"} <= set(found)
    assert "kernels/common/bulk_copy.cuh" in found
    assert "kernels/acoustic/README.md" not in found


READINGS = {
    "omp_tile": ("tx", "ty", "tz"),
    "block3d": ("bx", "by", "bz"),
    "openmp": ("tile_k", "tile_j", "tile_i"),
}
"""Variant to the tunables of its tile (x, y, z): points of a thread, or threads of a block."""


@pytest.fixture(scope="module")
def published(acoustic_folder):
    """Problem and tile (x, y, z) of each row of the paper's table 1; its third number is x."""
    path = acoustic_folder / "studies" / "acoustic_tile" / "published" / "best_tiles.csv"
    with path.open() as file:
        return [
            (
                {"n": int(row["n"]), "dtype": row["dtype"], "order": int(row["order"])},
                (int(row["tile_3"]), int(row["tile_2"]), int(row["tile_1"])),
            )
            for row in csv.DictReader(file)
        ]


@pytest.fixture(scope="module")
def device(acoustic_folder, acoustic_spec, kernel_cache):
    return HostDevice(acoustic_folder, acoustic_spec.headers, cache=kernel_cache)


def configuration(spec, variant, tile):
    return {
        **space.baseline(spec),
        "variant": variant,
        **dict(zip(READINGS[variant], tile, strict=True)),
    }


@pytest.mark.parametrize("variant", READINGS)
def test_every_published_tile_is_in_the_space_of_its_problem(acoustic_spec, published, variant):
    assert len(published) == 18
    for problem, tile in published:
        listed = space.configurations(acoustic_spec, problem)
        assert configuration(acoustic_spec, variant, tile) in listed, (problem, tile)


def test_narrow_blocks_are_the_published_ones_and_end_with_their_grids(acoustic_spec, published):
    def narrow(n):
        listed = space.configurations(acoustic_spec, {"n": n, "dtype": "float32", "order": 8})
        return {
            (int(each["bx"]), int(each["by"]), int(each["bz"]))
            for each in listed
            if each["variant"] == "block3d" and int(each["bx"]) < 8
        }

    assert narrow(512) == narrow(200) == {tile for _, tile in published}
    assert narrow(550) == set()


# 37 and 26 are no multiple of any tile; a tile of 64 is longer than the whole interior.
@pytest.mark.parametrize(("n", "dtype", "order"), [(37, "float32", 2), (26, "float64", 16)])
@pytest.mark.parametrize("variant", READINGS)
def test_published_and_largest_tiles_compute_the_step(
    acoustic_folder, acoustic_spec, device, published, variant, n, dtype, order
):
    problem = {"n": n, "dtype": dtype, "order": order}
    names = READINGS[variant]
    every = [
        each
        for each in space.configurations(acoustic_spec, problem)
        if each["variant"] == variant and not each["row_padding"]
    ]
    most = max(math.prod(int(each[name]) for name in names) for each in every)
    chosen = [configuration(acoustic_spec, variant, tile) for tile in {t for _, t in published}]
    chosen += [
        each
        for each in every
        if each not in chosen
        and (math.prod(int(each[name]) for name in names) == most or int(each[names[2]]) == 64)
    ]
    assert most == (1024 if variant == "block3d" else 256)
    rows = measured_rows(device, acoustic_folder, acoustic_spec, problem, chosen, METHOD)
    assert {row["status"] for row in rows} == {"ok"}, rows
    assert len(rows) == len(chosen) > 16
    assert all(row["max_error"] <= row["tolerance"] for row in rows)
