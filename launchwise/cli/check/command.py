"""The command ``launchwise check``."""

from __future__ import annotations

import json
import os
from typing import Annotated

import typer


def check(
    workload: Annotated[
        str, typer.Argument(help="Folder with a spec.yaml, or a workload of kernels/.")
    ],
    arch: Annotated[
        str, typer.Option(help="Architecture that the kernels are compiled for.")
    ] = "sm_90",
    cpu: Annotated[
        bool, typer.Option("--cpu", help="Also run small problems on the CPU, through g++.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the steps as JSON.")] = False,
) -> None:
    """Check a workload without a GPU: files, expressions, host code, compilation."""
    from launchwise.cli.check.checking import checked
    from launchwise.cli.workloads import workload_folder

    steps = []
    for step in checked(workload_folder(workload), arch, os.cpu_count() or 1, cpu):
        steps.append(step)
        if not as_json:
            print(f"{'ok' if step.passed else 'left out':9}{step.name}: {step.said}", flush=True)
    if as_json:
        print(json.dumps([vars(step) for step in steps], indent=2))
