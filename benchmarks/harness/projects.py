"""Copies of the project that a benchmark may change."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
WORKING_TREE = "."  # stands for the working tree among commits

POLL_S = 0.1
COPIED = ("Snakefile", "config.yaml", "rules", "scripts", "launchwise", "kernels", "report", "data")


def copy_project(folder: Path, commit: str = WORKING_TREE) -> None:
    """Copy the project to ``folder`` without results: the working tree, or a commit. Raises
    SystemExit when git does not know the commit."""
    if commit != WORKING_TREE:
        git(ROOT, "clone", "--quiet", "--shared", "--no-checkout", str(ROOT), str(folder))
        git(folder, "checkout", "--quiet", "--detach", resolved(commit))
        return
    folder.mkdir(parents=True, exist_ok=True)
    for name in COPIED:
        source, target = ROOT / name, folder / name
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copy(source, target)


def resolved(commit: str) -> str:
    """Full name of a commit of this repository."""
    return git(ROOT, "rev-parse", "--verify", f"{commit}^{{commit}}")


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


def read_settings(folder: Path) -> dict[str, Any]:
    """Content of a copy's ``config.yaml``."""
    settings: dict[str, Any] = yaml.safe_load((folder / "config.yaml").read_text())
    return settings


def write_settings(folder: Path, settings: dict[str, Any]) -> None:
    """Replace ``config.yaml`` of a copy."""
    (folder / "config.yaml").write_text(yaml.safe_dump(settings, sort_keys=False))


def _study_files(folder: Path, study: str = "*") -> list[Path]:
    """``study.yaml`` of a study, or of all, in every folder of workloads of a copy."""
    named = read_settings(folder).get("workloads", ["kernels"])
    return [path for one in named for path in folder.glob(f"{one}/*/studies/{study}/study.yaml")]


def find_studies(folder: Path) -> dict[str, dict[str, Any]]:
    """Studies of a copy, by name; older commits have all of them in ``config.yaml``."""
    studies: dict[str, dict[str, Any]] = {
        path.parent.name: yaml.safe_load(path.read_text()) for path in _study_files(folder)
    }
    for name, changes in (read_settings(folder).get("studies") or {}).items():
        studies[name] = {**studies.get(name, {}), **(changes or {})}
    return dict(sorted(studies.items()))


def keep_studies(folder: Path, names: Sequence[str], models: Sequence[str] | None = None) -> None:
    """Leave all studies of a copy out but those named.

    ``models``: models of each study; its own when left out.
    Raises SystemExit when the copy has no such study.
    """
    studies, settings = find_studies(folder), read_settings(folder)
    if unknown := sorted(set(names) - set(studies)):
        raise SystemExit(f"no study {unknown[0]!r}; there are {', '.join(studies)}")
    given = settings.get("studies") or {}
    in_folders = {path.parent.name for path in _study_files(folder)}
    changes: dict[str, Any] = dict.fromkeys(sorted(in_folders - set(names)))
    for name in names:
        changes[name] = dict(given.get(name) or {})
        if models:
            changes[name]["models"] = list(models)
    write_settings(folder, {**settings, "studies": changes})


def workload_of(folder: Path, study: str) -> str:
    """Workload of a study of a copy."""
    found = workload_folder(folder, study)
    return found.name if found else str(find_studies(folder)[study]["workload"])


def workload_folder(folder: Path, study: str) -> Path | None:
    """Folder of a study's workload in a copy; None in older commits."""
    return next((path.parents[2] for path in _study_files(folder, study)), None)
