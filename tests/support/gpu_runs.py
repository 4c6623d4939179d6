"""The first card described, and a workload measured on it: what tests on a GPU begin with."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from samples import ROOT

from launchwise.experiment.method import Method
from launchwise.gpus.machine import Fastest
from launchwise.gpus.profile import GpuProfile
from launchwise.measuring.cards import cards, free_card
from launchwise.measuring.job import Alongside, compilable
from launchwise.measuring.journal import Journal
from launchwise.measuring.shard import Shard
from launchwise.measuring.sweep import measure_shard
from launchwise.measuring.telemetry import Telemetry, nvml_source
from launchwise.workloads.declared.declared_workload import load_workload
from launchwise.workloads.space import gpu_facts
from launchwise.workloads.spec import load_spec
from launchwise.workloads.workload import builds_in_order


def described(slice_sms: int | None) -> GpuProfile:
    """Describe the first card, or a slice of it, in a process of its own."""
    present = cards()
    assert present, "these tests need a GPU"
    job = {"name": "test", "card": present[0].mark, "driver": present[0].driver}
    done = subprocess.run(
        [sys.executable, "-m", "launchwise.cuda.ceilings"],
        input=json.dumps({**job, "slice_sms": slice_sms}),
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": present[0].uuid},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return GpuProfile.model_validate_json(done.stdout)


def measured(
    folder: Path,
    profile: GpuProfile,
    problems: list[dict[str, Any]],
    scratch: Path,
    slice_sms: int | None = None,
    **method: Any,
) -> list[dict[str, Any]]:
    """Rows of a real sweep of ``problems`` with the workload in ``folder``. It compiles while it
    measures; that a bundle made beforehand does as well is shown by the rest of the project."""
    spec = load_spec(folder)
    builds = builds_in_order(load_workload(folder, spec), problems)
    cores = os.cpu_count() or 1
    usual = {"energy_ms": 0, "control_s": 0}
    with (
        free_card("test", lambda card: card.arch == profile.arch, profile.arch) as card,
        Alongside(folder, spec, builds, profile.arch, cores) as parts,
    ):
        shard = Shard(
            spec=compilable(spec, parts.left_out),
            folder=folder,
            problems=problems,
            method=Method(**{**usual, **method}),
            seed=3,
            gpu_facts=gpu_facts(profile.model_dump()),
            labels={
                "gpu": profile.name,
                "workload": spec.workload,
                "card": card.mark,
                "driver": card.driver,
                "toolkit": parts.compiler.toolkit,
                "backend": "pycuda",
                "commit": "test",
            },
            command=[sys.executable, "-m", "launchwise.cuda.child"],
            environment={
                **os.environ,
                "CUDA_VISIBLE_DEVICES": card.uuid,
                "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
            },
            parts=parts,
            job={
                "slice_sms": slice_sms,
                "expected_sms": profile.sms,
                "fastest": asdict(Fastest.of(profile)),
            },
        )
        with (
            Journal(scratch / "journal.jsonl", "test", spec.key_columns) as journal,
            Telemetry(nvml_source(card.uuid)) as telemetry,
        ):
            measure_shard(shard, journal, telemetry)
            return list(journal.rows)
