"""Arguments and options of ``launchwise recheck``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from launchwise.cli.options import ConfigFiles, Cores, settings_files


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
    as_json: Annotated[bool, typer.Option("--json", help="Print the verdicts as JSON.")] = False,
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
    from launchwise.base.parallel import usable_cores
    from launchwise.cli.recheck import rechecking

    asked = studies or [], gpu, cores or usable_cores(), settings_files(configfile)
    found = rechecking.rechecked(*asked, problems=problems, seconds=seconds)
    print(rechecking.as_json_text(found) if as_json else rechecking.as_text(found))
    if junit is not None:
        from launchwise.base.storage import write_text

        write_text(junit, rechecking.as_junit(found))
    verdicts = {verdict for each in found for verdict in each.table["verdict"]}
    if "stale" in verdicts:
        raise typer.Exit(1)
    if verdicts <= {"unknown"}:
        raise typer.Exit(rechecking.NOT_MEASURED)
