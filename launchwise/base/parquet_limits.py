"""Limits of Parquet files, kept before a column is unpacked.

A text that a dictionary holds once, or a number that repeats, takes a few bytes for millions of
rows: a small file may fill any memory.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow
import pyarrow.compute
import pyarrow.parquet

from launchwise.base.errors import UserError
from launchwise.base.storage import insist_on_regular

MOST_VALUES = 200_000_000  # Most values of all columns together
MOST_BYTES = 2 << 30  # Most bytes, unpacked; also of all texts of a column


def insist_on_limits(path: str | Path, most_values: int = MOST_VALUES) -> None:
    """Insist that a Parquet file unpacks to no more than the limits; what a stage makes of many
    files may hold more values. Raises UserError with the limit that it leaves, or when it is no
    regular file. Raises OSError, ValueError, pyarrow.ArrowException when it is no complete Parquet
    file."""
    insist_on_regular(path)
    with pyarrow.parquet.ParquetFile(path) as file:
        groups = [file.metadata.row_group(n) for n in range(file.metadata.num_row_groups)]
        chunks = [one.column(place) for one in groups for place in range(one.num_columns)]
        values = sum(chunk.num_values for chunk in chunks)
        if max(values, file.metadata.num_rows) > most_values:
            raise UserError(path, "", f"holds more than {most_values:,} values")
        if sum(chunk.total_uncompressed_size for chunk in chunks) > MOST_BYTES:
            raise UserError(path, "", f"unpacks to more than {MOST_BYTES >> 30} GiB")
        texts = [field.name for field in file.schema_arrow if _is_text(field.type)]
    if not texts:
        return
    with pyarrow.parquet.ParquetFile(
        path, read_dictionary=texts, page_checksum_verification=True
    ) as file:
        # As codes: no more than `most_values` of four bytes.
        for name, column in zip(texts, file.read(columns=texts).columns, strict=True):
            if _bytes_of_texts(column) > MOST_BYTES:
                raise UserError(path, name, f"unpacks to more than {MOST_BYTES >> 30} GiB")


def _is_text(kind: pyarrow.DataType) -> bool:
    if pyarrow.types.is_dictionary(kind):
        kind = kind.value_type
    return any(
        test(kind)
        for test in (
            *(pyarrow.types.is_string, pyarrow.types.is_large_string),
            *(pyarrow.types.is_binary, pyarrow.types.is_large_binary),
        )
    )


def _bytes_of_texts(column: pyarrow.ChunkedArray) -> int:
    """Bytes of all texts of a column, each counted as often as it occurs."""
    total = 0
    for chunk in column.chunks:
        if pyarrow.types.is_dictionary(chunk.type):
            lengths = pyarrow.compute.binary_length(chunk.dictionary)
            of_rows = lengths.take(chunk.indices)
        else:
            of_rows = pyarrow.compute.binary_length(chunk)
        total += pyarrow.compute.sum(of_rows.cast(pyarrow.int64())).as_py() or 0
    return total
