"""Fixtures that every test may use: the project, small workloads, small valid data."""

import gc
import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

# Threads of OpenBLAS look for work in a loop, and start anew after every fork. Processes that tests
# start are told, too.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import hypothesis
import pytest

from launchwise.measuring import compile
from launchwise.workloads.spec import load_spec

sys.path.insert(0, str(Path(__file__).resolve().parent / "tests" / "support"))

from kept_cubins import keeping
from samples import ROOT, SAXPY, STENCIL, copy_project

# Hundreds of processes import the library: it is compiled once, whatever the environment says.
sys.dont_write_bytecode = False
os.environ["PYTHONDONTWRITEBYTECODE"] = ""

# How long an example takes says nothing on a machine that does other work.
hypothesis.settings.register_profile("launchwise", deadline=None)
hypothesis.settings.load_profile("launchwise")

SLOWEST = (
    "benchmarks/test_budget",
    "tests/test_sentiment.py",
    "test_without_workloads",
    "pipeline/",
    "measuring/",
    "benchmarks/",
    "kernels/",
)
"""Where the slowest files are, slowest first: begun last, they would keep one worker busy alone."""


def pytest_configure(config):
    """Let Slurm's client fail at once where no test starts Slurm.

    Snakemake's plugin asks it at every start, and it would wait 9 s for a controller.
    """
    if "not slurm" in config.option.markexpr:
        os.environ.setdefault("SLURM_CONF", os.devnull)


def pytest_collection_modifyitems(items):
    """Slow files first; all others keep their order."""

    def place(item):
        path = item.path.as_posix()
        return next((n for n, part in enumerate(SLOWEST) if part in path), len(SLOWEST))

    items.sort(key=place)


def pytest_collection_finish():
    """All that was imported and collected stays: the collector of garbage leaves it alone."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def root():
    """Folder of the project."""
    return ROOT


@pytest.fixture(scope="session")
def saxpy_spec():
    """Spec of the tutorial's workload, the small one where any will do."""
    return load_spec(SAXPY)


@pytest.fixture(scope="session")
def stencil_spec():
    """Spec of the tests' own workload, which has a cost model and made-up times."""
    return load_spec(STENCIL)


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory):
    """Temporary folder of a run of the tests, one for all of its processes."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


def kept_folder(request, run_folder, name):
    """Folder that is kept from run to run, if pytest keeps anything."""
    kept = getattr(request.config, "cache", None)
    folder = run_folder / name if kept is None else kept.mkdir(name)
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def kernel_cache(request, run_folder):
    """Kernels compiled for the CPU, kept from run to run: names tell their contents."""
    if shutil.which("g++") is None:
        pytest.skip("g++ is needed to run kernels on the CPU")
    return kept_folder(request, run_folder, "kernels")


@pytest.fixture
def kept_cubins(request, run_folder, monkeypatch):
    """What nvcc makes and says is kept from run to run."""
    folder = kept_folder(request, run_folder, "cubins")
    monkeypatch.setattr(compile, "_nvcc", keeping(compile._nvcc, folder))


@pytest.fixture
def project(tmp_path):
    """A copy of the project whose only GPU, ``test``, has a small recorded sweep."""
    return copy_project(tmp_path / "project")


@pytest.fixture
def own_log(monkeypatch):
    """Put the project's logger back as it was: ``running`` is for a process of its own."""
    logger = logging.getLogger("launchwise")
    for name in ("handlers", "level", "propagate"):
        monkeypatch.setattr(logger, name, getattr(logger, name))


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 64 KiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("mounting is not allowed here")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)
