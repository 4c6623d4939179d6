"""A real Slurm for the tests of this folder, with made-up cards on its nodes."""

import shutil
import tempfile
from pathlib import Path

import pytest
from fake_cluster import ACCOUNTS, FEATURES, NODES, PARTITIONS, RESERVATION, ClusterProject
from filelock import FileLock
from one_machine_slurm import OneMachineSlurm, unusable
from slurm_accounting import lacking


@pytest.fixture(scope="session")
def slurm():
    """Slurm's daemons; the test is skipped, with the reason, where they cannot be had."""
    if reason := unusable():
        pytest.skip(reason)
    # Sockets have short names.
    folder = Path(tempfile.mkdtemp(prefix="slurm-", dir="/tmp"))
    accounts = () if lacking() else ACCOUNTS
    cluster = OneMachineSlurm(folder, NODES, FEATURES, PARTITIONS, accounts=accounts)
    # Its configuration has one place on a machine: tests of another clone wait.
    with FileLock("/tmp/launchwise-slurm-tests.lock", timeout=900):
        try:
            cluster.start()
            cluster.reserve(RESERVATION, "h200")
            yield cluster
        finally:
            cluster.stop()
            shutil.rmtree(folder)


@pytest.fixture(scope="session")
def reference_run(tmp_path_factory, kernel_cache):
    """The same project on this machine without a cluster, beside whatever Slurm does first."""
    project = ClusterProject.make(tmp_path_factory.mktemp("local"), kernel_cache, haste=True)
    sweeps = [f"sweep_{gpu}" for gpu in NODES]
    with project.start("--cores", "2", "--quiet", "all", "--", *sweeps) as run:
        yield project, run


@pytest.fixture(scope="session")
def reference(reference_run):
    """What the project makes where nothing disturbs it."""
    project, run = reference_run
    assert run.wait(900) == 0, run.said()[-3000:]
    return project


@pytest.fixture(scope="session")
def on_slurm(tmp_path_factory, slurm, reference_run, kernel_cache):
    """A project to be run on Slurm, with its results on another disk."""
    folder = tmp_path_factory.mktemp("slurm")
    project = ClusterProject.make(folder, kernel_cache)
    (folder / "scratch").mkdir()
    project.results.symlink_to(folder / "scratch")
    yield project
    project.end_orphans()
