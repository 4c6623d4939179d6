"""Files and parameters of the jobs that measure the sweep of a workload on a live GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from launchwise.base.storage import digest_files
from launchwise.workflow.cluster import Cluster
from launchwise.workflow.plan import in_order
from launchwise.workflow.priors import prior_extended, prior_gpus
from launchwise.workflow.values import Values
from launchwise.workloads.space import Problem


class Sweeps:
    """Sweeps of live GPUs.

    Parameters
    ----------
    cores
        Value of ``--cores``.
    """

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
        """Recorded sweep that a live GPU extends, with its digest; None where there is none.

        No input of a rule: what a sweep extends is what it is recorded as.
        """
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
