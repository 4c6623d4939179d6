"""An open CUDA device: a whole card, or a slice of its SMs through a green context."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Modules are loaded when they are asked for, not at a kernel's first launch, which would be timed.
os.environ.setdefault("CUDA_MODULE_LOADING", "EAGER")

import pycuda.driver as cuda

from launchwise.base.errors import UserError
from launchwise.cuda.memory import (
    CapturedGraph,
    CaptureRefused,
    CudaBuffer,
    CudaGlobal,
    CudaMemory,
    Graphs,
    Libraries,
    failed,
)
from launchwise.cuda.parameters import (
    STATIC_LIMIT,
    ParameterMismatch,
    bound_function,
    check_sizes,
    enter_slice,
    natural_places,
    occupancy,
    packed,
    parameter_places,
    resident_blocks,
)
from launchwise.gpus.profile import CORES_PER_SM
from launchwise.measuring.bundle import Bundle, Kernel
from launchwise.measuring.measure import LaunchFailed, OnDevice
from launchwise.measuring.repeats import Repeated
from launchwise.measuring.telemetry import THROTTLED, clock_reasons
from launchwise.workloads.builds import Build
from launchwise.workloads.device import Launch, LibraryRun

FLUSH_FACTOR = 2


@dataclass(frozen=True)
class _Prepared:
    """A function of PyCUDA, offset and size of its parameters, and what its compiler says of it."""

    function: Any
    places: list[tuple[int, int]]
    kernel: Kernel


class CudaDevice(CudaMemory):
    """The first visible CUDA device, or about ``slice_sms`` of its SMs. Implements
    :class:`launchwise.measuring.measure.TimingDevice`. Everything runs on the context's default
    stream, in order. Raises UserError when there is no device, or it cannot be sliced."""

    guards_buffers = False

    def __init__(self, slice_sms: int | None = None) -> None:
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
        attribute = cuda.device_attribute.MAX_THREADS_PER_MULTIPROCESSOR
        self.threads_per_sm = int(attributes[attribute])
        limit = getattr(cuda.device_attribute, "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN", None)
        self._most_shared = attributes.get(limit, math.inf)
        self._bundles: list[Bundle] = []
        self._modules: dict[tuple[Path, str], Any] = {}
        self._functions: dict[tuple[str, str], _Prepared] = {}
        self._libraries = Libraries(self.sms == self.whole_card_sms)
        self._occupancy: dict[tuple[str, str, int, int], float | None] = {}
        self._permitted: dict[tuple[str, str], int] = {}
        self._events: list[Any] = []
        self._flush: CudaBuffer | None = None
        self._graphs: Graphs | None = None
        self._reasons: Callable[[], set[str]] | None = None

    def add_bundle(self, path: Path) -> None:
        """Load the kernels of the bundle at ``path``; UserError if it is not a bundle."""
        self._bundles.append(Bundle(path))

    def holds(self, build: Build) -> bool:
        """Whether a bundle has kernels of ``build``, or says why there are none."""
        return any(each.holds(build) for each in self._bundles)

    def _kernel(self, launch: Launch) -> tuple[Bundle, Kernel]:
        self._check_refused(launch.build)
        for bundle in self._bundles:
            if launch.build.key in bundle.index["builds"]:
                return bundle, bundle.kernel(launch.build, launch.kernel)
        message = f"no bundle holds {launch.kernel} from {launch.build.source}"
        raise UserError("CUDA", "", f"{message} with {dict(launch.build.defines)}")

    def _check_refused(self, build: Build) -> None:
        for bundle in self._bundles:
            if said := bundle.refused.get(build.key):
                raise LaunchFailed(said, fatal=False)

    def close(self) -> None:
        """Leave the context. The process is expected to end soon after."""
        self._functions.clear()
        self._modules.clear()
        self._events.clear()
        self._flush = None
        self.context.pop()

    def constant(self, build: Build, name: str) -> CudaGlobal:
        self._check_refused(build)
        for bundle in self._bundles:
            if kernels := bundle.index["builds"].get(build.key):
                cubin = next(iter(kernels.values()))["cubin"]
                symbol = bundle.constant(build, name)
                try:
                    return CudaGlobal(*self._module(bundle, cubin).get_global(symbol))
                except cuda.LogicError as error:
                    message = f"holds no __constant__ array {name}: {error}"
                    raise UserError(build.source, "", message) from error
        raise UserError("CUDA", "", f"no bundle holds {build.source} with {dict(build.defines)}")

    def _module(self, bundle: Bundle, cubin: str) -> Any:
        place = (bundle.path, cubin)
        if place not in self._modules:
            try:
                self._modules[place] = cuda.module_from_buffer(bundle.cubin(cubin))
            except cuda.Error as error:
                raise failed(error) from error
        return self._modules[place]

    def _function(self, named: Launch) -> _Prepared:
        key = named.build.key, named.kernel
        if key not in self._functions:
            bundle, kernel = self._kernel(named)
            launch = kernel.completed(named)
            function = self._module(bundle, kernel.cubin).get_function(kernel.symbol)
            places = self._places(launch)
            if places is None:
                places = natural_places(launch.arguments)
            try:
                check_sizes(launch.arguments, places)
            except ParameterMismatch as error:
                raise LaunchFailed(f"{launch.kernel}: {error}", fatal=False) from error
            total = max((offset + size for offset, size in places), default=0)
            # PyCUDA's own packing knows neither half precision nor structs.
            function.prepare(f"{total}s" if total else "")
            self._functions[key] = _Prepared(function, places, kernel)
        return self._functions[key]

    def _places(self, launch: Launch) -> list[tuple[int, int]] | None:
        """Offset and size of each parameter; None where the driver does not tell."""
        bundle, kernel = self._kernel(launch)
        place = bundle.path, kernel.cubin
        known = bound_function(bundle.cubin(kernel.cubin), place, kernel.symbol)
        return None if known is None else parameter_places(known)

    def parameter_bytes(self, launch: Launch) -> list[int] | None:
        places = self._places(launch)
        return None if places is None else [size for _, size in places]

    def launch(self, launch: Launch, stream: Any = None) -> None:
        """See :class:`Device`; raises LaunchFailed when it is refused."""
        if launch.build.offloads:
            self._libraries.call(launch, *self._kernel(launch))
        else:
            self._ready(launch)(stream)

    def _ready(self, work: OnDevice) -> Callable[[Any], None]:
        """Function that queues ``work`` on a stream; kernels and arguments are prepared here."""
        if isinstance(work, LibraryRun):
            return work.queue
        calls = []
        for named in work.launches:
            prepared = self._function(named)
            launch = prepared.kernel.completed(named)
            self._permit(launch, prepared.function)
            given = packed(launch.arguments, prepared.places)
            calls.append((prepared.function, launch, (given,) if given else ()))

        def queue(stream: Any) -> None:
            try:
                for function, launch, arguments in calls:
                    function.prepared_async_call(
                        launch.grid,
                        launch.block,
                        stream,
                        *arguments,
                        shared_size=launch.shared_bytes,
                    )
            except cuda.Error as error:
                raise failed(error) from error

        return queue

    def _permit(self, launch: Launch, function: Any) -> None:
        """Opt in, once per function, to dynamic shared memory above the static limit."""
        key = launch.build.key, launch.kernel
        if launch.shared_bytes > max(STATIC_LIMIT, self._permitted.get(key, 0)):
            attribute = cuda.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES
            if launch.shared_bytes > self._most_shared:
                message = f"needs {launch.shared_bytes} B of shared memory per block"
                raise LaunchFailed(
                    f"{launch.kernel} {message}, the card has {self._most_shared}", fatal=False
                )
            try:
                function.set_attribute(attribute, launch.shared_bytes)
            except cuda.Error as error:
                raise failed(error) from error
            self._permitted[key] = launch.shared_bytes

    def timed(self, work: OnDevice, repeats: int, flush: bool) -> list[float]:
        """See :class:`TimingDevice`: CUDA events around every launch."""
        while len(self._events) < 2 * repeats:
            self._events.append(cuda.Event())
        queue = self._ready(work)
        for number in range(repeats):
            if isinstance(work, LibraryRun):
                work.restore()
            for each in work.restores:
                self.copy(each.kept, each.array)
            # Copies leave their content in L2: every configuration finds the same there.
            if flush or work.restores:
                self._empty_l2()
            self._events[2 * number].record()
            queue(None)
            self._events[2 * number + 1].record()
        try:
            self._events[2 * repeats - 1].synchronize()
            return [
                self._events[2 * number + 1].time_since(self._events[2 * number])
                for number in range(repeats)
            ]
        except cuda.Error as error:
            raise failed(error) from error

    def replayed(self, work: OnDevice, repeats: int, launches: int) -> Repeated:
        """See :class:`TimingDevice`; without graphs, launches in a row."""
        once = self._ready(work)

        def queue(stream: Any) -> None:
            for _ in range(launches):
                once(stream)

        try:
            graphs = self._own_graphs()
            if isinstance(work, LibraryRun):
                # What it allocates and chooses by itself cannot be part of a graph.
                once(graphs.stream)
            times = graphs.replay(queue, repeats)
        except CaptureRefused:
            times = self._in_a_row(queue, repeats)
            return Repeated([each / launches for each in times], "events", launches)
        except cuda.Error as error:
            raise failed(error) from error
        return Repeated([each / launches for each in times], "graph", launches)

    def captured(self, queue: Callable[[], None], streams: Iterable[Any]) -> CapturedGraph:
        """See :class:`Device`; LaunchFailed where it cannot be captured."""
        try:
            return self._own_graphs().capture(queue, list(streams))
        except CaptureRefused as error:
            raise LaunchFailed(f"no CUDA graph: {error}", fatal=False) from error
        except cuda.Error as error:
            raise failed(error) from error

    def _own_graphs(self) -> Graphs:
        if self._graphs is None:
            self._graphs = Graphs()
        return self._graphs

    def _in_a_row(self, queue: Callable[[Any], None], repeats: int) -> list[float]:
        begin, end = cuda.Event(), cuda.Event()
        times = []
        for _ in range(repeats):
            begin.record()
            queue(None)
            end.record()
            end.synchronize()
            times.append(end.time_since(begin))
        return times

    def sustain(self, work: OnDevice, launches: int) -> None:
        queue = self._ready(work)
        for _ in range(launches):
            queue(None)
        self.synchronize()

    def throttled(self) -> bool:
        """See :class:`TimingDevice`; NVML is asked, so never while timing."""
        if self._reasons is None:
            self._reasons = clock_reasons(os.environ.get("CUDA_VISIBLE_DEVICES", ""))
        return bool(THROTTLED & self._reasons())

    def _empty_l2(self) -> None:
        if self._flush is None:
            self._flush = self.allocate(FLUSH_FACTOR * self.l2_bytes)
        self.fill_bytes(self._flush, 0)

    def resources(self, launch: Launch) -> dict[str, Any]:
        """See :class:`TimingDevice`: from ptxas, and the driver's occupancy."""
        bundle, kernel = self._kernel(launch)
        launch = kernel.completed(launch)
        threads = math.prod(launch.block)
        taken = (kernel.symbol, threads, launch.shared_bytes)
        key = (kernel.cubin, *taken)  # Triton's symbols are those of the source.
        if launch.build.offloads:
            self._occupancy[key] = None  # LLVM's runtime chooses the block.
        if key not in self._occupancy:
            cubin = bundle.cubin(kernel.cubin)
            blocks = resident_blocks(cubin, (bundle.path, kernel.cubin), *taken)
            self._occupancy[key] = blocks and occupancy(blocks, threads, self.threads_per_sm)
        return {
            "registers": kernel.registers,
            "spill_bytes": kernel.spill_bytes,
            "shared_bytes": kernel.shared_bytes + launch.shared_bytes,
            "occupancy": self._occupancy[key],
        }


