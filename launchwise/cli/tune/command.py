"""Arguments and options of ``launchwise tune``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from launchwise.cli.options import Cores, Workload


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
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")] = False,
) -> None:
    """Measure a workload on this machine's GPU and print the fastest configurations.

    All configurations are measured where that takes less than a minute, and with --all. Otherwise,
    and with --known, --evaluations, --minutes or --within, a search proposes each next one. It
    starts from rows of other GPUs, and of other problems on this one, where there are some.

    Writes a settings file and makes the files of a Snakemake line, which it prints: for single
    stages. The same command resumes, and has nothing to do where nothing has changed. Three sizes
    or more add a study and its report. Exit code 1: no configuration is ok, or a stage failed.
    """
    from launchwise.base.parallel import usable_cores
    from launchwise.cli.tune.running import run
    from launchwise.cli.tune.tuning import Question, percent

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
        raise typer.Exit(code)
