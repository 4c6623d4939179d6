"""Seconds, core-seconds and memory of the main job (``snakemake --cores N``), stage by stage.

Each run has a copy of the project, without results, with this Python's packages and on the recorded
data. Two more times are taken on the same copy: Snakemake with nothing left to do, and the part
from sweeps to the evaluation of one study. Commits take turns, so that all of them meet the same
changes of the machine's speed.

    python benchmarks/main_job.py OUTPUT.json --commits c961c09 HEAD --cores 2
    python benchmarks/main_job.py OUTPUT.json --grow rows
    python benchmarks/main_job.py OUTPUT.json --grow studies --commits c961c09 .
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness import needs
from harness.command_line import arguments, provenance
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
FACTORS = {"rows": [1, 4, 16], "studies": [1, 2, 4, 8]}
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
    """

    commit: str
    studies: tuple[str, ...] | None = None
    models: tuple[str, ...] | None = None
    row_factor: int | None = None

    @property
    def label(self) -> str:
        """Short name for tables."""
        name = "working tree" if self.commit == WORKING_TREE else self.commit[:7]
        if self.row_factor:
            return f"{name}, {self.row_factor}x rows"
        return f"{name}, studies: {len(self.studies)}" if self.studies else name

    def make(self, folder: Path) -> dict[str, Any]:
        """Make the project in ``folder``; what it consists of."""
        copy_project(folder, self.commit)
        studies = self.studies or tuple(find_studies(folder))
        keep_studies(folder, studies, self.models)
        rows = multiply_rows(folder, self.row_factor) if self.row_factor else None
        # Compiled beforehand, as it is in every run but a user's first.
        compiling = [sys.executable, "-m", "compileall", "-q", "launchwise", "kernels"]
        subprocess.run(compiling, cwd=folder, check=True)
        name = commit(ROOT) if self.commit == WORKING_TREE else self.commit
        return {**asdict(self), "commit": name, "studies": studies, "rows": rows}


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
        if EVALUATED in facts["studies"]:
            if not smallest:
                for made in ("results", ".snakemake"):
                    shutil.rmtree(folder / made)
                timed(folder, cores, *sweeps(folder))
            usage = timed(folder, cores, f"evaluate_{EVALUATED}")
            runs["sweeps_to_evaluation"] = summarise(usage, scripts)
    return {**facts, **runs}


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
        return [Case(each, (EVALUATED,), SMALLEST_MODELS) for each in commits]
    studies = tuple(given.studies) if given.studies else None
    factors = given.factors or FACTORS.get(given.grow, [1])
    if given.grow == "rows":
        return [Case(each, (STUDY_OF_ROWS,), models, n) for n in factors for each in commits]
    if given.grow == "studies":
        names = studies or tuple(find_studies(ROOT))
        return [Case(each, names[:n], models) for n in factors for each in commits]
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
        help=f"run with more and more rows (of {STUDY_OF_ROWS}), or studies",
    )
    parser.add_argument(
        "--factors",
        type=int,
        nargs="+",
        help="with --grow: multiples of the recorded rows, or numbers of studies"
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
            write_json(given.output, {**facts, "runs": [result for _, result in results]})
    if len(results) > 1:
        print("all, medians over repeats", *table(results), sep="\n")


if __name__ == "__main__":
    main()
