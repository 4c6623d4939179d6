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
    AMD, whose optima lie elsewhere, only where there are no others, here or in
    :func:`prior_extended`.
    """
    return list(_prior(experiment, gpu, workload)[0])


def prior_extended(experiment: Experiment, gpu: str, workload: str) -> list[dict[str, str]]:
    """Other sweeps that are a prior: name of the GPU, path of the rows and their digest.

    Those of GPUs other than ``gpu`` that are extended, and those that the strategy names. None
    unless the strategy of the workload starts from them; of AMD's GPUs as in :func:`prior_gpus`.
    """
    return [
        {"gpu": other, "path": str(path), "digest": _digest(path)}
        for other, path in _prior(experiment, gpu, workload)[1].items()
    ]


def _prior(
    experiment: Experiment, gpu: str, workload: str
) -> tuple[dict[str, Path], dict[str, Path]]:
    """GPU to its sweep: of recorded GPUs, and of those that are extended or named."""
    if experiment.sweeps[workload].strategy.kind != "transfer":
        return {}, {}
    recorded = _recorded(experiment, gpu, workload)
    others = _extended(experiment, gpu, workload) | _named(experiment, workload)
    every = (recorded, {name: path for name, path in others.items() if path.is_file()})
    first, second = map(_not_of_amd, every)
    return (first, second) if first or second else every


def _not_of_amd(sweeps: dict[str, Path]) -> dict[str, Path]:
    return {name: path for name, path in sweeps.items() if not _is_of_amd(path.parent)}


def _is_of_amd(folder: Path) -> bool:
    path = folder / "profile.json"
    return path.is_file() and read_profile(path).arch.startswith("gfx")


def _recorded(experiment: Experiment, gpu: str, workload: str) -> dict[str, Path]:
    return {
        other: Path(experiment.recorded_in(other), f"{workload}.parquet")
        for other, entry in experiment.settings.gpus.items()
        if other != gpu
        and entry.source == "recorded"
        and experiment.has_rows(other, workload)
        and not experiment.doubts(other, workload)
    }


def _extended(experiment: Experiment, gpu: str, workload: str) -> dict[str, Path]:
    return {
        other: Path(experiment.recorded_in(other), f"{workload}.parquet")
        for other, entry in experiment.settings.gpus.items()
        if other != gpu and entry.extend and not entry.held_out
    }


def _named(experiment: Experiment, workload: str) -> dict[str, Path]:
    known = experiment.sweeps[workload].strategy.known or {}
    named = {name: Path(path) for name, path in known.items()}
    if missing := [path for path in named.values() if not path.is_file()]:
        raise UserError(missing[0], "", f"is missing; strategy.known of {workload} names it")
    return named


@cache
def _digest(path: Path) -> str:
    return digest_files([path])
