"""Every table of the pipeline: its columns, types and units, declared once.

Tables are Parquet files. Each file carries its kind, the version of its schema and the unit of each
of its columns in its metadata; :func:`read_table` checks all three and every value before it hands
out a row.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pyarrow
import pyarrow.parquet

from launchwise.errors import UserError, unknown
from launchwise.spec import Spec, Value
from launchwise.storage import whole_file

SCHEMA_VERSION = 1
METADATA_KEY = b"launchwise"

MEASURED = ("ok", "slow")
"""Statuses of rows whose ``time_ms`` can be believed; ``slow`` rows were launched once only."""

STATUSES = (*MEASURED, "wrong", "failed", "timeout", "out_of_memory")
UNITS = {
    "time_ms": "ms",
    "times_ms": "ms",
    "first_ms": "ms",
    "relative_error": "1",
    "max_error": "1",
    "tolerance": "1",
    "spill_bytes": "B",
    "shared_bytes": "B",
    "predicted_ms": "ms",
    "best_ms": "ms",
    "baseline_ms": "ms",
}


def _text(**options: Any) -> pa.Column:
    return pa.Column(str, **options)


def _real(*checks: pa.Check, nullable: bool = False) -> pa.Column:
    # NaN says that there is no value; infinity says nothing.
    finite = pa.Check(lambda column: ~np.isinf(column), error="must be finite")
    return pa.Column(float, checks=[*checks, finite], nullable=nullable)


def _are_times(row: Any) -> bool:
    times = np.asarray(row, dtype=float)
    return times.ndim == 1 and bool(np.all(np.isfinite(times) & (times > 0)))


_EVERY_TIME = pa.Check(
    lambda column: column.map(_are_times), error="must hold positive, finite numbers"
)


def _whole(minimum: int = 0) -> pa.Column:
    return pa.Column("int64", checks=pa.Check.ge(minimum))


def _value_column(values: list[Value]) -> pa.Column:
    kind: Any = str if any(isinstance(value, str) for value in values) else "int64"
    return pa.Column(kind, checks=pa.Check.isin(values))


def problem_schema(spec: Spec) -> dict[str, pa.Column]:
    """Columns that name a problem of ``spec``."""
    columns = {}
    for name, parameter in spec.problem.items():
        if parameter.values is not None:
            columns[name] = _value_column(parameter.values)
        else:
            checks = [
                pa.Check.ge(parameter.minimum) if parameter.minimum is not None else None,
                pa.Check.le(parameter.maximum) if parameter.maximum is not None else None,
            ]
            columns[name] = pa.Column("int64", checks=[check for check in checks if check])
    return columns


def configuration_schema(spec: Spec) -> dict[str, pa.Column]:
    """Columns that name a configuration of ``spec``."""
    tunables = {
        name: _value_column([tunable.neutral, *tunable.values])
        for name, tunable in spec.tunables.items()
    }
    return {"variant": _value_column(list(spec.variants)), **tunables}


def measurement_schema(spec: Spec) -> pa.DataFrameSchema:
    """Schema of a sweep: one row a (GPU, problem, configuration).

    ``time_ms`` is the median of ``times_ms`` (the first launch is never in it, except in a ``slow``
    row, which has only that one); ``relative_error`` the relative standard error of that median;
    ``max_error`` the largest deviation from the float64 reference, ``tolerance`` what is allowed.
    """
    positive = pa.Check.gt(0)
    measured = pa.Check(
        lambda table: table["time_ms"].notna() == table["status"].isin(MEASURED),
        name="time_ms",
        error="must be given exactly where status is ok or slow",
    )
    repeats = pa.Check(
        lambda table: table["times_ms"].map(len) == table["repeats"],
        name="repeats",
        error="must be the number of times_ms",
    )
    return pa.DataFrameSchema(
        {
            "gpu": _text(),
            "workload": _text(checks=pa.Check.eq(spec.workload)),
            **problem_schema(spec),
            **configuration_schema(spec),
            "status": _text(checks=pa.Check.isin(STATUSES)),
            "reason": _text(),
            "time_ms": _real(positive, nullable=True),
            "times_ms": pa.Column(object, checks=_EVERY_TIME),
            "repeats": _whole(),
            "relative_error": _real(pa.Check.ge(0), nullable=True),
            "first_ms": _real(positive, nullable=True),
            "l2": _text(checks=pa.Check.isin(["", "cold", "warm"])),
            "max_error": _real(pa.Check.ge(0), nullable=True),
            "tolerance": _real(positive, nullable=True),
            "registers": _whole(),
            "spill_bytes": _whole(),
            "shared_bytes": _whole(),
            "card": _text(),
            "driver": _text(),
            "toolkit": _text(),
            "backend": _text(),
            "commit": _text(),
            "seed": _whole(),
            "measured_at": _text(),
        },
        checks=[measured, repeats],
        unique=spec.key_columns,
        strict=True,
        name="measurements",
    )


def removed_schema(spec: Spec) -> pa.DataFrameSchema:
    """Schema of what the fences removed: keys, time, the fences (ms) and the scope they had."""
    return pa.DataFrameSchema(
        {
            "split": _text(),
            "fold": _text(),
            "scope": _text(checks=pa.Check.isin(["problem", "global"])),
            "gpu": _text(),
            **problem_schema(spec),
            **configuration_schema(spec),
            "time_ms": _real(pa.Check.gt(0)),
            "lower_ms": _real(),
            "upper_ms": _real(),
        },
        strict=True,
        name="removed",
    )


def training_schema(spec: Spec) -> pa.DataFrameSchema:
    """Schema of what models learn from: measured training rows inside the fences."""
    return pa.DataFrameSchema(
        {
            "split": _text(),
            "fold": _text(),
            "gpu": _text(),
            **problem_schema(spec),
            **configuration_schema(spec),
            "time_ms": _real(pa.Check.gt(0)),
        },
        unique=["split", "fold", *spec.key_columns],
        strict=True,
        name="training",
    )


def recommendation_schema(spec: Spec) -> pa.DataFrameSchema:
    """Schema of recommendations: candidates of every test problem, rank 1 is what to use.

    Models that predict times rank every candidate; others may stop after the first.
    """
    return pa.DataFrameSchema(
        {
            "study": _text(),
            "model": _text(),
            "split": _text(),
            "fold": _text(),
            "gpu": _text(),
            **problem_schema(spec),
            "rank": _whole(1),
            **configuration_schema(spec),
            "predicted_ms": _real(pa.Check.gt(0), nullable=True),
        },
        unique=["model", "split", "fold", "gpu", *spec.problem_columns, "rank"],
        strict=True,
        name="recommendations",
    )


def evaluation_schema(spec: Spec) -> pa.DataFrameSchema:
    """Schema of the evaluation: one row a (model, split, fold, GPU, test problem).

    ``time_ms`` is the measured time of the recommended configuration (an expectation for random
    draws); ``improvement`` is baseline over it, ``fraction`` is best over it. A recommendation that
    no sweep measured has no time; ``status`` says why.
    """
    return pa.DataFrameSchema(
        {
            "study": _text(),
            "model": _text(),
            "role": _text(checks=pa.Check.isin(["model", "baseline", "oracle"])),
            "split": _text(),
            "fold": _text(),
            "gpu": _text(),
            **problem_schema(spec),
            **configuration_schema(spec),
            "status": _text(),
            "predicted_ms": _real(pa.Check.gt(0), nullable=True),
            "time_ms": _real(pa.Check.gt(0), nullable=True),
            "baseline_ms": _real(pa.Check.gt(0), nullable=True),
            "best_ms": _real(pa.Check.gt(0)),
            "improvement": _real(nullable=True),
            "fraction": _real(nullable=True),
            "improved_runs": _real(pa.Check.ge(0), nullable=True),
            "spearman": _real(nullable=True),
            "absolute_percentage_error": _real(nullable=True),
        },
        unique=["model", "split", "fold", "gpu", *spec.problem_columns],
        strict=True,
        name="evaluation",
    )


def write_table(
    path: str | Path,
    table: pd.DataFrame,
    schema: pa.DataFrameSchema,
    facts: Mapping[str, Any] | None = None,
) -> None:
    """Check ``table`` and write it, whole or not at all.

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
        pyarrow.parquet.write_table(arrow, scratch, compression="zstd")


