"""What PyCUDA does not wrap: places of parameters, tensor maps, slices of a card, occupancy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from launchwise.base.errors import UserError

POINTER_BYTES = 8


class ParameterMismatch(Exception):
    """An argument does not fit its parameter."""


def parameter_places(cubin_function: Any) -> list[tuple[int, int]] | None:
    """Offset and size of each parameter of a function of cuda-bindings, bytes. None where the
    driver cannot tell (before CUDA 12.4)."""
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
    """Compare number and sizes of arguments with a kernel's parameters. Raises ParameterMismatch
    with the first argument that does not fit, counted from 1."""
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


class TensorMapRefused(Exception):
    """The driver does not encode the map."""


def encode_tensor_map(
    pointer: int, dtype: str, shape: tuple[int, ...], pitch: int, box: tuple[int, ...]
) -> np.ndarray:
    """A tensor map of an array in device memory.

    Elements outside the array are copied as zeros.

    ``pointer``: address of the first element, a multiple of 16.
    ``dtype``: ``float32`` or ``float64``.
    ``shape``: elements along each axis, the slowest first; rows lie ``pitch`` elements apart.
    ``box``: elements of a copied box along each axis, the slowest first.
    Returns uint8, shape (128,). Raises TensorMapRefused with what the driver says.
    """
    from cuda.bindings import driver

    types = driver.CUtensorMapDataType
    kind = {
        "float32": types.CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
        "float64": types.CU_TENSOR_MAP_DATA_TYPE_FLOAT64,
    }[dtype]
    itemsize = np.dtype(dtype).itemsize
    strides = [pitch * itemsize]
    for size in reversed(shape[1:-1]):
        strides.append(strides[-1] * size)
    result, encoded = driver.cuTensorMapEncodeTiled(
        kind,
        len(shape),
        pointer,
        [driver.cuuint64_t(size) for size in reversed(shape)],
        [driver.cuuint64_t(stride) for stride in strides],
        [driver.cuuint32_t(size) for size in reversed(box)],
        [driver.cuuint32_t(1)] * len(shape),
        driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        driver.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_NONE,
        driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
        driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    )
    if result != driver.CUresult.CUDA_SUCCESS:
        raise TensorMapRefused(f"cuTensorMapEncodeTiled of {dtype}{list(shape)}: {result.name}")
    return np.array([int(word) for word in encoded.opaque], np.uint64).view(np.uint8)


WARP = 32  # Threads of a warp


def enter_slice(sms: int) -> int:
    """Make a green context of about ``sms`` SMs current; returns its number of SMs. Raises
    UserError when driver or card cannot do that."""
    from cuda.bindings import driver

    def ask(result: tuple[Any, ...], what: str) -> Any:
        if int(result[0]) != 0:
            raise UserError("CUDA", "slice_sms", f"{what} failed: {result[0].name}")
        return result[1] if len(result) == 2 else result[1:]

    device = ask(driver.cuDeviceGet(0), "cuDeviceGet")
    kind = driver.CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM
    whole = ask(driver.cuDeviceGetDevResource(device, kind), "cuDeviceGetDevResource")
    groups = ask(driver.cuDevSmResourceSplitByCount(1, whole, 0, sms), f"a split into {sms} SMs")[0]
    description = ask(driver.cuDevResourceGenerateDesc([groups[0]], 1), "the description")
    flags = driver.CUgreenCtxCreate_flags.CU_GREEN_CTX_DEFAULT_STREAM
    green = ask(driver.cuGreenCtxCreate(description, device, flags), "cuGreenCtxCreate")
    context = ask(driver.cuCtxFromGreenCtx(green), "cuCtxFromGreenCtx")
    (status,) = driver.cuCtxSetCurrent(context)
    if int(status) != 0:
        raise UserError("CUDA", "slice_sms", f"cuCtxSetCurrent failed: {status.name}")
    return int(groups[0].sm.smCount)


STATIC_LIMIT = 48 * 1024  # Shared memory per block without opt-in, bytes

_modules: dict[tuple[Path, str], Any] = {}


def resident_blocks(
    cubin: bytes, place: tuple[Path, str], symbol: str, threads: int, shared_bytes: int
) -> int | None:
    """Resident blocks per SM of a kernel with ``threads`` threads and ``shared_bytes`` of dynamic
    shared memory per block. From cuOccupancyMaxActiveBlocksPerMultiprocessor, which knows
    registers, shared memory and limits of the card; None where the driver will not say. ``place``:
    names the cubin, which is loaded once."""
    function = bound_function(cubin, place, symbol)
    if function is None:
        return None
    from cuda.bindings import driver

    if shared_bytes > STATIC_LIMIT:
        attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        driver.cuFuncSetAttribute(function, attribute, shared_bytes)
    ask = driver.cuOccupancyMaxActiveBlocksPerMultiprocessor
    status, blocks = ask(function, threads, shared_bytes)
    return int(blocks) if int(status) == 0 else None


def occupancy(blocks: int, threads: int, threads_per_sm: int) -> float:
    """Warps of the blocks that an SM holds at once / warps that it holds at most. A block of 40
    threads takes two warps."""
    return blocks * math.ceil(threads / WARP) * WARP / threads_per_sm


def bound_function(cubin: bytes, place: tuple[Path, str], symbol: str) -> Any:
    """A kernel as cuda-bindings know it; None where the driver refuses. ``place``: names the cubin,
    which is loaded once."""
    from cuda.bindings import driver

    if place not in _modules:
        status, module = driver.cuModuleLoadData(cubin)
        _modules[place] = module if int(status) == 0 else None
    if _modules[place] is None:
        return None
    status, function = driver.cuModuleGetFunction(_modules[place], symbol.encode())
    return function if int(status) == 0 else None
