"""Other GPUs whose rows are a sweep's prior.

No live GPU waits for another one: then two that are added together could wait for each other. So a
live GPU gives a prior once its sweep is recorded, and one that is extended gives what is recorded.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from launchwise.base.storage import digest_files
from launchwise.experiment.experiment import Experiment


def prior_gpus(experiment: Experiment, gpu: str, workload: str) -> list[str]:
    """Recorded GPUs, other than ``gpu``, whose rows of a workload are there and not in doubt.

    In the order of the settings; none unless the strategy of the workload starts from them.
    """
    if experiment.sweeps[workload].strategy.kind != "transfer":
        return []
    return [
        other
        for other, entry in experiment.settings.gpus.items()
        if other != gpu
        and entry.source == "recorded"
        and experiment.has_rows(other, workload)
        and not experiment.doubts(other, workload)
    ]


def prior_extended(experiment: Experiment, gpu: str, workload: str) -> list[dict[str, str]]:
    """GPUs, other than ``gpu``, that are extended: name, path of the recorded rows and its digest.

    None unless the strategy of the workload starts from them.
    """
    if experiment.sweeps[workload].strategy.kind != "transfer":
        return []
    found = {
        other: Path(experiment.recorded_in(other), f"{workload}.parquet")
        for other, entry in experiment.settings.gpus.items()
        if other != gpu and entry.extend and not entry.held_out
    }
    return [
        {"gpu": other, "path": str(path), "digest": _digest(path)}
        for other, path in found.items()
        if path.is_file()
    ]


@cache
def _digest(path: Path) -> str:
    return digest_files([path])
