"""An open CUDA device: a whole card, or a slice of its SMs through a green context."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

# Modules are loaded when they are asked for, not at a kernel's first launch, which would be timed.
os.environ.setdefault("CUDA_MODULE_LOADING", "EAGER")

import pycuda.driver as cuda

from launchwise.bundle import Bundle
from launchwise.errors import UserError
from launchwise.measure import LaunchFailed, OutOfMemory
from launchwise.workload import Buffer, Launch

FLUSH_FACTOR = 2


class CudaBuffer:
    """Device memory of PyCUDA with its size."""

    def __init__(self, nbytes: int) -> None:
        try:
            self.allocation = cuda.mem_alloc(nbytes)
        except cuda.MemoryError as error:
            raise OutOfMemory(f"{nbytes / 1e9:.2f} GB cannot be allocated: {error}") from error
        self.nbytes = nbytes


class CudaDevice:
    """The first visible CUDA device, or about ``slice_sms`` of its SMs.

    Implements :class:`launchwise.measure.TimingDevice`. Everything runs on the context's default
    stream, in order.

    Raises
    ------
    UserError
        When there is no device, or it cannot be sliced.
    """

    def __init__(self, bundle: Bundle | None = None, slice_sms: int | None = None) -> None:
        try:
            cuda.init()
            device = cuda.Device(0)
        except cuda.Error as error:
            raise UserError("CUDA", "", f"no usable device: {error}") from error
        self.device = device
        attributes = device.get_attributes()
        self.whole_card_sms = int(attributes[cuda.device_attribute.MULTIPROCESSOR_COUNT])
        self.l2_bytes = int(attributes[cuda.device_attribute.L2_CACHE_SIZE])
        if slice_sms is None:
            self.sms = self.whole_card_sms
            self.context = device.retain_primary_context()
            self.context.push()
        else:
            self.sms = enter_slice(slice_sms)
            self.context = cuda.Context.attach()
        self.bundle = bundle
        self._modules: dict[str, Any] = {}
        self._functions: dict[str, Any] = {}
        self._events: list[Any] = []
        self._flush: CudaBuffer | None = None

    def close(self) -> None:
        """Leave the context. The process is expected to end soon after."""
        self._functions.clear()
        self._modules.clear()
        self._events.clear()
        self._flush = None
        self.context.pop()

    def allocate(self, nbytes: int) -> CudaBuffer:
        """See :class:`launchwise.workload.Device`; raises OutOfMemory."""
        return CudaBuffer(nbytes)

    def release(self, buffer: Buffer) -> None:
        """See :class:`launchwise.workload.Device`."""
        buffer.allocation.free()  # type: ignore[attr-defined]

    def fill_bytes(self, buffer: Buffer, value: int) -> None:
        """See :class:`launchwise.workload.Device`."""
        pointer = buffer.allocation  # type: ignore[attr-defined]
        if buffer.nbytes % 4 == 0:
            cuda.memset_d32_async(pointer, value * 0x01010101, buffer.nbytes // 4)
        else:
            cuda.memset_d8_async(pointer, value, buffer.nbytes)

    def upload(self, buffer: Buffer, array: np.ndarray) -> None:
        """See :class:`launchwise.workload.Device`."""
        cuda.memcpy_htod(buffer.allocation, np.ascontiguousarray(array))  # type: ignore[attr-defined]

    def download(self, buffer: Buffer, array: np.ndarray) -> None:
        """See :class:`launchwise.workload.Device`; raises LaunchFailed for what came before."""
        try:
            cuda.memcpy_dtoh(array, buffer.allocation)  # type: ignore[attr-defined]
        except cuda.Error as error:
            raise self._failed(error) from error

    def _function(self, launch: Launch) -> Any:
        symbol = launch.build.symbol(launch.kernel)
        if symbol not in self._functions:
            if self.bundle is None:
                raise UserError("CUDA", "", f"no bundle holds {launch.kernel}")
            kernel = self.bundle.kernel(launch.build, launch.kernel)
            if kernel.cubin not in self._modules:
                cubin = self.bundle.cubin(kernel.cubin)
                self._modules[kernel.cubin] = cuda.module_from_buffer(cubin)
            function = self._modules[kernel.cubin].get_function(symbol)
            kinds = [
                "P" if hasattr(argument, "allocation") else np.dtype(type(argument)).char
                for argument in launch.arguments
            ]
            function.prepare("".join(kinds))
            self._functions[symbol] = function
        return self._functions[symbol]

    def launch(self, launch: Launch) -> None:
        """See :class:`launchwise.workload.Device`; raises LaunchFailed when it is refused."""
        self._queue(self._function(launch), launch.grid, launch.block, _plain(launch.arguments))

    def _queue(self, function: Any, grid: Any, block: Any, arguments: Any) -> None:
        try:
            function.prepared_async_call(grid, block, None, *arguments)
        except cuda.Error as error:
            raise self._failed(error) from error

    def timed(self, launch: Launch, repeats: int, flush: bool) -> list[float]:
        """See :class:`launchwise.measure.TimingDevice`: CUDA events around every launch."""
        while len(self._events) < 2 * repeats:
            self._events.append(cuda.Event())
        function, arguments = self._function(launch), _plain(launch.arguments)
        for number in range(repeats):
            if flush:
                self._empty_l2()
            self._events[2 * number].record()
            self._queue(function, launch.grid, launch.block, arguments)
            self._events[2 * number + 1].record()
        try:
            self._events[2 * repeats - 1].synchronize()
            return [
                self._events[2 * number + 1].time_since(self._events[2 * number])
                for number in range(repeats)
            ]
        except cuda.Error as error:
            raise self._failed(error) from error

    def _empty_l2(self) -> None:
        if self._flush is None:
            self._flush = self.allocate(FLUSH_FACTOR * self.l2_bytes)
        self.fill_bytes(self._flush, 0)

    def resources(self, launch: Launch) -> dict[str, int]:
        """See :class:`launchwise.measure.TimingDevice`: as ptxas reported them."""
        if self.bundle is None:
            return {}
        kernel = self.bundle.kernel(launch.build, launch.kernel)
        return {
            "registers": kernel.registers,
            "spill_bytes": kernel.spill_bytes,
            "shared_bytes": kernel.shared_bytes,
        }

    @staticmethod
    def _failed(error: cuda.Error) -> LaunchFailed:
        """Find out whether the context survived: only a new process mends a lost one."""
        reason = " ".join(str(error).split())
        try:
            cuda.Context.synchronize()
        except cuda.Error:
            return LaunchFailed(reason, fatal=True)
        return LaunchFailed(reason, fatal=False)


def _plain(arguments: tuple[Any, ...]) -> list[Any]:
    return [getattr(argument, "allocation", argument) for argument in arguments]


def enter_slice(sms: int) -> int:
    """Make a green context of about ``sms`` SMs current; how many it really has.

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
