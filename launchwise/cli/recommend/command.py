"""Arguments and options of ``launchwise recommend`` and ``launchwise export``."""

from __future__ import annotations

from enum import StrEnum
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
    from launchwise.cli.recommend.recommending import answered, as_json_text, as_text

    asked = study, gpu, problem, settings_files(configfile), top, least_gain
    if measure is None:
        found, spec = answered(*asked)
    else:
        from launchwise.cli.recommend.measuring import measured_answer

        found, spec = measured_answer(*asked, evaluations=measure)
    if macros:
        from launchwise.exporting.languages import macros_text

        print(macros_text(found, spec), end="")
    else:
        print(as_json_text(found, spec) if as_json else as_text(found, spec))


class Format(StrEnum):
    """Format of exported answers."""

    hpp = "hpp"
    json = "json"
    python = "python"
    wisdom = "wisdom"
    t4 = "t4"
    cmake = "cmake"
    triton = "triton"
    config_files = "config-files"


def export(
    study: Annotated[str, typer.Argument(help="A study of the settings.")],
    format_: Annotated[
        Format,
        typer.Option(
            "--format",
            case_sensitive=False,
            help="A C++17 header; JSON; a Python module without packages; Kernel Launcher's "
            "wisdom; T4, a file per device; a package of CMake with the header; answers for "
            "launchwise.autotuned; configuration files of a kernel library.",
        ),
    ] = Format.hpp,
    output: Annotated[
        Path | None,
        typer.Option(
            help="File to write; a folder for T4, CMake, Triton and configuration files.",
            show_default="the file's own name",
        ),
    ] = None,
    mapping: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="YAML file that names configuration files and what they hold: config-files alone.",
        ),
    ] = None,
    cores: Annotated[int | None, typer.Option(min=1, show_default="all")] = None,
    configfile: ConfigFiles = None,
) -> None:
    """Write a study's answers as a file that does not depend on this project.

    Prints and runs the target export_STUDY. The file answers measured sizes and sizes between
    them; other sizes get the answer of the nearest size, unknown devices the usual choice.
    """
    from launchwise.base.parallel import usable_cores
    from launchwise.cli.recommend.exporting import exported

    cores = cores or usable_cores()
    print(exported(study, format_.value, output, cores, configfile or [], mapping))
