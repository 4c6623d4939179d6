"""Arguments of a launch as the bytes that a kernel reads, at the places of its parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

POINTER_BYTES = 8


class ParameterMismatch(Exception):
    """An argument does not fit its parameter."""


def parameter_places(cubin_function: Any) -> list[tuple[int, int]] | None:
    """Offset and size of each parameter of a function of cuda-bindings, bytes.

    None where the driver cannot tell (before CUDA 12.4).
    """
    from cuda.bindings import driver

    if not hasattr(driver, "cuFuncGetParamInfo"):
        return None
    places: list[tuple[int, int]] = []
    while True:
        status, offset, size = driver.cuFuncGetParamInfo(cubin_function, len(places))
        if int(status) == int(driver.CUresult.CUDA_ERROR_INVALID_VALUE):
            return places
        if int(status) != 0:
            return None
        places.append((int(offset), int(size)))


def natural_places(arguments: Sequence[Any]) -> list[tuple[int, int]]:
    """Offset and size of each argument where each lies at a multiple of its own alignment."""
    places, end = [], 0
    for argument in arguments:
        size = _size(argument)
        alignment = POINTER_BYTES if hasattr(argument, "allocation") else _alignment(argument)
        begin = -(-end // alignment) * alignment
        places.append((begin, size))
        end = begin + size
    return places


def check_sizes(arguments: Sequence[Any], places: Sequence[tuple[int, int]]) -> None:
    """Compare number and sizes of arguments with a kernel's parameters.

    Raises
    ------
    ParameterMismatch
        With the first argument that does not fit, counted from 1.
    """
    if len(arguments) != len(places):
        raise ParameterMismatch(f"{len(arguments)} arguments, it has {len(places)} parameters")
    for number, (argument, (_, size)) in enumerate(zip(arguments, places, strict=True), 1):
        if _size(argument) != size:
            what = "a buffer" if hasattr(argument, "allocation") else _kind(argument)
            message = f"argument {number} is {what} of {_size(argument)} B, the parameter {size} B"
            raise ParameterMismatch(message)


def packed(arguments: Sequence[Any], places: Sequence[tuple[int, int]]) -> bytes:
    """Bytes of the arguments at their places."""
    total = max((offset + size for offset, size in places), default=0)
    made = bytearray(total)
    for argument, (offset, _) in zip(arguments, places, strict=True):
        if hasattr(argument, "allocation"):
            content = int(argument.allocation).to_bytes(POINTER_BYTES, "little")
        else:
            content = argument.tobytes()
        made[offset : offset + len(content)] = content
    return bytes(made)


def _size(argument: Any) -> int:
    return POINTER_BYTES if hasattr(argument, "allocation") else int(argument.nbytes)


def _kind(argument: Any) -> str:
    dtype = np.dtype(argument.dtype)
    return "a struct" if dtype.names is not None else dtype.name


def _alignment(argument: Any) -> int:
    dtype = np.dtype(argument.dtype)
    # CUDA's complex numbers and vectors of two are aligned as a whole.
    return int(dtype.itemsize) if dtype.kind == "c" else int(dtype.alignment)
