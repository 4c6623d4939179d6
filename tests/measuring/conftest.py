"""Fixtures for measuring on the CPU with the kernels' own sources."""

import os
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest
import yaml
from host_device import HostParts
from measuring_forks import ForkedProcess
from samples import ROOT
from stencil import small_stencil

from launchwise.experiment.method import Method, Repeats
from launchwise.measuring import explore
from launchwise.measuring.shard import Shard
from launchwise.measuring.telemetry import Sample
from launchwise.workloads.declared.declared_workload import load_workload
from launchwise.workloads.spec import load_spec

SUPPORT = ROOT / "tests" / "support"
DATA = ROOT / "tests" / "measuring" / "data"
MISTAKES = yaml.safe_load((DATA / "mistakes.yaml").read_text())
"""Mistakes in the workloads ``twice_triton`` and ``twice_openmp``."""
QUICK = Method(
    repeats=Repeats(minimum=2, maximum=3, budget_ms=5.0, few=2),
    slow_factor=1e9,
    timeout_s=20.0,
    graph_below_us=0,
    energy_ms=0,
    control_s=0,
    disturbed=1e9,
)
"""Few repeats, no early end, no control, no row in doubt.

A CPU's times say nothing of a configuration or a card.
"""


WATTS = 350.0


def steady():
    """A card's state at this moment: it takes so much all the time."""
    now = time.monotonic()
    return Sample(now, 1980, 3200, 50, WATTS, energy_j=WATTS * now)


def quick(**strategy):
    """A quick method with a strategy."""
    return Method.model_validate({**QUICK.model_dump(), "strategy": strategy})


FEW = 500


@contextmanager
def few_candidates():
    """Samples of a tenth: drawing candidates until they are feasible takes most of a test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(explore, "SAMPLED_CANDIDATES", FEW)
        yield


@pytest.fixture
def stencil_copy(tmp_path):
    """A copy of the stencil with a small space, free to be changed."""
    return small_stencil(tmp_path)


@pytest.fixture
def stencil(stencil_copy):
    """Spec and workload of the small copy."""
    spec = load_spec(stencil_copy)
    return spec, load_workload(stencil_copy, spec)


@pytest.fixture
def make_shard(stencil_copy, kernel_cache):
    """A shard that is measured on the CPU, or by another ``script``."""

    def make(
        problems, script=SUPPORT / "host_device.py", method=QUICK, memory_bytes=1 << 34, **job
    ):
        return Shard(
            spec=load_spec(stencil_copy),
            folder=stencil_copy,
            problems=problems,
            method=method,
            seed=7,
            gpu_facts={
                "gpu_memory_bytes": memory_bytes,
                "gpu_max_threads_per_block": 1024,
                "gpu_shared_per_block_bytes": 49152,
            },
            labels={
                "gpu": "cpu",
                "workload": "stencil",
                "card": "none",
                "driver": "none",
                "toolkit": "none",
                "backend": "g++",
                "commit": "test",
            },
            command=[sys.executable, str(script)],
            environment={**os.environ, "PYTHONPATH": str(ROOT)},
            parts=HostParts(),
            job={"cache": str(kernel_cache)} | job,
        )

    return make


@pytest.fixture
def forked_starts(monkeypatch):
    """Measuring processes of the scripts here are forks (``test_sweep`` starts programs)."""
    monkeypatch.setattr(subprocess, "Popen", ForkedProcess)


@pytest.fixture
def faulty(make_shard, tmp_path, monkeypatch, forked_starts):
    """Shards of one problem with a fault."""
    monkeypatch.setenv("STARTS", str(tmp_path / "starts"))

    def make(timeout_s=20.0, **job):
        options = {
            "problems": [{"n": 20, "dtype": "float32", "order": 2}],
            "script": SUPPORT / "faulty_child.py",
            "method": QUICK.model_copy(update={"timeout_s": timeout_s}),
        }
        return make_shard(**options | job)

    return make
