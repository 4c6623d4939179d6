"""The workflow on a real Slurm: faults of all kinds, and tables as if nothing had happened."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from itertools import zip_longest

import pytest
from fake_cluster import ROWS_PER_SWEEP, ClusterProject, Run
from one_machine_slurm import OneMachineSlurm

pytestmark = pytest.mark.slurm

PROFILE = (
    *("--workflow-profile", "profiles/slurm", "--slurm-status-command", "squeue"),
    *("--slurm-init-seconds-before-status-checks", "1", "--latency-wait", "5"),
)


def wait_for(what: str, run: Run, reached: Callable[[], bool], seconds: float = 400) -> None:
    """Wait; an error when the workflow ends or the time is over before."""
    deadline = time.monotonic() + seconds
    while not reached():
        if run.process.poll() is not None or time.monotonic() > deadline:
            raise AssertionError(f"{what} did not come:\n{run.said()[-3000:]}")
        time.sleep(0.2)


def jobs(slurm: OneMachineSlurm, part: str, state: str = "RUNNING") -> list[str]:
    """Numbers of the jobs in a state whose rule and wildcards contain ``part``."""
    lines = slurm.said("squeue", "-h", "-t", state, "-o", "%A %k").splitlines()
    return [line.split()[0] for line in lines if part in line]


def running(slurm: OneMachineSlurm, run: Run, project: ClusterProject, gpu: str, rows: int) -> str:
    """Number of a job of a sweep, once its journal has so many rows."""
    wait_for(f"row {rows} of {gpu}", run, lambda: project.rows(gpu) >= rows)
    wait_for(f"a job of {gpu}", run, lambda: bool(jobs(slurm, f"sweep_wildcards_{gpu}_")))
    assert project.rows(gpu) < ROWS_PER_SWEEP, "too late for a fault"
    return jobs(slurm, f"sweep_wildcards_{gpu}_")[0]


def test_a_killed_workflow_a_requeued_and_a_cancelled_job(
    slurm: OneMachineSlurm, on_slurm: ClusterProject
) -> None:
    with on_slurm.start(*PROFILE, "sweep_a100") as first:
        running(slurm, first, on_slurm, "a100", 5)
        os.killpg(first.process.pid, signal.SIGKILL)
        first.process.wait(10)
    orphans = jobs(slurm, "sweep_wildcards_a100_")
    assert orphans, "the jobs of a killed workflow run on"
    with on_slurm.start("--unlock") as unlocking:
        assert unlocking.wait(200) == 0, unlocking.said()
    # Jobs that nobody waits for any more, and their successors beside them.
    on_slurm.hasten("a100")
    with on_slurm.start(*PROFILE, "sweep_a100") as second:
        more = len(orphans) + 1
        wait_for("a successor", second, lambda: len(jobs(slurm, "sweep_wildcards_a100_")) >= more)
        assert on_slurm.rows("a100") < ROWS_PER_SWEEP, "too late for a fault"
        requeued = (set(jobs(slurm, "sweep_wildcards_a100_")) - {*orphans}).pop()
        slurm.do("scontrol", "requeue", requeued)
        slurm.do("scancel", orphans[0])
        wait_for("the queue", second, lambda: requeued in jobs(slurm, "sweep_", "PENDING"))
        # Slurm would wait for two minutes.
        slurm.do("scontrol", "update", f"JobId={requeued}", "StartTime=now")
        assert second.wait(600) == 0, second.said()[-3000:]
    logs = (on_slurm.results / "logs" / "slurm").rglob(f"{orphans[0]}.log")
    assert "run the same command again to resume" in next(logs).read_text()
    assert on_slurm.rows("a100") == ROWS_PER_SWEEP


def test_faults_of_nodes_and_of_slurm_itself(
    slurm: OneMachineSlurm, on_slurm: ClusterProject, reference: ClusterProject
) -> None:
    with on_slurm.start(*PROFILE, "sweep_t4", "sweep_h200") as run:
        limited = running(slurm, run, on_slurm, "t4", 1)
        slurm.kill_controller()
        time.sleep(3)
        slurm.start_controller()
        # As if its time limit were over: the shortest one is a minute.
        slurm.do("scontrol", "update", f"JobId={limited}", "EndTime=now+1second")
        on_slurm.hasten("t4")

        lost = running(slurm, run, on_slurm, "h200", 5)
        slurm.do("scontrol", "update", "NodeName=h200", "State=DRAIN", "Reason=drain")
        assert lost in jobs(slurm, "sweep_wildcards_h200_"), "a drained node lets its jobs end"
        slurm.crash_node("h200")
        # Slurm would find out by itself after some minutes.
        slurm.do("scontrol", "update", "NodeName=h200", "State=DOWN", "Reason=crash")
        wait_for("its end", run, lambda: lost not in jobs(slurm, "sweep_wildcards_h200_"))
        on_slurm.hasten("h200")
        slurm.start_node("h200")
        slurm.do("scontrol", "update", "NodeName=h200", "State=RESUME")
        # Slurm has queued it again, for in two minutes.
        slurm.do("scancel", lost)

        assert run.wait(900) == 0, run.said()[-3000:]
    assert "TIMEOUT" in slurm.said("squeue", "-h", "-t", "all", "-j", limited, "-o", "%T")
    found, wanted = on_slurm.measured(), reference.measured()
    assert found.keys() == wanted.keys()
    differing = [
        (name, one, other)
        for name in found
        for one, other in zip_longest(found[name], wanted[name])
        if one != other
    ]
    assert differing == []


def test_from_a_sweep_to_the_report(on_slurm: ClusterProject) -> None:
    on_slurm.keep_gpu("h200")
    with on_slurm.start(*PROFILE) as run:
        assert run.wait(600) == 0, run.said()[-3000:]
    front = (on_slurm.results / "report" / "index.html").read_text(encoding="utf-8")
    assert "Gain from tuning" in front
    assert (on_slurm.results / "report.zip").stat().st_size > 100_000


def test_a_second_run_has_nothing_to_do(on_slurm: ClusterProject) -> None:
    with on_slurm.start(*PROFILE) as run:
        assert run.wait(200) == 0
        assert "Nothing to be done" in run.said()
