"""What the main job takes: time, core-seconds over a calibration, jobs, space, counted work.

    python benchmarks/main_job.py benchmarks/results/main_job.json --repeats 5

Each run is that of ``make`` in a fresh copy of the project, without its installation: Snakemake on
the recorded data, with the packages that run this script, their bytecode compiled before. Beside
it runs a fixed work of about one core-second (:mod:`harness.calibration`) every few seconds, at the
same niceness. ``calibrated`` is the core-seconds of the whole process tree, by the kernel's
account, over the median of that work: it differs less between machines, and on a busy one, than
core-seconds do. ``work`` adds up what the jobs counted (``benchmarks/budget.py``), which
has no noise.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from budget import measured
from harness.command_line import arguments, provenance
from harness.projects import ROOT, WORKING_TREE, copied_project, keep_studies, snakemake

from launchwise.base.storage import write_json
from launchwise.base.work import VARIABLES

EVERY_S = 20.0  # seconds from the start of one calibration to that of the next

FIRST_PAGE = Path("results/report/index.html")
SMALLEST = "tridiagonal_streams"
FEW = ("knn", "tree")
MEASURED = ("wall_s", "core_s", "calibrated", "first_page_s", "jobs", "results_mb")
"""Figures of a run of which the result has medians."""


class Calibration:
    """Core-seconds of the fixed work, measured beside a run."""

    def __init__(self) -> None:
        self._ended = threading.Event()
        self.core_s: list[float] = []  # each measurement; at least one once the block has ended
        self._thread = threading.Thread(target=self._measure)

    def __enter__(self) -> Calibration:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _measure(self) -> None:
        command = [sys.executable, str(ROOT / "benchmarks" / "harness" / "calibration.py")]
        environment = {**os.environ, **dict.fromkeys(VARIABLES, "1")}
        while True:
            done = subprocess.run(
                command, capture_output=True, text=True, check=True, env=environment
            )
            self.core_s.append(float(done.stdout))
            if self._ended.wait(EVERY_S):
                return


def run(folder: Path, cores: int) -> dict[str, Any]:
    """Run the main job on a copy of the project."""
    first_page: list[float] = []

    def watch(seconds: float) -> None:
        if not first_page and (folder / FIRST_PAGE).is_file():
            first_page.append(round(seconds, 2))

    with Calibration() as calibration:
        ran = snakemake(folder, "--cores", str(cores), watch=watch)
    work, fixed = measured(folder / "results"), statistics.median(calibration.core_s)
    return {
        **{"wall_s": round(ran.seconds, 2), "core_s": round(ran.core_s, 2)},
        **{"calibrated": round(ran.core_s / fixed, 1), "calibration_s": calibration.core_s},
        **{"first_page_s": next(iter(first_page), None), "jobs": jobs(ran.said)},
        "largest_process_mb": round(ran.memory_mb, 1),
        "results_mb": work.whole["megabytes"],
        "work": {"whole": work.whole, "studies": work.studies},
    }


def jobs(said: str) -> int:
    """Jobs of a finished run, by what Snakemake printed; 0 where it had nothing to do."""
    found = re.findall(r"^\d+ of (\d+) steps \(100%\) done", said, re.M)
    return int(found[-1]) if found else 0


def measure(commit: str, cores: int, studies: list[str] | None, few: bool) -> dict[str, Any]:
    """Run the main job of a commit on some studies; all when left out."""
    with copied_project(commit) as folder:
        if studies:
            keep_studies(folder, studies, FEW if few else None)
        compiled = ["-m", "compileall", "-q", "launchwise", "kernels", "scripts"]
        subprocess.run([sys.executable, *compiled], cwd=folder, check=True)
        return run(folder, cores)


def main() -> None:
    """Run the main job some times and write the result."""
    parser = arguments(__doc__)
    parser.add_argument(
        "--commit",
        default=WORKING_TREE,
        help=f"commit to run, {WORKING_TREE} for the working tree (default)",
    )
    parser.add_argument("--cores", type=int, default=2, help="Snakemake's --cores (default: 2)")
    parser.add_argument("--repeats", type=int, default=1, help="runs (default: 1)")
    parser.add_argument("--studies", nargs="+", help="studies that run (default: all)")
    given = parser.parse_args()
    studies = [SMALLEST] if given.smallest else given.studies
    facts = {**provenance(), "cores": given.cores, "studies": studies or "all"}
    runs: list[dict[str, Any]] = []
    for _ in range(given.repeats):
        runs.append(measure(given.commit, given.cores, studies, given.smallest))
        medians = {name: statistics.median(each[name] for each in runs) for name in MEASURED}
        # After each run: several take long, and may be interrupted.
        write_json(given.output, {**facts, "medians": medians, "runs": runs})
        print(", ".join(f"{name} {runs[-1][name]}" for name in MEASURED), flush=True)


if __name__ == "__main__":
    main()
