"""Arguments and options of commands that run kernels: on the CPU, or on this machine's GPU."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from launchwise.base.errors import UserError
from launchwise.cli.options import (
    AsJson,
    ConfigFiles,
    Cores,
    Workload,
    settings_files,
    workload_folder,
)


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
    from launchwise.base.work import usable_cores
    from launchwise.cli.check import FAILED, LEFT_OUT, REFUSED, WRONG, summary, verdict
    from launchwise.cli.check.checking import checked

    folder = workload_folder(workload)
    if problem and not cpu:
        raise UserError("check", problem[0], "problems run on the CPU alone: add --cpu")
    steps, told = [], set()
    try:
        for step in checked(folder, arch, usable_cores(), cpu, problem or []):
            steps.append(step)
            key = step.variant, step.reason
            # Each reason is told once per variant.
            again = step.status == LEFT_OUT and step.variant and key in told
            if not as_json and not again:
                print(f"{step.status:8} {step.name}: {step.said}", flush=True)
            told.add(key)
    except UserError as error:
        if all(step.status not in (WRONG, FAILED) for step in steps):
            raise
        # The last line says what is wrong on the CPU.
        print(f"{REFUSED:8} {error}", flush=True)
    if as_json:
        print(json.dumps([step.as_facts() for step in steps], indent=2))
    elif said := summary(steps):
        print(f"{'':8} cpu: {said}")
    if said := verdict(folder, steps, cpu):
        print(f"launchwise: {said}", file=sys.stderr)
        raise typer.Exit(1)


def tune(
    workload: Workload,
    problem: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME=VALUE[,VALUE...]...",
            help="Problems to measure, such as n=512,1024. Left out: those of sweep.yaml, or five "
            "sizes of each integer parameter.",
            show_default=False,
        ),
    ] = None,
    gpu: Annotated[str, typer.Option(metavar="NAME", help="Name of the GPU in results.")] = "local",
    device: Annotated[
        str | None,
        typer.Option(help="Part of the GPU's device name, where the machine has several models."),
    ] = None,
    known: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DIR|FILE",
            help="Sweeps of other GPUs or of earlier runs, beside the project's own, that a search "
            "starts from.",
        ),
    ] = None,
    evaluations: Annotated[
        int | None,
        typer.Option(min=1, help="Most configurations that a search measures of each problem."),
    ] = None,
    minutes: Annotated[
        float | None, typer.Option(min=0.01, help="Most time that a search measures.")
    ] = None,
    within: Annotated[
        str | None,
        typer.Option(
            metavar="PERCENT",
            help="A search ends once it is 90 % sure that nothing is faster by more than this, "
            "such as 1%.",
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Measure every configuration, however many there are.")
    ] = False,
    folder: Annotated[
        Path | None,
        typer.Option(help="Folder of settings and results.", show_default="tuned/WORKLOAD"),
    ] = None,
    cores: Cores = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", "-n", help="Show the jobs; run none.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Measure a workload on this machine's GPU and print the fastest configurations.

    All configurations are measured where that takes less than a minute, and with --all. Otherwise,
    and with --known, --evaluations, --minutes or --within, a search proposes each next one. It
    starts from rows of other GPUs, and of other problems on this one, where there are some.

    Writes a settings file and makes the files of a Snakemake line, which it prints: for single
    stages. The same command resumes, and has nothing to do where nothing has changed. Three sizes
    or more add a study and its report. Exit code 1: no configuration is ok, or a stage failed.
    """
    from launchwise.base.work import usable_cores
    from launchwise.cli.tuned import run
    from launchwise.cli.tuning import Question, percent

    asked = Question(
        workload=workload,
        problem=problem or [],
        gpu=gpu,
        device=device,
        known=known or [],
        evaluations=evaluations,
        minutes=minutes,
        within=percent(within),
        every=every,
        folder=folder,
        cores=cores or usable_cores(),
        dry_run=dry_run,
    )
    if code := run(asked, as_json):
        # typer.Exit would be taken for Ctrl-C, where the code is that of an interrupted sweep.
        raise SystemExit(code)


def recheck(
    studies: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[STUDY...]",
            help="Studies of the settings. Left out: every study with a product.",
            show_default=False,
        ),
    ] = None,
    gpu: Annotated[
        str | None,
        typer.Option(
            help="A GPU of the settings that this machine has.",
            show_default="the only one that fits",
        ),
    ] = None,
    problems: Annotated[
        int | None,
        typer.Option(min=1, help="Most problems per study.", show_default="recheck.problems"),
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(min=0.01, help="Time to measure per problem.", show_default="recheck.seconds"),
    ] = None,
    cores: Cores = None,
    configfile: ConfigFiles = None,
    as_json: AsJson = False,
    junit: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write a JUnit file, too: a test per problem; stale fails, unknown is skipped.",
        ),
    ] = None,
) -> None:
    """Compare default and recommendation again, in pairs, on this machine's GPU.

    Prints a verdict per problem: holds, better, stale or unknown. Exit code: 0 if no answer is
    stale, 1 if one is, 2 if there is no verdict: a mistake, no such GPU, a failed stage, or all are
    unknown. Every call measures again; sweeps, pairs and models stay unchanged.
    """
    from launchwise.base.work import usable_cores
    from launchwise.cli.rechecking import NOT_MEASURED, as_json_text, as_junit, as_text, rechecked

    asked = studies or [], gpu, cores or usable_cores(), settings_files(configfile)
    found = rechecked(*asked, problems=problems, seconds=seconds)
    print(as_json_text(found) if as_json else as_text(found))
    if junit is not None:
        from launchwise.base.storage import write_text

        write_text(junit, as_junit(found))
    verdicts = {verdict for each in found for verdict in each.table["verdict"]}
    if "stale" in verdicts:
        raise typer.Exit(1)
    if verdicts <= {"unknown"}:
        raise typer.Exit(NOT_MEASURED)
