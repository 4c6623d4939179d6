"""Files and parameters of the stages of a study: of its workload, its GPUs and its models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from launchwise.learning.recommenders import BY_COST, COMMITTEE, answering_model, kinds_of
from launchwise.workflow.code import Code
from launchwise.workflow.plan import model_source
from launchwise.workflow.values import Plain, Values

MANY_FOLDS = 6
"""Folds beyond which fitting them is the longest path of a run."""


class Studies:
    """Studies of an experiment.

    Parameters
    ----------
    cores
        Value of ``--cores``.
    """

    def __init__(self, values: Values, cores: int) -> None:
        self._values, self._cores = values, cores
        self._experiment = values.experiment

    def folder(self, study: str) -> str:
        """Folder of the study's workload."""
        return self._values.folders[self._values.workload(study)]

    def own_folder(self, study: str) -> str:
        """Folder with the study's ``study.yaml``, section and published tables."""
        return f"{self.folder(study)}/studies/{study}"

    def spec(self, study: str) -> str:
        """``spec.yaml`` of the study's workload."""
        return f"{self.folder(study)}/spec.yaml"

    def features(self, study: str) -> list[str]:
        """``features.yaml`` of the study's workload; empty if missing."""
        return present(f"{self.folder(study)}/features.yaml")

    def cost(self, study: str) -> list[str]:
        """``cost.yaml`` of the study's workload; empty if missing."""
        return present(f"{self.folder(study)}/cost.yaml")

    def usual(self, study: str) -> list[str]:
        """``usual.yaml`` of the study's workload; empty if missing."""
        return present(f"{self.folder(study)}/usual.yaml")

    def gpus(self, study: str) -> list[str]:
        """GPUs of the study, in the order of the settings, as every list of files below."""
        return self._experiment.gpus_of(study)

    def sweep(self, gpu: str, study: str) -> str:
        """Sweep that the study has of a GPU."""
        return f"results/sweeps/{gpu}/{self._values.workload(study)}.parquet"

    def sweeps(self, study: str) -> list[str]:
        """Sweeps of the study's GPUs."""
        return [self.sweep(gpu, study) for gpu in self.gpus(study)]

    def times(self, study: str) -> list[str]:
        """Judged times of the study's GPUs."""
        return [f"results/times/{gpu}/{study}.parquet" for gpu in self.gpus(study)]

    def profiles(self, study: str) -> list[str]:
        """Profiles of the study's GPUs."""
        return profiles(self.gpus(study))

    def answered_gpus(self, study: str) -> list[str]:
        """GPUs that exports and the lookup answer for: the study's own, and datasheet-only ones."""
        return [*self.gpus(study), *self._values.cards]

    def answered_profiles(self, study: str) -> list[str]:
        """Profiles of the GPUs that exports and the lookup answer for."""
        return profiles(self.answered_gpus(study))

    def question(self, study: str) -> Plain:
        """Candidates, when one counts as near the best, features, and what is usual."""
        entry = self._values.studies[study]
        keys = ("candidates", "constraints", "near_best_percent")
        optional = {"only_features": entry["features"], "usual": entry["usual"]}
        return {
            **{key: entry[key] for key in keys},
            **{key: value for key, value in optional.items() if value is not None},
        }

    def learnt_from(self, study: str) -> Plain | None:
        """Candidates and constraints if models learn from candidates alone, else None."""
        entry = self._values.studies[study]
        if entry["train_on"] == "all":
            return None
        return {key: entry[key] for key in ("candidates", "constraints")}

    def processes(self, study: str) -> int:
        """Processes that fit the study's folds, or ask about them, at once.

        A study of many folds is the longest path and may take all cores. Jobs of the others run
        beside each other: a job for two cores waits until two are free at once.
        """
        gpus = len(self.gpus(study))
        kinds = [split["kind"] for split in self._values.studies[study]["splits"].values()]
        folds = max(1, sum(gpus if kind == "leave_one_gpu_out" else 1 for kind in kinds))
        return min(folds, self._cores if folds > MANY_FOLDS else max(1, self._cores // 2))

    def models(self, study: str) -> list[str]:
        """Folders of the study's fitted models."""
        return [f"results/models/{study}/{model}" for model in self._values.models[study]]

    def answering(self, study: str) -> str:
        """Name of the study's answering model."""
        return answering_model(self._values.models[study])

    def answering_entry(self, study: str) -> Plain:
        """Settings of the study's answering model, its name instead of its title."""
        return self._untitled(study, self.answering(study))

    def inherited_by_final(self, study: str) -> list[str]:
        """Fits to the folds, if the answering model is a committee."""
        name = self.answering(study)
        inherits = self._values.models[study][name]["kind"] == COMMITTEE
        return [f"results/models/{study}/{name}"] if inherits else []

    def sources_of_answering(self, study: str) -> list[str]:
        """Source files of the answering model's kinds."""
        return self._sources(study, self.answering(study))

    def sources_of_models(self, study: str) -> list[str]:
        """Source files of the kinds of the study's models."""
        models = self._values.models[study]
        return [path for model in models for path in self._sources(study, model)]

    def sources_by_cost(self, study: str) -> list[str]:
        """Source files of the models of costs."""
        return [model_source(kind, self.folder(study)) for kind in BY_COST]

    def cost_asked(self, study: str) -> list[str]:
        """``cost.yaml``, if a model of the study reads it."""
        asked = any(self._asks_cost(study, model) for model in self._values.models[study])
        return self.cost(study) if asked else []

    def trained(self, study: str, code: Code) -> dict[str, Plain]:
        """Model to what decides how it is fitted, beside the training rows."""
        return {
            model: {
                "entry": self._untitled(study, model),
                "blamed": self._blamed(study, model) if entry["parameters"] else None,
                "spec": self._values.specs[self._values.workload(study)],
                # Not an output: Snakemake deletes those of a failed job, and the trials must stay.
                "journal": f"results/search/{study}/{model}.log",
                "code": code("scripts/train.py", *self._sources(study, model)),
                "inputs": [
                    *self.features(study),
                    *self.usual(study),
                    *(self.cost(study) if self._asks_cost(study, model) else []),
                ],
            }
            for model, entry in self._values.models[study].items()
        }

    def training_work(self, study: str) -> int:
        """Bytes of recorded rows times models: the longest path starts first."""
        rows, workload = self._values.recorded_in, self._values.workload(study)
        files = [Path(rows.get(gpu, ""), f"{workload}.parquet") for gpu in self.gpus(study)]
        size = sum(path.stat().st_size for path in files if path.is_file())
        return size * len(self._values.models[study])

    def _untitled(self, study: str, model: str) -> Plain:
        return {**self._values.models[study][model], "title": model}

    def _kinds(self, study: str, model: str) -> list[str]:
        return kinds_of(self._values.models[study][model], Path(self.folder(study)))

    def _sources(self, study: str, model: str) -> list[str]:
        """Source files of the model's kinds: an edit retrains the models of this kind only."""
        return [model_source(kind, self.folder(study)) for kind in self._kinds(study, model)]

    def _asks_cost(self, study: str, model: str) -> bool:
        return any(kind in BY_COST for kind in self._kinds(study, model))

    def _blamed(self, study: str, model: str) -> list[str]:
        """File that holds the hyper-parameters of a study's model, and their key there."""
        own = model in self._experiment.studies[study].own_models
        entry = f"studies.{study}.own_models.{model}" if own else f"models.{model}"
        return self._experiment.holder(f"{entry}.parameters")


def present(path: str) -> list[str]:
    """``[path]`` if the file exists, else an empty list."""
    return [path] if Path(path).is_file() else []


def profiles(gpus: Any) -> list[str]:
    """Profiles of GPUs."""
    return [f"results/gpus/{gpu}.json" for gpu in gpus]
