"""Times of the stages of a run, with the kernels' own sources on the CPU."""

import time
from contextlib import contextmanager

import numpy as np
import pytest
from test_tridiagonal import FOLDER, error, system

from kernels.tridiagonal.host import stage_times
from kernels.tridiagonal.host.host_solution import STAGES, HostArrays, solution_with_host
from kernels.tridiagonal.host.interface_solvers import solve_on_host
from kernels.tridiagonal.host.launches import Arrays, DeviceSolution
from kernels.tridiagonal.host.plan import Choice
from kernels.tridiagonal.host.stage_times import BUDGET_MS, MOST_RUNS, median_times
from launchwise.workloads.spec import load_spec
from tests.support.host_device import HostDevice


class Recorder(HostDevice):
    def __init__(self, *args, **how):
        super().__init__(*args, **how)
        self.calls = []

    def upload(self, buffer, array, stream=None):
        self.calls.append("upload")
        super().upload(buffer, array, stream)

    def download(self, buffer, array, stream=None):
        self.calls.append("download")
        super().download(buffer, array, stream)

    def launch(self, launch, stream=None):
        self.calls.append(launch.kernel)
        super().launch(launch, stream)

    def synchronize(self):
        self.calls.append("wait")

    def event(self, stream=None):
        """See HostDevice; on no stream: an event after the work of all of them."""
        assert stream is None
        self.calls.append("event")
        return super().event(stream)


@pytest.fixture
def recorder(kernel_cache):
    return Recorder(FOLDER, load_spec(FOLDER).headers, cache=kernel_cache)


@contextmanager
def opened(device, choice):
    arrays = system(20_011, "float64", 1)
    solution = DeviceSolution(device, arrays[0].dtype, len(arrays[0]), choice)
    each = [device.allocate(array.nbytes) for array in (*arrays, arrays[0])]
    host = HostArrays(*arrays, np.full(len(arrays[0]), np.nan))
    yield solution_with_host(solution, Arrays(*each[:4]), each[4], host, choice), host
    solution.close()


CHOICES = [
    Choice("strided", (10,), threads=32, finish_on_host=True),
    Choice("strided", (10,), threads=32, finish_on_host=True, streams=4),
    Choice("strided_scratch", (16, 8, 4), threads=32, finish_on_host=True, streams=2),
    Choice("strided", (20, 8), threads=32),
    Choice("strided", (10,), threads=32, finish_on_host=True, host_solver="thomas"),
    Choice("strided", (20, 8), threads=32, finish_on_host=True, host_solver="cores", streams=2),
]


@pytest.mark.parametrize("choice", CHOICES)
def test_the_clock_adds_no_wait_but_the_one_before_it_begins(recorder, choice):
    with opened(recorder, choice) as (work, _):
        recorder.calls.clear()
        work.run()
        run = list(recorder.calls)
        recorder.calls.clear()
        work._staged_once()
        staged = list(recorder.calls)
    assert staged[:2] == ["wait", "event"]
    without = [call for call in staged[2:] if call != "event"]
    if choice.streams == 1:
        # With one stream the same work in the same order.
        assert without == run
    assert sorted(without) == sorted(run)
    assert without.count("wait") == run.count("wait")


def test_stages_end_in_order(recorder):
    with opened(recorder, CHOICES[0]) as (work, _):
        recorder.calls.clear()
        work._staged_once()
    assert recorder.calls == [
        *("wait", "event"),
        *(4 * ["upload"]),
        *("event", "reduce", "event"),
        *(4 * ["download"]),
        # The host solves between the wait and the next event.
        *("event", "wait", "event"),
        *("upload", "event", "substitute", "event", "download", "event", "wait"),
    ]


@pytest.mark.parametrize("choice", CHOICES)
def test_the_stages_of_a_run_add_up_to_it(recorder, choice):
    with opened(recorder, choice) as (work, host):
        work.run()  # Compiles the kernels.
        shares = []
        for _ in range(5):
            begin = time.perf_counter()
            stages = work._staged_once()
            whole = 1e3 * (time.perf_counter() - begin)
            assert tuple(stages) == STAGES
            assert sum(stages.values()) <= whole
            shares.append(sum(stages.values()) / whole)
        assert max(shares) > 0.9
        assert error(host.x, [host.a, host.b, host.c, host.d]) < 1e-14


def test_host_work_belongs_to_its_own_stage(recorder, monkeypatch):
    def slow(*arrays):
        time.sleep(0.2)
        return solve_on_host(*arrays)

    with opened(recorder, CHOICES[0]) as (work, _):
        work.run()
        monkeypatch.setattr(work, "_solve", slow)
        delayed = work._staged_once()
    assert delayed["t2_h"] > 150
    assert all(delayed[name] < 150 for name in STAGES if name != "t2_h")


def test_cheap_runs_are_repeated_and_their_median_taken():
    times = iter([9.0, 1.0, 8.0, 2.0, 7.0, 3.0, 6.0, 4.0, 5.0])
    assert median_times(lambda: {"a": next(times), "b": 1.0}) == {"a": 5.0, "b": 1.0}
    assert next(times, None) is None
    assert MOST_RUNS == 9


def test_a_long_run_is_timed_once(monkeypatch):
    clock = iter([0.0, 1.01e-3 * BUDGET_MS])
    monkeypatch.setattr(stage_times.time, "perf_counter", lambda: next(clock))
    times = iter([3.0])
    assert median_times(lambda: {"a": next(times)}) == {"a": 3.0}
