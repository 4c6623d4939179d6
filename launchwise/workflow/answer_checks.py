"""Files and parameters of measurements that test answers, and of what is recorded.

Of recorded GPUs they lie with the recorded rows, where there are any.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from launchwise.base.typed import Strict
from launchwise.workflow.plan import pattern
from launchwise.workflow.studies import Plain, Studies, Values, present
from launchwise.workflow.sweeps import Cluster


class Copied(Strict):
    source: Path
    target: Path


class BlindTest(Strict):
    """Files of a blind test, and where its scores go."""

    frozen: Path
    sweep: Path
    pairs: Path
    rows: Path
    summary: Path


class RecordedStudy(Strict):
    """What a study has of recorded GPUs, by GPU."""

    entry: dict[str, Any]  # the study without titles
    question: dict[str, Any]  # what it asks (`launchwise.learning.features.read_domain`)
    usual: list[dict[str, Any]] | None  # its own rules for the usual choice
    pairs: dict[str, Copied]
    peers: dict[str, Copied]
    times: dict[str, Path]  # where judged times go, of GPUs that have a sweep
    blind: dict[str, BlindTest]
    drawn: dict[str, BlindTest]  # the later ones, of which only scores are read


class RecordedWorkload(Strict):
    """Recorded sweeps of a workload by GPU, and its studies."""

    sweeps: dict[str, Copied]
    studies: dict[str, RecordedStudy]

    def _copied(self) -> Iterator[Copied]:
        yield from self.sweeps.values()
        for study in self.studies.values():
            yield from (*study.pairs.values(), *study.peers.values())

    def _blind(self) -> Iterator[tuple[str, BlindTest]]:
        for study in self.studies.values():
            yield from (*study.blind.items(), *study.drawn.items())

    def sources(self) -> list[str]:
        tests = [path for _, one in self._blind() for path in (one.frozen, one.sweep, one.pairs)]
        return list(dict.fromkeys(map(str, [*(each.source for each in self._copied()), *tests])))

    def targets(self) -> list[str]:
        found = [each.target for each in self._copied()]
        found += [path for study in self.studies.values() for path in study.times.values()]
        found += [path for _, one in self._blind() for path in (one.rows, one.summary)]
        return list(map(str, found))

    def tested(self) -> list[str]:
        """GPUs that blind tests of its studies asked about."""
        return list(dict.fromkeys(gpu for gpu, _ in self._blind()))


BLIND_FILES = ["frozen.json", "sweep.parquet", "pairs.parquet"]
"""Files of a blind test that can be recorded."""

DRAWN = "drawn/"
"""Folder, among recorded blind tests, of later ones whose problems no sweep has."""


class Contests:
    """Measurements that test the answers of studies."""

    def __init__(self, values: Values, cluster: Cluster) -> None:
        self._values, self._cluster = values, cluster
        self._experiment = values.experiment

    @property
    def compared(self) -> list[str]:
        """Live GPUs whose fastest configurations are compared in pairs."""
        return self._values.live if self._values.confirmation else []

    @property
    def rechecked(self) -> list[str]:
        """GPUs that answers can be measured again for: those whose profiles were measured."""
        return [*self._values.live, *self._values.recorded_in]

    @property
    def answers(self) -> dict[str, str]:
        """Input of the list of contests: what is recommended, where answers take part."""
        confirmation = self._values.confirmation
        if confirmation is None or not confirmation["answers"]:
            return {}
        return {"answers": "results/learnt/{study}/candidates.parquet"}

    def pairs(self, study: str, kind: str = "pairs") -> dict[str, str]:
        """GPU to its pairs: of live GPUs, and of those that have a record. ``kind``: ``pairs``;
        ``peers``: of libraries."""
        return {
            gpu: f"results/{kind}/{gpu}/{study}.parquet"
            for gpu in self._experiment.gpus_of(study)
            if gpu in self.compared
            or (
                gpu in self._values.recorded_in
                and Path(self.recorded_pairs(gpu, study, kind)).is_file()
            )
        }

    def recorded_times(self, study: str) -> list[str]:
        """Judged times of a study on the GPUs with recorded pairs."""
        gpus = [gpu for gpu in self.pairs(study) if gpu in self._values.recorded_in]
        return [f"results/times/{gpu}/{study}.parquet" for gpu in gpus]

    def peers(self, study: str) -> dict[str, str]:
        return self.pairs(study, "peers") if self._values.studies[study]["peers"] else {}

    def recorded_pairs(self, gpu: str, study: str, kind: str) -> str:
        return f"{self._values.recorded_in[gpu]}/{study}.{kind}.parquet"

    def recorded_before(self, gpu: str, study: str) -> str | None:
        """Recorded pairs of a GPU that extends what was recorded; None where there are none."""
        folder = self._values.extended_in.get(gpu)
        found = [] if folder is None else present(f"{folder}/{study}.pairs.parquet")
        return next(iter(found), None)

    def before(self, gpu: str, study: str, kind: str) -> list[str]:
        return present(f"results/{kind}/{gpu}/{study}.parquet")

    def minutes(self, gpu: str, study: str, attempt: int) -> int:
        """Time limit of a job that compares pairs: what its problems may take, and a start."""
        problems = len(self._experiment.problems_of(gpu, self._values.workload(study)))
        confirmation = self._values.confirmation or {}
        seconds = confirmation["seconds"]
        return attempt * (15 + math.ceil(3 * seconds * problems / 60))

    def memory_mb(self, gpu: str, study: str, attempt: int) -> int:
        return self._cluster.memory_mb(gpu, self._values.workload(study), attempt)

    def counters(self, study: str) -> dict[str, str]:
        """GPU to counters of the study's fastest configurations, where they were read."""
        folders = self._values.recorded_in
        return {
            gpu: path
            for gpu in self._experiment.gpus_of(study)
            if Path(
                path := f"{folders[gpu]}/{study}.counters.parquet"
                if gpu in folders
                else f"results/counters/{gpu}/{study}.parquet"
            ).is_file()
        }

    def blind_file(self, gpu: str, study: str, kind: str) -> str:
        """File of a blind test: recorded, or made by this run."""
        recorded = self._values.recorded_in
        folder = f"{recorded[gpu]}/blind" if gpu in recorded else f"results/blind/{gpu}"
        return f"{folder}/{study}.{kind}"

    def untested(self, kind: str) -> dict[str, str]:
        """Constraints of the wildcards of a rule that makes a file of blind tests. They match live
        GPUs and studies without that file. Of one that is there Snakemake knows no rule: nothing
        can make it again by itself, whatever changes."""
        there = {
            gpu: [
                each
                for each in self._values.blind
                if Path(self.blind_file(gpu, each, kind)).exists()
            ]
            for gpu in self._values.live
        }
        gpus = [
            re.escape(gpu) + (rf"(?!/(?:{pattern(studies)})\.)" if studies else "")
            for gpu, studies in there.items()
        ]
        return {"gpu": "|".join(gpus) or "(?!)", "study": pattern(self._values.blind)}

    def blind_files(self, gpu: str, study: str) -> dict[str, str]:
        """Files of a blind test (:class:`BlindTest`). ``study``: its
        name, after :data:`DRAWN` for a later one."""
        kinds = zip(("frozen", "sweep", "pairs"), BLIND_FILES, strict=True)
        scores = {"rows": "csv", "summary": "json"}
        return {
            **{name: self.blind_file(gpu, study, kind) for name, kind in kinds},
            **{
                name: f"results/blind/{gpu}/{study}.score.{ending}"
                for name, ending in scores.items()
            },
        }

    def has_blind_test(self, gpu: str, study: str) -> bool:
        """Whether a blind test of the study on a GPU was recorded, or measured by this run."""
        pairs = self.blind_file(gpu, study, "pairs.parquet")
        return study.removeprefix(DRAWN) in self._values.blind and Path(pairs).is_file()

    def blind_method(self, study: str) -> Plain:
        """How a blind test measures: every candidate of its problems, no energy and no drift.
        Nothing is said of energy, and pairs say what is faster."""
        return {
            **self._values.methods[self._values.workload(study)],
            "strategy": {"kind": "exhaustive"},
            "energy_ms": 0,
            "control_s": 0,
        }

    def scores(self, study: str, ending: str) -> dict[str, str]:
        """GPU to the score of its blind test; a live GPU is there only if it was tested."""
        return {
            gpu: f"results/blind/{gpu}/{study}.score.{ending}"
            for gpu in self._experiment.tested_blindly(study.removeprefix(DRAWN))
            if self.has_blind_test(gpu, study)
        }

    def frozen(self, study: str) -> list[str]:
        return [
            gpu
            for gpu in self._experiment.tested_blindly(study)
            if not any(self.has_blind_test(gpu, one) for one in (study, DRAWN + study))
            and Path(self.blind_file(gpu, study, "frozen.json")).is_file()
        ]

    def profiled(self, gpu: str, study: str) -> list[str]:
        """GPUs that an answer needs the profiles of: the study's, and one that is held out."""
        return list(dict.fromkeys([*self._experiment.gpus_of(study), gpu]))

    def listed(self, gpu: str, study: str) -> list[Plain]:
        return self._experiment.problems_of(gpu, self._values.workload(study))

    def measured_before(self, gpu: str, study: str) -> str | None:
        """Recorded rows of a held-out GPU, whose problems a blind test leaves out, if any. No input
        of a rule: a rule makes it, of a live GPU."""
        folder = self._values.extended_in.get(gpu)
        if folder is None or not self._values.gpus[gpu]["held_out"]:
            return None
        path = Path(folder, f"{self._values.workload(study)}.parquet")
        return str(path) if path.is_file() else None


