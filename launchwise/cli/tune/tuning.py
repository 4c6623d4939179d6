"""Settings of ``launchwise tune`` for one workload, and the Snakemake line of the same targets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from launchwise.base.errors import UserError
from launchwise.base.names import SPEC_FILE
from launchwise.base.storage import write_text
from launchwise.base.typed import read_yaml
from launchwise.cli.check.signatures import check_signatures
from launchwise.cli.problems import block_of
from launchwise.cli.running import snakemake_line
from launchwise.cli.tune.question import Question, known_sweeps, strategy_of
from launchwise.cli.workloads import workload_folder
from launchwise.experiment.derived import derived_sweep
from launchwise.experiment.discovery import SWEEP_FILE, find_studies
from launchwise.experiment.experiment import Experiment
from launchwise.experiment.loading import load_experiment
from launchwise.workflow.folders import RECORD, check_version, record_version
from launchwise.workloads.declared.own_functions import check_own_functions
from launchwise.workloads.spec import Spec, load_spec

SETTINGS = "config.yaml"
HEADER = "# Written by `launchwise tune`, which writes it anew each time.\n"
SEED = 2026


@dataclass(frozen=True)
class Project:
    """A folder with settings for one workload on one GPU."""

    # Where Snakemake runs.
    folder: Path
    spec: Spec
    gpu: str
    # Its settings, checked.
    experiment: Experiment
    # Other GPUs whose rows a search starts from.
    known: list[str]
    # Why a search was chosen though nobody asked for one; empty otherwise.
    why: str

    @property
    def answers(self) -> str:
        """File with the answers, from the folder."""
        return f"results/answers/{self.gpu}/{self.spec.workload}.json"

    @property
    def pages(self) -> list[Path]:
        """Pages for people: that of the answers, and the report where there is a study."""
        found = [self.folder / self.answers.replace(".json", ".html")]
        if self.experiment.studies:
            found.append(self.folder / "results" / "report" / "index.html")
        return found


def prepared(asked: Question, arch: str, refusal: UserError | None = None) -> Project:
    """Write the settings of a question.

    Parameters
    ----------
    arch
        Architecture of this machine's card (see :func:`strategy_of`).
    refusal
        Raised before anything is written, once the question has no mistake.

    Raises
    ------
    UserError
        When workload or problem do not exist, or the folder holds settings of somebody else.
    """
    workload = workload_folder(asked.workload)
    spec = load_spec(workload)
    check_signatures(workload, spec)
    check_own_functions(workload, spec)
    folder = asked.folder or Path("tuned", spec.workload)
    check_version(folder / RECORD)
    settings = _settings(workload, spec, asked)
    path = folder / SETTINGS
    if path.is_file() and not path.read_text(encoding="utf-8").startswith(HEADER):
        message = "was not written by launchwise tune: name another place with --folder"
        raise UserError(path, "", message)
    experiment = load_experiment(settings, [], folder.resolve())
    blocks = experiment.blocks_of(asked.gpu, spec.workload)
    strategy, why = strategy_of(asked, spec, blocks, arch)
    known: dict[str, Path] = {}
    if strategy:
        known = known_sweeps(workload, spec, asked.gpu, asked.known)
        if known:
            strategy["known"] = {name: str(each) for name, each in known.items()}
        settings.setdefault("sweeps", {}).setdefault(spec.workload, {})["strategy"] = strategy
        experiment = load_experiment(settings, [], folder.resolve())
    if refusal is not None:
        raise refusal
    text = yaml.safe_dump(settings, sort_keys=False, default_flow_style=None, width=100)
    folder.mkdir(parents=True, exist_ok=True)
    if not path.is_file() or path.read_text(encoding="utf-8") != HEADER + text:
        write_text(path, HEADER + text)
    record_version(folder / RECORD)
    return Project(folder, spec, asked.gpu, experiment, [*known], why)


def _settings(workload: Path, spec: Spec, asked: Question) -> dict[str, Any]:
    # Shards are for clusters: here they would be measured one after the other.
    gpu: dict[str, Any] = {"source": "live", "workloads": [spec.workload], "shards": 1}
    if asked.device is not None:
        gpu["device"] = asked.device
    own = find_studies({spec.workload: workload})
    sweep: dict[str, Any] = {}
    if asked.problem:
        sweep["problems"] = [block_of(spec, asked.problem)]
    elif not (workload / SWEEP_FILE).is_file():
        sweep["problems"] = _derived_problems(workload, spec)
    if not _asks_for_energy(workload):
        # No answer needs energies, which take longer than a small sweep.
        sweep["energy_ms"] = 0
    return {
        "seed": SEED,
        "workloads": [str(workload)],
        "gpus": {asked.gpu: gpu},
        # Its own studies ask for more GPUs and other problems.
        **({"studies": dict.fromkeys(own)} if own else {}),
        **({"sweeps": {spec.workload: sweep}} if sweep else {}),
    }


def _asks_for_energy(workload: Path) -> bool:
    """Whether the workload's own ``sweep.yaml`` sets how energy is measured."""
    path = workload / SWEEP_FILE
    raw = read_yaml(path) if path.is_file() else None
    return isinstance(raw, Mapping) and "energy_ms" in raw


def _derived_problems(workload: Path, spec: Spec) -> list[dict[str, Any]]:
    try:
        return [dict(block) for block in derived_sweep(spec).problems]
    except ValueError as error:
        message = f"{error}, or name problems on the command line"
        raise UserError(workload / SPEC_FILE, "", message) from error


def line_of(project: Project, asked: Question, *, alone: bool = False) -> list[str]:
    """The line that makes everything, for a shell in the current folder; or the answers alone."""
    every = project.experiment.studies and not alone
    options = ["--directory", str(project.folder), *(["--dry-run"] if asked.dry_run else [])]
    return snakemake_line([project.answers, *(["all"] if every else [])], asked.cores, *options)
