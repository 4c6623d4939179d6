"""Reads hardware counters of a few configurations with Nsight Compute.

A sweep says how long a configuration takes; counters say how full the GPU was meanwhile. Reading
them disturbs time, so it is done apart, and of the fastest configurations alone.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from launchwise.base.errors import UserError
from launchwise.experiment.study import Counters
from launchwise.tables.rows import fastest_rows, selected
from launchwise.workloads.metrics import COUNTERS, absent
from launchwise.workloads.spec import Spec

CHILD = "launchwise.cuda.counted"


def fastest_by(rows: pd.DataFrame, spec: Spec, asked: Counters) -> pd.DataFrame:
    """The fastest measured configuration of the problems for each combination of some tunables, of
    one GPU's rows with a time. Returns problem and configuration columns, one row per (problem,
    values of ``asked.by``), in order."""
    rows = rows[selected(rows, asked.among)]
    key = [*spec.problem_columns, *asked.by]
    best = fastest_rows(rows, key, spec).sort_values(key, ignore_index=True)
    return best[[*spec.problem_columns, *spec.tunable_columns]]


def read_counters(
    job: Mapping[str, Any], environment: Mapping[str, str]
) -> list[list[dict[str, Any]]]:
    """Run every configuration of ``job``, as :mod:`launchwise.cuda.counted` is told, once under
    Nsight Compute, with further variables of the ``environment``. Returns for every configuration
    its launches in order: symbol, kernel, grid_blocks, block_threads and
    :data:`launchwise.workloads.metrics.COUNTERS`."""
    with tempfile.TemporaryDirectory() as folder:
        asked, made, seen = (Path(folder, name) for name in ("job.json", "made.json", "seen.csv"))
        asked.write_text(json.dumps(job))
        command = [*_profiler(seen), sys.executable, "-m", CHILD, str(asked), str(made)]
        done = subprocess.run(
            command, capture_output=True, text=True, env={**os.environ, **environment}, check=False
        )
        log = seen.read_text() if seen.is_file() else ""
        if done.returncode or not made.is_file():
            raise UserError("ncu", "", _reason(log, done))
        runs: list[list[dict[str, Any]]] = json.loads(made.read_text())
    return joined(runs, parse(log))


def _profiler(log: Path) -> list[str]:
    found = shutil.which("ncu")
    if found is None:
        raise UserError("ncu", "", "Nsight Compute is not on the PATH")
    return [
        found,
        *("--csv", "--log-file", str(log), "--metrics", ",".join(each.source for each in COUNTERS)),
        *("--profile-from-start", "off", "--target-processes", "all"),
        # The card's settings stay as they are.
        *("--clock-control", "none", "--kernel-name-base", "function"),
    ]


def _reason(log: str, done: subprocess.CompletedProcess[str]) -> str:
    errors = [line for line in log.splitlines() if line.startswith("==ERROR==")]
    said = [line for line in done.stderr.splitlines() if line.strip()]
    text = (errors or said or [f"exit code {done.returncode}"])[-1].removeprefix("==ERROR==")
    if "ERR_NVGPUCTRPERM" in text:
        return "this user may not read the GPU's counters (ERR_NVGPUCTRPERM)"
    return text.strip()


def parse(log: str) -> list[dict[str, Any]]:
    """Kernels in the CSV of Nsight Compute, in order. Returns mappings with ``symbol`` and the
    columns of :data:`launchwise.workloads.metrics.COUNTERS`; what the card cannot count is NaN."""
    lines = log.splitlines()
    start = next((place for place, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        return []
    counters = {each.source: each for each in COUNTERS}
    found: dict[int, dict[str, Any]] = {}
    body = [line for line in lines[start:] if line.startswith('"')]
    for row in csv.DictReader(io.StringIO("\n".join(body))):
        if not row["ID"].isdigit():
            continue
        empty = {"symbol": row["Kernel Name"], **absent(COUNTERS)}
        kernel = found.setdefault(int(row["ID"]), empty)
        counter = counters.get(row["Metric Name"])
        if counter is not None:
            try:
                value = float(row["Metric Value"].replace(",", "")) * counter.scale
            except ValueError:
                continue  # n/a
            # Rounded, a share may pass 1 by a hair.
            kernel[counter.name] = min(value, math.inf if counter.most is None else counter.most)
    return [found[number] for number in sorted(found)]


def joined(
    runs: list[list[dict[str, Any]]], seen: list[dict[str, Any]]
) -> list[list[dict[str, Any]]]:
    """Join launches with their counters; UserError if the kernels differ."""
    launched = [launch["symbol"] for run in runs for launch in run]
    if launched != [kernel["symbol"] for kernel in seen]:
        message = f"recorded {len(seen)} launches that differ from the {len(launched)} that ran"
        raise UserError("ncu", "", message)
    rest = iter(seen)
    return [[{**launch, **next(rest)} for launch in run] for run in runs]


def parted(spec: Spec, row: Mapping[Hashable, Any]) -> dict[str, dict[str, Any]]:
    """A row of a sweep as problem and configuration."""
    return {
        "problem": {name: row[name] for name in spec.problem_columns},
        "configuration": {name: row[name] for name in spec.tunable_columns},
    }
