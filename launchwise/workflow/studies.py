"""Settings as plain values for the parameters of rules; files and parameters of studies.

A stage reruns when a value that it reads changes. So what is there for readers alone (titles,
descriptions, questions) is left out for stages that print none of it.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

from launchwise.experiment.experiment import Experiment
from launchwise.experiment.method import Confirmation
from launchwise.experiment.study import Study
from launchwise.gpus.datasheets import CARDS_FILE
from launchwise.learning.recommenders import (
    BY_COST,
    COMMITTEE,
    SIMPLE_RULES,
    answering_model,
    members_of,
)
from launchwise.workflow.plan import (
    Code,
    architectures,
    from_here,
    model_source,
    project_file,
    run_time_tables,
    spec_digest,
)

Plain = dict[str, Any]


def untitled_study(study: Study) -> dict[str, Any]:
    """A study as plain values, with empty titles and an empty question; still a valid study."""
    plain = study.model_dump(mode="json")
    parts = [plain[key].values() for key in ("splits", "own_models", "designs")]
    titled = [plain, *(each for entries in parts for each in entries)]
    for each in titled:
        each["title"] = ""
    plain["question"] = ""
    return plain


class Values:
    """What the settings say, as JSON-able values, by the names of GPUs, workloads and studies."""

    def __init__(self, experiment: Experiment) -> None:
        settings = experiment.settings
        asked = {name: experiment.with_drawn(name) for name in experiment.studies}
        self.experiment, self.settings = experiment, settings
        self.gpus = {name: gpu.model_dump(mode="json") for name, gpu in settings.gpus.items()}
        self.studies = {name: study.model_dump(mode="json") for name, study in asked.items()}
        # For stages that print no titles; for those that learn nothing, a model stands for all.
        self.untitled = {name: untitled_study(each) for name, each in asked.items()}
        no_models = {"models": ["any"], "own_models": {}, "further_models": []}
        self.without_models = {name: {**each, **no_models} for name, each in self.untitled.items()}
        # Study to the entries of its models.
        self.models: dict[str, dict[str, Plain]] = {
            name: {
                model: experiment.model_of(name, model).model_dump(mode="json")
                for model in study.models
            }
            for name, study in asked.items()
        }
        # Workload to how it is measured.
        self.methods = {
            name: sweep.model_dump(mode="json", exclude={"problems", "anew"})
            for name, sweep in experiment.sweeps.items()
        }
        # How pairs are compared; None: nothing is compared in pairs.
        confirm = settings.confirm
        self.confirmation = None if confirm is None else confirm.model_dump(mode="json")
        self.clock_tolerance = None if confirm is None else confirm.clock_tolerance
        # Answers are measured again as pairs are, for their own seconds.
        self.recheck = {
            **(confirm or Confirmation()).model_dump(mode="json"),
            "seconds": settings.recheck.seconds,
        }
        # Most rows that one fit learns from.
        self.row_cap = {
            "most": settings.max_rows_per_fit,
            "seed": settings.seed,
            "where": experiment.error("max_rows_per_fit", "").where,
        }
        # GPUs of this machine or cluster, and those of them whose profile is measured: one that
        # extends rows keeps their profile.
        self.live = [name for name, gpu in settings.gpus.items() if gpu.source == "live"]
        self.profiled = [name for name in self.live if not settings.gpus[name].extend]
        self.archs = architectures(experiment)
        # Folder of the rows of every recorded GPU, of every live GPU that extends some, of both.
        gpus, recorded_in = settings.gpus, experiment.recorded_in
        self.recorded_in = {
            name: recorded_in(name) for name, gpu in gpus.items() if gpu.source == "recorded"
        }
        self.extended_in = {name: recorded_in(name) for name, gpu in gpus.items() if gpu.extend}
        self.profiles_in = {**self.recorded_in, **self.extended_in}
        # Card, and copy rate from the host in 1e9 B/s, of every datasheet-only GPU.
        self.cards = {
            name: gpu.card or name for name, gpu in gpus.items() if gpu.source == "described"
        }
        self.host_links = {name: settings.gpus[name].host_gbs for name in self.cards}
        # Of every workload its folder, and the digest of what its `spec.yaml` says: a stage that
        # prints no texts has the file as an input that may be newer, and this as a parameter.
        self.folders = {name: from_here(folder) for name, folder in experiment.folders.items()}
        self.specs = {
            name: spec_digest(Path(folder, "spec.yaml")) for name, folder in self.folders.items()
        }
        # Studies with a blind test.
        self.blind = [name for name, study in self.studies.items() if study["blind"] is not None]

    def workload(self, study: str) -> str:
        return str(self.studies[study]["workload"])

    def profile_settings(self, gpu: str) -> Plain:
        """Settings that the profile of a GPU depends on; those of Slurm and shards do not count."""
        return {key: self.gpus[gpu][key] for key in ("source", "arch", "device", "slice_sms")}


MANY_FOLDS = 6  # Folds beyond which fitting them is the longest path of a run


class Studies:
    """Studies of an experiment; ``cores`` is the value of ``--cores``."""

    def __init__(self, values: Values, cores: int) -> None:
        self._values, self._cores = values, cores
        self._experiment = values.experiment

    @property
    def names(self) -> list[str]:
        return list(self._values.studies)

    def folder(self, study: str) -> str:
        return self._values.folders[self._values.workload(study)]

    def own_folder(self, study: str) -> str:
        return f"{self.folder(study)}/studies/{study}"

    def spec(self, study: str) -> str:
        return f"{self.folder(study)}/spec.yaml"

    def beside(self, study: str, *kinds: str) -> list[str]:
        """Those of ``features.yaml``, ``cost.yaml``, ``usual.yaml`` of the workload that exist."""
        return [path for kind in kinds for path in present(f"{self.folder(study)}/{kind}.yaml")]

    def gpus(self, study: str) -> list[str]:
        """GPUs of the study, in the order of the settings, as every list of files below."""
        return self._experiment.gpus_of(study)

    def sweep(self, gpu: str, study: str) -> str:
        return f"results/sweeps/{gpu}/{self._values.workload(study)}.parquet"

    def sweeps(self, study: str) -> list[str]:
        return [self.sweep(gpu, study) for gpu in self.gpus(study)]

    def times(self, study: str) -> list[str]:
        return [f"results/times/{gpu}/{study}.parquet" for gpu in self.gpus(study)]

    def judged_live(self) -> list[tuple[str, tuple[str, ...], list[str]]]:
        """Workloads, those of their studies that ask about the same live GPUs, and these GPUs."""
        found: dict[tuple[str, tuple[str, ...]], list[str]] = {}
        for gpu in self._values.live:
            asking = [study for study in self.names if gpu in self.gpus(study)]
            for workload in dict.fromkeys(map(self._values.workload, asking)):
                its = (study for study in asking if self._values.workload(study) == workload)
                found.setdefault((workload, tuple(its)), []).append(gpu)
        return [(*asked, gpus) for asked, gpus in found.items()]

    def profiles(self, study: str) -> list[str]:
        return profiles(self.gpus(study))

    def answered_gpus(self, study: str) -> list[str]:
        """GPUs that exports and the lookup answer for: the study's own, and datasheet-only ones."""
        return [*self.gpus(study), *self._values.cards]

    def answered_profiles(self, study: str) -> list[str]:
        """Profiles of the GPUs that exports and the lookup answer for."""
        return profiles(self.answered_gpus(study))

    def load(self, study: str) -> list[str]:
        path = self._experiment.studies[study].load
        return [] if path is None else [path]

    def question(self, study: str) -> Plain:
        """Candidates, when one counts as near the best, features, and what is usual."""
        return self._experiment.studies[study].asked

    def processes(self, study: str) -> int:
        """Processes that fit the study's folds, or ask about them, at once. A study of many folds
        is the longest path and may take all cores. Jobs of the others run beside each other: a job
        for two cores waits until two are free at once."""
        gpus = len(self.gpus(study))
        kinds = [split["kind"] for split in self._values.studies[study]["splits"].values()]
        folds = max(1, sum(gpus if kind == "leave_one_gpu_out" else 1 for kind in kinds))
        return min(folds, self._cores if folds > MANY_FOLDS else max(1, self._cores // 2))

    def learnt(self, study: str) -> list[str]:
        """What is said of the study's test candidates: their table, a file a method."""
        names = ["candidates", *SIMPLE_RULES, *self._values.models[study]]
        return [f"results/learnt/{study}/{name}.parquet" for name in names]

    def jobs(self, study: str, update: Any) -> list[tuple[str, Plain, Plain]]:
        """Jobs of a study: stage, inputs and outputs of each. One job that learns and answers; two
        where answers are compared in pairs on a live GPU before they are evaluated. ``update``:
        Snakemake's mark of an output that is not deleted before its job."""
        learning: Plain = {
            "workload": self.beside(study, "features", "cost", "usual"),
            "sweeps": self.sweeps(study),
            "profiles": self.profiles(study),
        }
        answering: Plain = {
            "judged": self.times(study),
            "answered": self.answered_profiles(study),
            "cards": project_file(CARDS_FILE),
            "load": self.load(study),
            "run_times": run_time_tables(self.own_folder(study)),
        }
        learnt, results = self.learnt_files(study, update), self.result_files(study)
        confirmation = self._values.confirmation
        is_paired = confirmation is not None and confirmation["answers"]
        if not is_paired or not any(gpu in self._values.live for gpu in self.gpus(study)):
            return [("learn", learning | answering, learnt | results)]
        evaluated = answering | self.learnt_files(study) | {"sweeps": self.sweeps(study)}
        return [
            ("learn", {**{key: [] for key in answering}, **learning}, learnt),
            ("evaluate", {**evaluated, "profiles": []}, results),
        ]

    def final(self, study: str) -> str:
        """Facts of the study's product, which stand for its folder."""
        return f"results/final/{study}/final.json"

    def learnt_files(self, study: str, update: Any = str) -> dict[str, Any]:
        """What is learnt of a study, see :meth:`files`. ``update``: Snakemake's mark of an output
        that is not deleted before its job."""
        return {
            "splits": f"results/splits/{study}.json",
            "training": f"results/clean/{study}.parquet",
            "removed": f"results/clean/{study}.removed.parquet",
            # Not deleted before: what was made from the same stays as it is.
            "learnt": [update(path) for path in self.learnt(study)],
            # Named by its facts: Snakemake knows no content of a folder.
            "fitted": update(f"results/fitted/{study}/fitted.json"),
        }

    def result_files(self, study: str) -> dict[str, str]:
        """Evaluation, product and answers of a study, see :meth:`files`."""
        return {
            "rows": f"results/evaluation/{study}.parquet",
            "curves": f"results/evaluation/{study}.curves.parquet",
            "summary": f"results/evaluation/{study}.summary.json",
            "final": self.final(study),
            "lookup": f"results/lookup/{study}.json",
            "published": f"results/predictions/{study}.published.parquet",
        }

    def files(self, study: str) -> dict[str, Any]:
        return {**self.learnt_files(study), **self.result_files(study)}

    def job_settings(self, study: str, code: Code) -> Plain:
        """Settings of a study (:class:`launchwise.exporting.study_results.StudySettings`)."""
        settings = self._values.settings
        return {
            "name": study,
            "entry": self._values.untitled[study],
            "folder": self.folder(study),
            "own_folder": self.own_folder(study),
            "question": self.question(study),
            "models": self._trained(study, code),
            "rules": {
                "spec": self._values.specs[self._values.workload(study)],
                "code": code("launchwise/learning/learn.py"),
                "inputs": self.beside(study, "features", "usual"),
            },
            "answering": self.answering(study),
            "gpus": self.gpus(study),
            "answered": self.answered_gpus(study),
            "described": self._values.cards,
            "blamed": self._experiment.holders_of_splits(study),
            "search": settings.search.model_dump(mode="json"),
            "seed": settings.seed,
            "cap": self._values.row_cap,
            "least_gain": settings.least_gain,
        }

    def answering(self, study: str) -> str:
        return answering_model(self._values.models[study])

    def sources_of_answering(self, study: str) -> list[str]:
        return self._sources(study, self.answering(study))

    def _trained(self, study: str, code: Code) -> dict[str, Plain]:
        """Model to what decides how it is fitted, beside the training rows."""
        return {
            model: {
                "entry": {**entry, "title": model},
                "blamed": self._blamed(study, model) if entry["parameters"] else None,
                "spec": self._values.specs[self._values.workload(study)],
                # Not an output: Snakemake deletes those of a failed job, and the trials must stay.
                "journal": f"results/search/{study}/{model}",
                "code": code("launchwise/learning/learn.py", *self._sources(study, model)),
                "inputs": self.beside(study, *self._read_by(study, model)),
            }
            for model, entry in self._values.models[study].items()
        }

    def priority(self, study: str) -> int:
        """Priority of a study's jobs: the smallest, whose answers are shown first, then the longest
        path."""
        works = self.works
        smallest = min(works, key=lambda each: (works[each], each))
        return 10 + works[study] + (max(works.values()) if study == smallest else 0)

    @cached_property
    def works(self) -> dict[str, int]:
        """Study to bytes of its recorded rows times models."""
        found, rows = {}, self._values.recorded_in
        for study in self.names:
            workload = self._values.workload(study)
            files = [Path(rows.get(gpu, ""), f"{workload}.parquet") for gpu in self.gpus(study)]
            size = sum(path.stat().st_size for path in files if path.is_file())
            found[study] = size * len(self._values.models[study])
        return found

    def _kinds(self, study: str, model: str) -> list[str]:
        models = self._values.models[study]
        entry = models[model]
        if entry["kind"] != COMMITTEE:
            return [entry["kind"]]
        members = members_of(entry["parameters"], models)
        return [COMMITTEE, *(models[each]["kind"] for each in members if each in models)]

    def _sources(self, study: str, model: str) -> list[str]:
        """Source files of the model's kinds: an edit retrains the models of this kind only."""
        return [model_source(kind, self.folder(study)) for kind in self._kinds(study, model)]

    def _read_by(self, study: str, model: str) -> list[str]:
        asks_cost = any(kind in BY_COST for kind in self._kinds(study, model))
        return ["features", "usual", *(["cost"] if asks_cost else [])]

    def _blamed(self, study: str, model: str) -> list[str]:
        own = model in self._experiment.studies[study].own_models
        entry = f"studies.{study}.own_models.{model}" if own else f"models.{model}"
        return self._experiment.holder(f"{entry}.parameters")


def present(path: str) -> list[str]:
    """``[path]`` if the file exists, else an empty list."""
    return [path] if Path(path).is_file() else []


def profiles(gpus: Any) -> list[str]:
    return [f"results/gpus/{gpu}.json" for gpu in gpus]
