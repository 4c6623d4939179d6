"""Benchmarks at their smallest size: which there are, and how a test starts one."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

from forks import forked, load_libraries
from samples import ROOT

from launchwise.base.storage import read_json

FOLDER = ROOT / "benchmarks"
ANYWHERE = (
    *(
        "ablations",
        "answers",
        "blind_rivals",
        "dag",
        "few_builds",
        "growth",
        "known_rows",
        "main_job",
        "mutants",
        "next_problems",
        "paper_recipe",
        "recomputed",
    ),
    "search_on_a_new_gpu",
    "stopping",
    "likeness",
)
"""Benchmarks that run on any machine."""

WITH_JAVA = ("against_weka",)  # Benchmarks that need Java and an archive that no lock file names

ON_GPU = {
    **dict.fromkeys(("autotuned_blind", "pytorch_modes", "sentiment_peers"), "torch"),
    **{"triton_decorator": "torch", "shipped_configurations": "triton", "scaling": "pycuda"},
    **{"simulation": "cupy", "solve_as_called": "cupy", "against_devito": "devito"},
    **dict.fromkeys(("tune_own_kernel", "tune_small_space"), "kernel_tuner"),
}
"""Benchmarks that need a GPU, and the package that each needs beside those of the lock files."""


def start(
    name: str, output: Path, *options: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a benchmark at its smallest size. It is a fork, but for ``main_job``, which tells
    processes by their commands, and for those on a GPU that they are shown: no fork of a process
    that has opened CUDA can use it."""
    script = [str(FOLDER / f"{name}.py"), str(output), "--smallest", *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    shown = name in ON_GPU and variables.get("CUDA_VISIBLE_DEVICES") != ""
    if name != "main_job" and not shown:
        load_libraries()
        return forked(run_script, script, output.parent, environment, seconds=300)
    return subprocess.run(
        [sys.executable, *script],
        cwd=output.parent,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def run_script(words: list[str]) -> None:
    """A script with its arguments, as Python runs it."""
    sys.argv = words
    sys.path.insert(0, str(Path(words[0]).parent))
    runpy.run_path(words[0], run_name="__main__")


def result_of(name: str, folder: Path, *options: str) -> dict[str, Any]:
    """Result of a benchmark at its smallest size; it says where it comes from."""
    done = start(name, folder / "result.json", *options)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    result: dict[str, Any] = read_json(folder / "result.json")
    assert {"commit", "measured_at", "versions", "host_cores"} <= result.keys()
    return result
