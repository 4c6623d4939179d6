"""Maps of arrays for the copy engine of an SM (sm_90 and newer), encoded by the driver."""

from __future__ import annotations

import numpy as np


class TensorMapRefused(Exception):
    """The driver does not encode the map."""


def encode_tensor_map(
    pointer: int, dtype: str, shape: tuple[int, ...], pitch: int, box: tuple[int, ...]
) -> np.ndarray:
    """A tensor map of an array in device memory.

    Elements outside the array are copied as zeros.

    Parameters
    ----------
    pointer
        Address of the first element, a multiple of 16.
    dtype
        ``float32`` or ``float64``.
    shape
        Elements along each axis, the slowest first; rows lie ``pitch`` elements apart.
    box
        Elements of a copied box along each axis, the slowest first.

    Returns
    -------
    uint8, shape (128,).

    Raises
    ------
    TensorMapRefused
        With what the driver says.
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
