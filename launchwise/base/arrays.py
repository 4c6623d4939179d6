"""NumPy's files of numbers, read with no objects and no more than the file really holds."""

from __future__ import annotations

import io
import math
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from launchwise.base.errors import UserError
from launchwise.base.storage import insist_on_regular, whole_file

MOST_BYTES = 2 << 30  # Most bytes of the arrays of an `.npz`, unpacked

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
