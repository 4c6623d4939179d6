"""Checks of the settings before any rule is defined; a mistake is one line."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError, out_of, unknown
from launchwise.base.places import RECORDED_ELSEWHERE
from launchwise.base.typed import read_yaml_mapping
from launchwise.experiment.experiment import Experiment
from launchwise.experiment.loading import load_experiment
from launchwise.experiment.published import RUN_TIMES, read_run_times, read_tables
from launchwise.experiment.study import ModelEntry
from launchwise.gpus.datasheets import (
    CARDS_FILE,
    REFERENCE_PROFILE,
    Datasheet,
    described_profile,
    read_cards,
    read_prices,
    reference_efficiency,
)
from launchwise.learning.recommenders import (
    COMMITTEE,
    MEMBERS,
    SIMPLE_RULES,
    kinds,
    members_of,
    recommender_class,
)
from launchwise.workflow.plan import (
    check_temporary_folder,
    check_version,
    project_file,
    settings_of,
    stop,
)
from launchwise.workloads.declared.declared_workload import host_file, load_workload
from launchwise.workloads.sources import PROJECT_KERNELS

PRODUCT = re.compile(r"results/final/(?P<study>[^/]+)")
"""Folder of a product that this pipeline makes."""


def settings_file(workflow: Any) -> str:
    """File that holds the settings: ``config.yaml``. Where another workflow has this one as a
    module, the last file that it names by ``configfile:``."""
    named = [path for path in workflow.configfiles if path not in workflow.overwrite_configfiles]
    return str(named[-1]) if named and workflow.modifier.skip_configfile else "config.yaml"


def readable(path: str, elsewhere: object = ()) -> str:
    """``path`` of a settings file; stops with one line if Snakemake cannot read it. Snakemake
    itself names neither file nor line. A missing file is well where settings stand ``elsewhere``:
    in overlays, or in those of the workflow that has this one as a module."""
    if Path(path).exists() or not elsewhere:
        try:
            read_yaml_mapping(path)
        except UserError as error:
            stop(error)
    return path


def start(
    config: Mapping[str, Any], path: str, overlays: Collection[str | Path], in_job: bool = False
) -> Experiment:
    """Check the settings before any rule is defined; stops with one line on an error. ``config``:
    what Snakemake merged. ``path``: the file that the Snakefile names. ``overlays``: files from the
    command line, the last one strongest. ``in_job``: whether models were checked by the process
    that started this one."""
    files = settings_of(path, overlays)
    try:
        check_version()
        check_temporary_folder()
        experiment = load_experiment(config, files, Path.cwd())
        _check_hosts(experiment)
        if not in_job:
            check_models(experiment)
            if without := experiment.without_rows:
                why = "no GPU in the settings has rows of their workloads"
                print(f"launchwise: left out: {', '.join(without)}: {why}", file=sys.stderr)
        _check_recorded(experiment)
        _check_extended(experiment)
        _check_described(experiment)
        _check_published(experiment)
        _check_guesses(experiment)
        if experiment.settings.prices is not None:
            cards = read_cards(project_file(CARDS_FILE))
            read_prices(experiment.settings.prices, experiment.settings.gpus, cards)
    except UserError as error:
        stop(error)
    except (MemoryError, RecursionError) as error:
        stop(UserError(", ".join(map(str, files)), "", out_of(error)))
    return experiment


def _check_hosts(experiment: Experiment) -> None:
    """Import the host code of workloads from elsewhere: a mistake in it must not wait for a job."""
    for workload, spec in experiment.specs.items():
        folder = experiment.folders[workload]
        if not folder.resolve().is_relative_to(PROJECT_KERNELS) and host_file(folder).is_file():
            load_workload(folder, spec)


def _check_recorded(experiment: Experiment) -> None:
    for name, gpu in experiment.settings.gpus.items():
        if gpu.source != "recorded":
            continue
        folder, asked = experiment.recorded_in(name), {*(gpu.studies or [])}
        asked &= experiment.studies.keys()
        asked |= {each for each, one in experiment.studies.items() if name in (one.gpus or [])}
        if gpu.held_out:
            asked = set()
        workloads = {experiment.studies[study].workload for study in asked}
        for file in ("profile.json", *sorted(f"{workload}.parquet" for workload in workloads)):
            if not Path(folder, file).is_file():
                message = f"no file {file!r} in {folder!r}"
                help = f": {RECORDED_ELSEWHERE}or remove the entry" if RECORDED_ELSEWHERE else ""
                raise experiment.error(f"gpus.{name}", message + help)


def _check_extended(experiment: Experiment) -> None:
    for name, gpu in experiment.settings.gpus.items():
        folder = experiment.recorded_in(name)
        if not gpu.extend:
            continue
        if not Path(folder, "profile.json").is_file():
            raise experiment.error(f"gpus.{name}.extend", f"no file 'profile.json' in {folder!r}")
        # Of a held-out GPU the profile alone is needed.
        if gpu.held_out:
            continue
        asked = experiment.workloads_of(name)
        if not any(Path(folder, f"{workload}.parquet").is_file() for workload in asked):
            message = f"no sweep of {', '.join(asked) or 'any workload'} in {folder!r}"
            raise experiment.error(f"gpus.{name}.extend", message)


def _check_described(experiment: Experiment) -> None:
    gpus = experiment.settings.gpus.items()
    if not (wanted := {name: gpu for name, gpu in gpus if gpu.source == "described"}):
        return
    table = read_cards(project_file(CARDS_FILE))
    efficiency = reference_efficiency(table, project_file(REFERENCE_PROFILE))
    for name, gpu in wanted.items():
        card = gpu.card or name
        try:
            described_profile(name, table, efficiency, card)
        except UserError as error:
            # Blame the entry of the card: incomplete rows of other cards are no error.
            told = error.message if card not in table else f"{card} in {CARDS_FILE} {error.message}"
            raise experiment.error(f"gpus.{name}", told) from error


def _check_published(experiment: Experiment) -> None:
    table: dict[str, Datasheet] = {}
    for name, study in experiment.studies.items():
        folder = experiment.study_folders[name]
        read_tables(folder)
        if (folder / RUN_TIMES).is_file():
            table = table or read_cards(project_file(CARDS_FILE))
            read_run_times(folder, experiment.specs[study.workload], table)


def _check_guesses(experiment: Experiment) -> None:
    for workload, sweep in experiment.sweeps.items():
        guesses, key = sweep.strategy.guesses, f"sweeps.{workload}.strategy.guesses.model"
        if guesses is None:
            continue
        live = [name for name, gpu in experiment.settings.gpus.items() if gpu.source == "live"]
        if not (measured := [gpu for gpu in live if workload in experiment.workloads_of(gpu)]):
            continue
        made = PRODUCT.fullmatch(guesses.model.rstrip("/"))
        if made is None:
            if not Path(guesses.model).is_dir():
                raise experiment.error(key, f"no folder {guesses.model!r}")
            continue
        study = made["study"]
        if study not in experiment.studies:
            raise experiment.error(key, unknown("study", study, experiment.studies))
        if both := [gpu for gpu in measured if gpu in experiment.gpus_of(study)]:
            message = f"{study} learns from the sweep of {both[0]}, which the guesses are for"
            raise experiment.error(key, f"{message}: name other GPUs in studies.{study}.gpus")


def check_models(experiment: Experiment) -> None:
    """Check that the kind of every model exists for its workloads, and its hyper-parameters. Raises
    UserError at the first mistake."""
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
    if not entry.parameters:
        return
    try:
        kind = recommender_class(entry.kind, workload=folder)
    except UserError as error:
        if isinstance(error.__cause__, ImportError):
            # Of a library that only machines of jobs have: a job tells what does not fit.
            return
        raise
    if misfit := kind.Parameters.misfit(entry.parameters):
        raise experiment.error(f"{key}.parameters.{misfit[0]}", misfit[1])
