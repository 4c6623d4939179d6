"""What a workload's ``sweep.yaml`` says of its problems."""

from __future__ import annotations

from pathlib import Path

from launchwise.base.errors import UserError
from launchwise.base.typed import read_yaml, validated
from launchwise.experiment import checking
from launchwise.experiment.discovery import SWEEP_FILE
from launchwise.experiment.method import Sweep
from launchwise.workloads.space import Problem, problems
from launchwise.workloads.spec import Spec


def listed_problems(folder: Path, spec: Spec) -> list[Problem] | None:
    """Problems of ``sweep.yaml``; None without one.

    Raises
    ------
    UserError
        When what it lists is no problem, configuration or row of the workload.
    """
    path = folder / SWEEP_FILE
    if not path.is_file():
        return None
    sweep = validated(Sweep, read_yaml(path), path)
    with checking.raising(lambda key, message: UserError(path, f"problems{key}", message)):
        checking.check_blocks(spec, sweep.problems, sweep.strategy.kind)
    with checking.raising(lambda key, message: UserError(path, f"anew{key}", message)):
        checking.check_rows(spec, sweep.anew)
    return problems(spec, sweep.problems)
