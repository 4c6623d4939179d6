"""The project's settings, and copies of it that a benchmark may change."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from launchwise.cli.words import read_experiment
from launchwise.experiment.discovery import find_studies, find_workloads
from launchwise.experiment.experiment import Experiment

ROOT = Path(__file__).resolve().parents[2]
WORKING_TREE = "."  # stands for the working tree among commits

POLL_S = 0.1
COPIED = ("Snakefile", "config.yaml", "rules", "scripts", "launchwise", "kernels", "report", "data")


@cache
def own_experiment() -> Experiment:
    """What the project's settings describe."""
    with chdir(ROOT):
        return read_experiment([ROOT / "config.yaml"], ROOT)


def homes_of(study: str) -> dict[str, Path]:
    """GPUs of one of the project's studies to the folders of their recorded rows."""
    experiment = own_experiment()
    with chdir(ROOT):
        return {gpu: ROOT / experiment.recorded_in(gpu) for gpu in experiment.gpus_of(study)}


@contextmanager
def copied_project(commit: str = WORKING_TREE) -> Iterator[Path]:
    """A copy of the project without results, for the time of a block: of the working tree, or of a
    commit. Raises SystemExit when git does not know the commit."""
    with tempfile.TemporaryDirectory(prefix="launchwise-copy-") as scratch:
        folder = Path(scratch) / "project"
        if commit == WORKING_TREE:
            folder.mkdir()
            for name in COPIED:
                copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
                copy(ROOT / name, folder / name)
        else:
            git(ROOT, "clone", "--quiet", "--shared", "--no-checkout", str(ROOT), str(folder))
            known = git(ROOT, "rev-parse", "--verify", f"{commit}^{{commit}}")
            git(folder, "checkout", "--quiet", "--detach", known)
        yield folder


def git(folder: Path, *arguments: str) -> str:
    """Output of git."""
    command = ["git", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout.strip()


@dataclass(frozen=True)
class Ran:
    """A finished run: its output, wall time, core-seconds of its tree, largest process."""

    said: str
    seconds: float
    core_s: float
    memory_mb: float


def snakemake(
    folder: Path, *arguments: str, watch: Callable[[float], None] | None = None, **variables: str
) -> Ran:
    """Run Snakemake on a copy, with this Python's packages.

    ``watch``: called with the seconds so far while it runs.
    ``**variables``: of the environment.
    Raises SystemExit when it fails.
    """
    command = [sys.executable, "-m", "snakemake", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(folder), **variables}
    # Not the commit of a workflow that started this benchmark.
    environment.pop("LAUNCHWISE_COMMIT", None)
    with tempfile.TemporaryFile("w+") as output:
        begin = time.perf_counter()
        child = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
        while True:
            ended, status, usage = os.wait4(child.pid, os.WNOHANG if watch else 0)
            seconds = time.perf_counter() - begin
            if watch:
                watch(seconds)
            if ended:
                break
            time.sleep(POLL_S)
        child.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        said = output.read()
    if status:
        raise SystemExit(f"{' '.join(command)} failed:\n{said[-3000:]}")
    return Ran(said, seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1e3)


def timed_json(command: Sequence[str], folder: Path) -> tuple[float, dict[str, Any]]:
    """Seconds of a whole process, and the JSON that ends its output."""
    begin = time.perf_counter()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path[1:]])}
    done = subprocess.run(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    seconds = time.perf_counter() - begin
    found: dict[str, Any] = json.loads(done.stdout[done.stdout.index("{") :])
    return seconds, found


def copied_workload(source: Path, scratch: Path, values: Mapping[str, Sequence[int | str]]) -> Path:
    """Copy a workload into a folder, with other values of its tunables."""
    folder = Path(shutil.copytree(source, scratch / source.name))
    spec = yaml.safe_load((folder / "spec.yaml").read_text())
    for name, own in values.items():
        spec["tunables"][name]["values"] = [*own]
    (folder / "spec.yaml").write_text(yaml.safe_dump(spec, sort_keys=False))
    return folder


def read_settings(folder: Path) -> dict[str, Any]:
    """Content of a copy's ``config.yaml``."""
    settings: dict[str, Any] = yaml.safe_load((folder / "config.yaml").read_text())
    return settings


def write_settings(folder: Path, settings: dict[str, Any]) -> None:
    """Replace ``config.yaml`` of a copy."""
    (folder / "config.yaml").write_text(yaml.safe_dump(settings, sort_keys=False))


def keep_studies(folder: Path, names: Sequence[str], models: Sequence[str] | None = None) -> None:
    """Leave all studies of a copy out but those named.

    ``models``: models of each study; its own when left out.
    Raises SystemExit when the copy has no such study.
    """
    settings = read_settings(folder)
    workloads = find_workloads(folder / one for one in settings.get("workloads", ["kernels"]))
    studies = sorted(find_studies(workloads))
    if unknown := sorted(set(names) - set(studies)):
        raise SystemExit(f"no study {unknown[0]!r}; there are {', '.join(studies)}")
    given = settings.get("studies") or {}
    changes: dict[str, Any] = dict.fromkeys(each for each in studies if each not in names)
    for name in names:
        changes[name] = dict(given.get(name) or {})
        if models:
            changes[name]["models"] = list(models)
    write_settings(folder, {**settings, "studies": changes})
