"""Arrays: types of their elements (NumPy's names, bfloat16, structs), and files of numbers.

Files are read with no objects and no more than they really hold. Of Parquet, limits are kept before
a column is unpacked: a text that a dictionary holds once, or a number that repeats, takes a few
bytes for millions of rows, and a small file may fill any memory.
"""

from __future__ import annotations

import io
import math
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from launchwise.base.errors import UserError
from launchwise.base.storage import insist_on_regular, whole_file

if TYPE_CHECKING:
    import pyarrow

TYPES = (
    *("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
)
"""Types of arguments, by NumPy's names; bfloat16 is that of ml_dtypes."""


def element_type(name: str) -> np.dtype[Any]:
    """NumPy dtype of a name in :data:`TYPES`."""
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


def struct_type(fields: Mapping[str, str]) -> np.dtype[Any]:
    """NumPy dtype of a struct, laid out as a C++ compiler lays it out.

    ``fields``: names of fields to names of types, in their order.
    """
    return np.dtype([(name, element_type(kind)) for name, kind in fields.items()], align=True)


def is_float(dtype: np.dtype[Any]) -> bool:
    """Whether elements are real floating-point numbers, bfloat16 included."""
    return dtype.kind == "f" or dtype.name == "bfloat16"


def is_inexact(dtype: np.dtype[Any]) -> bool:
    """Whether elements are real or complex floating-point numbers."""
    return dtype.kind == "c" or is_float(dtype)


def widened(array: np.ndarray) -> np.ndarray:
    """A copy in the widest type of its kind: float64 or complex128; other types as they are."""
    if is_float(array.dtype):
        return array.astype(np.float64)
    return array.astype(np.complex128) if array.dtype.kind == "c" else array.copy()


def real_numbers(array: np.ndarray) -> np.ndarray:
    """The array flat, as numbers that can be subtracted: kind ``f``, ``i`` or ``u``. A complex
    number becomes its two parts, a truth value 0 or 1, bfloat16 float32."""
    flat = np.ascontiguousarray(array).reshape(-1)
    if flat.dtype.kind == "c":
        return flat.view(np.float32 if flat.dtype.itemsize == 8 else np.float64)
    if flat.dtype.kind == "b":
        return (flat.view(np.uint8) != 0).astype(np.uint8)
    return flat.astype(np.float32) if flat.dtype.name == "bfloat16" else flat


def fits(given: np.dtype[Any], wanted: np.dtype[Any]) -> bool:
    """Whether content of one type may be given for another: of the same kind, or a simpler one."""
    if given == wanted:
        return True
    if given.names is not None or wanted.names is not None:
        return False
    if wanted.name == "bfloat16":
        return given.kind in "iuf"
    return given.name != "bfloat16" and bool(np.can_cast(given, wanted, casting="same_kind"))


def cast(array: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """The content in another type, contiguous. Raises ValueError where integers do not fit the
    type."""
    if array.dtype.kind in "iu" and dtype.kind in "iu" and array.size:
        limits = np.iinfo(dtype)
        low, high = int(array.min()), int(array.max())
        if low < limits.min or high > limits.max:
            raise ValueError(f"holds {low if low < limits.min else high}, beyond {dtype.name}")
    return np.ascontiguousarray(array.astype(dtype, copy=False))


MOST_BYTES = 2 << 30  # Most bytes of a file, unpacked, and of all texts of a column

# A header of nothing but brackets overflows Python's parser: that is a MemoryError, too.
_UNREADABLE = (
    *(OSError, EOFError, ValueError, KeyError, RuntimeError, NotImplementedError),
    *(RecursionError, MemoryError),
    *(zipfile.BadZipFile, zlib.error),
)


def read_array(path: str | Path) -> np.ndarray:
    """Array of an ``.npy``, read as it is used. Raises UserError when the file is missing or
    damaged, holds objects, or less than its header says."""
    insist_on_regular(path)
    try:
        # Mapping asks for no memory, and compares the header's shape with the length of the file.
        with np.errstate(over="ignore"):
            found = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise UserError(path, "", "is missing") from None
    except _UNREADABLE as error:
        raise UserError(path, "", f"is no .npy file of numbers: {error}") from error
    if not isinstance(found, np.ndarray):
        raise UserError(path, "", "is an archive of arrays, not one .npy file")
    return found


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write a compressed ``.npz``, whole or not at all; the same arrays are the same bytes."""
    with whole_file(path) as scratch, zipfile.ZipFile(scratch, "w") as archive:
        for name, values in arrays.items():
            content = io.BytesIO()
            np.lib.format.write_array(content, np.asarray(values), allow_pickle=False)
            # Without the time of writing. Higher levels take longer and gain little.
            member = zipfile.ZipInfo(f"{name}.npy")
            archive.writestr(member, content.getvalue(), zipfile.ZIP_DEFLATED, 1)


def read_arrays(path: str | Path, what: str) -> dict[str, np.ndarray]:
    """Arrays of an ``.npz`` by their names; ``what`` it is, such as ``a model``, for messages.
    Raises UserError when the file is missing or damaged, holds objects, less than its headers say,
    or more than :data:`MOST_BYTES`."""
    insist_on_regular(path)
    try:
        with zipfile.ZipFile(path) as packed:
            members = packed.infolist()
            if sum(member.file_size for member in members) > MOST_BYTES:
                raise ValueError(f"unpacks to more than {MOST_BYTES >> 30} GiB")
            return {
                member.filename.removesuffix(".npy"): _array(packed, member) for member in members
            }
    except FileNotFoundError:
        raise UserError(path, "", "is missing") from None
    except _UNREADABLE as error:
        raise UserError(path, "", f"cannot be read as {what}: {error}") from error


def _array(packed: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{member.filename} is neither stored nor deflated")
    with packed.open(member) as file:
        # No more than what the directory says is unpacked.
        stream = io.BytesIO(file.read(member.file_size + 1))
    version = np.lib.format.read_magic(stream)
    first = version == (1, 0)
    header = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
    shape, _, dtype = header(stream)
    left = len(stream.getbuffer()) - stream.tell()
    if math.prod(shape) * dtype.itemsize != left:
        raise ValueError(f"{member.filename} holds {left} bytes, its header says {shape}")
    stream.seek(0)
    return np.lib.format.read_array(stream, allow_pickle=False)


MOST_VALUES = 200_000_000  # Most values of all columns together


def read_parquet(
    path: str | Path, columns: Sequence[str] | None = None, most_values: int = MOST_VALUES
) -> pyarrow.Table:
    """Some ``columns`` of a Parquet file, or all; texts are codes of a dictionary. Its pages have
    their checksums, and it unpacks to no more than the limits; what a stage makes of many files may
    hold more values. Raises UserError with the limit that it leaves, or when it is no regular file.
    Raises OSError, ValueError, pyarrow.ArrowException when it is no complete Parquet file."""
    # Only some of those who read arrays read tables, and loading it takes a fifth of a second.
    import pyarrow.parquet

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
    with pyarrow.parquet.ParquetFile(
        path, read_dictionary=texts, page_checksum_verification=True
    ) as file:
        # As codes: no more than `most_values` of four bytes.
        table = file.read(columns=columns)
    for name in table.column_names:
        if name in texts and _bytes_of_texts(table[name]) > MOST_BYTES:
            raise UserError(path, name, f"unpacks to more than {MOST_BYTES >> 30} GiB")
    return table


def _is_text(kind: pyarrow.DataType) -> bool:
    import pyarrow

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
    import pyarrow.compute

    total = 0
    for chunk in column.chunks:
        if pyarrow.types.is_dictionary(chunk.type):
            lengths = pyarrow.compute.binary_length(chunk.dictionary)
            of_rows = lengths.take(chunk.indices)
        else:
            of_rows = pyarrow.compute.binary_length(chunk)
        total += pyarrow.compute.sum(of_rows.cast(pyarrow.int64())).as_py() or 0
    return total
