"""Files of the jobs that bring recorded data: one for all profiles, one for each workload."""

from __future__ import annotations

from launchwise.workflow.contests import Contests
from launchwise.workflow.studies import Studies
from launchwise.workflow.values import Plain, Values


class Recorded:
    """Recorded data of an experiment.

    Attributes
    ----------
    wanted
        Workload to what is recorded of it (:class:`launchwise.workflow.bringing.RecordedWorkload`);
        workloads of which nothing is recorded are left out.
    """

    def __init__(self, values: Values, studies: Studies, contests: Contests) -> None:
        self._values, self._studies, self._contests = values, studies, contests
        found = {workload: self._of(workload) for workload in values.folders}
        self.wanted = {name: each for name, each in found.items() if each["sweeps"]}

    def _of(self, workload: str) -> Plain:
        values, experiment = self._values, self._values.experiment
        asking = [study for study in values.studies if values.workload(study) == workload]
        return {
            "sweeps": {
                gpu: _copied(
                    f"{folder}/{workload}.parquet", f"results/sweeps/{gpu}/{workload}.parquet"
                )
                for gpu, folder in values.recorded_in.items()
                if workload in experiment.workloads_of(gpu)
            },
            "studies": {study: self._of_study(study) for study in asking},
        }

    def _of_study(self, study: str) -> Plain:
        values, contests = self._values, self._contests
        recorded = values.recorded_in
        return {
            "entry": values.without_models[study],
            "question": self._studies.question(study),
            "usual": values.studies[study]["usual"],
            **{
                kind: {
                    gpu: _copied(contests.recorded_pairs(gpu, study, kind), target)
                    for gpu, target in listed.items()
                    if gpu in recorded
                }
                for kind, listed in (
                    ("pairs", contests.pairs(study)),
                    ("peers", contests.peers(study)),
                )
            },
            "times": {
                gpu: path
                for gpu, path in zip(
                    self._studies.gpus(study), self._studies.times(study), strict=True
                )
                if gpu in recorded
            },
            "blind": {
                gpu: self._contests.blind_files(gpu, study)
                for gpu in self._contests.scores(study, "json")
                if gpu in recorded
            },
        }

    def sources(self, workload: str) -> list[str]:
        """Recorded files of a workload."""
        wanted = self.wanted[workload]
        copied = [*wanted["sweeps"].values()]
        found = []
        for study in wanted["studies"].values():
            copied += [*study["pairs"].values(), *study["peers"].values()]
            found += [
                test[kind]
                for test in study["blind"].values()
                for kind in ("frozen", "sweep", "pairs")
            ]
        return list(dict.fromkeys([*(each["source"] for each in copied), *found]))

    def targets(self, workload: str) -> list[str]:
        """Files that the job of a workload writes."""
        wanted = self.wanted[workload]
        found = [each["target"] for each in wanted["sweeps"].values()]
        for study in wanted["studies"].values():
            found += [
                each["target"] for kind in ("pairs", "peers") for each in study[kind].values()
            ]
            found += study["times"].values()
            found += [
                test[kind] for test in study["blind"].values() for kind in ("rows", "summary")
            ]
        return found

    def tested(self, workload: str) -> list[str]:
        """GPUs that recorded blind tests of a workload's studies asked about."""
        studies = self.wanted[workload]["studies"].values()
        return list(dict.fromkeys(gpu for study in studies for gpu in study["blind"]))


def _copied(source: str, target: str) -> dict[str, str]:
    return {"source": source, "target": target}
