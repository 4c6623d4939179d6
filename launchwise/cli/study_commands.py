"""Arguments and options of commands about studies: recommend, export, predict, plan, recheck."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from launchwise.cli.options import ConfigFiles, Cores, settings_files


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
    from launchwise.cli.recommending import answered, as_json_text, as_text

    asked = study, gpu, problem, settings_files(configfile), top, least_gain
    if measure is None:
        found, spec = answered(*asked)
    else:
        from launchwise.cli.measured_answers import measured_answer

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
    from launchwise.cli.recommending import exported

    cores = cores or usable_cores()
    print(exported(study, format_.value, output, cores, configfile or [], mapping))


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

    from launchwise.cli.predicting import answer, as_text

    found = answer(study, gpu, problem, settings_files(configfile), top, learnt)
    print(json.dumps(found, indent=2) if as_json else as_text(found))


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
    from launchwise.cli.planning import as_text, planned

    files = settings_files(configfile)
    target = output or Path(f"plan_{study}.yaml")
    found, overlay = planned(study, minutes, gpu or [], files, target)
    write_text(target, overlay)
    print(json.dumps(found, indent=2) if as_json else as_text(found, files, top))


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
    from launchwise.cli.rechecking import (
        NOT_MEASURED,
        as_json_text,
        as_junit,
        as_text,
        rechecked,
    )

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
