"""Levels of the partition method: what each leaves and takes; files that decide rows."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from samples import ROOT

from kernels.tridiagonal.host.host_solution import chunks
from kernels.tridiagonal.host.interface_solvers import SingularSystem, solve_on_host
from kernels.tridiagonal.host.launches import LAYOUTS, interleaved, most_shared_bytes
from kernels.tridiagonal.host.plan import Choice, Level, levels, remaining_rows
from launchwise.measuring.source_states import deciding_files
from launchwise.workloads.spec import load_spec

SPEC = load_spec(Path(__file__).resolve().parents[3] / "kernels" / "tridiagonal")

sizes = st.lists(st.integers(3, 40), max_size=5)


@given(st.integers(1, 10**9), sizes, st.sampled_from([1, 2, 32, 256]))
def test_every_level_leaves_fewer_rows_than_it_had(rows, wanted, joined):
    cuts = levels(rows, wanted, joined, joined)
    left = rows
    for level in cuts:
        assert level.rows == left
        assert level.subsystems * level.m + level.rows % level.m == level.rows
        assert level.m <= level.longest < 2 * level.m
        assert 2 <= level.interface_rows < left
        assert (level.groups - 1) * joined < level.subsystems <= level.groups * joined
        left = level.interface_rows
    assert remaining_rows(rows, cuts) == left
    assert [level.m for level in cuts] == wanted[: len(cuts)]
    # It stops early only where the rows do not fill one sub-system.
    if len(cuts) < len(wanted):
        assert left < wanted[len(cuts)]


@given(
    st.integers(100, 10**9),
    st.sampled_from(LAYOUTS),
    st.sampled_from([32, 64, 256]),
    st.lists(st.sampled_from([4, 5, 8, 16, 64, 128]), min_size=1, max_size=5),
    st.sampled_from([0, 4, 32]),
)
def test_the_spec_counts_rows_as_the_solver_does(rows, layout, threads, wanted, last_m):
    problem = {"n": rows, "dtype": "float64", "memory": "device", "batch": 1}
    names = ("m", "m1", "m2", "m3", "m4")
    configuration = {
        **{"variant": layout, "threads": threads, "last_m": last_m, "streams": 1},
        **{"stage2": "device", **dict(zip(names, [*wanted, 0, 0, 0, 0], strict=False))},
    }
    choice = Choice.of(configuration)
    cuts = choice.levels(rows)
    # Where a level has less than a sub-system, the spec's constraints refuse the configuration.
    assume(len(cuts) == len(wanted))
    assert SPEC.value("left", problem, configuration) == remaining_rows(rows, cuts)
    # What fits by the spec's constraints fits the block that needs most of it.
    limit = {"gpu_shared_per_block_bytes": 227 * 1024, "gpu_max_threads_per_block": 1024}
    own = [*SPEC.constraints, *SPEC.variants[layout].constraints]
    if all(SPEC.value(text, problem, configuration, limit) for text in own):
        assert most_shared_bytes(rows, choice, 8) <= limit["gpu_shared_per_block_bytes"]


@given(st.integers(3, 5000), st.integers(3, 40), st.sampled_from([1, 3, 32]), st.integers(1, 40))
def test_chunks_hold_every_subsystem_once_and_stay_alike(rows, m, joined, count):
    level = Level(max(rows, m), m, joined)
    found = chunks(level, list(range(count)))
    every_row, every_interface = range(level.rows), range(level.interface_rows)
    assert [row for chunk in found for row in every_row[chunk.own_rows]] == list(every_row)
    left = [row for chunk in found for row in every_interface[chunk.interface_rows]]
    assert left == list(every_interface)
    for chunk in found:
        # To a kernel a chunk is a system of its own.
        assert Level(chunk.rows, m, joined).groups == chunk.groups
    numbers = [chunk.groups for chunk in found]
    assert max(numbers) - min(numbers) <= 1
    assert len(found) == min(count, level.groups)


@given(st.integers(1, 300), st.integers(3, 20))
def test_interleaving_loses_no_row(rows, m):
    values = np.arange(rows)
    stored = interleaved(values, m)
    assert sorted(stored) == sorted(values)
    if rows >= 2 * m:
        # Row 0 of all sub-systems comes first.
        assert stored[1] == m


def test_the_host_says_where_a_system_has_no_solution():
    zeros = [np.zeros(4) for _ in range(3)]
    with pytest.raises(SingularSystem, match=r"row 1 of 4 .* zero pivot"):
        solve_on_host(*zeros, np.ones(4))
    with pytest.raises(SingularSystem, match="row 1 of 1"):
        solve_on_host(*(np.zeros(1) for _ in range(3)), np.ones(1))


def test_host_code_that_the_workload_imports_decides_as_well():
    found = deciding_files(ROOT / "kernels" / "tridiagonal")
    host = "kernels/tridiagonal/host"
    # How streams are driven is half of what is measured; calling the solver from Python is not.
    wanted = (
        *("plan", "launches", "host_solution", "interface_solvers", "stage_times"),
        *("thomas", "cores", "compiling", "accuracy", "workload"),
    )
    own = {f"{host}/{name}.py" for name in (*wanted, "__init__")}
    python = {path.relative_to(ROOT).as_posix() for path in found if path.suffix == ".py"}
    assert python == {*own, "launchwise/workloads/inputs.py"}
    # The compiled part of the host's code decides, too.
    assert {ROOT / host / "thomas.c", ROOT / host / "partition.c"} <= set(found)
