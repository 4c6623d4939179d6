"""Cluster resources of an experiment's jobs: GPU, time limit, memory."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.experiment.experiment import Experiment
from launchwise.gpus.profile import read_profile
from launchwise.workflow.estimate import (
    Volume,
    limit_minutes,
    memory_mb,
    nominal_bandwidth_gbs,
    shards_for,
    volume,
)

Request = Callable[..., str | None]

ASKED = {
    "gpu_model": "model",
    "slurm_partition": "partition",
    "slurm_account": "account",
    "qos": "qos",
    "constraint": "constraint",
    "slurm_extra": "options",
    "modules": "loaded",
}
"""Resources of a job to what they are of :class:`~launchwise.experiment.settings.Slurm`."""


def _plain(defaults: Mapping[str, Any], resource: str) -> str | None:
    """A default resource of the profile that is a plain text."""
    if resource not in defaults:
        return None
    raw = str(getattr(defaults[resource], "raw", defaults[resource]))
    return raw.strip("'\"") or None


class Cluster:
    """Resources of an experiment's jobs on a cluster.

    Parameters
    ----------
    archs
        Architecture of every live GPU.
    """

    def __init__(self, experiment: Experiment, archs: Mapping[str, str]) -> None:
        self._experiment = experiment
        self._archs = archs
        # Hundreds of GPUs share a list of problems, and Snakemake asks for every job.
        self._keys: dict[tuple[str, str], str] = {}
        self._volumes: dict[str, Volume] = {}
        self._memory_mb: dict[str, int] = {}

    def requests(self, defaults: Mapping[str, Any] | None) -> dict[str, Request]:
        """Resources of a job on a GPU that say where Slurm runs it.

        Parameters
        ----------
        defaults
            Default resources of the profile: a GPU whose settings say nothing has those.

        Returns
        -------
        Resource to a function of a rule's wildcards; None where there is nothing to ask for.
        """
        return {
            resource: partial(self._asked, key, _plain(defaults or {}, resource))
            for resource, key in ASKED.items()
        }

    def _asked(self, key: str, default: str | None, wildcards: Any) -> str | None:
        slurm = self._experiment.settings.gpus[wildcards.gpu].slurm
        found: str | None = getattr(slurm, key, None)
        return default if found is None else found

    def modules(self, arch: str) -> str | None:
        """Modules for compiling: those of the first GPU of an architecture."""
        gpus = [
            self._experiment.settings.gpus[gpu] for gpu, its in self._archs.items() if its == arch
        ]
        return gpus[0].slurm.loaded if gpus and gpus[0].slurm else None

    def shards(self, gpu: str, workload: str) -> int:
        """Number of shards of a sweep: from the settings, else from the estimated time."""
        entry = self._experiment.settings.gpus[gpu]
        if entry.shards is not None:
            return entry.shards
        if entry.compile == "alongside":
            return 1
        # Not what was measured of the GPU: the number must not change from one run to the next.
        return shards_for(self.seconds(gpu, workload))

    def seconds(self, gpu: str, workload: str) -> float:
        """Estimated time of a sweep on the slowest card of the architecture, s."""
        return self._seconds(gpu, workload, nominal_bandwidth_gbs(self._archs[gpu]))

    def minutes(self, gpu: str, workload: str, profile: str, attempt: int) -> int:
        """Time limit of one shard.

        Parameters
        ----------
        profile
            Where the profile of the GPU is, if there is one yet.
        attempt
            1 for the first, more when the job is tried again.
        """
        bandwidth = nominal_bandwidth_gbs(self._archs[gpu])
        if Path(profile).is_file():
            # The job that reads a damaged one reports the error better.
            with contextlib.suppress(UserError):
                bandwidth = read_profile(profile, gpu).ceilings.copy_bandwidth_gbs
        seconds = self._seconds(gpu, workload, bandwidth)
        return limit_minutes(seconds, self.shards(gpu, workload), attempt)

    def memory_mb(self, gpu: str, workload: str, attempt: int) -> int:
        """Memory of one shard, 1e6 B."""
        experiment, key = self._experiment, self._key(gpu, workload)
        if key not in self._memory_mb:
            blocks = experiment.blocks_of(gpu, workload)
            self._memory_mb[key] = memory_mb(experiment.specs[workload], blocks, 1)
        return attempt * self._memory_mb[key]

    def _seconds(self, gpu: str, workload: str, bandwidth_gbs: float) -> float:
        experiment, key = self._experiment, self._key(gpu, workload)
        if key not in self._volumes:
            blocks = experiment.blocks_of(gpu, workload)
            budget = experiment.sweeps[workload].strategy.budget
            self._volumes[key] = volume(experiment.specs[workload], blocks, budget)
        minutes = experiment.sweeps[workload].strategy.minutes
        seconds = self._volumes[key].seconds(bandwidth_gbs)
        return seconds if minutes is None else min(seconds, 60 * minutes)

    def _key(self, gpu: str, workload: str) -> str:
        """Text that is the same for GPUs that measure the same problems of a workload."""
        if (gpu, workload) not in self._keys:
            blocks = self._experiment.blocks_of(gpu, workload)
            self._keys[gpu, workload] = f"{workload} {blocks}"
        return self._keys[gpu, workload]
