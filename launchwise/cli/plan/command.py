"""Arguments and options of ``launchwise plan``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from launchwise.cli.options import ConfigFiles, settings_files


def plan(
    study: Annotated[str, typer.Argument(help="A study of the settings.")],
    minutes: Annotated[
        float,
        typer.Option(
            metavar="M", min=0.01, max=525_600, help="Time to measure, all GPUs together."
        ),
    ],
    gpu: Annotated[
        list[str] | None,
        typer.Option(
            help="A live GPU of the settings, or (words of) its device's name; may be repeated.",
            show_default="every live GPU of the study",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Overlay to write.", show_default="plan_STUDY.yaml"),
    ] = None,
    top: Annotated[
        int, typer.Option(metavar="N", min=1, help="Problems to print; the overlay has all.")
    ] = 10,
    configfile: ConfigFiles = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the plan as JSON.")] = False,
) -> None:
    """Choose which problems to measure next, and write an overlay that Snakemake runs.

    Chosen are those after which answers anywhere in the declared ranges are expected to be nearest
    the best. Prints each with its time, its rows and what is expected of answers then.
    """
    import json

    from launchwise.base.storage import write_text
    from launchwise.cli.plan.planning import as_text, planned

    files = settings_files(configfile)
    target = output or Path(f"plan_{study}.yaml")
    found, overlay = planned(study, minutes, gpu or [], files, target)
    write_text(target, overlay)
    print(json.dumps(found, indent=2) if as_json else as_text(found, files, top))
