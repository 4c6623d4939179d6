"""Reading and writing the pipeline's tables.

Tables are Parquet files; :mod:`schemas` declares their columns. Each file carries its
kind, the version of its schema and the unit of each of its columns in its metadata;
:func:`read_table` checks all three and every value before it hands out a row.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pyarrow
import pyarrow.compute
import pyarrow.parquet

from launchwise.base import work
from launchwise.base.errors import UserError, unknown
from launchwise.base.parquet_limits import MOST_VALUES, insist_on_limits
from launchwise.base.storage import insist_on_regular, whole_file
from launchwise.tables.arrow_checks import TEXT, is_text, plain_texts, surely_fits
from launchwise.workloads.metrics import COUNTERS, OLDEST, SCHEMA_VERSION, SWEEP

METADATA_KEY = b"launchwise"
UNITS = {
    **{each.name: each.unit for each in (*SWEEP, *COUNTERS) if each.unit},
    **dict.fromkeys(("sweep_ms", "time_low_ms", "time_high_ms"), "ms"),
    **dict.fromkeys(("predicted_ms", "best_ms", "baseline_ms"), "ms"),
    "clocks_mhz": "MHz",
}

UPDATE = f"newest known is {SCHEMA_VERSION}: update launchwise"

# Notes of pandas in a damaged file name types that it does not know.
_UNREADABLE = (OSError, ValueError, pyarrow.ArrowException, KeyError, TypeError)

_TYPES: dict[str, Any] = {
    TEXT: pd.StringDtype("pyarrow", na_value=np.nan),
    "int64": np.dtype("int64"),
    "float64": np.dtype("float64"),
    "bool": np.dtype("bool"),
    "object": np.dtype("object"),
}
"""Type of a column as a schema names it to the type that pandas gives it."""


def write_table(
    path: str | Path,
    table: pd.DataFrame,
    schema: pa.DataFrameSchema,
    facts: Mapping[str, Any] | None = None,
) -> None:
    """Check ``table`` and write it atomically.

    Parameters
    ----------
    facts
        JSON-able provenance, stored in the file's metadata (see :func:`read_facts`).

    Raises
    ------
    UserError
        When the table does not fit its schema (a mistake of a stage, named with column and rows).
    """
    known = [name for name in schema.columns if name in table.columns]
    arrow = _arrow_if_fitting(table[known], schema)
    if arrow is None:
        checked = _checked(path, table[known], schema)
        arrow = pyarrow.Table.from_pandas(checked, preserve_index=False)
    note = {
        "kind": schema.name,
        "version": SCHEMA_VERSION,
        "units": {name: UNITS[name] for name in schema.columns if name in UNITS},
        "facts": dict(facts or {}),
    }
    text = json.dumps(note, sort_keys=True, allow_nan=False).encode()
    arrow = arrow.replace_schema_metadata({**(arrow.schema.metadata or {}), METADATA_KEY: text})
    with whole_file(path) as scratch:
        pyarrow.parquet.write_table(arrow, scratch, compression="zstd", write_page_checksum=True)


def table_of(rows: Sequence[Mapping[str, Any]], schema: pa.DataFrameSchema) -> pd.DataFrame:
    """Rows as a table with the columns and types of a schema, also where there is none."""
    types = {name: _TYPES[str(column.dtype)] for name, column in schema.columns.items()}
    return pd.DataFrame(rows, columns=list(types)).astype(types)


def _arrow_if_fitting(table: pd.DataFrame, schema: pa.DataFrameSchema) -> pyarrow.Table | None:
    """``table`` as Arrow holds it; None where it may not fit ``schema``."""
    if not _has_types(table, schema):
        return None
    try:
        arrow = pyarrow.Table.from_pandas(table, preserve_index=False)
    except pyarrow.ArrowException:
        return None
    return arrow if surely_fits(arrow, schema) else None


def _has_types(table: pd.DataFrame, schema: pa.DataFrameSchema) -> bool:
    """Whether columns have the types of ``schema`` as pandas names them."""
    return all(
        name in schema.columns and kind == _TYPES.get(str(schema.columns[name].dtype))
        for name, kind in table.dtypes.items()
    )


def read_table(
    path: str | Path,
    schema: pa.DataFrameSchema,
    columns: Collection[str] | None = None,
    only: Mapping[str, str] = MappingProxyType({}),
    most_values: int = MOST_VALUES,
) -> pd.DataFrame:
    """Read a table and check kind, units, columns and values.

    A tunable or a metric that is newer than the table has its neutral value in every row.

    Parameters
    ----------
    columns
        Columns that are returned; all where it is None. Every column is checked.
    only
        Column to the text that rows have in it which are returned. Every row is checked.
    most_values
        Most values that the file may hold.

    Raises
    ------
    UserError
        One line: the file, the column, what is wrong. A truncated file is one of these.
    """
    note = _note(path)
    _insist_on_limits(path, most_values)
    if note["kind"] != schema.name:
        raise UserError(path, "", f"holds {note['kind']}, not {schema.name}")
    units = note.get("units", {})
    for name in schema.columns:
        if name in UNITS and name in units and units[name] != UNITS[name]:
            raise UserError(path, name, f"is in {units[name]}, must be in {UNITS[name]}")
    table, has_own_codes = _read(path, schema)
    table = _with_newer_columns(path, table, note["version"], schema)
    found = None if has_own_codes else _if_fitting(table, schema, columns, only)
    if found is None:
        # What does not fit is found, and said, by pandera.
        whole = table if has_own_codes else plain_texts(table)
        try:
            found = whole.to_pandas()
        except _UNREADABLE as error:
            raise UserError(path, "", f"cannot be read (truncated?): {error}") from error
        found = _checked(path, found, schema)
        for name, text in only.items():
            found = found[found[name] == text].reset_index(drop=True)
        if columns is not None:
            found = found[[name for name in found if name in columns]]
    work.count(work.FILES_READ, 1)
    work.count(work.ROWS_READ, len(found))
    return found


def read_tables(
    gpus: Sequence[str],
    paths: Sequence[Path],
    schema: pa.DataFrameSchema,
    columns: Collection[str] | None = None,
) -> dict[str, pd.DataFrame]:
    """GPU to its table, of one file each (:func:`read_table`)."""
    return {gpu: read_table(path, schema, columns) for gpu, path in zip(gpus, paths, strict=True)}


def _read(path: str | Path, schema: pa.DataFrameSchema) -> tuple[pyarrow.Table, bool]:
    """A table with codes of the texts that are checked, and whether the file holds codes itself."""
    checked = {*(schema.unique or []), *(n for n, one in schema.columns.items() if one.checks)}
    try:
        stored = pyarrow.parquet.read_schema(path)
        has_own_codes = any(pyarrow.types.is_dictionary(kind) for kind in stored.types)
        texts = [one.name for one in stored if one.name in checked and is_text(one.type)]
        file = pyarrow.parquet.ParquetFile(
            path,
            read_dictionary=[] if has_own_codes else texts,
            page_checksum_verification=True,
        )
        return file.read(), has_own_codes
    except _UNREADABLE as error:
        raise UserError(path, "", f"cannot be read (truncated?): {error}") from error


def _if_fitting(
    table: pyarrow.Table,
    schema: pa.DataFrameSchema,
    columns: Collection[str] | None,
    only: Mapping[str, str],
) -> pd.DataFrame | None:
    """Result of :func:`read_table`; None where the table may not fit ``schema``."""
    try:
        if not surely_fits(table, schema):
            return None
        for name, text in only.items():
            table = table.filter(pyarrow.compute.equal(table[name], text))
        wanted = [name for name in table.column_names if columns is None or name in columns]
        found = plain_texts(table.select(wanted)).to_pandas()
    except _UNREADABLE:
        return None
    # Notes of pandas in the file may ask for other types, or for an index.
    return found if list(found) == wanted and _has_types(found, schema) else None


def _with_newer_columns(
    path: str | Path, table: pyarrow.Table, version: int, schema: pa.DataFrameSchema
) -> pyarrow.Table:
    """``table`` with the tunables and metrics that it lacks, at their neutral values.

    Raises
    ------
    UserError
        When a variant among its rows has such a tunable.
    """
    present = table.column_names
    known = {name: one.metadata or {} for name, one in schema.columns.items()}
    lacking = {name: meant for name, meant in known.items() if name not in present}
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
    """Kind of a table: the name of its schema, such as ``measurements``.

    Raises
    ------
    UserError
        When the file is missing, truncated, not ours, or of another version of the schemas.
    """
    return str(_note(path)["kind"])


def columns_of(path: str | Path) -> list[str]:
    """Columns of a table.

    Raises
    ------
    UserError
        When the file is missing, truncated or not ours.
    """
    _note(path)
    return list(pyarrow.parquet.read_schema(path).names)


def _insist_on_limits(path: str | Path, most_values: int) -> None:
    try:
        insist_on_limits(path, most_values)
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        raise UserError(path, "", f"cannot be read (truncated?): {error}") from error


def _note(path: str | Path) -> dict[str, Any]:
    insist_on_regular(path)
    try:
        metadata = pyarrow.parquet.read_schema(path).metadata or {}
    except FileNotFoundError as error:
        raise UserError(path, "", "is missing") from error
    except (OSError, ValueError, pyarrow.ArrowException) as error:
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


def _checked(path: str | Path, table: pd.DataFrame, schema: pa.DataFrameSchema) -> pd.DataFrame:
    demanded = (name for name, column in schema.columns.items() if column.required)
    missing = [name for name in demanded if name not in table.columns]
    if missing:
        raise UserError(path, missing[0], _missing_message(missing[0], list(table.columns)))
    if strange := [name for name in table.columns if name not in schema.columns]:
        raise UserError(path, strange[0], unknown("column", strange[0], schema.columns))
    if schema.unique:
        repeated = int(table.duplicated(list(schema.unique)).sum())
        if repeated:
            keys = ", ".join(schema.unique)
            raise UserError(path, "", f"{repeated} duplicated rows (rows with the same {keys})")
    try:
        return schema.validate(table)
    except pa.errors.SchemaError as error:
        raise UserError(path, *_first_problem(error, table)) from error


def _missing_message(column: str, present: list[str]) -> str:
    stem, _, unit = column.rpartition("_")
    twins = [name for name in present if stem and name.rpartition("_")[0] == stem]
    if column in UNITS and twins:
        return f"is missing; {twins[0]} is not in {unit}"
    return "is missing"


_DEMANDS = {
    "greater_than": "must be above {min_value}",
    "greater_than_or_equal_to": "must be at least {min_value}",
    "less_than_or_equal_to": "must be at most {max_value}",
    "equal_to": "must be {value!r}",
    "isin": "must be one of {allowed_values}",
}


def _kind(dtype: object) -> str:
    return "text" if "str" in str(dtype) else str(dtype)


def _first_problem(error: pa.errors.SchemaError, table: pd.DataFrame) -> tuple[str, str]:
    """Column and message of what pandera found first."""
    check, cases = error.check, error.failure_cases
    of_table = isinstance(error.schema, pa.DataFrameSchema)
    column = str(check.name if of_table else error.schema.name)
    if isinstance(check, pa.Check):
        demand = _DEMANDS.get(str(check.name), str(check.error)).format(**check.statistics or {})
    elif str(check) == "not_nullable":
        demand = "must not be empty"
    else:
        wanted, given = _kind(error.schema.dtype), _kind(table[column].dtype)
        return column, f"must be of type {wanted}, not {given}"
    # pandera may drop the index of a single failing row: then it is not known.
    rows = sorted(set(cases["index"].dropna())) if isinstance(cases, pd.DataFrame) else []
    if not rows:
        return column, demand
    example = "" if column == "times_ms" else f" ({table[column].loc[rows[0]]})"
    count = "1 row" if len(rows) == 1 else f"{len(rows)} rows"
    return column, f"{demand}; violated in {count}, first in row {rows[0]}{example}"
