"""Merge the shards of a sweep."""

from pathlib import Path
from typing import TYPE_CHECKING

from launchwise.base.forking import run

if TYPE_CHECKING:
    from snakemake.script import snakemake


def main(folder: str, shards: list[str], output: str) -> None:
    """Write one table, sorted by key, of every row in ``shards``."""
    import pandas as pd

    from launchwise.measuring.rows import check_one_way
    from launchwise.tables.files import read_facts, read_table, write_table
    from launchwise.tables.schemas import measurement_schema
    from launchwise.workloads.spec import load_spec

    spec = load_spec(Path(folder))
    schema = measurement_schema(spec)
    tables = [read_table(path, schema) for path in shards]
    rows = pd.concat([table for table in tables if len(table)], ignore_index=True)
    rows = rows.sort_values(spec.key_columns, ignore_index=True)
    check_one_way(rows, output)
    write_table(output, rows, schema, {"shards": [read_facts(path) for path in shards]})


if __name__ == "__main__":
    run(
        main,
        snakemake,
        "tables",
        folder=snakemake.params.folder,
        shards=list(snakemake.input.shards),
        output=snakemake.output[0],
    )
