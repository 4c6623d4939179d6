"""Slices of a card, and occupancy, through cuda-bindings (PyCUDA wraps neither).

Both libraries work on the same current context.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError

WARP = 32
"""Threads of a warp."""


def enter_slice(sms: int) -> int:
    """Make a green context of about ``sms`` SMs current; returns its number of SMs.

    Raises
    ------
    UserError
        When driver or card cannot do that.
    """
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


STATIC_LIMIT = 48 * 1024
"""Shared memory per block without opt-in, bytes."""

_modules: dict[tuple[Path, str], Any] = {}


def resident_blocks(
    cubin: bytes, place: tuple[Path, str], symbol: str, threads: int, shared_bytes: int
) -> int | None:
    """Resident blocks per SM of a kernel with ``threads`` threads per block.

    From cuOccupancyMaxActiveBlocksPerMultiprocessor, which knows registers, shared memory and
    limits of the card; None where the driver will not say.

    Parameters
    ----------
    place
        Names the cubin, which is loaded once.
    shared_bytes
        Dynamic shared memory of a block.
    """
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
    """Warps of the blocks that an SM holds at once / warps that it holds at most.

    A block of 40 threads takes two warps.
    """
    return blocks * math.ceil(threads / WARP) * WARP / threads_per_sm


def bound_function(cubin: bytes, place: tuple[Path, str], symbol: str) -> Any:
    """A kernel as cuda-bindings know it; None where the driver refuses.

    Parameters
    ----------
    place
        Names the cubin, which is loaded once.
    """
    from cuda.bindings import driver

    if place not in _modules:
        status, module = driver.cuModuleLoadData(cubin)
        _modules[place] = module if int(status) == 0 else None
    if _modules[place] is None:
        return None
    status, function = driver.cuModuleGetFunction(_modules[place], symbol.encode())
    return function if int(status) == 0 else None
