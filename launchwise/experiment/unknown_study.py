"""Messages for studies that do not exist, or cannot be measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from launchwise.base.errors import UserError, unknown

if TYPE_CHECKING:
    from launchwise.experiment.experiment import Experiment

NEEDED = (
    "a study of imported sweeps needs two GPUs with a card and no flag, or three sizes of one "
    "problem parameter: import their files together (launchwise import)"
)
"""What makes a study of a workload without a kernel."""

TOO_FEW = "fewer than three sizes of one problem parameter are measured"
"""Why a workload that is measured has no derived study."""


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
    """Check that problems of a study can be measured.

    Raises
    ------
    UserError
        When there is no such study, or its workload was imported: it has no kernel.
    """
    if study not in experiment.studies:
        raise UserError(command, "", unknown_study(study, experiment))
    workload = experiment.studies[study].workload
    if not experiment.specs[workload].has_kernel:
        message = f"{workload} has no kernel: nothing of it can be measured here"
        raise UserError(command, study, f"{message}; launchwise import adds sweeps")
