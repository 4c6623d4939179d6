"""Files, parameters and resources of the jobs that measure, and other GPUs whose rows are a prior.

No live GPU waits for another one: then two that are added together could wait for each other. So a
live GPU gives a prior once its sweep is recorded, and one that is extended gives what is recorded.

Estimates of time and memory are rough on purpose: they decide how many jobs share a sweep and how
long each may run. A job that is stopped too early goes on where its journal ends.
"""

from __future__ import annotations

import contextlib
import math
import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.base.places import shipped
from launchwise.base.storage import digest_files
from launchwise.experiment.experiment import Experiment
from launchwise.experiment.method import ProblemBlock
from launchwise.gpus.datasheets import CARDS_FILE, read_cards, slowest_bandwidths
from launchwise.gpus.profile import LIKENESS_FACTS, GpuProfile, read_profile
from launchwise.workflow.plan import in_order
from launchwise.workflow.studies import Values
from launchwise.workloads.parts import Value
from launchwise.workloads.space import Narrowing, Problem, configurations, narrowings, problems
from launchwise.workloads.spec import Spec

SECONDS_PER_ROW = 0.005
PASSES_PER_ROW = 50.0
"""Row time = 5 ms + 50 x bytes / bandwidth. It covers all launches of verification and timing, most
of them below the memory bandwidth, and pauses. Four sweeps of a stencil took 44 passes (H200) and
16, 38 and 74 passes (72, 32 and 16 of its SMs, at the whole card's bandwidth): the estimate is 0.7
to 2.6 times the measured time."""

LONGEST_SHARD_S = 2 * 3600.0
"""Longest estimated time of a shard, s; longer sweeps are split unless the settings give shards."""

MOST_SHARDS = 100

JOB_MB = 4000  # Host memory of a job without host arrays, 1e6 B: two processes with their libraries


@cache
def nominal_bandwidth_gbs(arch: str) -> float:
    """Memory bandwidth of the slowest card of an architecture such as ``sm_90``, GB/s. For an
    architecture that ``data/cards.csv`` lacks: the slowest card in the table."""
    known = slowest_bandwidths(read_cards(shipped(CARDS_FILE)))
    return known.get(arch.rstrip("af"), min(known.values()))


@dataclass(frozen=True)
class Volume:
    """Volume of a sweep: ``rows``, and bytes summed over rows (those of each row's problem)."""

    rows: int
    bytes: float

    def seconds(self, bandwidth_gbs: float) -> float:
        """Estimated time on one card with the given memory bandwidth (1e9 B/s), s."""
        return self.rows * SECONDS_PER_ROW + PASSES_PER_ROW * self.bytes / (bandwidth_gbs * 1e9)


