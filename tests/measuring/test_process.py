"""A measuring process: what it leaves behind, and its rounds of pairs, their order and timing."""

import os
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from launchwise.base.robust import LEAST_ROUNDS
from launchwise.measuring import compile
from launchwise.measuring.compile import Compiler
from launchwise.measuring.process import MeasuringProcess
from launchwise.measuring.serving import Task, serve
from launchwise.workloads.declared.declared_workload import load_workload
from launchwise.workloads.space import configurations
from launchwise.workloads.spec import load_spec
from tests.measuring.conftest import QUICK
from tests.support.host_device import HostDevice
from tests.support.stencil import change_sessions


def open_files():
    """Descriptors of this process that are no directory."""
    return {
        each for each in os.listdir("/proc/self/fd") if not Path(f"/proc/self/fd/{each}").is_dir()
    }


def test_what_it_was_heard_by_is_closed():
    before = open_files()
    process = MeasuringProcess([sys.executable, "-c", "input()"], os.environ)
    assert open_files() > before
    process.close()
    assert process.popen.poll() is not None
    assert open_files() == before


def test_sources_that_a_compiler_wrote_are_removed_when_it_is_done(
    saxpy_spec, tmp_path, monkeypatch
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(compile, "nvcc_release", lambda: "13.0")
    with Compiler(saxpy_spec.folder, saxpy_spec, "sm_90") as compiler:
        assert list(tmp_path.iterdir())
    assert compiler.arch == "sm_90"
    assert not list(tmp_path.iterdir())


PROBLEM = {"n": 20, "dtype": "float32", "order": 2}
SEARCH = {
    **{"kind": "random", "budget": 2, "seconds": None},
    **{"guesses": [], "known": [], "gpu_facts": {}},
}
PAIRS = {"precision": 1e9, "seconds": 60.0, "references": [0]}


@pytest.mark.parametrize(
    "how", [{}, {"energy": True}, {"pairs": PAIRS}, {"explore": SEARCH}], ids=lambda how: [*how]
)
def test_a_task_releases_its_buffers(stencil, stencil_copy, kernel_cache, how):
    spec, workload = stencil
    device = HostDevice(stencil_copy, spec.headers, cache=kernel_cache)
    free = device.free_bytes
    listed = [] if "explore" in how else configurations(spec, PROBLEM)[:2]
    said = []
    serve(device, workload, QUICK, [Task(PROBLEM, listed, **how)], 1, said.append)
    assert said[-1]["event"] == "done"
    assert device.free_bytes == free
    if "explore" in how:
        # As many as the budget allows, the baseline first.
        rows = [each for each in said if each["event"] == "row"]
        assert [row["status"] for row in rows] == ["ok", "ok"]


class Between(HostDevice):
    """Keeps whether L2 was to be emptied; launches take ``time_ms``."""

    time_ms = 1.0

    def __init__(self, *given, **more):
        super().__init__(*given, **more)
        self.emptied = []

    def timed(self, work, repeats, flush):
        """Made-up times of real launches."""
        self.emptied.append(flush)
        return [self.time_ms for _ in super().timed(work, repeats, flush)]


def said_of_pairs(device, workload, configurations, method=QUICK):
    """What a measuring process says of pairs against the first configuration."""
    said = []
    # Whatever six rounds say is precise enough.
    pairs = {"precision": 1e9, "seconds": 60.0, "references": [0]}
    serve(device, workload, method, [Task(PROBLEM, configurations, pairs=pairs)], 1, said.append)
    return said


def test_every_round_has_an_order_of_its_own(stencil, stencil_copy, kernel_cache):
    spec, workload = stencil
    listed = configurations(spec, PROBLEM)[:4]
    device = HostDevice(stencil_copy, spec.headers, cache=kernel_cache)
    orders = [[]]
    for event in said_of_pairs(device, workload, listed):
        if event["event"] == "start":
            tried = {name: event[name] for name in spec.tunable_columns}
            orders[-1].append(listed.index(tried))
        elif event["event"] in ("entered", "round"):
            orders.append([])
    verified, *rounds, rest = orders
    assert (verified, rest) == ([0, 1, 2, 3], [])
    assert len(rounds) == LEAST_ROUNDS
    assert {tuple(sorted(each)) for each in rounds} == {(0, 1, 2, 3)}
    # Of 24 orders, drawn by a fixed seed.
    assert len(set(map(tuple, rounds))) > 4


COUNTS_PADDING = """
def change(session):
    session.working_set_bytes = sum(each.nbytes for each in session.buffers.values())
"""


@pytest.mark.parametrize(("turned", "spare_bytes"), [(False, 0), (True, 1_000)])
def test_where_l2_is_emptied_for_one_it_is_emptied_for_all(
    stencil_copy, kernel_cache, turned, spare_bytes
):
    change_sessions(stencil_copy, COUNTS_PADDING)
    spec = load_spec(stencil_copy)
    workload = load_workload(stencil_copy, spec)
    both = [
        next(each for each in configurations(spec, PROBLEM) if each["row_padding"] == padding)
        for padding in (0, 1)
    ]
    device = Between(stencil_copy, spec.headers, cache=kernel_cache)
    # Its L2 holds the problem in unpadded rows, not in padded ones.
    small, large = (_working_set_bytes(workload, device, each) for each in both)
    device.l2_bytes = small + spare_bytes
    assert device.l2_bytes < large
    said = said_of_pairs(device, workload, both[::-1] if turned else both)
    (entered,) = (event for event in said if event["event"] == "entered")
    assert [(one["timer"], one["l2"]) for one in entered["found"]] == [("events", "cold")] * 2
    # Neither verification nor warm-up: two of each.
    assert set(device.emptied[4:]) == {True}


def _working_set_bytes(workload, device, configuration):
    with closing(workload.open(device, PROBLEM, workload.layout(configuration), 1)) as session:
        return session.working_set_bytes


@pytest.mark.parametrize(("time_ms", "timer"), [(0.019, "graph"), (0.021, "events")])
def test_kernels_as_short_as_the_limit_are_replayed(
    stencil, stencil_copy, kernel_cache, time_ms, timer
):
    spec, workload = stencil
    device = Between(stencil_copy, spec.headers, cache=kernel_cache)
    device.time_ms, device.l2_bytes = time_ms, 0
    method = QUICK.model_copy(update={"graph_below_us": 20.0})
    said = said_of_pairs(device, workload, configurations(spec, PROBLEM)[:2], method)
    (entered,) = (event for event in said if event["event"] == "entered")
    assert [(one["timer"], one["l2"]) for one in entered["found"]] == [(timer, "warm")] * 2