def recorded_workloads(
    values: Values, studies: Studies, contests: Contests
) -> dict[str, RecordedWorkload]:
    """Workload to what is recorded of it; those of which nothing is recorded are left out."""
    found: dict[str, RecordedWorkload] = {}
    for workload in values.folders:
        file = f"{workload}.parquet"
        sweeps = {
            gpu: Copied(source=Path(folder, file), target=Path("results/sweeps", gpu, file))
            for gpu, folder in values.recorded_in.items()
            if workload in values.experiment.workloads_of(gpu)
        }
        if sweeps:
            asking = [study for study in values.studies if values.workload(study) == workload]
            own = {study: _of_study(study, values, studies, contests) for study in asking}
            found[workload] = RecordedWorkload(sweeps=sweeps, studies=own)
    return found


def _of_study(study: str, values: Values, studies: Studies, contests: Contests) -> RecordedStudy:
    recorded = values.recorded_in

    def copied(kind: str, listed: dict[str, str]) -> dict[str, Copied]:
        return {
            gpu: Copied(source=Path(contests.recorded_pairs(gpu, study, kind)), target=Path(target))
            for gpu, target in listed.items()
            if gpu in recorded
        }

    times = zip(studies.gpus(study), studies.times(study), strict=True)

    def tests(name: str) -> dict[str, BlindTest]:
        gpus = [gpu for gpu in contests.scores(name, "json") if gpu in recorded]
        return {gpu: BlindTest(**contests.blind_files(gpu, name)) for gpu in gpus}

    return RecordedStudy(
        entry=values.without_models[study],
        question=studies.question(study),
        usual=values.studies[study]["usual"],
        pairs=copied("pairs", contests.pairs(study)),
        peers=copied("peers", contests.peers(study)),
        times={gpu: Path(path) for gpu, path in times if gpu in recorded},
        blind=tests(study),
        drawn=tests(DRAWN + study),
    )
