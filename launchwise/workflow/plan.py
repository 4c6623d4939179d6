"""Functions for the Snakefile: checked settings, and the files that scripts depend on."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from launchwise.base.errors import UserError, out_of, unknown
from launchwise.base.places import RECORDED_ELSEWHERE, SHIPPED, shipped
from launchwise.base.typed import read_yaml_mapping
from launchwise.experiment.experiment import Experiment
from launchwise.experiment.loading import load_experiment
from launchwise.experiment.published import read_tables
from launchwise.experiment.run_times import FILE as RUN_TIMES
from launchwise.experiment.run_times import read_run_times
from launchwise.experiment.settings import Settings
from launchwise.gpus.datasheets import (
    CARDS_FILE,
    REFERENCE_PROFILE,
    Datasheet,
    described_profile,
    read_cards,
    reference_efficiency,
)
from launchwise.gpus.prices import read_prices
from launchwise.learning.recommenders import source
from launchwise.measuring.cards import arch_here, cards
from launchwise.measuring.source_states import deciding_files
from launchwise.workflow.folders import check_temporary_folder, check_version
from launchwise.workflow.models import check_models
from launchwise.workloads.loading import host_file, load_workload
from launchwise.workloads.sources import PROJECT_KERNELS
from launchwise.workloads.space import Problem


def settings_file(workflow: Any) -> str:
    """File that holds the settings: ``config.yaml``.

    Where another workflow has this one as a module, the last file that it names by ``configfile:``.

    Parameters
    ----------
    workflow
        Snakemake's workflow.
    """
    named = [path for path in workflow.configfiles if path not in workflow.overwrite_configfiles]
    return str(named[-1]) if named and workflow.modifier.skip_configfile else "config.yaml"


def readable(path: str, elsewhere: object = ()) -> str:
    """``path`` of a settings file; stops with one line if Snakemake cannot read it.

    Snakemake itself names neither file nor line. A missing file is well where settings stand
    ``elsewhere``: in overlays, or in those of the workflow that has this one as a module.
    """
    if Path(path).exists() or not elsewhere:
        try:
            read_yaml_mapping(path)
        except UserError as error:
            stop(error)
    return path


def start(config: Mapping[str, Any], path: str, overlays: Collection[str | Path]) -> Experiment:
    """Check the settings before any rule is defined; stops with one line on an error.

    Parameters
    ----------
    config
        What Snakemake merged.
    path
        The file that the Snakefile names.
    overlays
        Files from the command line, the last one strongest.
    """
    files = settings_of(path, overlays)
    try:
        check_version()
        check_temporary_folder()
        experiment = load_experiment(config, files, Path.cwd())
        _check_hosts(experiment)
        check_models(experiment)
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
    for name, folder in recorded_folders(experiment).items():
        asked = {*(experiment.settings.gpus[name].studies or [])} & experiment.studies.keys()
        asked |= {each for each, one in experiment.studies.items() if name in (one.gpus or [])}
        if experiment.settings.gpus[name].held_out:
            asked = set()
        workloads = {experiment.studies[study].workload for study in asked}
        for file in ("profile.json", *sorted(f"{workload}.parquet" for workload in workloads)):
            if not Path(folder, file).is_file():
                message = f"no file {file!r} in {folder!r}"
                help = f": {RECORDED_ELSEWHERE}or remove the entry" if RECORDED_ELSEWHERE else ""
                raise experiment.error(f"gpus.{name}", message + help)


def _check_extended(experiment: Experiment) -> None:
    """Check that extended GPUs have a recorded profile and some recorded sweep."""
    for name, folder in extended_folders(experiment).items():
        if not Path(folder, "profile.json").is_file():
            raise experiment.error(f"gpus.{name}.extend", f"no file 'profile.json' in {folder!r}")
        # Of a held-out GPU the profile alone is needed.
        if experiment.settings.gpus[name].held_out:
            continue
        asked = experiment.workloads_of(name)
        if not any(Path(folder, f"{workload}.parquet").is_file() for workload in asked):
            message = f"no sweep of {', '.join(asked) or 'any workload'} in {folder!r}"
            raise experiment.error(f"gpus.{name}.extend", message)


def _check_described(experiment: Experiment) -> None:
    wanted = described_cards(experiment.settings)
    if not wanted:
        return
    table = read_cards(project_file(CARDS_FILE))
    efficiency = reference_efficiency(table, project_file(REFERENCE_PROFILE))
    for name, card in wanted.items():
        try:
            described_profile(name, table, efficiency, card)
        except UserError as error:
            # Blame the entry of the card: incomplete rows of other cards are no error.
            told = error.message if card not in table else f"{card} in {CARDS_FILE} {error.message}"
            raise experiment.error(f"gpus.{name}", told) from error


def _check_published(experiment: Experiment) -> None:
    """Check the published tables of the studies, and what their run times mean."""
    table: dict[str, Datasheet] = {}
    for name, study in experiment.studies.items():
        folder = experiment.study_folders[name]
        read_tables(folder)
        if (folder / RUN_TIMES).is_file():
            table = table or read_cards(project_file(CARDS_FILE))
            read_run_times(folder, experiment.specs[study.workload], table)


PRODUCT = re.compile(r"results/final/(?P<study>[^/]+)")
"""Folder of a product that this pipeline makes."""


def fitted_model(method: Mapping[str, Any]) -> str:
    """Folder that a sweep's guesses come from, as a rule makes it."""
    return f"{str(method['strategy']['guesses']['model']).rstrip('/')}/final.json"


