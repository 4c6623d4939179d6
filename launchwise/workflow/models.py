"""Checks the models of studies before any rule is defined: kinds, hyper-parameters, members."""

from __future__ import annotations

from pathlib import Path

from launchwise.base.errors import unknown
from launchwise.experiment.experiment import Experiment
from launchwise.experiment.study import ModelEntry
from launchwise.learning import hyperparameters
from launchwise.learning.recommenders import (
    COMMITTEE,
    MEMBERS,
    SIMPLE_RULES,
    kinds,
    members_of,
)


def check_models(experiment: Experiment) -> None:
    """Check that the kind of every model exists for its workloads, and its hyper-parameters.

    Raises
    ------
    UserError
        At the first mistake.
    """
    folders = experiment.folders.values()
    known = {kind for folder in folders for kind in kinds(folder)}
    for name, model in experiment.settings.models.items():
        if model.kind not in known:
            message = unknown("kind of model", model.kind, known)
            raise experiment.error(f"models.{name}.kind", message)
        owner = next(folder for folder in folders if model.kind in kinds(folder))
        _check_parameters(experiment, f"models.{name}", model, owner)
    for study in experiment.studies:
        _check_models_of(experiment, study)


def _check_models_of(experiment: Experiment, name: str) -> None:
    """Check the models that a study names, also those that take part with a setting alone."""
    study = experiment.studies[name]
    key, folder = f"studies.{name}", experiment.folders[study.workload]
    allowed = kinds(folder)
    for model, own in study.own_models.items():
        if own.kind not in allowed:
            message = unknown("kind of model", own.kind, allowed)
            raise experiment.error(f"{key}.own_models.{model}.kind", message)
        _check_parameters(experiment, f"{key}.own_models.{model}", own, folder)
    named = {*experiment.settings.models, *study.own_models}
    for model in dict.fromkeys([*study.models, *study.further_models]):
        where = "further_models" if model in study.further_models else "models"
        kind = experiment.model_of(name, model).kind
        if kind not in allowed and model in named:
            message = f"{model!r} is of kind {kind!r}, which {study.workload} lacks"
            raise experiment.error(f"{key}.{where}", message)
        if kind not in allowed:
            raise experiment.error(f"{key}.{where}", unknown("model", model, named | set(allowed)))
        if kind == COMMITTEE:
            _check_members(experiment, name, model)


def _check_members(experiment: Experiment, study: str, model: str) -> None:
    entries = {each: experiment.model_of(study, each) for each in experiment.studies[study].models}
    models = [each for each, entry in entries.items() if entry.kind != COMMITTEE]
    members = members_of(experiment.model_of(study, model).parameters, models)
    own = model in experiment.studies[study].own_models
    key = f"studies.{study}.own_models.{model}" if own else f"models.{model}"
    for member in members:
        if member in entries and member not in models:
            message = f"{member!r} is a committee itself"
            raise experiment.error(f"{key}.parameters.members", message)
        if member not in {*models, *SIMPLE_RULES}:
            message = unknown(f"model of {study}", member, [*models, *SIMPLE_RULES])
            raise experiment.error(f"{key}.parameters.members", message)
    if not members:
        message = f"{study} has none of {', '.join(MEMBERS)}: name its members"
        raise experiment.error(f"{key}.parameters.members", message)


def _check_parameters(experiment: Experiment, key: str, entry: ModelEntry, folder: Path) -> None:
    """Check the hyper-parameters of a model's entry, which stands at ``key`` of the settings."""
    if said := hyperparameters.complaint(entry.kind, entry.parameters, folder):
        raise experiment.error(f"{key}.parameters.{said[0]}", said[1])
