"""The workflow on a real Slurm: faults of all kinds, and tables as if nothing had happened."""

import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
import venv
from itertools import zip_longest
from pathlib import Path

import pytest
import yaml
from fake_cluster import ARCHS, ROWS_PER_SWEEP, RUNTIME
from slurm_accounting import lacking

pytestmark = pytest.mark.slurm

START = ("python", "-m", "snakemake")
PROFILE = (
    *("--workflow-profile", "profiles/slurm", "--slurm-status-command", "squeue"),
    *("--slurm-init-seconds-before-status-checks", "1", "--latency-wait", "5"),
)


def wait_for(what, run, reached, seconds=400):
    """Wait; an error when the workflow ends or the time is over before."""
    deadline = time.monotonic() + seconds
    while not reached():
        if run.process.poll() is not None or time.monotonic() > deadline:
            raise AssertionError(f"{what} did not come:\n{run.said()[-3000:]}")
        time.sleep(0.2)


def jobs(slurm, part, state="RUNNING"):
    """Numbers of the jobs in a state whose rule and wildcards contain ``part``."""
    lines = slurm.said("squeue", "-h", "-t", state, "-o", "%A %k").splitlines()
    return [line.split()[0] for line in lines if part in line]


def running(slurm, run, project, gpu, rows):
    """Number of a job of a sweep, once its journal has so many rows."""
    wait_for(f"row {rows} of {gpu}", run, lambda: project.rows(gpu) >= rows)
    wait_for(f"a job of {gpu}", run, lambda: bool(jobs(slurm, f"sweep_wildcards_{gpu}_")))
    assert project.rows(gpu) < ROWS_PER_SWEEP, "too late for a fault"
    return jobs(slurm, f"sweep_wildcards_{gpu}_")[0]


def differing(project, reference, *gpus):
    """Rows of these GPUs' sweeps, and their profiles, that are others than without faults."""
    found, wanted = project.measured(), reference.measured()
    names = [*gpus, *(f"{gpu}/stencil" for gpu in gpus)]
    pairs = [(name, *pair) for name in names for pair in zip_longest(found[name], wanted[name])]
    return [(name, one, other) for name, one, other in pairs if one != other]


def test_jobs_ask_for_what_their_gpu_says(slurm, on_slurm):
    """All partitions mix kinds of card, and nvcc comes with a module."""
    slurm.do("scontrol", "update", "NodeName=h200", "State=DRAIN", "Reason=not for long")
    scratch = on_slurm.results.parent.parent / "tmp"
    defaults = (
        f"tmpdir='{scratch}/$SLURM_JOB_ID'",
        "slurm_account=biology",
        "runtime=5",
        "mem_mb=500",
    )
    with on_slurm.start(*PROFILE, "check_gpus", "--default-resources", *defaults) as run:
        # No mistake: the node comes back, and jobs wait.
        wait_for("the drained node", run, lambda: len(jobs(slurm, "_h200", "PENDING")) == 2)
        slurm.do("scontrol", "update", "NodeName=h200", "State=RESUME")
        assert run.wait(200) == 0, run.said()[-3000:]
    listed = slurm.said("squeue", "-h", "-t", "all", "-o", "%k|%P|%a|%f|%v|%y|%N|%A").splitlines()
    asked = [line.removeprefix("rule_check_wildcards_").rpartition("|") for line in listed]
    # Slurm chose one of two partitions.
    assert sorted(line.replace("|long|physics", "|short|physics") for line, _, _ in asked) == [
        "a100|short|physics|(null)|(null)|1|a100",
        "h200.sm4|all|biology|(null)|lab|0|h200",
        "h200|long|biology|hopper|lab|0|h200",
        "t4|short|biology|(null)|(null)|0|t4",
    ]
    assert {path.name for path in scratch.iterdir()} == {number for _, _, number in asked}


def test_stages_run_in_a_container_of_a_stand_in_runtime(slurm, on_slurm, tmp_path):
    """Real: Slurm, and Snakemake's calls of the runtime. Made up: the runtime and its image."""
    image, calls = on_slurm.project.folder / "launchwise.sif", tmp_path / "calls"
    image.write_text("")
    image_has = {"FAKE_CONTAINER_CALLS": str(calls), "MODULESHOME": "/nowhere"}
    image_has["PATH"] = f"{RUNTIME}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    deployed = ("--sdm", "apptainer", "--apptainer-args=--nv")
    target = f"results/build/stencil/{ARCHS['t4']}.cubins"
    with on_slurm.start(*PROFILE, *deployed, target, **image_has) as run:
        assert run.wait(200) == 0, run.said()[-3000:]
    (line,) = calls.read_text().splitlines()
    assert " --nv " in line
    assert " launchwise.sif " in line


