"""Arguments and options of ``launchwise predict``."""

from __future__ import annotations

from typing import Annotated

import typer

from launchwise.cli.options import ConfigFiles, settings_files


def predict(
    study: Annotated[
        str, typer.Argument(help="A study of the settings: its workload and its candidates.")
    ],
    gpu: Annotated[
        str,
        typer.Argument(
            help="A GPU of the settings, a card of data/cards.csv, or (words of) a device's name."
        ),
    ],
    problem: Annotated[
        list[str], typer.Argument(metavar="NAME=VALUE...", help="The problem, such as n=512.")
    ],
    top: Annotated[int, typer.Option(metavar="N", help="Number of configurations.")] = 5,
    learnt: Annotated[
        bool,
        typer.Option("--learnt", help="Also predict with trees fitted to the study's sweeps."),
    ] = False,
    configfile: ConfigFiles = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")] = False,
) -> None:
    """Predict the fastest configurations of one problem, without running any.

    The GPU needs no measurement: its attributes and the cost model of the workload (cost.yaml) are
    enough. Where they cannot tell configurations apart, no configuration is printed.
    """
    import json

    from launchwise.cli.predict.answering import answer, as_text

    found = answer(study, gpu, problem, settings_files(configfile), top, learnt)
    print(json.dumps(found, indent=2) if as_json else as_text(found))
