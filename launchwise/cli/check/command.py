"""The command ``launchwise check``."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from launchwise.cli.options import Workload


def check(
    workload: Workload,
    problem: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME=VALUE[,VALUE...]...",
            help="Problems to run on the CPU, such as n=512,1024. Left out: small ones.",
            show_default=False,
        ),
    ] = None,
    arch: Annotated[
        str, typer.Option(help="Architecture that the kernels are compiled for.")
    ] = "sm_90",
    cpu: Annotated[
        bool, typer.Option("--cpu", help="Also run small problems on the CPU, through g++.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the steps as JSON.")] = False,
) -> None:
    """Check a workload without a GPU: files, expressions, host code, compilation.

    Exit code 2: a mistake, or a run on the CPU that is wrong. Exit code 1: nothing was compiled or
    verified.
    """
    import sys

    from launchwise.base.errors import UserError
    from launchwise.base.work import usable_cores
    from launchwise.cli.check.checking import checked
    from launchwise.cli.check.steps import LEFT_OUT, summary, verdict
    from launchwise.cli.options import workload_folder

    folder = workload_folder(workload)
    if problem and not cpu:
        raise UserError("check", problem[0], "problems run on the CPU alone: add --cpu")
    steps, told = [], set()
    for step in checked(folder, arch, usable_cores(), cpu, problem or []):
        steps.append(step)
        key = step.variant, step.reason
        # Each reason is told once per variant.
        again = step.status == LEFT_OUT and step.variant and key in told
        if not as_json and not again:
            print(f"{step.status:8} {step.name}: {step.said}", flush=True)
        if step.status == LEFT_OUT:
            told.add(key)
    if as_json:
        print(json.dumps([step.as_facts() for step in steps], indent=2))
    elif said := summary(steps):
        print(f"{'':8} cpu: {said}")
    if said := verdict(folder, steps, cpu):
        print(f"launchwise: {said}", file=sys.stderr)
        raise typer.Exit(1)
