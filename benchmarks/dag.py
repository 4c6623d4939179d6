"""How long Snakemake plans for many GPUs and five studies, with how much memory, and how many jobs.

For each number of GPUs: a plan from nothing, and one where everything was made. The jobs are those
of the Slurm profile, in which small stages share a job and a few run beside Snakemake itself.

    python benchmarks/dag.py benchmarks/results/dag.json --gpus 1 10 100 1000
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

from launchwise.base.provenance import commit, now, versions
from launchwise.base.storage import write_json
from launchwise.gpus.profile import read_profile, write_profile

ROOT = Path(__file__).resolve().parents[1]
COPIED = ("Snakefile", "rules", "scripts", "launchwise", "kernels", "report", "data/cards.csv")
ARCHS = ("sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90")
LOCAL = ("gather", "all")
"""Rules that the profile's user sees and no queue does."""

JOBS_PER_GROUP = {"split": 1, "clean": 0, "recommend": 1, "evaluate": 0}
"""Jobs that a rule of a group stands for: the group's first counts, the others travel with it."""


def settings(count: int) -> dict[str, Any]:
    """Every study of the project, on so many live GPUs of six architectures."""
    config: dict[str, Any] = yaml.safe_load((ROOT / "config.yaml").read_text())
    config["gpus"] = {
        f"gpu{number}": {
            "source": "live",
            "arch": ARCHS[number % len(ARCHS)],
            "slurm": {"partition": f"partition{number % len(ARCHS)}"},
        }
        for number in range(count)
    }
    if count == 1:
        config["studies"] = {
            path.parent.name: {"splits": {"transfer": None}}
            for path in ROOT.glob("kernels/*/studies/*/study.yaml")
        }
    return config


def project(folder: Path, count: int) -> None:
    """A copy of the project with the settings for so many GPUs."""
    for name in COPIED:
        source, target = ROOT / name, folder / name
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    text = yaml.safe_dump(settings(count), sort_keys=False)
    (folder / "config.yaml").write_text(text)


def snakemake(folder: Path, *arguments: str) -> tuple[str, dict[str, float]]:
    """What a call prints; its seconds and its largest memory, MB."""
    command = [sys.executable, "-m", "snakemake", "--cores", "1", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    began = time.perf_counter()
    with tempfile.TemporaryFile("w+") as output:
        child = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - began
        output.seek(0)
        said = output.read()
    if status:
        raise SystemExit(f"{' '.join(command)} failed:\n{said[-2000:]}")
    return said, {"seconds": round(seconds, 2), "memory_mb": round(usage.ru_maxrss / 1e3, 1)}


def counted(said: str) -> dict[str, int]:
    """Jobs by rule, from the table that a plan prints."""
    table = said.split("Job stats:", 1)[1].split("\n\n", 1)[0]
    return {name: int(count) for name, count in re.findall(r"^(\w+) +(\d+)$", table, re.M)}


def submitted(jobs: dict[str, int]) -> int:
    """Jobs that the Slurm profile submits."""
    return sum(
        count * JOBS_PER_GROUP.get(name, 1)
        for name, count in jobs.items()
        if name not in (*LOCAL, "total")
    )


def make_everything(folder: Path) -> None:
    """Empty files in place of all that would be made, known to Snakemake as done."""
    described = read_profile(ROOT / "data" / "recorded" / "h200" / "profile.json")
    said, _ = snakemake(folder, "--summary")
    for line in said.splitlines():
        name = line.split("\t")[0]
        if not name.startswith("results/"):
            continue
        path = folder / name
        if Path(name).parts[1] == "models":
            path.mkdir(parents=True, exist_ok=True)
        elif Path(name).parts[1] == "gpus":
            # Time limits follow what was measured of a GPU.
            write_profile(path, described.model_copy(update={"name": path.stem}))
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
    snakemake(folder, "--touch", "--quiet", "all")


def measure(count: int) -> dict[str, Any]:
    """One line of the table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        project(folder, count)
        said, planned = snakemake(folder, "-n")
        jobs = counted(said)
        make_everything(folder)
        said, idle = snakemake(folder, "-n")
        if "Nothing to be done" not in said:
            raise SystemExit(f"something is left to do:\n{said[-2000:]}")
    return {
        "gpus": count,
        "jobs": jobs["total"],
        "submitted": submitted(jobs),
        "plan": planned,
        "nothing_to_do": idle,
    }


def main() -> None:
    """Measure and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=Path)
    parser.add_argument("--gpus", type=int, nargs="+", default=[1, 10, 100, 1000])
    arguments = parser.parse_args()
    rows = []
    for count in arguments.gpus:
        rows.append(measure(count))
        print(rows[-1], flush=True)
    facts = {"commit": commit(), "measured_at": now(), "versions": versions()}
    write_json(arguments.output, {**facts, "studies": 5, "rows": rows})


if __name__ == "__main__":
    main()
