"""From a call with arrays of any library to a simulation, and back."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from launchwise.workloads.builds import Build
from launchwise.workloads.spec import Spec
from launchwise.workloads.workload import Buffer

from ...calling.arrays import LEGACY_STREAM, Kind, Libraries, not_contiguous, stream_handle
from ...calling.driver import Argument, Card
from .problem import TYPES, Grid, checked, choice
from .running import Asked, Run, Shot, Told, Wave, points_build, step_build

Opened = Callable[[int, Sequence[Build]], Card]


class Simulator:
    """Simulations on the devices of this process.

    ``facts``: number of a device to what constraints read of it.
    ``open_machine``: opens a device by its number, with builds at hand.
    ``locate``, ``wait``: see :class:`kernels.calling.arrays.InterfaceArrays`.
    """

    def __init__(
        self,
        spec: Spec,
        facts: Callable[[int], Mapping[str, Any]],
        open_machine: Opened,
        locate: Callable[[int], int],
        wait: Callable[[int, int], None],
    ) -> None:
        self._spec, self._facts, self._open = spec, facts, open_machine
        self._libraries = Libraries(locate, wait)

    def run(
        self,
        velocity: Any,
        source: Any,
        steps: int,
        *,
        configuration: Any,
        progress: bool,
        **how: Any,
    ) -> Shot:
        given = self._given(velocity, how.pop("stream"))
        asked = _asked(given.shape, given.dtype, source, steps, **how)
        facts = self._facts(given.device)
        chosen = (
            choice(asked.grid, self._spec, facts)
            if configuration is None
            else checked(configuration, self._spec)
        )
        builds = [
            points_build(asked.grid.dtype.name),
            step_build(asked.grid, chosen, asked.absorbing > 0, self._spec),
        ]
        run = Run(self._open(given.device, builds), self._spec, asked, chosen, given.stream)
        try:
            with given.on(run) as lies, _told(progress, steps) as told:
                run.begin(run.examine(*lies), *lies)
                run.steps(lambda number, wave: given.keep(number, run, wave), told)
                traces = given.traces(run.traces())
            return Shot(traces, given.snapshots, run.time_step, chosen)
        finally:
            run.close()

    def _given(self, velocity: Any, stream: Any) -> HostVelocity | DeviceVelocity:
        library = self._libraries.of(velocity)
        if library is self._libraries.host:
            return HostVelocity(velocity, stream)
        handle = library.stream(velocity) if stream is None else stream_handle(stream)
        return DeviceVelocity(velocity, *library.read(velocity, "velocity", handle), handle)


def _asked(
    shape: tuple[int, ...],
    dtype: np.dtype,
    source: Any,
    steps: int,
    *,
    spacing: float,
    frequency: float | None,
    wavelet: Any,
    time_step: float | None,
    order: int,
    receivers: Any,
    snapshots: Sequence[int],
    absorbing: int,
) -> Asked:
    grid = Grid(shape, dtype, order, float(spacing))  # type: ignore[arg-type]
    if not isinstance(steps, int) or steps < 1:
        raise ValueError(f"steps must be a whole number of at least 1, not {steps!r}")
    if (frequency is None) == (wavelet is None):
        raise ValueError("give either frequency or wavelet")
    sources = grid.positions("source", source)
    kept = sorted({int(each) for each in snapshots})
    if kept and not 1 <= kept[0] <= kept[-1] <= steps:
        raise ValueError(f"snapshots must be steps from 1 to {steps}, not {list(snapshots)}")
    grid.damping(absorbing, 1.0, 1.0)  # its width fits
    values = None if wavelet is None else np.asarray(wavelet, float)
    places = grid.positions("receivers", receivers) if len(receivers) else []
    return Asked(grid, sources, steps, values, frequency, places, kept, time_step, absorbing)


@contextmanager
def _told(progress: bool, steps: int) -> Iterator[Told | None]:
    """Callback for the number of finished steps: a progress bar, or None."""
    if not progress:
        yield None
        return
    from rich.progress import Progress

    with Progress() as bar:
        task = bar.add_task("time steps", total=steps)
        yield lambda done: bar.update(task, completed=done)


class HostVelocity:
    """A NumPy array, or what NumPy takes as one."""

    device = 0

    def __init__(self, velocity: Any, stream: Any) -> None:
        self._array = np.asarray(velocity)
        if not self._array.flags.c_contiguous:
            raise not_contiguous("velocity", self._array.shape, self._array.strides)
        self.shape, self.dtype = self._array.shape, self._array.dtype
        self.stream = LEGACY_STREAM if stream is None else stream_handle(stream)

    @contextmanager
    def on(self, run: Run) -> Iterator[tuple[Buffer]]:
        """A context with the velocity, and room for snapshots, on the device of a run."""
        run.insist_on_memory(self._array.nbytes)
        buffer = run.machine.allocate(self._array.nbytes)
        try:
            run.machine.write(buffer, self._array, self.stream)
            # Snapshots pass through the same memory: the velocity is copied before they come.
            self._room = buffer
            self.snapshots = np.empty((len(run.asked.snapshots), *self.shape), self.dtype)
            yield (buffer,)
        finally:
            run.machine.settle()
            run.machine.release(buffer)

    def keep(self, number: int, run: Run, wave: Wave) -> None:
        wave.copy_field(self._room)
        run.machine.read(self._room, self.snapshots[number], wave.stream)

    def traces(self, values: np.ndarray) -> np.ndarray:
        return values


class DeviceVelocity:
    """An array in device memory; ``library`` is CuPy or PyTorch, None for others."""

    def __init__(self, array: Any, pointer: int, kind: Kind, stream: int) -> None:
        shape, dtype, self.device = kind
        if isinstance(dtype, str) or np.dtype(dtype).name not in TYPES:
            raise ValueError(f"velocity must be float32 or float64, not {dtype}")
        self._array, self._pointer, self.stream = array, pointer, stream
        self.shape, self.dtype = tuple(shape), np.dtype(dtype)
        package = type(array).__module__.split(".")[0]
        self._library: Any = sys.modules.get(package) if package in ("cupy", "torch") else None
        self._nbytes = int(np.prod(self.shape)) * self.dtype.itemsize

    @contextmanager
    def on(self, run: Run) -> Iterator[tuple[Argument, int]]:
        """A context with the velocity, an argument and its address, and room for snapshots."""
        count = len(run.asked.snapshots)
        if self._library is None and count:
            raise ValueError("snapshots need an array of NumPy, CuPy or PyTorch")
        run.insist_on_memory(count * self._nbytes)
        self.snapshots = self._empty((count, *self.shape))
        yield Argument(0, self._nbytes), self._pointer

    def keep(self, number: int, run: Run, wave: Wave) -> None:
        field = self.snapshots[number]
        pointer = field.data_ptr() if hasattr(field, "data_ptr") else field.data.ptr
        wave.copy_field(Argument(0, self._nbytes), int(pointer))

    def traces(self, values: np.ndarray) -> Any:
        if self._library is None:
            return values
        if self._library.__name__ == "torch":
            return self._library.from_numpy(values).to(self._array.device)
        return self._library.asarray(values)

    def _empty(self, shape: tuple[int, ...]) -> Any:
        if self._library is None:
            return np.empty(shape, self.dtype)
        if self._library.__name__ == "torch":
            return self._library.empty(shape, dtype=self._array.dtype, device=self._array.device)
        with self._library.cuda.Device(self.device):
            return self._library.empty(shape, self.dtype)
