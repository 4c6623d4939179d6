"""Reads the feasible configurations of a workload whose constraints do not tell them."""

from __future__ import annotations

from pathlib import Path

from launchwise.base.errors import UserError, unknown
from launchwise.workloads.parts import Value
from launchwise.workloads.spec_fields import SpecFields


def read_feasible(path: Path, spec: SpecFields) -> dict[tuple[Value, ...], None]:
    """Values of each configuration in a Parquet file.

    Raises
    ------
    UserError
        When the file cannot be read, lacks a column, or holds a value that the spec does not list.
    """
    # Only some workloads list their configurations: loading it takes a fifth of a second.
    from pyarrow import ArrowException, parquet

    from launchwise.base.parquet_limits import insist_on_limits

    try:
        insist_on_limits(path)
        table = parquet.read_table(path, columns=spec.tunable_columns)
    except FileNotFoundError as error:
        raise UserError(path, "", "is missing") from error
    except (OSError, ValueError, KeyError, ArrowException) as error:
        raise UserError(path, "", f"cannot be read: {error}") from error
    if lacking := [name for name in spec.tunable_columns if name not in table.column_names]:
        raise UserError(path, lacking[0], "is missing")
    columns = [table[name].to_pylist() for name in spec.tunable_columns]
    for name, values in zip(spec.tunable_columns, columns, strict=True):
        if strange := sorted(set(values) - set(spec.values_of(name)), key=str):
            raise UserError(path, name, unknown("value", strange[0], spec.values_of(name)))
    return dict.fromkeys(zip(*columns, strict=True))
