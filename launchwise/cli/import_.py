"""``launchwise import``: sweeps that others measured."""

from __future__ import annotations

from pathlib import Path

from launchwise.importing.command import import_sweeps, told


def import_(
    files: list[Path],
    name: str,
    folder: Path = Path("kernels"),
    recorded: Path = Path("data/recorded"),
    space: Path | None = None,
    columns: Path | None = None,
    device: list[str] | None = None,
    gpu: list[str] | None = None,
    problem: list[str] | None = None,
    baseline: list[str] | None = None,
    bytes_: str | None = None,
    flop: str | None = None,
    title: str = "",
    source: str = "",
    licence: str = "",
) -> None:
    """Make a workload without a kernel of sweeps that others measured.

    Parameters
    ----------
    files
        Kernel Tuner caches, T4, KTT's JSON or CSV, plain or gzip; one GPU each.
    name
        Name of the workload (`--as`).
    folder
        Folder of workloads.
    recorded
        Folder of recorded GPUs.
    space
        T1 file with tunables, conditions, defaults and problem.
    columns
        YAML file that says what the columns of CSV files hold.
    device
        FILE=NAME: the device of a file that states none.
    gpu
        FILE=NAME: name of the GPU in settings.
    problem
        NAME=VALUE: the problem, instead of what files state.
    baseline
        NAME=VALUE: a tunable of the default configuration.
    bytes_
        Least bytes of a problem, an expression such as "12 * n" (`--bytes`).
    flop
        FLOP of a problem, an expression.
    title
        Title in the report.
    source
        Where the files come from.
    licence
        Licence of the files.
    """
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
        bytes_=bytes_,
        flop=flop,
        title=title,
        source=source,
        licence=licence,
    )
    for line in told(found):
        print(line)
