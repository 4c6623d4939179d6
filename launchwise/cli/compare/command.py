"""Arguments and options of ``launchwise compare``."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

PRINTED = "-"  # File of JSON that is printed


class FailOn(StrEnum):
    """Outcomes that set exit code 1: complaints of :mod:`launchwise.comparing.sweep_comparison`."""

    slower = "slower"
    stopped = "stopped"
    broken = "broken"
    stale = "stale"
    gone = "gone"
    none = "none"


def compare(
    old: Annotated[
        str,
        typer.Argument(
            metavar="OLD",
            help=(
                "results/ of a checkout, a folder with GPU/WORKLOAD.parquet, the folder of a GPU, "
                "a Parquet file, or git:COMMIT (its data/recorded) or git:COMMIT:FOLDER."
            ),
        ),
    ],
    new: Annotated[str, typer.Argument(metavar="NEW", help="The same, to compare with.")],
    threshold: Annotated[
        float,
        typer.Option(
            metavar="PERCENT", min=0, max=1000, help="Least difference of medians that counts."
        ),
    ] = 2,
    confidence: Annotated[
        float,
        typer.Option(
            metavar="PERCENT", min=50, max=99.9999, help="Level of the intervals of ratios."
        ),
    ] = 99,
    gpu: Annotated[
        list[str] | None,
        typer.Option(metavar="OLD=NEW", help="GPUs to compare under different names."),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="WORKLOAD", help="Workloads to compare.", show_default="all"),
    ] = None,
    workloads: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FOLDER",
            help="A workload, or a folder of some, beside kernels/ and data/public/workloads.",
        ),
    ] = None,
    fail_on: Annotated[
        list[FailOn] | None,
        typer.Option(
            metavar="WHAT",
            help="Exit code 1 for: slower, stopped, broken, stale, gone; or none.",
            show_default="slower, stopped, broken",
        ),
    ] = None,
    allow: Annotated[
        float,
        typer.Option(
            metavar="PERCENT",
            min=0,
            max=100,
            help="Share of a sweep's matched rows that may be slower or stopped.",
        ),
    ] = 0,
    top: Annotated[
        int, typer.Option(metavar="N", min=0, help="Most rows or problems in a list.")
    ] = 5,
    json_: Annotated[
        str | None,
        typer.Option("--json", metavar="FILE", help="Write everything as JSON; - prints it."),
    ] = None,
    csv: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write every row as CSV.")
    ] = None,
) -> None:
    """Compare two sets of sweeps: rows that are faster, slower, new, gone or broken, stale answers.

    A row is faster or slower if its medians differ by more than the threshold and the interval of
    new / old excludes 1. Exit code: 0, or 1 where rows are slower, stopped early or broken, or 2
    for a mistake.
    """
    from launchwise.base.storage import write_text
    from launchwise.cli.compare.comparing import as_text, compared_as_named, wanted_complaints
    from launchwise.comparing.files import as_json, csv_text
    from launchwise.comparing.rows import Rule
    from launchwise.comparing.sweep_comparison import complaints

    wanted = wanted_complaints(None if fail_on is None else [each.value for each in fail_on])
    rule = Rule(threshold / 100, confidence / 100)
    found = compared_as_named(old, new, rule, gpu or (), only or (), workloads or ())
    worse = complaints(found, wanted, allow)
    if json_ is not None:
        text = json.dumps(as_json(found, worse), allow_nan=False)
        if json_ == PRINTED:
            print(text)
        else:
            write_text(json_, text + "\n")
    if csv is not None:
        write_text(csv, csv_text(found))
    if json_ != PRINTED:
        print("\n".join(as_text(found, worse, top)))
    if worse:
        raise typer.Exit(1)
