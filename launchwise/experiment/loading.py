"""Reads the settings and what they name, and checks GPUs, studies and sweeps against each other.

Each check raises a :class:`~launchwise.base.errors.UserError` at the first mistake."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError, unknown
from launchwise.base.names import SPEC_FILE
from launchwise.base.places import RECORDED_ELSEWHERE
from launchwise.base.typed import read_yaml, validated
from launchwise.experiment import study_checks
from launchwise.experiment.discovery import SWEEP_FILE
from launchwise.experiment.experiment import Experiment
from launchwise.experiment.method import ProblemBlock
from launchwise.experiment.settings import Settings, Sources
from launchwise.experiment.study import Study
from launchwise.workloads.space import problems

NEEDED = (
    "a study of imported sweeps needs two GPUs with a card and no flag, or three sizes of one "
    "problem parameter: import their files together (launchwise import)"
)
"""What makes a study of a workload without a kernel."""

TOO_FEW = "fewer than three sizes of one problem parameter are measured"
"""Why a workload that is measured has no derived study."""


def checked(experiment: Experiment, only: str | None = None) -> Experiment:
    """The experiment; with a study (``only``), sweeps, splits and draws are not checked. Raises
    UserError at the first name or value that does not fit."""
    if only is None:
        _check_that_something_runs(experiment)
    _check_gpus(experiment)
    _check_studies(experiment)
    if only is None:
        _check_sweeps(experiment)
        _check_splits(experiment)
        for study in experiment.studies:
            experiment.with_drawn(study)
    return experiment


def _check_that_something_runs(experiment: Experiment) -> None:
    settings, folders = experiment.settings, experiment.study_folders
    if experiment.studies or any(map(experiment.workloads_of, settings.gpus)):
        return
    left_out = {name for name, changes in settings.studies.items() if changes is None}
    if set(folders) - left_out:
        message = "no GPU in the settings has rows of the workloads of any study"
        experiment.fail("studies", message)
    if not folders and experiment.folders:
        experiment.fail("workloads", f"{', '.join(experiment.folders)}: no study; {NEEDED}")
    experiment.fail("studies", "every study is left out: keep at least one")


def _check_gpus(experiment: Experiment) -> None:
    """Check that GPUs name studies that exist, and that recorded ones have their folder."""
    for name in experiment.sources.left_out("gpus"):
        if experiment.sources.is_lost_null(f"gpus.{name}"):
            experiment.fail(f"gpus.{name}", unknown("GPU", name, experiment.settings.gpus))
    if not any(map(experiment.is_learnt_from, experiment.settings.gpus)):
        message = "all are datasheet-only or held out; studies need a recorded or live GPU"
        experiment.fail("gpus", message)
    for name, gpu in experiment.settings.gpus.items():
        # The list may name studies that are left out.
        key = f"gpus.{name}.studies"
        experiment.check_known(key, "study", gpu.studies or [], experiment.study_folders)
        for study in gpu.studies or []:
            if gpu.source == "live" and study in experiment.studies:
                experiment.insist_on_kernel(experiment.studies[study].workload, key)
        folder = experiment.recorded_in(name)
        if gpu.source == "recorded" and not Path(folder).is_dir():
            message = f"no folder {folder!r}: {RECORDED_ELSEWHERE}record the GPU, name its folder"
            experiment.fail(f"gpus.{name}", f"{message} by path or remove the entry")


def _check_studies(experiment: Experiment) -> None:
    for name, study in experiment.studies.items():
        key = f"studies.{name}"
        _check_gpus_of(experiment, key, name, study)
        if twice := [each for each in study.models if study.models.count(each) > 1]:
            experiment.fail(f"{key}.models", f"{twice[0]!r} is given twice")
        with experiment.blaming(f"{key}."):
            study_checks.check_study(study, experiment.specs[study.workload])


def _check_gpus_of(experiment: Experiment, key: str, name: str, study: Study) -> None:
    known = experiment.settings.gpus
    if twice := [each for each in study.gpus or [] if (study.gpus or []).count(each) > 1]:
        experiment.fail(f"{key}.gpus", f"{twice[0]!r} is given twice")
    for gpu in study.gpus or []:
        if gpu not in known:
            experiment.fail(f"{key}.gpus", _unknown_gpu(experiment, gpu))
        if known[gpu].source == "live":
            experiment.insist_on_kernel(study.workload, f"{key}.gpus")
        if doubts := experiment.kept_out(name).get(gpu):
            message = f"the rows of {gpu} are flagged: {doubts[0]}"
            experiment.fail(f"{key}.gpus", f"{message}; if they are right, set gpus.{gpu}.trusted")
        if not experiment.is_learnt_from(gpu):
            why = "held out" if known[gpu].held_out else "datasheet-only and has no sweep"
            message = f"{gpu} is {why}; a study needs rows to learn from"
            experiment.fail(f"{key}.gpus", f"{message}: remove it")
    if not experiment.gpus_of(name):
        message = f"no GPU in the settings has rows of its workload {study.workload}"
        experiment.fail(
            key, f"{message}: measure one (source: live), or leave the study out (null)"
        )


def _unknown_gpu(experiment: Experiment, gpu: str) -> str:
    if gpu in experiment.sources.left_out("gpus"):
        holder = experiment.error(f"gpus.{gpu}", "").where
        return f"{gpu} is left out (null in {holder}): remove it here, or leave the study out"
    return unknown("GPU", gpu, experiment.settings.gpus)


def _check_sweeps(experiment: Experiment) -> None:
    for workload, sweep in experiment.sweeps.items():
        # The spec of a workload without a study is not read, unless settings speak of it.
        if workload in experiment.specs or workload in experiment.settings.sweeps:
            experiment.insist_on_kernel(workload, f"sweeps.{workload}")
            # A workload's own problems reach every variant; those that a user chooses need not.
            chosen = "problems" in (experiment.settings.sweeps.get(workload) or {})
            key = f"sweeps.{workload}.problems"
            drawing = [each for each in experiment.studies.values() if each.drawn]
            if not sweep.problems and workload not in {each.workload for each in drawing}:
                experiment.fail(key, "is empty, and no study draws problems (drawn)")
            _check_problems(experiment, workload, sweep.problems, key, not chosen)
            with experiment.blaming(f"sweeps.{workload}.anew"):
                study_checks.check_rows(experiment.spec_of(workload), sweep.anew)
    for name, gpu in experiment.settings.gpus.items():
        key = f"gpus.{name}.problems"
        experiment.check_known(key, "workload", gpu.problems, experiment.folders)
        for workload, blocks in gpu.problems.items():
            _check_problems(experiment, workload, blocks, f"{key}.{workload}", False)
        if gpu.source == "live":
            for workload in experiment.workloads_of(name):
                if workload not in experiment.sweeps:
                    path = experiment.folders[workload] / SWEEP_FILE
                    message = f"is missing, but gpus.{name} measures {workload} live: a workload"
                    message += " with studies or host code of its own lists its problems"
                    raise UserError(path, "", message)


def _check_problems(
    experiment: Experiment, workload: str, blocks: list[ProblemBlock], key: str, every_variant: bool
) -> None:
    spec = experiment.spec_of(workload)
    experiment.check_blocks(workload, blocks, key)
    try:
        study_checks.check_space(spec, problems(spec, blocks), every_variant)
    except ValueError as error:
        where = experiment.folders[workload] / SPEC_FILE
        raise UserError(where, "", f"{error} (required by {key})") from error


def _check_splits(experiment: Experiment) -> None:
    """Check that sweeps of live GPUs hold problems to train on and to test. What recorded sweeps
    hold is known when they are read."""
    for name, study in experiment.studies.items():
        gpus = experiment.gpus_of(name)
        if any(experiment.settings.gpus[gpu].source != "live" for gpu in gpus):
            continue
        if any(experiment.settings.gpus[gpu].extend for gpu in gpus):
            continue
        measured = [each for gpu in gpus for each in experiment.problems_of(gpu, study.workload)]
        with experiment.blaming(f"studies.{name}."):
            study_checks.check_splits(study, measured)


def unknown_study(name: str, experiment: Experiment) -> str:
    """Message for a study that does not exist: what its workload lacks, or the closest name."""
    named = [each for each in experiment.folders if name == each or name.startswith(f"{each}_")]
    if named:
        workload = max(named, key=len)
        studied = any(study.workload == workload for study in experiment.studies.values())
        if workload in experiment.alone:
            return f"{workload} has no study: {TOO_FEW}; its answers: results/answers"
        if not studied and not experiment.spec_of(workload).has_kernel:
            return f"{workload} has no study: {NEEDED}"
    return unknown("study", name, experiment.studies)


def insist_on_kernel(study: str, experiment: Experiment, command: str) -> None:
    """Check that problems of a study can be measured. Raises UserError when there is no such study,
    or its workload was imported: it has no kernel."""
    if study not in experiment.studies:
        raise UserError(command, "", unknown_study(study, experiment))
    workload = experiment.studies[study].workload
    if not experiment.specs[workload].has_kernel:
        message = f"{workload} has no kernel: nothing of it can be measured here"
        raise UserError(command, study, f"{message}; launchwise import adds sweeps")


def load_experiment(config: Mapping[str, Any], files: list[Path], root: Path) -> Experiment:
    """Check merged settings and every file they came from.

    ``config``: the merged mapping (Snakemake's ``config``).
    ``files``: where it came from, the strongest last.
    ``root``: folder of the Snakefile.
    Raises UserError: one line: file, key, what is wrong, what is allowed.
    """
    return checked(Experiment(*_read_settings(config, files), root))


def load_study(config: Mapping[str, Any], files: list[Path], root: Path, study: str) -> Experiment:
    """As :func:`load_experiment`, with ``study`` at least, and only what that study needs where
    it can: where no folder has its name, it may be derived, or unknown."""
    settings, sources = _read_settings(config, files)
    if settings.studies.get(study, {}) is not None:
        found = Experiment(settings, sources, root, only=study)
        if found.studies:
            return checked(found, only=study)
    return checked(Experiment(settings, sources, root))


def _read_settings(config: Mapping[str, Any], files: list[Path]) -> tuple[Settings, Sources]:
    for path in files:
        read_yaml(path)  # Snakemake merges silently; a key given twice must not pass.
    where = files[0] if files else Path("config.yaml")
    sources = Sources(files, config)
    try:
        return validated(Settings, dict(config), where), sources
    except UserError as error:
        raise sources.error(error.key, error.message) from error
