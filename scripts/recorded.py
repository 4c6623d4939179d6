"""Check every row of a recorded sweep and copy it."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from launchwise.base.errors import UserError
from launchwise.base.scripting import running
from launchwise.base.storage import whole_file
from launchwise.measuring.rows import check_one_way
from launchwise.tables.files import read_table
from launchwise.tables.schemas import measurement_schema
from launchwise.workloads.spec import load_spec

if TYPE_CHECKING:
    from snakemake.script import snakemake


def main(folder: Path, gpu: str, sweep: str, output: str) -> None:
    """Check ``sweep`` and copy it.

    Raises
    ------
    UserError
        When it does not fit its schema, speaks of another GPU, or mixes drivers or toolkits.
    """
    table = read_table(sweep, measurement_schema(load_spec(folder)))
    if names := sorted(set(table["gpu"]) - {gpu}):
        raise UserError(sweep, "gpu", f"is {names[0]!r}, not {gpu!r}")
    check_one_way(table, sweep)
    with whole_file(output) as scratch:
        shutil.copyfile(sweep, scratch)


if __name__ == "__main__":
    with running(snakemake):
        main(
            Path(snakemake.params.folder),
            snakemake.wildcards.gpu,
            snakemake.input.sweep,
            snakemake.output[0],
        )
