"""Types of array elements and numbers: NumPy's names, bfloat16, and structs of these."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

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
