"""The published tiles and the largest ones, run by the kernels' own sources on the CPU."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import pandas as pd
import pytest
import yaml

from launchwise.workloads import space
from launchwise.workloads.space import Configuration, Problem
from launchwise.workloads.spec import Spec
from tests.support.host_device import METHOD, HostDevice, measured_rows

Tile = tuple[int, int, int]
READINGS = {
    "omp_tile": ("tx", "ty", "tz"),
    "block3d": ("bx", "by", "bz"),
    "openmp": ("tile_k", "tile_j", "tile_i"),
}
"""Variant to the tunables of its tile (x, y, z): points of a thread, or threads of a block."""


@pytest.fixture(scope="module")
def published(acoustic_folder: Path) -> list[tuple[Problem, Tile]]:
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
def device(acoustic_folder: Path, acoustic_spec: Spec, kernel_cache: Path) -> HostDevice:
    return HostDevice(acoustic_folder, acoustic_spec.headers, cache=kernel_cache)


def configuration(spec: Spec, variant: str, tile: Tile) -> Configuration:
    return {
        **space.baseline(spec),
        "variant": variant,
        **dict(zip(READINGS[variant], tile, strict=True)),
    }


@pytest.mark.parametrize("variant", READINGS)
def test_every_published_tile_is_in_the_space_of_its_problem(
    acoustic_spec: Spec, published: list[tuple[Problem, Tile]], variant: str
) -> None:
    assert len(published) == 18
    for problem, tile in published:
        listed = space.configurations(acoustic_spec, problem)
        assert configuration(acoustic_spec, variant, tile) in listed, (problem, tile)


def test_narrow_blocks_are_the_published_ones_and_end_with_their_grids(
    acoustic_spec: Spec, published: list[tuple[Problem, Tile]]
) -> None:
    def narrow(n: int) -> set[Tile]:
        listed = space.configurations(acoustic_spec, {"n": n, "dtype": "float32", "order": 8})
        return {
            (int(each["bx"]), int(each["by"]), int(each["bz"]))
            for each in listed
            if each["variant"] == "block3d" and int(each["bx"]) < 8
        }

    assert narrow(512) == narrow(200) == {tile for _, tile in published}
    assert narrow(550) == set()


def test_candidates_are_what_every_recorded_sweep_holds(acoustic_folder: Path) -> None:
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
    acoustic_folder: Path,
    acoustic_spec: Spec,
    device: HostDevice,
    published: list[tuple[Problem, Tile]],
    variant: str,
    n: int,
    dtype: str,
    order: int,
) -> None:
    problem: Problem = {"n": n, "dtype": dtype, "order": order}
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
