"""Settings as plain values for the parameters of rules.

A stage reruns when a value that it reads changes. So what is there for readers alone (titles,
descriptions, questions) is left out for stages that print none of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from launchwise.base.typed import read_yaml
from launchwise.experiment.experiment import Experiment
from launchwise.experiment.method import Confirmation
from launchwise.experiment.study import Study
from launchwise.workflow.plan import (
    architectures,
    described_cards,
    extended_folders,
    folders,
    recorded_folders,
)

_SPEC_TEXTS = ("title", "description")
_PART_TEXTS = {
    "problem": ("description",),
    "tunables": ("description",),
    "arguments": ("description",),
    "variants": ("title",),
}
"""Section of a spec to the texts of each of its entries."""


def untitled_study(study: Study) -> dict[str, Any]:
    """A study as plain values, with empty titles and an empty question; still a valid study."""
    plain = study.model_dump(mode="json")
    parts = [plain[key].values() for key in ("splits", "own_models", "designs")]
    titled = [plain, *(each for entries in parts for each in entries)]
    for each in titled:
        each["title"] = ""
    plain["question"] = ""
    return plain


def spec_digest(path: Path) -> str:
    """Digest of what a ``spec.yaml`` says, without titles, descriptions, comments and layout. The
    order of its keys counts: candidates are listed in it. Raises UserError when the file is no
    YAML."""
    content = read_yaml(path)
    if isinstance(content, Mapping):
        content = {key: value for key, value in content.items() if key not in _SPEC_TEXTS}
        for part, texts in _PART_TEXTS.items():
            if isinstance(content.get(part), Mapping):
                content[part] = {
                    name: _without(entry, texts) for name, entry in content[part].items()
                }
    text = json.dumps(content, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _without(entry: Any, texts: tuple[str, ...]) -> Any:
    if not isinstance(entry, Mapping):
        return entry
    return {key: value for key, value in entry.items() if key not in texts}


Plain = dict[str, Any]


class Values:
    """What the settings say, as JSON-able values, by the names of GPUs, workloads and studies."""

    def __init__(self, experiment: Experiment) -> None:
        settings, asked = experiment.settings, experiment.studies
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
        self.recorded_in = recorded_folders(experiment)
        self.extended_in = extended_folders(experiment)
        self.profiles_in = {**self.recorded_in, **self.extended_in}
        # Card, and copy rate from the host in 1e9 B/s, of every datasheet-only GPU.
        self.cards = described_cards(settings)
        self.host_links = {name: settings.gpus[name].host_gbs for name in self.cards}
        # Of every workload its folder, and the digest of what its `spec.yaml` says: a stage that
        # prints no texts has the file as an input that may be newer, and this as a parameter.
        self.folders = folders(experiment)
        self.specs = {
            name: spec_digest(Path(folder, "spec.yaml")) for name, folder in self.folders.items()
        }
        # Studies with a blind test.
        self.blind = [name for name, study in self.studies.items() if study["blind"] is not None]

    def workload(self, study: str) -> str:
        """Workload of a study."""
        return str(self.studies[study]["workload"])

    def profile_settings(self, gpu: str) -> Plain:
        """Settings that the profile of a GPU depends on; those of Slurm and shards do not count."""
        return {key: self.gpus[gpu][key] for key in ("source", "arch", "device", "slice_sms")}
