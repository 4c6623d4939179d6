"""Calls in several processes at once."""

import os
import signal
import time
from functools import partial

import pytest

from launchwise.base.errors import UserError
from launchwise.base.work import in_parallel, usable_cores
from tests.support.supervising import Supervisor, has_ended, until


@pytest.mark.parametrize("processes", [1, 3])
def test_results_come_in_the_order_of_the_items(processes):
    secret = {"added": 100}  # Forks see what is here; nothing travels but results.
    found = in_parallel(lambda item: (item + secret["added"], os.getpid()), range(7), processes)
    assert [value for value, _ in found] == [100 + item for item in range(7)]
    here = {pid == os.getpid() for _, pid in found}
    assert here == {processes == 1}


@pytest.mark.parametrize("processes", [1, 2])
def test_a_mistake_in_one_item_is_told_as_it_was(processes):
    def check(item):
        if item == 2:
            raise UserError("config.yaml", "key", "is wrong")
        return item

    with pytest.raises(UserError) as caught:
        in_parallel(check, [1, 2, 3], processes)
    assert (caught.value.where, caught.value.key) == ("config.yaml", "key")
    assert str(caught.value) == "config.yaml: key: is wrong"
    # And the next call is none the worse for it.
    assert in_parallel(lambda item: -item, [1, 3], processes) == [-1, -3]


def test_a_parallel_call_within_one_is_refused():
    inner = partial(in_parallel, abs, [1, 2], 2)
    with pytest.raises(RuntimeError, match="within a parallel call"):
        in_parallel(lambda _: inner(), [1, 2], 2)


def test_no_items_need_no_process():
    assert in_parallel(abs, [], 4) == []


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs affinities of processes")
def test_cores_are_those_that_the_process_may_use():
    allowed = sorted(os.sched_getaffinity(0))

    def on_one(core):
        os.sched_setaffinity(0, {core})
        return usable_cores()

    assert in_parallel(on_one, [allowed[0], allowed[-1]], 2) == [1, 1]
    assert usable_cores() == len(allowed)


def test_workers_end_with_a_process_that_is_killed(tmp_path):
    def work(number):
        (tmp_path / str(os.getpid())).touch()
        time.sleep(600)

    supervisor = Supervisor(lambda: len(in_parallel(work, [1, 2], 2)), tmp_path / "said.txt")
    workers = until(lambda: len(found := os.listdir(tmp_path)) == 2 and found, "both workers")
    supervisor.send(signal.SIGKILL)
    assert all(has_ended(int(worker), 10) for worker in workers)
    supervisor.wait()
