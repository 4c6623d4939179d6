"""Files and parameters of the jobs that measure the sweep of a workload on a live GPU.

And other GPUs whose rows are a sweep's prior. No live GPU waits for another one: then two that are
added together could wait for each other. So a live GPU gives a prior once its sweep is recorded,
and one that is extended gives what is recorded.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.base.storage import digest_files
from launchwise.experiment.experiment import Experiment
from launchwise.gpus.profile import read_profile
from launchwise.workflow.cluster import Cluster
from launchwise.workflow.plan import in_order
from launchwise.workflow.values import Values
from launchwise.workloads.space import Problem


def prior_gpus(experiment: Experiment, gpu: str, workload: str) -> list[str]:
    """Recorded GPUs, other than ``gpu``, whose rows of a workload are there and not in doubt. In
    the order of the settings; none unless the strategy of the workload starts from them. GPUs of
    AMD, whose optima lie elsewhere, only where there are no others, here or in
    :func:`prior_extended`."""
    return list(_prior(experiment, gpu, workload)[0])


def prior_extended(experiment: Experiment, gpu: str, workload: str) -> list[dict[str, str]]:
    """Other sweeps that are a prior: name of the GPU, path of the rows and their digest. Those of
    GPUs other than ``gpu`` that are extended, and those that the strategy names. None unless the
    strategy of the workload starts from them; of AMD's GPUs as in :func:`prior_gpus`."""
    return [
        {"gpu": other, "path": str(path), "digest": _digest(path)}
        for other, path in _prior(experiment, gpu, workload)[1].items()
    ]


def _prior(
    experiment: Experiment, gpu: str, workload: str
) -> tuple[dict[str, Path], dict[str, Path]]:
    """GPU to its sweep: of recorded GPUs, and of those that are extended or named."""
    strategy = experiment.sweeps[workload].strategy
    if strategy.kind != "transfer":
        return {}, {}
    named = {name: Path(path) for name, path in (strategy.known or {}).items()}
    if missing := [path for path in named.values() if not path.is_file()]:
        raise UserError(missing[0], "", f"is missing; strategy.known of {workload} names it")
    recorded: dict[str, Path] = {}
    others: dict[str, Path] = {}
    for other, entry in experiment.settings.gpus.items():
        if other == gpu or not (entry.source == "recorded" or entry.extend):
            continue
        path = Path(experiment.recorded_in(other), f"{workload}.parquet")
        if entry.source != "recorded":
            if not entry.held_out and path.is_file():
                others[other] = path
        elif experiment.has_rows(other, workload) and not experiment.doubts(other, workload):
            recorded[other] = path
    every = recorded, others | named
    first, second = map(_not_of_amd, every)
    return (first, second) if first or second else every


def _not_of_amd(sweeps: dict[str, Path]) -> dict[str, Path]:
    profiles = {name: path.parent / "profile.json" for name, path in sweeps.items()}
    return {
        name: sweeps[name]
        for name, path in profiles.items()
        if not path.is_file() or not read_profile(path).arch.startswith("gfx")
    }


@cache
def _digest(path: Path) -> str:
    return digest_files([path])


class Sweeps:
    """Sweeps of live GPUs; ``cores`` is the value of ``--cores``."""

    def __init__(self, values: Values, cluster: Cluster, cores: int) -> None:
        self._values, self._cluster, self._cores = values, cluster, cores
        self._experiment = values.experiment

    def threads(self, gpu: str) -> int:
        """Cores of a job that measures: all of them where it compiles its own kernels meanwhile."""
        return self._cores if self._compiles(gpu) else 1

    def _compiles(self, gpu: str) -> bool:
        return bool(self._values.gpus[gpu]["compile"] == "alongside")

    def bundle(self, gpu: str, workload: str) -> list[str]:
        """Cubin bundle of a GPU's sweep; empty if the job that measures compiles."""
        return [] if self._compiles(gpu) else [self.compiled(gpu, workload)]

    def compiled(self, gpu: str, workload: str) -> str:
        """Cubin bundle of a workload for the architecture of a GPU."""
        return f"results/build/{workload}/{self._values.archs[gpu]}.cubins"

    def shards(self, gpu: str, workload: str) -> list[str]:
        """Tables of the shards of a sweep."""
        count = self._cluster.shards(gpu, workload)
        return [f"results/sweeps/{gpu}/{workload}/{shard}.parquet" for shard in range(1, count + 1)]

    def problems(self, gpu: str, workload: str) -> list[Problem]:
        """Problems of a sweep in the order in which they are measured."""
        return in_order(self._experiment, gpu, workload, self._cluster.shards(gpu, workload))

    def journal(self, gpu: str, workload: str, shard: str) -> str:
        """Journal of a shard; rows that extend recorded ones have one of their own."""
        kind = ".extension" if gpu in self._values.extended_in else ""
        return f"results/journal/{gpu}/{workload}{kind}/{shard}.jsonl"

    def extends(self, gpu: str, workload: str) -> dict[str, Any] | None:
        """Recorded sweep that a live GPU extends, with its digest; None where there is none. No
        input of a rule: what a sweep extends is what it is recorded as."""
        path = Path(self._values.extended_in.get(gpu, ""), f"{workload}.parquet")
        if gpu not in self._values.extended_in or not path.is_file():
            return None
        anew = [dict(selection) for selection in self._experiment.sweeps[workload].anew]
        return {"path": str(path), "digest": digest_files([path]), "anew": anew}

    def guesses(self, gpu: str, workload: str) -> list[str]:
        """Recommendations of a fitted model to measure first; empty if the strategy names none."""
        if self._values.methods[workload]["strategy"]["guesses"] is None:
            return []
        return [f"results/guesses/{gpu}/{workload}.json"]

    def prior(self, gpu: str, workload: str) -> list[str]:
        """What other GPUs measured; empty if the strategy does not ask or none has measured."""
        asked = self._experiment, gpu, workload
        if not prior_gpus(*asked) and not prior_extended(*asked):
            return []
        return [f"results/priors/{gpu}/{workload}.parquet"]

    def prior_sweeps(self, gpu: str, workload: str) -> list[str]:
        """Sweeps of recorded GPUs that a sweep starts from."""
        others = prior_gpus(self._experiment, gpu, workload)
        return [f"results/sweeps/{other}/{workload}.parquet" for other in others]
