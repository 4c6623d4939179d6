"""Work of ``launchwise export``: run Snakemake, copy the export."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from launchwise.base.errors import UserError
from launchwise.base.storage import read_json, whole_file
from launchwise.cli.options import settings_files
from launchwise.cli.running import run_snakemake, snakemake_line
from launchwise.cli.studies import read_experiment, study_named
from launchwise.exporting.files import FORMATS, write_config_files
from launchwise.exporting.triton import write_triton
from launchwise.workloads.usual import read_config_files

COMMAND = "export"
EXPORT = Path("results", "export")


TRITON, CONFIG_FILES = "triton", "config-files"
"""Formats that are made of the JSON file when they are asked for."""


def exported(
    study: str,
    format_: str,
    output: Path | None,
    cores: int,
    files: Sequence[Path],
    mapping: Path | None = None,
) -> Path:
    """Make the export of a study up to date and copy the file of one format, or make it.

    ``mapping``: file that says how configuration files are named and what they hold.
    Returns the copy. Raises UserError when there is no such study, or the format needs what is not
    there. Raises SystemExit with Snakemake's exit code when it fails; it has said why.
    """
    experiment = read_experiment(settings_files(files), Path.cwd())
    asked = study_named(study, experiment, COMMAND)
    if (mapping is None) == (format_ == CONFIG_FILES):
        message = f"says how {CONFIG_FILES} are named: the format needs it, and no other takes it"
        raise UserError(COMMAND, "--mapping", message)
    spec = experiment.specs[asked.workload]
    known = read_config_files(mapping, spec) if mapping is not None else None
    run_snakemake(snakemake_line([f"export_{study}"], cores, files=files))
    if format_ in (TRITON, CONFIG_FILES):
        table = read_json(EXPORT / study / FORMATS["json"].format(study=study))
        target = output or Path(f"{study}.{format_}")
        if known is None or mapping is None:
            write_triton(target, table, spec)
        else:
            write_config_files(target, table, spec, known, mapping)
        return target
    made = EXPORT / study / FORMATS[format_].format(study=study)
    target = output or Path(f"{study}.{format_}" if made.is_dir() else made.name)
    if made.is_dir():
        shutil.copytree(made, target, dirs_exist_ok=True, copy_function=copied)
    else:
        copied(made, target)
    return target


def copied(made: str | Path, target: str | Path) -> None:
    """Copy a file; a link in its place is replaced."""
    with whole_file(target) as scratch:
        shutil.copyfile(made, scratch)
