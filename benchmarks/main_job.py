"""Seconds, core-seconds and memory of the main job (``snakemake --cores N``), stage by stage.

Each run has a copy of the project, without results, with this Python's packages and on the recorded
data. Two more times are taken on the same copy: Snakemake with nothing left to do, and the part
from sweeps to the evaluation of one study. Commits take turns, so that all of them meet the same
changes of the machine's speed.

    python benchmarks/main_job.py OUTPUT.json --commits c961c09 HEAD --cores 2
    python benchmarks/main_job.py OUTPUT.json --grow rows
    python benchmarks/main_job.py OUTPUT.json --grow studies --commits c961c09 .
    python benchmarks/main_job.py OUTPUT.json --grow gpus --cores 16
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from harness import needs
from harness.command_line import arguments, provenance
from harness.more_gpus import multiply_gpus, rows_of_studies
from harness.more_rows import STUDY as STUDY_OF_ROWS
from harness.more_rows import multiply_rows
from harness.processes import INTERVAL_S, Usage, run
from harness.projects import (
    ROOT,
    WORKING_TREE,
    copy_project,
    find_studies,
    keep_studies,
    read_settings,
    resolved,
    snakemake,
    workload_of,
)
from harness.stages import script_names, summarise

from launchwise.base.provenance import commit
from launchwise.base.storage import write_json
from launchwise.workflow.server import GROUPS

EVALUATED = "tridiagonal_streams"
"""Study whose part from sweeps to evaluation is timed."""
FACTORS = {"rows": [1, 4, 16], "studies": [1, 2, 4, 8], "gpus": [1, 2, 4, 8]}
MANY_GPUS = 100
"""GPUs that memory is calculated for."""
SMALLEST_MODELS = ("analytical",)
COLUMNS = {
    "jobs": "jobs",
    "wall_s": "wall s",
    "longest_s": "longest s",
    "core_s": "core-s",
    "peak_memory_mb": "peak MB",
    "largest_process_mb": "process MB",
}
"""Columns of the printed table: name in a summary to heading."""
GROWTH = ("GPUs", "core-s", "core-s per GPU", "wall s", "process MB", "results MB", "MB per GPU")
RUNS = {
    "main_job": "main job",
    "nothing_to_do": "nothing left to do",
    "sweeps_to_evaluation": "sweeps to evaluation",
}


@dataclass(frozen=True)
class Case:
    """One project to run.

    Attributes
    ----------
    commit
        Full name; :data:`WORKING_TREE` for the working tree.
    studies, models
        The project's own when None.
    row_factor
        Multiplies the rows of the acoustic sweeps; None leaves them as recorded.
    gpu_factor
        Multiplies the measured GPUs; None leaves them as recorded.
    """

    commit: str
    studies: tuple[str, ...] | None = None
    models: tuple[str, ...] | None = None
    row_factor: int | None = None
    gpu_factor: int | None = None

    @property
    def label(self) -> str:
        """Short name for tables."""
        name = "working tree" if self.commit == WORKING_TREE else self.commit[:7]
        if self.row_factor:
            return f"{name}, {self.row_factor}x rows"
        if self.gpu_factor:
            return f"{name}, {self.gpu_factor}x GPUs"
        return f"{name}, studies: {len(self.studies)}" if self.studies else name

    def make(self, folder: Path) -> dict[str, Any]:
        """Make the project in ``folder``; what it consists of."""
        copy_project(folder, self.commit)
        studies = self.studies or tuple(find_studies(folder))
        keep_studies(folder, studies, self.models)
        rows = multiply_rows(folder, self.row_factor) if self.row_factor else None
        gpus = multiply_gpus(folder, self.gpu_factor, studies) if self.gpu_factor else None
        # Compiled beforehand, as it is in every run but a user's first.
        compiling = [sys.executable, "-m", "compileall", "-q", "launchwise", "kernels"]
        subprocess.run(compiling, cwd=folder, check=True)
        by_study = rows_of_studies(folder, studies) if self.gpu_factor else {}
        name = commit(ROOT) if self.commit == WORKING_TREE else self.commit
        return {
            **asdict(self),
            "commit": name,
            "studies": studies,
            "rows": rows,
            "gpus": gpus,
            "rows_of_largest_study": max((sum(n.values()) for n in by_study.values()), default=0),
            "rows_of_largest_sweep": max((max(n.values()) for n in by_study.values()), default=0),
        }


def measure(case: Case, cores: int, smallest: bool = False) -> dict[str, Any]:
    """Run a case: its facts and a summary of each run.

    Parameters
    ----------
    smallest
        Take the sweeps of :data:`EVALUATED` alone for the main job.
    """
    with tempfile.TemporaryDirectory(prefix="launchwise-main-job-") as scratch:
        folder = Path(scratch) / "project"
        facts = case.make(folder)
        scripts = script_names(folder)
        targets = list(sweeps(folder)) if smallest else []
        runs = {
            "main_job": summarise(timed(folder, cores, *targets), scripts),
            "nothing_to_do": summarise(timed(folder, cores, *targets), scripts),
        }
        facts["results_mb"] = round(size_mb(folder / "results"), 1)
        if EVALUATED in facts["studies"] and not case.gpu_factor:
            if not smallest:
                for made in ("results", ".snakemake"):
                    shutil.rmtree(folder / made)
                timed(folder, cores, *sweeps(folder))
            usage = timed(folder, cores, f"evaluate_{EVALUATED}")
            runs["sweeps_to_evaluation"] = summarise(usage, scripts)
    return {**facts, **runs}


def size_mb(folder: Path) -> float:
    """Space of the files of a folder, MB; what several names are linked to counts once."""
    files = (path.lstat() for path in folder.rglob("*") if path.is_file())
    return sum({one.st_ino: one.st_size for one in files}.values()) / 1e6


def timed(folder: Path, cores: int, *targets: str) -> Usage:
    """Run Snakemake on a project."""
    command, environment = snakemake(folder, "--cores", str(cores), *targets)
    output = folder / "output.log"
    usage = run(command, folder, environment, output)
    if usage.status:
        raise SystemExit(f"{' '.join(command)} failed:\n{output.read_text()[-3000:]}")
    return usage


def sweeps(folder: Path) -> Iterator[str]:
    """Targets that :data:`EVALUATED` starts from: sweeps and profiles of its GPUs."""
    workload, study = workload_of(folder, EVALUATED), find_studies(folder)[EVALUATED]
    for name, gpu in read_settings(folder)["gpus"].items():
        # Older commits name a study's GPUs in the study.
        asked = EVALUATED in gpu.get("studies", [EVALUATED]) and name in study.get("gpus", [name])
        recorded = folder / gpu.get("path", f"data/recorded/{name}") / f"{workload}.parquet"
        learnt_from = gpu["source"] == "recorded" and not gpu.get("held_out", False)
        if learnt_from and asked and recorded.is_file():
            yield f"results/gpus/{name}.json"
            yield f"results/sweeps/{name}/{workload}.parquet"


def cases(given: argparse.Namespace) -> list[Case]:
    """Cases of a command line, in the order of their runs."""
    commits = [each if each == WORKING_TREE else resolved(each) for each in given.commits]
    models = tuple(given.models) if given.models else None
    if given.smallest:
        factor = 2 if given.grow == "gpus" else None
        return [Case(each, (EVALUATED,), SMALLEST_MODELS, gpu_factor=factor) for each in commits]
    studies = tuple(given.studies) if given.studies else None
    factors = given.factors or FACTORS.get(given.grow, [1])
    if given.grow == "rows":
        return [Case(each, (STUDY_OF_ROWS,), models, n) for n in factors for each in commits]
    if given.grow == "studies":
        names = studies or tuple(find_studies(ROOT))
        return [Case(each, names[:n], models) for n in factors for each in commits]
    if given.grow == "gpus":
        return [Case(each, studies, models, gpu_factor=n) for n in factors for each in commits]
    return [Case(each, studies, models) for each in commits]


def table(results: Iterable[tuple[Case, dict[str, Any]]]) -> Iterator[str]:
    """Lines of a table: one per run or stage and case, medians over repeats."""
    by_case: dict[Case, list[dict[str, Any]]] = {}
    for case, result in results:
        by_case.setdefault(case, []).append(result)
    yield f"{'':49}" + "".join(f"{name:>11}" for name in COLUMNS.values())
    for run_name, title in RUNS.items():
        for case, repeats in by_case.items():
            if run_name in repeats[0]:
                yield _line(title, case, [each[run_name] for each in repeats])
    stages: dict[str, list[float]] = {}
    for repeats in by_case.values():
        for repeat in repeats:
            for stage, summary in repeat["main_job"]["stages"].items():
                stages.setdefault(stage, []).append(summary["core_s"])
    for stage in sorted(stages, key=lambda stage: -max(stages[stage])):
        for case, repeats in by_case.items():
            if stage in repeats[0]["main_job"]["stages"]:
                yield _line(stage, case, [each["main_job"]["stages"][stage] for each in repeats])
    for case, repeats in by_case.items():
        main_jobs = [each["main_job"] for each in repeats]
        rest = [{"core_s": each["core_s"] - each["sampled_core_s"]} for each in main_jobs]
        yield _line("(in no sample)", case, rest)


def growth(results: Iterable[tuple[Case, dict[str, Any]]]) -> Iterator[str]:
    """Lines of a table with what the main job takes per GPU; empty where GPUs were not copied."""
    rows = [(case, result) for case, result in results if result["gpus"]]
    if rows:
        yield f"{'':24}" + "".join(f"{name:>16}" for name in GROWTH)
    for case, result in rows:
        run, gpus = result["main_job"], result["gpus"]
        values = (
            gpus,
            run["core_s"],
            run["core_s"] / gpus,
            run["wall_s"],
            run["largest_process_mb"],
            result["results_mb"],
            result["results_mb"] / gpus,
        )
        yield f"{case.label:24.24}" + "".join(f"{value:16.1f}" for value in values)


def largest_process(runs: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """Memory of the largest process for :data:`MANY_GPUS` GPUs, calculated from those measured.

    A straight line by the rows of the largest study, which one process reads; each GPU has as many
    as the largest sweep. None with fewer than two numbers of GPUs.
    """
    rows = [run["rows_of_largest_study"] for run in runs]
    if len(set(rows)) < 2:
        return None
    slope, start = np.polyfit(rows, [run["main_job"]["largest_process_mb"] for run in runs], 1)
    wanted = MANY_GPUS * max(run["rows_of_largest_sweep"] for run in runs)
    return {
        "gpus": MANY_GPUS,
        "rows": wanted,
        "mb_per_million_rows": round(1e6 * float(slope), 1),
        "largest_process_mb": round(float(start + slope * wanted), 1),
    }


def _line(title: str, case: Case, summaries: list[dict[str, Any]]) -> str:
    values = []
    for name in COLUMNS:
        given = [each[name] for each in summaries if name in each]
        values.append(f"{statistics.median(given):11.1f}" if given else f"{'':11}")
    return f"{title:24.24} {case.label:24.24}" + "".join(values)


def main() -> None:
    """Run every case and write the result."""
    parser = arguments(__doc__)
    parser.add_argument(
        "--commits",
        nargs="+",
        default=[WORKING_TREE],
        help=f"commits to run, {WORKING_TREE} for the working tree (default)",
    )
    parser.add_argument("--cores", type=int, default=2, help="Snakemake's --cores (default: 2)")
    parser.add_argument("--repeats", type=int, default=1, help="runs of each case (default: 1)")
    parser.add_argument("--studies", nargs="+", help="default: all")
    parser.add_argument("--models", nargs="+", help="models of every study (default: its own)")
    parser.add_argument(
        "--grow",
        choices=list(FACTORS),
        help=f"run with more and more rows (of {STUDY_OF_ROWS}), studies or measured GPUs",
    )
    parser.add_argument(
        "--factors",
        type=int,
        nargs="+",
        help="with --grow: multiples of the recorded rows or GPUs, or numbers of studies"
        f" (default: {FACTORS})",
    )
    given = parser.parse_args()
    needs.process_samples()
    if not given.smallest:
        # Libraries come from the disk's cache in every run, not in all but the first.
        loading = "import importlib, sys\nfor name in sys.argv[1:]: importlib.import_module(name)"
        subprocess.run([sys.executable, "-c", loading, *GROUPS["models"]], cwd=ROOT, check=True)
    results = []
    facts = {**provenance(), "cores": given.cores, "sampled_every_s": INTERVAL_S}
    for repeat in range(1, given.repeats + 1):
        for case in cases(given):
            results.append((case, {"repeat": repeat, **measure(case, given.cores, given.smallest)}))
            print(f"{case.label}, repeat {repeat}", *table(results[-1:]), sep="\n", flush=True)
            # After each case: a run of hours may be interrupted.
            runs = [result for _, result in results]
            calculated = largest_process(runs) if given.grow == "gpus" else None
            more = {"calculated": calculated} if calculated else {}
            write_json(given.output, {**facts, **more, "runs": runs})
    if len(results) > 1:
        print("all, medians over repeats", *table(results), sep="\n")
    print(*growth(results), sep="\n")
    if given.grow == "gpus" and (calculated := largest_process([one for _, one in results])):
        print("calculated:", calculated)


if __name__ == "__main__":
    main()
