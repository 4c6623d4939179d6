"""Other GPUs whose rows are a sweep's prior.

No live GPU waits for another one: then two that are added together could wait for each other. So a
live GPU gives a prior once its sweep is recorded, and one that is extended gives what is recorded.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from launchwise.base.errors import UserError
from launchwise.base.storage import digest_files
from launchwise.experiment.experiment import Experiment
from launchwise.gpus.profile import read_profile


def prior_gpus(experiment: Experiment, gpu: str, workload: str) -> list[str]:
    """Recorded GPUs, other than ``gpu``, whose rows of a workload are there and not in doubt.

    In the order of the settings; none unless the strategy of the workload starts from them. GPUs of
    AMD, whose optima lie elsewhere, only where there are no others.
    """
    if experiment.sweeps[workload].strategy.kind != "transfer":
        return []
    found = _recorded(experiment, gpu, workload)
    return [each for each in found if not _is_of_amd(experiment.recorded_in(each))] or found


def _is_of_amd(folder: str) -> bool:
    path = Path(folder, "profile.json")
    return path.is_file() and read_profile(path).arch.startswith("gfx")


def _recorded(experiment: Experiment, gpu: str, workload: str) -> list[str]:
    return [
        other
        for other, entry in experiment.settings.gpus.items()
        if other != gpu
        and entry.source == "recorded"
        and experiment.has_rows(other, workload)
        and not experiment.doubts(other, workload)
    ]


def prior_extended(experiment: Experiment, gpu: str, workload: str) -> list[dict[str, str]]:
    """Other sweeps that are a prior: name of the GPU, path of the rows and their digest.

    Those of GPUs other than ``gpu`` that are extended, and those that the strategy names. None
    unless the strategy of the workload starts from them.
    """
    strategy = experiment.sweeps[workload].strategy
    if strategy.kind != "transfer":
        return []
    extended = {
        other: Path(experiment.recorded_in(other), f"{workload}.parquet")
        for other, entry in experiment.settings.gpus.items()
        if other != gpu and entry.extend and not entry.held_out
    }
    named = {name: Path(path) for name, path in (strategy.known or {}).items()}
    if missing := [path for path in named.values() if not path.is_file()]:
        raise UserError(missing[0], "", f"is missing; strategy.known of {workload} names it")
    found = {other: path for other, path in (extended | named).items() if path.is_file()}
    alike = {name: path for name, path in found.items() if not _is_of_amd(str(path.parent))}
    return [
        {"gpu": other, "path": str(path), "digest": _digest(path)}
        for other, path in (alike or found).items()
    ]


@cache
def _digest(path: Path) -> str:
    return digest_files([path])
