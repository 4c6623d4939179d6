"""Keep the counters of a live GPU beside its recorded sweeps."""

from pathlib import Path

from launchwise.base.scripting import run
from launchwise.tables.files import read_facts, read_table, write_table
from launchwise.tables.measurements import counters_schema
from launchwise.workloads.spec import load_spec


def main(folder: Path, counters: Path, output: Path) -> None:
    """Check the table and write it."""
    schema = counters_schema(load_spec(folder))
    write_table(output, read_table(counters, schema), schema, read_facts(counters))


if __name__ == "__main__":
    run(main)
