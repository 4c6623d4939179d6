"""The Granger kernels' own sources on the CPU, held against numpy.linalg.lstsq."""

import re
from pathlib import Path

import pytest

from launchwise.measuring.measure import LaunchFailed
from launchwise.measuring.source_states import deciding_files
from launchwise.workloads.declared.declared_workload import load_workload
from launchwise.workloads.space import launch
from launchwise.workloads.spec import load_spec
from tests.support.host_device import METHOD, HostDevice, rows_of_folder
from tests.support.mistakes import mistakes, with_mistake
from tests.support.slow_cases import first_of

FOLDER = Path(__file__).resolve().parents[3] / "kernels" / "granger"
SMALL = {"county": 7, "countx": 2, "rows": 45, "cols": 6, "dtype": "float64"}


@pytest.fixture(scope="module")
def spec():
    return load_spec(FOLDER)


def every(spec):
    """Every verified variant, in blocks of one and of several warps."""
    verified = spec.recommendable.variants
    return [{"variant": name, "threads": threads} for name in verified for threads in (32, 128)]


PUBLISHED = {"variant": "published", "threads": 128}
PLAIN = {"variant": "no_duplicates", "threads": 128}
PUBLISHED_SIZE = {
    "county": 5, "countx": 5, "rows": 100, "cols": 10, "dtype": "float32"
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_variant_is_right(spec, kernel_cache, dtype):
    rows = rows_of_folder(FOLDER, kernel_cache, {**SMALL, "dtype": dtype}, every(spec))
    assert [(row["status"], row.get("reason", "")) for row in rows] == [("ok", "")] * 10
    assert max(row["max_error"] for row in rows) < (1e-14 if dtype == "float64" else 1e-6)


@pytest.mark.parametrize(
    "sizes",
    [
        {"county": 1, "rows": 12, "cols": 2},
        {"county": 2, "rows": 41, "cols": 16, "countx": 5},
        {"county": 130, "rows": 64, "cols": 3, "countx": 3},
        {"county": 5, "rows": 100, "cols": 10, "countx": 5},
    ],
)
def test_other_sizes_are_right(spec, kernel_cache, sizes):
    rows = rows_of_folder(FOLDER, kernel_cache, {**SMALL, **sizes}, every(spec))
    assert {row["status"] for row in rows} == {"ok"}, rows


# The published launch


def test_its_grid_is_the_published_one_and_covers_every_regression(spec):
    assert launch(spec, PUBLISHED_SIZE, PUBLISHED) == ((32, 32, 1), (5, 5, 1))
    for county in (1, 5, 16, 17, 80, 95, 96, 97, 111, 112, 113, 1000, 10**7):
        block, grid = launch(spec, {**PUBLISHED_SIZE, "county": county}, PUBLISHED)
        assert (block, grid[1:]) == ((32, 32, 1), (5, 1))
        assert (grid[0] == 5) == (county <= 96)
        last = 16 * (grid[0] - 1) + 31
        assert last >= county - 1
        # No more blocks than that takes.
        assert grid[0] == 5 or last - 16 < county - 1


@pytest.mark.parametrize("county", [5, 130])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_one_after_the_other_its_copies_say_what_a_single_one_does(kernel_cache, county, dtype):
    # Each begins with a fresh copy of X, so a sequential run is right. Only threads that are at
    # work at the same time change Q under each other's hands, which the CPU does not show.
    problem = {**SMALL, "county": county, "dtype": dtype}
    plain, published = rows_of_folder(FOLDER, kernel_cache, problem, [PLAIN, PUBLISHED])
    assert (plain["status"], published["status"]) == ("ok", "unverified")
    assert published["max_error"] == plain["max_error"] < published["tolerance"]
    said = f"largest error {published['max_error']:.3g} (allowed {published['tolerance']:.3g})"
    assert published["reason"] == f"not verified; the first launch: {said}"
    assert published["times_ms"]
    assert published["time_ms"] > 0


def test_answers_that_are_no_numbers_are_said(tmp_path):
    folder = with_mistake(FOLDER, tmp_path, "published.cu", "threadIdx.x)", "threadIdx.x + 1)")
    plain, published = rows_of_folder(folder, tmp_path, SMALL, [PLAIN, PUBLISHED])
    assert (plain["status"], published["status"]) == ("ok", "unverified")
    assert published["max_error"] is None
    assert published["reason"].endswith("launch: 1 regressions have no coefficients")
    assert published["time_ms"] > 0


def test_a_large_error_is_kept_and_said_and_others_stay_wrong(tmp_path):
    # As where another copy has just begun anew: the last column is not orthogonal to the others.
    right, wrong = (f"j < {end}; ++j) {{\n        for" for end in ("cols", "cols - 1"))
    folder = with_mistake(FOLDER, tmp_path, "by_thread.cuh", right, wrong)
    plain, published = rows_of_folder(folder, tmp_path, SMALL, [PLAIN, PUBLISHED])
    assert (plain["status"], published["status"]) == ("wrong", "unverified")
    assert published["max_error"] == plain["max_error"] > published["tolerance"]
    assert published["reason"] == f"not verified; the first launch: {plain['reason']}"
    assert "coefficients off by" in plain["reason"]
    assert published["time_ms"] > 0
    assert plain.get("time_ms") is None


class Refusing(HostDevice):
    def timed(self, work, repeats, flush):
        """As usual, but for those."""
        if work.launches[0].block[1] > 1:
            raise LaunchFailed("refused", fatal=False)
        return super().timed(work, repeats, flush)


class Instant(HostDevice):
    """Blocks of two dimensions take next to no time, others a millisecond."""

    square_ms = 1e-6

    def timed(self, work, repeats, flush):
        super().timed(work, repeats, flush)
        return [self.square_ms if work.launches[0].block[1] > 1 else 1.0] * repeats


class Hopeless(Instant):
    """Blocks of two dimensions take a hundred times as long as others: what their work is."""

    square_ms = 100.0


def test_a_refused_launch_of_it_has_failed(kernel_cache):
    rows = rows_of_folder(FOLDER, kernel_cache, SMALL, [PLAIN, PUBLISHED], kind=Refusing)
    assert [(row["status"], row.get("reason")) for row in rows] == [
        ("ok", ""),
        ("failed", "refused"),
    ]
    assert rows[1].get("time_ms") is None


def test_it_is_held_to_the_best_of_the_others_but_sets_no_mark(kernel_cache):
    strict = METHOD.model_copy(update={"slow_factor": 3.0})
    plain, published = rows_of_folder(
        FOLDER, kernel_cache, SMALL, [PLAIN, PUBLISHED], strict, kind=Hopeless
    )
    assert (plain["status"], published["status"]) == ("ok", "unverified")
    assert published["times_ms"] == [published["first_ms"]]
    assert re.search(r"; launches of [\d.]+ times the best so far$", published["reason"])
    rows = rows_of_folder(FOLDER, kernel_cache, SMALL, [PUBLISHED, PLAIN], strict, kind=Instant)
    assert [(row["status"], row["time_ms"]) for row in rows] == [("unverified", 1e-6), ("ok", 1.0)]


def test_memory_is_given_back(spec, kernel_cache):
    device = HostDevice(FOLDER, spec.headers, cache=kernel_cache)
    free = device.free_bytes
    session = load_workload(FOLDER, spec).open(device, SMALL, True, 1)
    device.launch(session.launch({"variant": "fused_r", "threads": 32}))
    session.close()
    assert device.free_bytes == free


@pytest.mark.parametrize("mistake", first_of(mistakes(FOLDER)), ids=str)
def test_a_mistake_in_a_kernel_is_found(tmp_path, kernel_cache, mistake):
    folder = with_mistake(FOLDER, tmp_path, mistake.file, mistake.right, mistake.wrong)
    tried = [{"variant": name, "threads": 128} for name in mistake.variants]
    found = rows_of_folder(folder, kernel_cache, SMALL, tried)
    assert {row["status"] for row in found} == {"wrong"}, found


def test_intercepts_of_another_kernel_are_not_there_any_more(tmp_path, kernel_cache):
    folder = with_mistake(FOLDER, tmp_path, "by_warp.cuh", "x.at(0, row) = 1;", ";")
    by_warp = [{"variant": name, "threads": 128} for name in ("warp_per_fit", "smem")]
    found = rows_of_folder(folder, kernel_cache, SMALL, [PLAIN, *by_warp])
    assert [row["status"] for row in found] == ["ok", "wrong", "wrong"]


def test_a_mistake_in_the_reference_is_found(tmp_path, kernel_cache):
    folder = with_mistake(FOLDER, tmp_path, "check.cu", "column ? of(x", "column > 1 ? of(x")
    spec = load_spec(folder)
    device = HostDevice(folder, spec.headers, cache=kernel_cache)
    said = load_workload(folder, spec).self_check(device, SMALL, 1)
    assert "differs from numpy.linalg.lstsq" in said


def test_only_the_host_code_of_its_folder_decides_what_is_measured():
    found = [path for path in deciding_files(FOLDER) if path.suffix == ".py"]
    assert found == [FOLDER / "host" / "workload.py"]
