"""Read DLPack descriptions of arrays: address, shape, type and device."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np

CUDA, CUDA_MANAGED = 2, 13
"""Kinds of devices (``DLDeviceType``) whose memory a kernel may use."""

KINDS = {0: "i", 1: "u", 2: "f", 5: "c"}
"""NumPy's letters of DLPack's type codes."""


class _Device(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_int32), ("number", ctypes.c_int32))


class _Type(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _Tensor(ctypes.Structure):
    """``DLTensor`` of DLPack's header, with which a capsule's content begins."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("dimensions", ctypes.c_int32),
        ("type", _Type),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    )


@dataclass(frozen=True)
class Tensor:
    """Content of a capsule: strides in elements, None for a contiguous array."""

    pointer: int
    device_kind: int
    device: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    dtype: np.dtype[Any] | str


_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype = ctypes.c_void_p
_pointer_of.argtypes = (ctypes.py_object, ctypes.c_char_p)


def read_capsule(capsule: Any) -> Tensor:
    """Content of a capsule that ``__dlpack__`` gave.

    The capsule stays the caller's: it is not consumed, so that it gives its memory back itself.

    Raises
    ------
    ValueError
        When it is no capsule of this name.
    """
    tensor = _Tensor.from_address(_pointer_of(capsule, b"dltensor"))
    size = tensor.dimensions
    return Tensor(
        pointer=(tensor.data or 0) + tensor.offset,
        device_kind=tensor.device.kind,
        device=tensor.device.number,
        shape=tuple(tensor.shape[:size]) if size else (),
        strides=tuple(tensor.strides[:size]) if tensor.strides and size else None,
        dtype=_dtype(tensor.type),
    )


def _dtype(kind: _Type) -> np.dtype[Any] | str:
    """NumPy's type, or the name of one that NumPy does not have."""
    if kind.lanes != 1 or kind.code not in KINDS or kind.bits % 8:
        return f"DLPack type {kind.code} of {kind.bits} bits and {kind.lanes} lanes"
    return np.dtype(f"{KINDS[kind.code]}{kind.bits // 8}")
