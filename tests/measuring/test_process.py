"""A measuring process: what it leaves behind."""

import os
import sys
import tempfile
from pathlib import Path

import pytest

from launchwise.measuring import compile
from launchwise.measuring.compile import Compiler
from launchwise.measuring.process import MeasuringProcess
from launchwise.measuring.serving import Task, serve
from launchwise.workloads.space import configurations
from tests.measuring.conftest import QUICK
from tests.support.host_device import HostDevice


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
