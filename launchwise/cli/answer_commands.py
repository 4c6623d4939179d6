"""Arguments and options of commands that answer and plan."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from launchwise.base.errors import UserError
from launchwise.cli.options import AsJson, ConfigFiles, Load, Study, settings_files


def recommend(
    study: Study,
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
    as_json: AsJson = False,
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


def export(
    study: Study,
    format_: Annotated[
        Literal["hpp", "json", "python", "wisdom", "t4", "cmake", "triton", "config-files"],
        typer.Option(
            "--format",
            case_sensitive=False,
            help="A C++17 header; JSON; a Python module without packages; Kernel Launcher's "
            "wisdom; T4, a file per device; a package of CMake with the header; answers for "
            "launchwise.autotuned; configuration files of a kernel library.",
        ),
    ] = "hpp",
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
    at_most: Annotated[
        int | None,
        typer.Option(
            metavar="K",
            min=1,
            help="Answer with at most K builds: those with which the load takes the least time.",
        ),
    ] = None,
    load: Load = None,
    gpu: Annotated[
        list[str] | None,
        typer.Option(
            help="With --at-most: a measured GPU that the builds are for; may be repeated.",
            show_default="every measured one",
        ),
    ] = None,
    cores: Annotated[int | None, typer.Option(min=1, show_default="all")] = None,
    configfile: ConfigFiles = None,
) -> None:
    """Write a study's answers as a file that does not depend on this project.

    Prints and runs the target export_STUDY; --at-most reads the product where there is one. Any
    size has the answer that recommend gives; wisdom, t4 and config-files hold listed sizes alone,
    and say so. Unknown devices get the usual choice; with --at-most any size has the best of these
    builds, and unknown devices the best alone.
    """
    from launchwise.base.work import usable_cores
    from launchwise.cli.recommending import exported

    if at_most is None and (load or gpu):
        raise UserError("export", "--load" if load else "--gpu", "chooses builds: needs --at-most")
    cores = cores or usable_cores()
    few = None if at_most is None else (at_most, load, gpu or [])
    print(exported(study, format_, output, cores, configfile or [], mapping, few))


def load(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="CSV, or a log.")],
    name: Annotated[str, typer.Option("--as", metavar="NAME", help="Name of the load.")],
    workload: Annotated[
        str, typer.Option(help="Folder with a spec.yaml, or a workload of kernels/.")
    ],
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=COLUMN",
            help="Column, or name in a line, of a problem parameter or of count.",
        ),
    ] = None,
    fixed: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Parameter that no line states."),
    ] = None,
    pattern: Annotated[
        str | None,
        typer.Option(
            metavar="REGEX", help="What lines of a log hold, with a named group for each name."
        ),
    ] = None,
) -> None:
    """Read which problems a program launches, and how often: loads/NAME.csv.

    A CSV file has a column per parameter, and maybe count. Lines of a log state each parameter
    (M=16, N: 4096) and are a launch each. Problems out of the workload's range are named.
    """
    from launchwise.cli.options import workload_folder
    from launchwise.experiment.load import taken_in
    from launchwise.workloads.spec import load_spec

    spec = load_spec(workload_folder(workload))
    path, found = taken_in(file, name, spec, column or [], fixed or [], pattern)
    print("\n".join([*found.said, str(path)]))


def worth(
    study: Study,
    load: Load = None,
    gpu: Annotated[
        str | None,
        typer.Option(
            help="A measured GPU of the study.", show_default="the only one that was measured"
        ),
    ] = None,
    top: Annotated[int, typer.Option(metavar="N", min=1, help="Problems to print.")] = 10,
    configfile: ConfigFiles = None,
    as_json: AsJson = False,
) -> None:
    """Say what tuning is worth for a load: gains, what few builds reach, when tuning is paid.

    Nothing is measured: it reads the answers of the study's product, measured or expected.
    """
    from launchwise.cli.loads import as_json_text, as_text, is_it_worth

    found = is_it_worth(study, load, gpu, settings_files(configfile))
    print(as_json_text(*found) if as_json else as_text(*found, top))


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
        bool, typer.Option("--learnt", help="Also predict with trees fitted to the study's sweeps.")
    ] = False,
    configfile: ConfigFiles = None,
    as_json: AsJson = False,
) -> None:
    """Predict the fastest configurations of one problem, without running any.

    The GPU needs no measurement: its attributes and the cost model of the workload (cost.yaml) are
    enough. Where they cannot tell configurations apart, no configuration is printed.
    """

    from launchwise.cli.recommending import predicted, predicted_text

    found = predicted(study, gpu, problem, settings_files(configfile), top, learnt)
    print(json.dumps(found, indent=2) if as_json else predicted_text(found))


def plan(
    study: Study,
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
    as_json: AsJson = False,
) -> None:
    """Choose which problems to measure next, and write an overlay that Snakemake runs.

    Chosen are those after which answers anywhere in the declared ranges are expected to be nearest
    the best. Prints each with its time, its rows and what is expected of answers then.
    """

    from launchwise.base.storage import write_text
    from launchwise.cli.planning import as_text, planned

    files = settings_files(configfile)
    target = output or Path(f"plan_{study}.yaml")
    found, overlay = planned(study, minutes, gpu or [], files, target)
    write_text(target, overlay)
    print(json.dumps(found, indent=2) if as_json else as_text(found, files, top))
