"""Arguments and options of ``launchwise import``, ``import-shipped`` and ``export-sweep``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Format(StrEnum):
    """Format of an exported sweep."""

    kernel_tuner = "kernel-tuner"
    t4 = "t4"


def import_(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Results of Kernel Tuner, KTT, Triton; T4; CSV. One GPU each.",
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
        int,
        typer.Option(metavar="MB", min=1, help="Most megabytes of a file, unpacked."),
    ] = 128,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was made as JSON.")] = False,
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
        import json

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
        bool,
        typer.Option("--replace", help="Write over a usual.yaml that another hand wrote."),
    ] = False,
) -> None:
    """Make the configurations that a library ships the usual choices of a workload.

    Writes usual.yaml beside spec.yaml. What is measured, compared and recommended from then on is
    compared with them.
    """
    from launchwise.cli.options import workload_folder
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
        Format, typer.Option("--format", help="Format of the file.")
    ] = Format.kernel_tuner,
    problem: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Problem to export, if the sweep has several."),
    ] = None,
) -> None:
    """Write the rows of a sweep in the format of another tuner, with every digit of its times."""
    from launchwise.cli.options import workload_folder
    from launchwise.importing.command import export_sweep as export

    export(sweep, workload_folder(workload), output, format_.value, problem or ())
    print(output)
