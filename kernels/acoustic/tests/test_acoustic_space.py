"""The acoustic space: its published size, tiles, launches, builds, costs, recorded occupancy."""

import csv
import math
from collections import Counter

import numpy as np
import pandas as pd
import pytest
import yaml
from samples import ROOT

from launchwise.gpus.profile import read_profile
from launchwise.learning.features import Domain
from launchwise.learning.recommenders import recommender_class
from launchwise.learning.row_arrays import FACTS
from launchwise.learning.splits import Case, among
from launchwise.measuring.source_states import deciding_files
from launchwise.tables.files import read_table
from launchwise.tables.measurements import measurement_schema
from launchwise.workflow.plan import sources
from launchwise.workloads import space
from launchwise.workloads.declared.declared_workload import load_workload
from launchwise.workloads.launch_shapes import launch_shapes
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


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("n", [20, 23, 64, 100, 257])
def test_a_launch_covers_the_interior_and_wastes_less_than_a_block(acoustic_spec, n, order):
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


def space_names():
    return ("bx", "by", "bz", "tx", "ty", "tz")


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
    # Four variants, one of them padded too, in two types of index; and the check.
    plain = [each for each in found if not {"TILE_Y", "TILE_I"} & {*dict(each.defines)}]
    assert len(plain) == 2 * 5 + 1
    # Clang's indices are of one type.
    assert sum(build.offloads for build in found) == 87
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


GPUS = ("h200.sm16", "h200.sm72")
TRAINED, ASKED = (256, 400, 512, 800), (300, 600)


@pytest.fixture(scope="module")
def domain(acoustic_spec, root):
    recorded = root / "data" / "recorded"
    profiles = {gpu: read_profile(recorded / gpu / "profile.json", gpu) for gpu in GPUS}
    return Domain(acoustic_spec, profiles)


@pytest.fixture(scope="module")
def rows(domain, root):
    asked = [
        Case(gpu, {"n": n, "dtype": "float32", "order": 8}) for gpu in GPUS for n in TRAINED + ASKED
    ]
    pieces = []
    for gpu in GPUS:
        path = root / "data" / "recorded" / gpu / "acoustic.parquet"
        table = read_table(path, measurement_schema(domain.spec))
        table = table[(table["status"] == "ok") & among(table, asked, domain.spec)]
        pieces.append(table[[*domain.spec.key_columns, "time_ms", *FACTS]])
    return pd.concat(pieces, ignore_index=True)


def test_the_cost_model_is_nearer_than_the_roofline_and_the_learnt_one_nearest(domain, rows):
    train, test = (rows[rows["n"].isin(sizes)].reset_index(drop=True) for sizes in (TRAINED, ASKED))
    errors = [
        float(np.median(np.abs(predicted / test["time_ms"] - 1)))
        for kind in ("roofline", "analytical", "learnt")
        for predicted in [recommender_class(kind)(domain).fit(train).predict(test)]
    ]
    assert errors[0] > 0.5
    assert errors[1] < 0.3
    assert errors[2] < 0.05


SWEEPS = sorted((ROOT / "data" / "recorded").glob("h?00*/acoustic.parquet"))


@pytest.mark.parametrize("path", SWEEPS, ids=lambda path: path.parent.name)
def test_recorded_blocks_fill_the_warps_of_an_sm_or_its_blocks(path):
    columns = ["variant", "bx", "by", "bz", "registers", "occupancy"]
    rows = pd.read_parquet(path, columns=columns)
    rows = rows[(rows["variant"] == "block3d") & rows["occupancy"].notna()]
    warps = -(-(rows["bx"] * rows["by"] * rows["bz"]) // 32)
    assert len(rows)
    # 64 warps, 32 blocks, and 65 536 registers, which warps take in portions of 256.
    most = (64 // warps).clip(upper=32)
    fit = 65_536 // (-(-rows["registers"] // 8) * 256 * warps)
    assert (rows["occupancy"] == most.clip(upper=fit) * warps / 64).all()


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


def test_candidates_are_what_every_recorded_sweep_holds(acoustic_folder):
    study = yaml.safe_load(
        (acoustic_folder / "studies" / "acoustic_tile" / "study.yaml").read_text()
    )
    longest = {}
    for path in (acoustic_folder.parents[1] / "data" / "recorded").glob("*/acoustic.parquet"):
        sweep = pd.read_parquet(path, columns=["tx", "ty", "tz"])
        longest[path.parent.name] = int((sweep["tx"] * sweep["ty"] * sweep["tz"]).max())
    assert longest
    # The study leaves long tiles out as long as one sweep lacks them, and no longer.
    assert ("walked <= 16" in study.get("constraints", [])) == (min(longest.values()) < 256)


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
