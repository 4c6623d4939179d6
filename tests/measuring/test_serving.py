"""Tasks of a measuring process, on the CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from launchwise.measuring.serving import Task, serve
from launchwise.workloads.space import Problem, configurations
from launchwise.workloads.spec import Spec
from launchwise.workloads.workload import Workload
from tests.measuring.conftest import QUICK
from tests.support.host_device import HostDevice

PROBLEM: Problem = {"n": 20, "dtype": "float32", "order": 2}
SEARCH: dict[str, Any] = {
    **{"kind": "random", "budget": 2, "seconds": None},
    **{"guesses": [], "known": [], "gpu_facts": {}},
}
PAIRS: dict[str, Any] = {"precision": 1e9, "seconds": 60.0, "references": [0]}


@pytest.mark.parametrize(
    "how", [{}, {"energy": True}, {"pairs": PAIRS}, {"explore": SEARCH}], ids=lambda how: [*how]
)
def test_a_task_releases_its_buffers(
    stencil: tuple[Spec, Workload], stencil_copy: Path, kernel_cache: Path, how: dict[str, Any]
) -> None:
    spec, workload = stencil
    device = HostDevice(stencil_copy, spec.headers, cache=kernel_cache)
    free = device.free_bytes
    listed = [] if "explore" in how else configurations(spec, PROBLEM)[:2]
    said: list[dict[str, Any]] = []
    serve(device, workload, QUICK, [Task(PROBLEM, listed, **how)], 1, said.append)
    assert said[-1]["event"] == "done"
    assert device.free_bytes == free
    if "explore" in how:
        # As many as the budget allows, the baseline first.
        rows = [each for each in said if each["event"] == "row"]
        assert [row["status"] for row in rows] == ["ok", "ok"]