def _check_guesses(experiment: Experiment) -> None:
    """Check that the model of guesses exists and is not trained on the sweep itself."""
    for workload, sweep in experiment.sweeps.items():
        guesses, key = sweep.strategy.guesses, f"sweeps.{workload}.strategy.guesses.model"
        measured = [gpu for gpu in _live(experiment) if workload in experiment.workloads_of(gpu)]
        if guesses is None or not measured:
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


def _live(experiment: Experiment) -> list[str]:
    return [name for name, gpu in experiment.settings.gpus.items() if gpu.source == "live"]


def described_cards(settings: Settings) -> dict[str, str]:
    """Card of every datasheet-only GPU."""
    return {
        name: gpu.card or name for name, gpu in settings.gpus.items() if gpu.source == "described"
    }


def recorded_folders(experiment: Experiment) -> dict[str, str]:
    """Paths of the sweeps of every recorded GPU."""
    return {
        name: experiment.recorded_in(name)
        for name, gpu in experiment.settings.gpus.items()
        if gpu.source == "recorded"
    }


def extended_folders(experiment: Experiment) -> dict[str, str]:
    """Paths of the recorded sweeps that live GPUs extend."""
    return {
        name: experiment.recorded_in(name)
        for name, gpu in experiment.settings.gpus.items()
        if gpu.extend
    }


def stop(error: UserError) -> NoReturn:
    """Print one line and end the process."""
    where = _short(Path(error.where)) if Path(error.where).is_absolute() else error.where
    print(f"launchwise: {UserError(where, error.key, error.message)}", file=sys.stderr)
    raise SystemExit(1)


def settings_of(path: str | Path, overlays: Collection[str | Path]) -> list[Path]:
    """Files of the settings, the last one strongest (see :func:`start`)."""
    files = [Path(path)] if Path(path).exists() else []
    return files + [_short(Path(name)) for name in overlays]


def settings_to_name(path: str, overlays: Collection[str | Path]) -> list[str]:
    """Files that commands must name: none for ``config.yaml`` alone, which is their default."""
    found = list(map(str, settings_of(path, overlays)))
    return [] if found == ["config.yaml"] else found


