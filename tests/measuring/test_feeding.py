"""Kernels that become ready while a sweep already measures."""

import dataclasses
import shutil
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from supervising import rows_of, sweep

from launchwise.base.errors import UserError
from launchwise.measuring.bundle import Bundle
from launchwise.measuring.job import Alongside, Part
from launchwise.measuring.journal import read_journal
from launchwise.workloads.declared.declared_workload import load_workload
from launchwise.workloads.spec import load_spec
from launchwise.workloads.workload import builds_in_order

pytestmark = pytest.mark.usefixtures("forked_starts")

PROBLEMS = [{"n": 20, "dtype": dtype, "order": 2} for dtype in ("float32", "float64")]


class Late:
    """Parts that a test lets out: the builds of the last problem first."""

    seconds = 0.0

    def __init__(self, folder, journal):
        workload = load_workload(folder, load_spec(folder))
        self._keys = [
            frozenset(build.key for build in builds_in_order(workload, [problem]))
            for problem in PROBLEMS
        ]
        self._journal = journal
        self.seen = []

    def ready(self):
        """One problem's kernels, then, when it is measured, the other's."""
        yield Part(Path("one"), self._keys[1])
        done = threading.Event()
        for _ in range(2000):
            rows = read_journal(self._journal)[1]
            if len([row for row in rows if row["dtype"] == "float64"]) >= 5:
                break
            done.wait(0.01)
        self.seen.append({row["dtype"] for row in read_journal(self._journal)[1]})
        yield Part(Path("two"), self._keys[0])


def test_a_problem_is_measured_as_soon_as_its_kernels_are_ready(make_shard, stencil_copy, tmp_path):
    late = Late(stencil_copy, tmp_path / "j")
    shard = dataclasses.replace(make_shard(PROBLEMS), parts=late)
    sweep(shard, tmp_path / "j")
    rows = rows_of(tmp_path / "j")
    assert late.seen == [{"float64"}]
    assert {row["dtype"] for row in rows} == {"float32", "float64"}
    assert {row["status"] for row in rows} == {"ok"}


def test_tasks_without_kernels_end_the_sweep(make_shard, stencil_copy, tmp_path):
    workload = load_workload(stencil_copy, load_spec(stencil_copy))
    keys = frozenset(build.key for build in builds_in_order(workload, PROBLEMS[:1]))
    parts = SimpleNamespace(seconds=0.0, ready=lambda: iter([Part(Path("one"), keys)]))
    shard = dataclasses.replace(make_shard(PROBLEMS), parts=parts)
    with pytest.raises(RuntimeError, match=r"no kernels were compiled for 1 tasks: .*float64"):
        sweep(shard, tmp_path / "j")


def test_kernels_that_cannot_be_compiled_end_the_sweep_with_what_nvcc_said(make_shard, tmp_path):
    def ready():
        raise UserError("kernels", "sm_90", "nvcc failed: expected a ';'")

    parts = SimpleNamespace(seconds=0.0, ready=ready)
    shard = dataclasses.replace(make_shard(PROBLEMS), parts=parts)
    with pytest.raises(UserError, match="nvcc failed: expected a ';'"):
        sweep(shard, tmp_path / "j")


@pytest.mark.nvcc
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not on the PATH")
def test_what_is_compiled_alongside_is_what_a_bundle_holds(stencil_copy, tmp_path):
    spec = load_spec(stencil_copy)
    workload = load_workload(stencil_copy, spec)
    builds = builds_in_order(workload, PROBLEMS[:1])
    with Alongside(stencil_copy, spec, builds, "sm_90", 2) as parts:
        found = list(parts.ready())
        bundles = [Bundle(part.path) for part in found]
        again = list(parts.ready())
    assert again
    assert parts.seconds > 0
    assert frozenset[str]().union(*(part.keys or set() for part in found)) == {
        build.key for build in builds
    }
    for build in builds:
        (holder,) = [bundle for bundle in bundles if build.key in bundle.index["builds"]]
        kernels = holder.index["builds"][build.key]
        assert kernels
        assert all(kernel["registers"] > 0 for kernel in kernels.values())
    # Its folder is gone: nothing is left behind.
    assert not found[0].path.exists()
