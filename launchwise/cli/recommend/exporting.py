"""Work of ``launchwise export``: run Snakemake, copy the export."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from launchwise.base.errors import UserError
from launchwise.base.places import shipped
from launchwise.base.storage import whole_file
from launchwise.cli.predict.answering import read_experiment
from launchwise.cli.running import run_snakemake
from launchwise.cli.settings import settings_files
from launchwise.experiment.unknown_study import unknown_study
from launchwise.exporting.files import FORMATS

COMMAND = "export"
EXPORT = Path("results", "export")


def exported(
    study: str, format_: str, output: Path | None, cores: int, files: Sequence[Path]
) -> Path:
    """Make the export of a study up to date and copy the file of one format.

    Returns
    -------
    pathlib.Path
        The copy.

    Raises
    ------
    UserError
        When there is no such study.
    SystemExit
        With Snakemake's exit code when it fails; it has said why.
    """
    experiment = read_experiment(settings_files(files), Path.cwd())
    if study not in experiment.studies:
        raise UserError(COMMAND, "", unknown_study(study, experiment))
    run_snakemake(line_to_run(study, cores, files))
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


def line_to_run(study: str, cores: int, files: Sequence[Path]) -> list[str]:
    """Snakemake's words for the export of a study."""
    settings = ["--configfile", *map(str, files)] if files else []
    options = ["--cores", str(cores), "--quiet", "rules", "progress", "host", *settings]
    snakefile = str(shipped("Snakefile"))
    return ["snakemake", "--snakefile", snakefile, *options, "--", f"export_{study}"]
