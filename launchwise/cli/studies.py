"""Studies of the project that a command runs in: its settings, and profiles of GPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError, unknown
from launchwise.base.typed import laid_over, read_yaml_mapping
from launchwise.cli.gpu_names import known_cards, profile_file
from launchwise.experiment.experiment import Experiment
from launchwise.experiment.loading import load_experiment, load_study, unknown_study
from launchwise.experiment.study import Study
from launchwise.gpus.datasheets import (
    CARDS_FILE,
    REFERENCE_PROFILE,
    described_profile,
    reference_efficiency,
)
from launchwise.gpus.profile import GpuProfile, read_profile
from launchwise.learning.features import Domain
from launchwise.workloads.spec import Spec


def read_experiment(files: Sequence[Path], root: Path, study: str | None = None) -> Experiment:
    """The settings of the project in ``root``: ``files``, each overriding those before it.

    Parameters
    ----------
    study
        What is asked about, if nothing else is: other studies are not read.
    """
    config: dict[str, Any] = {}
    for path in files:
        config = laid_over(config, read_yaml_mapping(path))
    if study is not None:
        return load_study(config, list(files), root, study)
    return load_experiment(config, list(files), root)


def study_named(name: str, experiment: Experiment, command: str) -> Study:
    """A study of the settings; UserError of the command where there is none of that name."""
    if name not in experiment.studies:
        raise UserError(command, "", unknown_study(name, experiment))
    return experiment.studies[name]


def study_domain(study: Study, spec: Spec, profiles: Mapping[str, GpuProfile]) -> Domain:
    """The workload of a study on some GPUs, as the study asks about it."""
    return Domain(
        spec,
        profiles,
        study.candidates,
        study.constraints,
        study.near_best_percent,
        study.features,
        [each.model_dump() for each in study.usual or ()],
    )


def find_profile(gpu: str, experiment: Experiment, command: str) -> GpuProfile:
    """Profile of a GPU of the settings (recorded, datasheet-only, or measured here), or of a card.

    Raises
    ------
    UserError
        When there is none.
    """
    root, gpus = experiment.root, experiment.settings.gpus
    entry = gpus.get(gpu)
    if entry is None or entry.source == "described":
        # Outside the project, its own cards count.
        own = (root / CARDS_FILE).is_file()
        cards = known_cards(experiment)
        card = (entry.card if entry else None) or gpu
        if card not in cards:
            raise UserError(command, "gpu", unknown("GPU or card", gpu, {*gpus, *cards}))
        efficiency = reference_efficiency(cards, root / REFERENCE_PROFILE if own else None)
        return described_profile(gpu, cards, efficiency, card, entry.host_gbs if entry else None)
    path = profile_file(gpu, experiment)
    if entry.source == "live" and not entry.extend and not path.is_file():
        message = f"is live and has no profile yet: run snakemake -c1 describe_{gpu} on its machine"
        raise UserError(command, gpu, message)
    return read_profile(path, gpu)


def sweep_file(gpu: str, workload: str, experiment: Experiment) -> Path:
    """Sweep on a GPU, which may be missing: what was measured here, else what is recorded."""
    entry, name = experiment.settings.gpus[gpu], f"{workload}.parquet"
    measured = experiment.root / "results" / "sweeps" / gpu / name
    if entry.source == "recorded" or (entry.extend and not measured.is_file()):
        return experiment.root / experiment.recorded_in(gpu) / name
    return measured