def _short(path: Path) -> Path:
    path = path.resolve()
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def architectures(experiment: Experiment) -> dict[str, str]:
    """Architecture of every live GPU: as written in its entry, or read off this machine's card."""
    found: dict[str, str] = {}
    for name, gpu in experiment.settings.gpus.items():
        if gpu.source == "live":
            try:
                found[name] = gpu.arch or arch_here(gpu.device, cards())
            except ValueError as error:
                stop(experiment.error(f"gpus.{name}", str(error)))
    return found


def folders(experiment: Experiment) -> dict[str, str]:
    """Folder of every workload, as :func:`_from_here` gives it."""
    return {name: _from_here(folder) for name, folder in experiment.folders.items()}


def project_file(path: str) -> str:
    """A file of the project, given from its root, as :func:`_from_here` gives it."""
    return _from_here(shipped(path))


def _from_here(path: Path) -> str:
    """A path for a rule: short where Snakemake runs in the project, absolute in other folders."""
    return str(_inside(path) if Path.cwd() == SHIPPED else path.resolve())


def _inside(path: Path) -> Path:
    return path.relative_to(SHIPPED) if path.is_relative_to(SHIPPED) else path


def own_rules(experiment: Experiment) -> list[str]:
    """Files of Snakemake rules that workloads bring along: ``rules.smk`` in their folders."""
    files = (folder / "rules.smk" for folder in experiment.folders.values())
    return [str(path) for path in files if path.is_file()]


@cache
def sources(folder: str) -> list[str]:
    """Files that determine what the kernels of a workload compute and how they run."""
    return sorted(map(_from_here, deciding_files(SHIPPED / folder)))


def problems_for(
    experiment: Experiment, archs: Mapping[str, str], workload: str, arch: str
) -> list[Problem]:
    """Problems that any live GPU of an architecture measures of a workload."""
    found: dict[str, Problem] = {}
    for gpu, its_arch in archs.items():
        if its_arch == arch and workload in experiment.workloads_of(gpu):
            found |= {str(problem): problem for problem in experiment.problems_of(gpu, workload)}
    return list(found.values())


FLOP_PER_BYTE = 4.0
"""FLOP that take as long as one byte, for the order of problems: between 1, which fits sweeps of a
stencil on an H200, and 8 or more, which GPUs can reach."""


def in_order(experiment: Experiment, gpu: str, workload: str, shards: int) -> list[Problem]:
    """Problems of a sweep in the order in which they are measured.

    One shard: the order of the settings. Several shards: the longest first, so that no shard ends
    with a long one.
    """
    spec = experiment.specs[workload]
    problems = experiment.problems_of(gpu, workload)
    if shards == 1:
        return problems

    def weight(problem: Problem) -> float:
        flop = float(spec.value(spec.work.flop, problem))
        return float(spec.value(spec.work.bytes, problem)) + flop / FLOP_PER_BYTE

    return sorted(problems, key=weight, reverse=True)


def pattern(names: Any) -> str:
    """Regular expression that matches exactly ``names`` (nothing when there are none)."""
    return "|".join(re.escape(str(name)) for name in names) or "(?!)"


@cache
def model_source(kind: str, folder: str) -> str:
    """Source file of a kind of model; an edit of what it imports retrains this kind only."""
    return _from_here(source(kind, SHIPPED / folder))


def section_sources(folder: str) -> list[str]:
    """Source files of a study's section for the report."""
    return sorted(map(_from_here, (SHIPPED / folder).glob("*.py")))


def published_tables(folder: str) -> list[str]:
    """Tables that a study's section reads: published ones, elements of the paper, recorded runs."""
    patterns = ("published/*.csv", "published/*.yaml", "recorded/*.json")
    found = (path for pattern in patterns for path in (SHIPPED / folder).glob(pattern))
    return sorted(map(_from_here, found))


def run_time_tables(folder: str) -> list[str]:
    """Files that a study's published run times are read from; none where it has no such times."""
    if not (SHIPPED / folder / RUN_TIMES).is_file():
        return []
    unread = "elements.yaml"
    return [path for path in published_tables(folder) if Path(path).name != unread]
