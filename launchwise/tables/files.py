"""Reading and writing the pipeline's tables.

Tables are Parquet files; :mod:`schemas` declares their columns. Each file carries its
kind, the version of its schema and the unit of each of its columns in its metadata;
:func:`read_table` checks all three and every value before it hands out a row.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow
import pyarrow.parquet

from launchwise.base import work
from launchwise.base.arrays import MOST_VALUES, read_parquet
from launchwise.base.errors import UserError
from launchwise.base.storage import insist_on_regular, whole_file
from launchwise.tables.schema import UNITS, Schema
from launchwise.workloads.metrics import OLDEST, SCHEMA_VERSION

METADATA_KEY = b"launchwise"

UPDATE = f"newest known is {SCHEMA_VERSION}: update launchwise"

_UNREADABLE = (OSError, ValueError, pyarrow.ArrowException)


def write_table(
    path: str | Path,
    table: pd.DataFrame,
    schema: Schema,
    facts: Mapping[str, Any] | None = None,
    distinct: Sequence[str] = (),
) -> None:
    """Check ``table`` and write it atomically.

    ``facts``: JSON-able provenance, stored in the file's metadata (see :func:`read_facts`).
    ``distinct``: real columns of which values hardly repeat: stored by bytes, they take a third
        less.
    Raises UserError when the table does not fit its schema (a mistake of a stage, named with column
    and rows).
    """
    known = [name for name in schema.columns if name in table.columns]
    if list(table.columns) != known:
        table = table[known]
    schema.insist(path, table)
    arrow = pyarrow.Table.from_pandas(table, preserve_index=False)
    note = {
        "kind": schema.name,
        "version": SCHEMA_VERSION,
        "units": {name: UNITS[name] for name in schema.columns if name in UNITS},
        "facts": dict(facts or {}),
    }
    text = json.dumps(note, sort_keys=True, allow_nan=False).encode()
    arrow = arrow.replace_schema_metadata({**(arrow.schema.metadata or {}), METADATA_KEY: text})
    others = [name for name in arrow.schema.names if name not in distinct] if distinct else True
    how = {"use_dictionary": others, "use_byte_stream_split": list(distinct)}
    with whole_file(path) as scratch:
        pyarrow.parquet.write_table(
            arrow, scratch, compression="zstd", write_page_checksum=True, **how
        )


def table_of(rows: Sequence[Mapping[str, Any]], schema: Schema) -> pd.DataFrame:
    """Rows as a table with the columns and types of a schema, also where there is none."""
    types = {name: column.kind for name, column in schema.columns.items()}
    return pd.DataFrame(rows, columns=list(types)).astype(types)


def read_table(
    path: str | Path,
    schema: Schema,
    columns: Collection[str] | None = None,
    most_values: int = MOST_VALUES,
) -> pd.DataFrame:
    """Read a table and check kind, units, columns and values.

    A tunable or a metric that is newer than the table has its neutral value in every row.

    ``columns``: columns that are returned; all where it is None. Every column is checked.
    ``most_values``: most values that the file may hold.
    Raises UserError, one line: the file, the column, what is wrong. A truncated file is one of
    these.
    """
    note = _note(path)
    if note["kind"] != schema.name:
        raise UserError(path, "", f"holds {note['kind']}, not {schema.name}")
    units = note.get("units", {})
    for name in schema.columns:
        if name in UNITS and name in units and units[name] != UNITS[name]:
            raise UserError(path, name, f"is in {units[name]}, must be in {UNITS[name]}")
    found = _read(path, schema, note["version"], most_values)
    schema.insist(path, found)
    if columns is not None:
        found = found[[name for name in found if name in columns]]
    work.count(work.FILES_READ, 1)
    work.count(work.ROWS_READ, len(found))
    coded = [str(name) for name, kind in found.dtypes.items() if kind == "category"]
    return found.assign(**{name: _plain(found[name]) for name in coded})


def read_tables(
    gpus: Sequence[str], paths: Sequence[Path], schema: Schema
) -> dict[str, pd.DataFrame]:
    """GPU to its table, of one file each (:func:`read_table`)."""
    return {gpu: read_table(path, schema) for gpu, path in zip(gpus, paths, strict=True)}


def _plain(values: pd.Series) -> pd.Series:
    """Categories as texts: fifty times as fast as pandas."""
    texts = pyarrow.array(values).cast(pyarrow.large_string())
    return pd.Series(texts.to_pandas().array, index=values.index)


def _read(path: str | Path, schema: Schema, version: int, most_values: int) -> pd.DataFrame:
    """A table that is not checked yet; texts are categories, which are checked much faster."""
    try:
        table = read_parquet(path, most_values=most_values)
        # Notes of pandas in a foreign file may name other types, or an index.
        return _with_newer_columns(path, table, version, schema).to_pandas(ignore_metadata=True)
    except _UNREADABLE as error:
        raise UserError(path, "", f"cannot be read (truncated?): {error}") from error


def _with_newer_columns(
    path: str | Path, table: pyarrow.Table, version: int, schema: Schema
) -> pyarrow.Table:
    """``table`` with the tunables and metrics that it lacks, at their neutral values. Raises
    UserError when a variant among its rows has such a tunable."""
    present = table.column_names
    lacking = {name: one.older for name, one in schema.columns.items() if name not in present}
    newer = {name: meant for name, meant in lacking.items() if meant.get("since", 0) > version}
    if "variant" in present:
        there = set(table["variant"].unique().to_pylist())
        tunables = {name: meant for name, meant in lacking.items() if "variants" in meant}
        for name, meant in tunables.items():
            if having := sorted(there & set(meant["variants"])):
                message = f"is missing, but {having[0]} has this tunable: its rows must be measured"
                raise UserError(path, name, f"{message} anew")
        newer |= tunables
    for name, meant in newer.items():
        table = table.append_column(name, pyarrow.repeat(meant["neutral"], len(table)))
    if not newer:
        return table
    order = [name for name in schema.columns if name in table.column_names]
    return table.select([*order, *(name for name in present if name not in schema.columns)])


def read_facts(path: str | Path) -> dict[str, Any]:
    """Provenance in a table's metadata."""
    return dict(_note(path)["facts"])


