"""Arguments and options of ``launchwise export``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from launchwise.cli.options import ConfigFiles


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
