"""Arguments and options of ``launchwise predict``."""

from __future__ import annotations

from pathlib import Path
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
    from launchwise.cli.predict.answering import Question, answer, as_text

    files = settings_files(configfile)
    found = answer(Question(study, gpu, problem, top, learnt, files), Path.cwd())
    if as_json:
        import json

        print(json.dumps(found.as_dict(), indent=2))
    else:
        print(as_text(found))
