"""Merges the tables of a sweep's shards, and the recorded rows that it extends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from launchwise.measuring.extension import extended, read_extension
from launchwise.measuring.rows import check_one_way
from launchwise.tables.files import read_facts, read_table, write_table
from launchwise.tables.measurements import measurement_schema
from launchwise.workloads.spec import load_spec


def gather(
    folder: Path,
    shards: Sequence[str | Path],
    extends: Mapping[str, Any] | None,
    method: dict[str, Any],
    output: str | Path,
) -> None:
    """Write one table, sorted by key, of every row in ``shards``.

    Parameters
    ----------
    folder
        The workload's folder.
    extends
        Recorded sweep (``path``) whose rows stay, except those measured ``anew``.
    method
        How the rows in ``shards`` were measured.

    Raises
    ------
    UserError
        When a table cannot be read, or rows differ in driver, toolkit or back-end.
    """
    spec = load_spec(folder)
    schema = measurement_schema(spec)
    tables = [read_table(path, schema) for path in shards]
    facts = [read_facts(path) for path in shards]
    states = {commit: state for each in facts for commit, state in each.pop("states", {}).items()}
    found: dict[str, Any] = {"shards": facts, "states": states}
    rows = [table for table in tables if len(table)]
    if extends is not None:
        extension = read_extension(Path(extends["path"]), folder, spec, extends["anew"])
        new = pd.concat(rows, ignore_index=True) if rows else tables[0]
        merged, found = extended(extension, new, found, method)
    else:
        merged = pd.concat(rows, ignore_index=True).sort_values(spec.key_columns, ignore_index=True)
    check_one_way(merged, output)
    write_table(output, merged, schema, found)
