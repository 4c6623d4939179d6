"""Arguments and options of ``launchwise recommend``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from launchwise.cli.options import ConfigFiles, settings_files


def recommend(
    study: Annotated[str, typer.Argument(help="A study of the settings.")],
    problem: Annotated[
        list[str], typer.Argument(metavar="NAME=VALUE...", help="The problem, such as n=333.")
    ],
    gpu: Annotated[
        str | None,
        typer.Option(
            help="A GPU of the settings, a card of data/cards.csv, or (words of) a device's name.",
            show_default="the only one that was measured",
        ),
    ] = None,
    top: Annotated[int, typer.Option(metavar="N", min=1, help="Number of configurations.")] = 1,
    least_gain: Annotated[
        float | None,
        typer.Option(
            metavar="X",
            min=0.01,
            help="Keep the usual choice unless a gain of X is sure: measured, or the lower end of "
            "the 90 % interval.",
            show_default="that of the settings",
        ),
    ] = None,
    measure: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Measure up to N configurations on this machine's GPU, the suggested ones first.",
        ),
    ] = None,
    configfile: ConfigFiles = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")] = False,
    macros: Annotated[
        bool, typer.Option("--macros", help="Print a C header with a macro per tunable.")
    ] = False,
) -> None:
    """Print the configuration to launch for a problem on a GPU, its expected gain and its basis.

    Reads results/final/STUDY. If no configuration is expected to beat the usual choice, the usual
    choice is the answer. With --measure a search that starts from the answer and from what is known
    measures some on this machine, and the fastest is the answer; rows stay in measured/STUDY.
    """
    from launchwise.cli.recommend.recommending import Question, answered, as_json_text, as_text

    files = settings_files(configfile)
    asked = Question(study, gpu, problem, top, files, least_gain)
    if measure is None:
        found, spec = answered(asked, Path.cwd())
    else:
        from launchwise.cli.recommend.measuring import measured_answer

        found, spec = measured_answer(asked, measure, Path.cwd())
    if macros:
        from launchwise.exporting.languages import macros_text

        print(macros_text(found, spec), end="")
    else:
        print(as_json_text(found, spec) if as_json else as_text(found, spec))