def volume(spec: Spec, blocks: Iterable[ProblemBlock], budget: int | None) -> Volume:
    """Volume of a sweep. ``blocks``: problems as in the settings. ``budget``: rows per problem;
    None if every configuration is measured."""
    total, moved = 0.0, 0.0
    known = list(blocks)
    parts = narrowings(spec, known)
    for alike in _alike(spec, problems(spec, known), parts):
        # The configurations of some stand for those of all: counting takes time.
        counted = {0, len(alike) // 3, 2 * len(alike) // 3, len(alike) - 1}
        rows = statistics.mean(
            _rows(spec, alike[place], parts[tuple(alike[place].values())], budget)
            for place in counted
        )
        total += rows * len(alike)
        moved += rows * sum(float(spec.value(spec.work.bytes, problem)) for problem in alike)
    return Volume(round(total), moved)


def _rows(spec: Spec, problem: Problem, parts: Narrowing, budget: int | None) -> int:
    """Rows of a problem: as many as there are configurations, or a budget that is smaller or whose
    configurations are so rare that listing them takes too long."""
    try:
        found = len(configurations(spec, problem, None, parts, budget))
    except UserError:
        if budget is None:
            raise
        return budget
    return found if budget is None else min(found, budget)


def _alike(
    spec: Spec, listed: Iterable[Problem], parts: Mapping[tuple[Value, ...], Narrowing]
) -> list[list[Problem]]:
    """Problems of which the same is measured, and that differ in sizes alone. Sizes are parameters
    without listed values."""
    chosen = [name for name, one in spec.problem.items() if one.values is not None]
    found: dict[tuple[object, ...], list[Problem]] = {}
    for problem in listed:
        key = (*(problem[name] for name in chosen), repr(parts[tuple(problem.values())]))
        found.setdefault(key, []).append(problem)
    return list(found.values())


def shards_for(seconds: float) -> int:
    """Number of shards for a sweep of ``seconds``."""
    return max(1, min(MOST_SHARDS, math.ceil(seconds / LONGEST_SHARD_S)))


def limit_minutes(seconds: float, shards: int, attempt: int) -> int:
    """Time limit of one of ``shards`` jobs: three times the estimate and time to start. Run times
    differ between cards beyond the estimate. A stopped job gets more time in its next attempt."""
    return (15 + math.ceil(3 * seconds / shards / 60)) * attempt


def memory_mb(spec: Spec, blocks: Iterable[ProblemBlock]) -> int:
    """Host memory of a job for the largest of the problems, 1e6 B."""
    largest = max(
        float(spec.value(spec.work.host_bytes, problem)) for problem in problems(spec, blocks)
    )
    return JOB_MB + math.ceil(1.2 * largest / 1e6)


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
    if resource not in defaults:
        return None
    raw = str(getattr(defaults[resource], "raw", defaults[resource]))
    return raw.strip("'\"") or None


class Cluster:
    """Resources of an experiment's jobs; ``archs`` holds the architecture of every live GPU."""

    def __init__(self, experiment: Experiment, archs: Mapping[str, str]) -> None:
        self._experiment = experiment
        self._archs = archs
        # Hundreds of GPUs share a list of problems, and Snakemake asks for every job.
        self._keys: dict[tuple[str, str], str] = {}
        self._volumes: dict[str, Volume] = {}
        self._memory_mb: dict[str, int] = {}

    def requests(self, defaults: Mapping[str, Any] | None) -> dict[str, Request]:
        """Resources of a job on a GPU that say where Slurm runs it. ``defaults``: default resources
        of the profile: a GPU whose settings say nothing has those. Returns for each resource a
        function of a rule's wildcards; None where there is nothing to ask for."""
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
        """Time limit of one shard. ``profile``: where the profile of the GPU is, if there is one
        yet. ``attempt``: 1 for the first, more when the job is tried again."""
        bandwidth = nominal_bandwidth_gbs(self._archs[gpu])
        if Path(profile).is_file():
            # The job that reads a damaged one reports the error better.
            with contextlib.suppress(UserError):
                bandwidth = read_profile(profile, gpu).ceilings.copy_bandwidth_gbs
        seconds = self._seconds(gpu, workload, bandwidth)
        return limit_minutes(seconds, self.shards(gpu, workload), attempt)

    def memory_mb(self, gpu: str, workload: str, attempt: int) -> int:
        experiment, key = self._experiment, self._key(gpu, workload)
        if key not in self._memory_mb:
            blocks = experiment.blocks_of(gpu, workload)
            self._memory_mb[key] = memory_mb(experiment.specs[workload], blocks)
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


def prior_sweeps(experiment: Experiment, gpu: str, workload: str) -> list[dict[str, str]]:
    """Sweeps of other GPUs that are a prior: name of the GPU, path of the rows and their digest.
    Those of recorded GPUs whose rows are there and not in doubt, of GPUs that are extended, and
    those that the strategy names. None unless the strategy of the workload starts from them; GPUs
    of AMD, whose optima lie elsewhere, only where there are no others."""
    return [
        {"gpu": other, "path": str(path), "digest": _digest(path)}
        for other, path in _prior(experiment, gpu, workload).items()
    ]


def prior_facts(experiment: Experiment, gpu: str, workload: str) -> dict[str, dict[str, Any]]:
    """What is known of these GPUs, by which their rows weigh; a sweep without a profile beside it
    is of a GPU of which nothing is known."""
    profiles = map(_profile_beside, _prior(experiment, gpu, workload).items())
    return {name: read.model_dump(include={*LIKENESS_FACTS}) for name, read in profiles if read}


def _prior(experiment: Experiment, gpu: str, workload: str) -> dict[str, Path]:
    strategy = experiment.sweeps[workload].strategy
    if strategy.kind != "transfer":
        return {}
    named = {name: Path(path) for name, path in (strategy.known or {}).items()}
    if missing := [path for path in named.values() if not path.is_file()]:
        raise UserError(missing[0], "", f"is missing; strategy.known of {workload} names it")
    found: dict[str, Path] = {}
    for other, entry in experiment.settings.gpus.items():
        if other == gpu or not (entry.source == "recorded" or entry.extend):
            continue
        path = Path(experiment.recorded_in(other), f"{workload}.parquet")
        if entry.source == "recorded":
            sound = experiment.has_rows(other, workload) and not experiment.doubts(other, workload)
        else:
            sound = path.is_file() and not entry.held_out
        if sound:
            found[other] = path
    profiles = dict(map(_profile_beside, (found | named).items()))
    others = [name for name, one in profiles.items() if not (one and one.arch.startswith("gfx"))]
    return {name: (found | named)[name] for name in others or profiles}


def _profile_beside(sweep: tuple[str, Path]) -> tuple[str, GpuProfile | None]:
    name, path = sweep[0], sweep[1].with_name("profile.json")
    return name, read_profile(path) if path.is_file() else None


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
        return [] if self._compiles(gpu) else [self.compiled(gpu, workload)]

    def compiled(self, gpu: str, workload: str) -> str:
        return f"results/build/{workload}/{self._values.archs[gpu]}.cubins"

    def shards(self, gpu: str, workload: str) -> list[str]:
        count = self._cluster.shards(gpu, workload)
        return [f"results/sweeps/{gpu}/{workload}/{shard}.parquet" for shard in range(1, count + 1)]

    def problems(self, gpu: str, workload: str) -> list[Problem]:
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
        if not _prior(self._experiment, gpu, workload):
            return []
        return [f"results/priors/{gpu}/{workload}.parquet"]
