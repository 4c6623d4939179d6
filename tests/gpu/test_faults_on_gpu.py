"""Kernels that misbehave on a real GPU: each fault is one row, and every other row is there.

The same faults as in tests/measuring, where a CPU plays the card. Run with -m gpu.
"""

import os
import re
import shutil
import signal
from pathlib import Path

import pytest
from gpu_runs import described, measured
from mistakes import planted
from samples import ROOT
from stencil import small_stencil
from supervising import Supervisor, has_ended, until

from launchwise.measuring.compile import left_out
from launchwise.workloads import space
from launchwise.workloads.declared.declared_workload import load_workload
from launchwise.workloads.space import gpu_facts
from launchwise.workloads.spec import load_spec
from launchwise.workloads.workload import builds_in_order

pytestmark = pytest.mark.gpu

ACOUSTIC = ROOT / "kernels" / "acoustic"
HERE = Path(__file__).resolve().parent
PROBLEM = {"n": 64, "dtype": "float32", "order": 2}
MEASURED = {"ok", "slow"}


@pytest.fixture(scope="session")
def profile():
    """The first card, described by the real stage."""
    return described(None)


@pytest.fixture
def workload(tmp_path):
    """A copy of the acoustic workload, free to be spoilt."""
    folder = tmp_path / "acoustic"
    shutil.copytree(ACOUSTIC, folder)
    return folder


def checked(folder, profile, problems, scratch, **how):
    """Rows of a sweep, with each configuration there once whose compiler the machine has."""
    rows = measured(folder, profile, problems, scratch, **how)
    spec = load_spec(folder)
    facts = gpu_facts(profile.model_dump())
    missing = left_out(builds_in_order(load_workload(folder, spec), problems), profile.arch)
    expected = [
        (*problem.values(), *(configuration[name] for name in spec.tunable_columns))
        for problem in problems
        for configuration in space.configurations(spec, problem, facts)
        if spec.variants[str(configuration["variant"])].source not in missing
    ]
    columns = [*spec.problem_columns, *spec.tunable_columns]
    assert sorted(tuple(row[name] for name in columns) for row in rows) == sorted(expected)
    return rows


FAULTS = {
    2: ("failed", "illegal memory access|illegal address"),
    3: ("timeout", "no event for 10 s"),
    4: ("wrong", "output.* is nan, expected"),
    5: ("wrong", "the input grid.* is overwritten"),
    6: ("wrong", "output.* is .*, expected"),
    7: ("failed", "launch failure|launch failed|illegal instruction|trap"),
    8: ("failed", "assert"),
}
"""Points that a thread of ``faulty_column.cu`` walks, to what comes of it."""


def test_seven_kernels_misbehave_in_seven_ways(profile, tmp_path):
    workload = small_stencil(tmp_path)
    shutil.copy(HERE / "faulty_column.cu", workload / "column.cu")
    rows = checked(workload, profile, [PROBLEM], tmp_path, timeout_s=10.0)
    bad = {row["tz"]: row for row in rows if row["status"] not in MEASURED}
    print({shape: (row["status"], row["reason"]) for shape, row in bad.items()})
    assert sorted(bad) == sorted(FAULTS)
    for shape, (status, reason) in FAULTS.items():
        assert bad[shape]["status"] == status
        assert re.search(reason, bad[shape]["reason"])
        assert bad[shape]["time_ms"] is None
        assert bad[shape]["times_ms"] == []


def test_a_launch_with_too_many_registers_is_refused_and_costs_its_row(profile, workload, tmp_path):
    shutil.copy(HERE / "greedy_block3d.cu", workload / "block3d.cu")
    rows = checked(workload, profile, [PROBLEM], tmp_path)
    greedy = [row for row in rows if row["variant"] == "block3d"]
    large = [row for row in greedy if row["bx"] * row["by"] * row["bz"] == 1024]
    assert large
    assert {row["status"] for row in large} == {"failed"}
    assert all("resources" in row["reason"] for row in large)
    assert {row["status"] for row in rows if row not in large} <= MEASURED


def test_a_launch_with_too_many_threads_is_refused_and_costs_its_row(profile, workload, tmp_path):
    # A profile that promises twice the threads that a block of this card may have.
    limit = profile.max_threads_per_block
    boastful = profile.model_copy(update={"max_threads_per_block": 2 * limit})
    rows = checked(workload, boastful, [PROBLEM], tmp_path)
    large = [row for row in rows if row["bx"] * row["by"] * row["bz"] > limit]
    assert large
    assert {row["status"] for row in large} == {"failed"}
    print({row["reason"] for row in large})
    assert all("failed" in row["reason"] for row in large)
    assert {row["status"] for row in rows if row not in large} <= MEASURED


def test_a_problem_that_does_not_fit_is_out_of_memory_and_the_next_one_is_measured(
    profile, workload, tmp_path
):
    # The largest grid takes 344 GB; a profile that hides how small the card is lets it be tried.
    huge = {"n": 2048, "dtype": "float64", "order": 2}
    boundless = profile.model_copy(update={"memory_bytes": 1 << 60})
    if profile.memory_bytes > 300e9:
        pytest.skip("everything fits on this card")
    rows = checked(workload, boundless, [huge, PROBLEM], tmp_path)
    of_huge = [row for row in rows if row["n"] == 2048]
    assert {row["status"] for row in of_huge} == {"out_of_memory"}
    assert all("cannot be allocated" in row["reason"] for row in of_huge)
    assert {row["status"] for row in rows if row["n"] == 64} <= MEASURED


def test_a_killed_supervisor_takes_its_endless_kernel_along(profile, workload, tmp_path):
    spoilt = tmp_path / "spoilt" / "acoustic"
    shutil.copytree(workload, spoilt)
    spot = "    const INDEX interior = n - 2 * RADIUS;\n"
    endless = f"{spot}    while (*(volatile REAL *)u_new != REAL(1e30)) {{\n    }}\n"
    planted(spoilt, "linear.cu", spot, endless)
    # The host's side says when the kernel, the first to be launched, is on its way.
    spot = "        block, grid = launch_shape("
    note = f'        (self.workload.folder / "launched").touch()\n{spot}'
    planted(spoilt, "host/workload.py", spot, note)

    def work():
        measured(spoilt, profile, [PROBLEM], tmp_path / "spoilt", timeout_s=300.0)
        return 0

    supervisor = Supervisor(work, tmp_path / "said")
    try:
        until((spoilt / "launched").exists, "the first launch", 120)
        child = until(supervisor.child, "the measuring process")
        supervisor.send(signal.SIGKILL)
        supervisor.wait()
        try:
            assert has_ended(child, 30), "it measures on alone"
        finally:
            if not has_ended(child, 0):
                os.kill(child, signal.SIGKILL)
    finally:
        supervisor.end()
    # The card is free and well.
    (tmp_path / "after").mkdir()
    rows = checked(workload, profile, [PROBLEM], tmp_path / "after")
    assert {row["status"] for row in rows} <= MEASURED