def test_stages_run_in_the_environment_that_started_them(slurm, on_slurm, tmp_path):
    """As one of Conda's (a venv stands in for it); the folder of the run is elsewhere."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    shutil.copy(on_slurm.project.folder / "config.yaml", scratch)
    environment = tmp_path / "conda"
    venv.create(environment, symlinks=True)
    packages = next(environment.glob("lib/python*/site-packages"))
    used = f"open({str(tmp_path / 'used')!r}, 'a').write(os.environ.get('SLURM_JOB_ID', '-') + ' ')"
    (packages / "used.pth").write_text(f"{sysconfig.get_path('purelib')}\nimport os; {used}\n")
    path = f"{environment / 'bin'}:/usr/local/bin:/usr/bin:/bin"
    status = ("--seconds-between-status-checks", "1")
    done = subprocess.run(
        [*START, *PROFILE, *status, "--directory", str(scratch), "results/checks/t4.json"],
        cwd=on_slurm.project.folder,
        env={**on_slurm.environment, "PATH": path, "CONDA_PREFIX": str(environment)},
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (number,) = re.findall(r"SLURM jobid (\d+)", done.stderr + done.stdout)
    assert number in (tmp_path / "used").read_text().split()
    assert (scratch / "results" / "checks" / "t4.json").is_file()


THERE = "sinfo -o '%P %G %f' lists what there is"
OWN = "sacctmgr show assoc user=$USER format=account,partition,qos lists yours"
REFUSED = [
    ("t4", {"partition": "gpus"}, "invalid partition specified: gpus", THERE),
    ("t4", {"gres": "gpu:h200"}, "short has no such GPU, but ", THERE),
    ("h200", {"constraint": "hoper"}, "Invalid feature specification", THERE),
    ("h200", {"reservation": "lap"}, "reservation is invalid", THERE),
    ("a100", {"extra": ["--exklusive"]}, "unrecognized option '--", THERE),
    ("t4", {"account": "chemistry"}, "Invalid account or account/", OWN),
    ("a100", {"qos": "urgent"}, "Invalid qos specification", OWN),
]
"""A GPU, what its entry says, Slurm's words, and what lists all that it would take."""


@pytest.mark.parametrize(("gpu", "entry", "words", "lists"), REFUSED)
def test_what_slurm_refuses_is_one_line_before_any_job(gpu, entry, words, lists, slurm, on_slurm):
    if lists == OWN and (missing := lacking()):
        pytest.skip(f"Slurm keeps no accounts: {missing} is missing")
    overlay = {"gpus": {gpu: {"slurm": entry}}}
    (on_slurm.project.folder / "overlay.yaml").write_text(yaml.safe_dump(overlay))
    before = slurm.said("squeue", "-h", "-t", "all", "-o", "%A")
    settings = ("--configfile", "config.yaml", "overlay.yaml")
    with on_slurm.start(*PROFILE, *settings, "-F", "--", "check_gpus") as run:
        assert run.wait(100) == 1
    said = [line for line in run.said().splitlines() if line.startswith("launchwise: ")]
    assert len(said) == 1
    assert said[0].startswith(f"launchwise: overlay.yaml: gpus.{gpu}.slurm: Slurm refuses --part")
    assert words in said[0]
    assert said[0].endswith(f"; {lists}")
    assert "Traceback" not in run.said()
    assert slurm.said("squeue", "-h", "-t", "all", "-o", "%A") == before


@pytest.mark.slow
def test_a_killed_workflow_a_requeued_and_a_cancelled_job(slurm, on_slurm, reference):
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
    assert differing(on_slurm, reference, "a100") == []


def test_faults_of_nodes_and_of_slurm_itself(slurm, on_slurm, reference):
    with on_slurm.start(*PROFILE, "sweep_t4", "sweep_h200") as run:
        limited = running(slurm, run, on_slurm, "t4", 1)
        running(slurm, run, on_slurm, "h200", 1)
        # It forgets what it has not saved yet: a job of the last five seconds, or that one ended.
        time.sleep(6)
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
    assert differing(on_slurm, reference, "t4", "h200") == []


def test_a_check_that_fails_on_a_node_is_told_in_the_terminal(slurm, on_slurm):
    overlay = on_slurm.project.folder / "overlay.yaml"
    overlay.write_text(yaml.safe_dump({"gpus": {"t4": {"device": "L4"}}}))
    settings = ("--configfile", "config.yaml", "overlay.yaml")
    with on_slurm.start(*PROFILE, *settings, "-F", "--", "results/checks/t4.json") as run:
        assert run.wait(100) == 1
    lines = [line for line in run.said().splitlines() if line.startswith("launchwise: ")]
    (said,) = [line for line in lines if "gpus.t4: " in line]
    assert "no matching GPU: wanted L4 of sm_75, found Made-up t4" in said


@pytest.mark.slow
def test_from_a_sweep_to_the_report(on_slurm):
    on_slurm.keep_gpu("h200")
    with on_slurm.start(*PROFILE) as run:
        assert run.wait(600) == 0, run.said()[-3000:]
    front = (on_slurm.results / "report" / "index.html").read_text(encoding="utf-8")
    assert "Is tuning worth it" in front
    assert (on_slurm.results / "report.zip").stat().st_size > 100_000


@pytest.mark.slow
def test_a_second_run_has_nothing_to_do(on_slurm):
    with on_slurm.start(*PROFILE) as run:
        assert run.wait(200) == 0
        assert "Nothing to be done" in run.said()