def kind_of(path: str | Path) -> str:
    """Kind of a table: the name of its schema, such as ``measurements``. Raises UserError when the
    file is missing, truncated, not ours, or of another version of the schemas."""
    return str(_note(path)["kind"])


def columns_of(path: str | Path) -> list[str]:
    """Columns of a table. Raises UserError when the file is missing, truncated or not ours."""
    _note(path)
    return list(pyarrow.parquet.read_schema(path).names)


def _note(path: str | Path) -> dict[str, Any]:
    insist_on_regular(path)
    try:
        metadata = pyarrow.parquet.read_schema(path).metadata or {}
    except FileNotFoundError as error:
        raise UserError(path, "", "is missing") from error
    except _UNREADABLE as error:
        message = f"is not a complete Parquet file (truncated?): {error}"
        raise UserError(path, "", message) from error
    if METADATA_KEY not in metadata:
        raise UserError(path, "", "was not written by launchwise: its metadata is missing")
    try:
        note: dict[str, Any] = json.loads(metadata[METADATA_KEY])
        dict(note["facts"]), dict(note.get("units", {})), hash(note["kind"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UserError(path, "", "its metadata was not written by launchwise") from error
    version = note.get("version")
    if version not in range(OLDEST, SCHEMA_VERSION + 1):
        old = isinstance(version, int) and version < OLDEST
        hint = f"oldest read is {OLDEST}: measure or import anew" if old else UPDATE
        raise UserError(path, "", f"has schema version {version}, {hint}")
    return note
