"""Seconds and memory of Snakemake's plan for many GPUs and all studies, and its number of jobs.

For each number of GPUs: a plan from nothing, and one where everything was made. A few jobs run
beside Snakemake itself; the Slurm profile submits the others.

    python benchmarks/dag.py benchmarks/results/dag.json --gpus 1 10 100 1000
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from harness.command_line import arguments, write_result
from harness.projects import (
    ROOT,
    copied_project,
    keep_studies,
    own_experiment,
    read_settings,
    snakemake,
    write_settings,
)

from launchwise.gpus.profile import read_profile, write_profile

ARCHS = ("sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90")
LOCAL = ("gather", "all")  # rules that run beside Snakemake itself, not in a queue
IMPORTED = "data/public/"  # where GPUs lie that others measured
SMALLEST_STUDIES = ["granger_time"]
FOLDERS = ("export", "report")  # stages of which an output without a suffix is a folder


def prepare(folder: Path, gpus: int, studies: list[str]) -> None:
    """Leave a copy of the project these studies, on so many live GPUs of six architectures.
    Imported GPUs stay: the studies of workloads without kernels have no others."""
    keep_studies(folder, studies)
    settings = read_settings(folder)
    imported = {
        name: gpu
        for name, gpu in settings["gpus"].items()
        if str(gpu.get("path", "")).startswith(IMPORTED)
    }
    settings["gpus"] = {
        f"gpu{number}": {
            "source": "live",
            "arch": ARCHS[number % len(ARCHS)],
            "slurm": {"partition": f"partition{number % len(ARCHS)}"},
        }
        for number in range(gpus)
    }
    known = own_experiment()
    own = [one for one in studies if known.specs[known.studies[one].workload].has_kernel]
    if len(own) < len(studies):
        settings["gpus"] |= imported
    if gpus == 1:
        # No other GPU to transfer from.
        for study in own:
            settings["studies"][study]["splits"] = {"transfer": None}
    write_settings(folder, settings)


def planned(folder: Path, *options: str) -> tuple[str, dict[str, float]]:
    """Output of a call of Snakemake, its seconds, core-seconds and largest memory, MB."""
    ran = snakemake(folder, "--cores", "1", *options)
    figures = {"seconds": round(ran.seconds, 2), "core_s": round(ran.core_s, 2)}
    return ran.said, {**figures, "memory_mb": round(ran.memory_mb, 1)}


def counted(said: str) -> dict[str, int]:
    """Jobs by rule, from the table that a plan prints."""
    table = said.split("Job stats:", 1)[1].split("\n\n", 1)[0]
    return {name: int(count) for name, count in re.findall(r"^(\w+) +(\d+)$", table, re.M)}


def make_everything(folder: Path, plan: str) -> None:
    """Empty files in place of all that would be made, known to Snakemake as done.

    ``plan``: what a plan from nothing prints.
    """
    described = read_profile(ROOT / "data" / "recorded" / "h200" / "profile.json")
    for names in re.findall(r"^    output: (.+)$", plan, re.M):
        for name in names.replace(" (update)", "").split(", "):
            path = folder / name
            if Path(name).parts[1] in FOLDERS and not path.suffix:
                path.mkdir(parents=True, exist_ok=True)
            elif Path(name).parts[1] == "gpus":
                # Time limits follow what was measured of a GPU.
                write_profile(path, described.model_copy(update={"name": path.stem}))
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()
    # Snakemake looks at what takes a touched file as `ancient` in the next run only.
    for _ in range(2):
        planned(folder, "--touch", "--quiet", "all")


def measure(gpus: int, studies: list[str], smallest: bool = False) -> dict[str, Any]:
    """One row of the result. But for the smallest size, the plan is made twice, and the second one
    counts: Snakemake compiles bytecode in the first, and the workflow notes what its code consists
    of."""
    with copied_project() as folder:
        prepare(folder, gpus, studies)
        if not smallest:
            planned(folder, "-n")
        said, plan = planned(folder, "-n")
        jobs = counted(said)
        submitted = jobs["total"] - sum(jobs.get(name, 0) for name in LOCAL)
        row = {"gpus": gpus, "jobs": jobs["total"], "submitted": submitted, "plan": plan}
        make_everything(folder, said)
        said, idle = planned(folder, "-n")
        if "Nothing to be done" not in said:
            raise SystemExit(f"something is left to do:\n{said[-2000:]}")
    return {**row, "nothing_to_do": idle}


def main() -> None:
    """Measure and write the results."""
    parser = arguments(__doc__)
    parser.add_argument("--gpus", type=int, nargs="+", default=[1, 10, 100, 1000])
    given = parser.parse_args()
    studies = SMALLEST_STUDIES if given.smallest else sorted(own_experiment().studies)
    rows = []
    for gpus in [1] if given.smallest else given.gpus:
        rows.append(measure(gpus, studies, given.smallest))
        print(rows[-1], flush=True)
    write_result(given.output, {"studies": len(studies), "rows": rows})


if __name__ == "__main__":
    main()
