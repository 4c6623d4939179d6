"""Keep the counters of a live GPU beside its recorded sweeps."""

from pathlib import Path
from typing import TYPE_CHECKING

from launchwise.base.scripting import running
from launchwise.tables.files import read_facts, read_table, write_table
from launchwise.tables.measurements import counters_schema
from launchwise.workloads.spec import load_spec

if TYPE_CHECKING:
    from snakemake.script import snakemake


def main(folder: Path, counters: str, output: str) -> None:
    """Check the table and write it."""
    schema = counters_schema(load_spec(folder))
    write_table(output, read_table(counters, schema), schema, read_facts(counters))


if __name__ == "__main__":
    with running(snakemake):
        main(Path(snakemake.params.folder), snakemake.input.counters, snakemake.output[0])
