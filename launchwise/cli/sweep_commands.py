"""Arguments and options of commands about sweeps of others, and of ``init`` and ``new``."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import typer

from launchwise.cli.options import AsJson, workload_folder


def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder; new or empty.")],
    studies: Annotated[
        bool,
        typer.Option(
            "--studies",
            help="Settings of launchwise's own studies on recorded sweeps, in place of an example.",
        ),
    ] = False,
) -> None:
    """Make a folder that is ready for Snakemake: settings, profiles, a workload as an example.

    The Snakefile in it runs launchwise's workflow, from wherever launchwise is installed.
    """
    from launchwise.cli.project import begin

    for line in begin(folder, studies):
        print(line)


PRINTED = "-"  # File of JSON that is printed


class FailOn(StrEnum):
    """Outcomes that set exit code 1 (`COMPLAINTS` of `launchwise.comparing.sweep_comparison`)."""

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
    from launchwise.cli.comparing import (
        as_json,
        as_text,
        compared_as_named,
        csv_text,
        wanted_complaints,
    )
    from launchwise.comparing.matching import Rule
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


def import_(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...", help="Results of Kernel Tuner, KTT, Triton; T4; CSV. One GPU each."
        ),
    ],
    name: Annotated[str, typer.Option("--as", metavar="NAME", help="Name of the workload.")],
    folder: Annotated[Path, typer.Option(help="Folder of workloads.")] = Path("kernels"),
    recorded: Annotated[Path, typer.Option(help="Folder of recorded GPUs.")] = Path(
        "data/recorded"
    ),
    space: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="T1 file: tunables, conditions, defaults, problem."),
    ] = None,
    columns: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="YAML file that says what columns of CSV files hold."),
    ] = None,
    device: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE=NAME", help="Device of a file that states none."),
    ] = None,
    gpu: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE=NAME", help="Name of the file's GPU in settings."),
    ] = None,
    problem: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Problem, instead of what files state."),
    ] = None,
    problem_names: Annotated[
        str,
        typer.Option(metavar="NAME,...", help="Names of the problem's parameters in the files."),
    ] = "",
    baseline: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Tunable of the default configuration."),
    ] = None,
    bytes_: Annotated[
        str | None,
        typer.Option("--bytes", metavar="EXPRESSION", help='Least bytes of a problem: "12 * n".'),
    ] = None,
    flop: Annotated[
        str | None, typer.Option(metavar="EXPRESSION", help="FLOP of a problem.")
    ] = None,
    title: Annotated[str, typer.Option(help="Title in the report.")] = "",
    source: Annotated[str, typer.Option(help="Where the files come from.")] = "",
    licence: Annotated[str, typer.Option(help="Licence of the files.")] = "",
    max_mb: Annotated[
        int, typer.Option(metavar="MB", min=1, help="Most megabytes of a file, unpacked.")
    ] = 128,
    as_json: AsJson = False,
) -> None:
    """Import sweeps measured elsewhere as a workload without a kernel.

    launchwise learns from it and recommends for it like for any other workload, but cannot measure
    it. Facts that the files lack must be given or stay empty. Repeat NAME=VALUE options as needed.
    """
    from launchwise.importing.command import as_facts, import_sweeps, told

    found = import_sweeps(
        files,
        name,
        folder=folder,
        recorded=recorded,
        space=space,
        columns=columns,
        devices=device or (),
        gpus=gpu or (),
        problem=problem or (),
        baseline=baseline or (),
        problem_names=problem_names,
        bytes_=bytes_,
        flop=flop,
        title=title,
        source=source,
        licence=licence,
        max_mb=max_mb,
    )
    if as_json:
        print(json.dumps(as_facts(found), indent=2))
    else:
        print("\n".join(told(found)))


def import_shipped(
    workload: Annotated[
        str, typer.Argument(help="Folder of a workload, or a workload of kernels/.")
    ],
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Configuration files of a library, of one device."),
    ],
    mapping: Annotated[
        Path,
        typer.Option(metavar="FILE", help="YAML file that says how files are named and filled."),
    ],
    variant: Annotated[
        str | None,
        typer.Option(help="Variant that stands for the library's kernel.", show_default="the one"),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Write over a usual.yaml that another hand wrote.")
    ] = False,
) -> None:
    """Make the configurations that a library ships the usual choices of a workload.

    Writes usual.yaml beside spec.yaml. What is measured, compared and recommended from then on is
    compared with them.
    """
    from launchwise.importing.shipped import import_shipped as imported
    from launchwise.workloads.spec import load_spec
    from launchwise.workloads.usual import USUAL_FILE

    folder = workload_folder(workload)
    found = imported(files, folder, load_spec(folder), mapping, variant, replace=replace)
    with_what = f", tuned with Triton {', '.join(found.versions)}" if found.versions else ""
    print(f"{folder / USUAL_FILE}: {len(found.rules)} choices for {found.device}{with_what}")


def export_sweep(
    sweep: Annotated[Path, typer.Argument(help="Parquet file of a sweep.")],
    output: Annotated[Path, typer.Argument(help="File to write.")],
    workload: Annotated[
        str, typer.Option(help="Folder of its workload, or a workload of kernels/.")
    ],
    format_: Annotated[
        Literal["kernel-tuner", "t4"], typer.Option("--format", help="Format of the file.")
    ] = "kernel-tuner",
    problem: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Problem to export, if the sweep has several."),
    ] = None,
) -> None:
    """Write the rows of a sweep in the format of another tuner, with every digit of its times."""
    from launchwise.importing.command import export_sweep as export

    export(sweep, workload_folder(workload), output, format_, problem or ())
    print(output)


def data(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="The archive launchwise-data-VERSION.zip: a file or a URL. Or a clone's folder.",
        ),
    ],
    folder: Annotated[
        Path, typer.Option(metavar="DIR", help="Project that gets the sweeps, as DIR/data/.")
    ] = Path("."),
    sha256: Annotated[
        str | None, typer.Option(metavar="HEX", help="Checksum that the archive must have.")
    ] = None,
) -> None:
    """Take in the recorded sweeps, which the wheel leaves out for their size.

    Every file is compared with its checksum in the archive. Files that are there already stay; a
    call that was interrupted goes on.
    """
    from launchwise.cli.project import take_in

    print(take_in(source, folder, sha256))


def new(
    folder: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="Folder of the workload; its name is the workload's."),
    ],
    source: Annotated[
        Path,
        typer.Option(
            "--from",
            metavar="FILE",
            help="The CUDA file; it is copied as it is. Or a .py file with functions of Triton, or "
            "one that calls cupy.RawKernel or cupy.RawModule: it is run, with stand-ins for both.",
        ),
    ],
    kernel: Annotated[
        str | None,
        typer.Option(metavar="NAME", show_default="the first", help="A kernel of the file."),
    ] = None,
) -> None:
    """Write DIR/spec.yaml for a kernel, from the names in its file.

    Every line that a person must decide ends with a question: # ? The value before it is valid, so
    that the file can be read at once.
    """
    from launchwise.cli.new.folder import begin

    for line in begin(folder, source, kernel):
        print(line)