def attributes_of(device: CudaDevice) -> dict[str, Any]:
    """Fields of :class:`launchwise.gpus.profile.GpuProfile` that the driver knows. SMs and cores
    are those of the slice, if the device is one."""
    facts = {str(key): value for key, value in device.device.get_attributes().items()}
    capability = device.device.compute_capability()
    clock, bus = facts["MEMORY_CLOCK_RATE"] / 1e3, facts["GLOBAL_MEMORY_BUS_WIDTH"]
    return {
        "device_name": device.device.name(),
        "whole_card_sms": device.whole_card_sms,
        "compute_capability": list(capability),
        "arch": "sm_{}{}".format(*capability),
        "sms": device.sms,
        "cores": device.sms * CORES_PER_SM.get(capability, 128),
        "clock_mhz": facts["CLOCK_RATE"] / 1e3,
        "memory_clock_mhz": clock,
        "memory_bus_bits": bus,
        "memory_bytes": device.device.total_memory(),
        # Two transfers a clock.
        "memory_bandwidth_gbs": 2 * clock * 1e6 * bus / 8 / 1e9,
        "l2_bytes": device.l2_bytes,
        "shared_per_sm_bytes": facts["MAX_SHARED_MEMORY_PER_MULTIPROCESSOR"],
        "shared_per_block_bytes": _shared_per_block(facts),
        "registers_per_sm": facts["MAX_REGISTERS_PER_MULTIPROCESSOR"],
        "max_threads_per_sm": facts["MAX_THREADS_PER_MULTIPROCESSOR"],
        "max_threads_per_block": facts["MAX_THREADS_PER_BLOCK"],
    }


def _shared_per_block(facts: dict[str, Any]) -> int:
    for name in ("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN", "MAX_SHARED_MEMORY_PER_BLOCK"):
        if facts.get(name):
            return int(facts[name])
    return 48 * 1024
