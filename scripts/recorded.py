"""Check every row of a recorded sweep and copy it."""

import shutil
from pathlib import Path

from launchwise.base.forking import run


def main(folder: Path, gpu: str, sweep: Path, output: Path) -> None:
    """Check ``sweep`` and copy it.

    Raises
    ------
    UserError
        When it does not fit its schema, speaks of another GPU, or mixes drivers or toolkits.
    """
    from launchwise.base.errors import UserError
    from launchwise.base.storage import whole_file
    from launchwise.measuring.rows import check_one_way
    from launchwise.tables.files import columns_of, read_facts, read_table, write_table
    from launchwise.tables.measurements import measurement_schema
    from launchwise.workloads.spec import load_spec

    spec = load_spec(folder)
    schema = measurement_schema(spec)
    table = read_table(sweep, schema)
    if names := sorted(set(table["gpu"]) - {gpu}):
        raise UserError(sweep, "gpu", f"is {names[0]!r}, not {gpu!r}")
    check_one_way(table, sweep)
    if not set(spec.tunables) <= {*columns_of(sweep)}:
        write_table(output, table, schema, read_facts(sweep))
        return
    with whole_file(output) as scratch:
        shutil.copyfile(sweep, scratch)


if __name__ == "__main__":
    run(main, "tables")