def read_table(path: str | Path, schema: pa.DataFrameSchema) -> pd.DataFrame:
    """Read a table and check kind, units, columns and values.

    Raises
    ------
    UserError
        One line: the file, the column, what is wrong. A truncated file is one of these.
    """
    note = _note(path)
    if note["kind"] != schema.name:
        raise UserError(path, "", f"holds {note['kind']}, not {schema.name}")
    units = note.get("units", {})
    for name in schema.columns:
        if name in UNITS and name in units and units[name] != UNITS[name]:
            raise UserError(path, name, f"is in {units[name]}, must be in {UNITS[name]}")
    try:
        table = pd.read_parquet(path)
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        raise UserError(path, "", f"cannot be read (truncated?): {error}") from error
    return _checked(path, table, schema)


def read_facts(path: str | Path) -> dict[str, Any]:
    """Provenance in a table's metadata."""
    return dict(_note(path)["facts"])


def _note(path: str | Path) -> dict[str, Any]:
    try:
        metadata = pyarrow.parquet.read_schema(path).metadata or {}
    except FileNotFoundError as error:
        raise UserError(path, "", "is missing") from error
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        raise UserError(path, "", f"is no whole Parquet file (truncated?): {error}") from error
    if METADATA_KEY not in metadata:
        raise UserError(path, "", "was not written by launchwise: its metadata is missing")
    try:
        note: dict[str, Any] = json.loads(metadata[METADATA_KEY])
        note["kind"], note["facts"]
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(path, "", "its metadata was not written by launchwise") from error
    if note.get("version") != SCHEMA_VERSION:
        message = f"has schema version {note.get('version')}, not {SCHEMA_VERSION}"
        raise UserError(path, "", message)
    return note


def _checked(path: str | Path, table: pd.DataFrame, schema: pa.DataFrameSchema) -> pd.DataFrame:
    missing = [name for name in schema.columns if name not in table.columns]
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
    count = "1 row is" if len(rows) == 1 else f"{len(rows)} rows are"
    return column, f"{demand}; {count} not so, the first is row {rows[0]}{example}"
