"""Host side of the acoustic stencil: weights, NumPy reference, buffers, launches.

Notation as in the README beside this file: u_new = 2 u - u_old + velocity^2 scale lap(u), with
scale = (dt / h)^2 and lap the sum of the three second differences times h^2.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from launchwise.workloads.builds import Build, real_macro
from launchwise.workloads.inputs import uniform
from launchwise.workloads.space import launch as launch_shape
from launchwise.workloads.workload import (
    Allocations,
    Buffer,
    Device,
    Finding,
    FunctionRun,
    Launch,
    Session,
    Workload,
    closed_on_error,
)

from .stencil import (
    all_axes,
    boxes,
    one_step_macros,
    stencil_macros,
    streaming_macros,
    weights,
)

SPACING_M = 10.0
VELOCITY_MS = (1500.0, 4500.0)
COURANT = 0.4
"""Largest v dt / h: below the limits of stability at orders 2, 8, 16 (.5774, .4529, .4237)."""

SCALE = (COURANT / VELOCITY_MS[1]) ** 2
"""(dt / h)^2 in (s/m)^2 for a time step of COURANT h / max(v)."""

STREAMING = ("stream", "stream_tensor", "stream_twice")
"""Variants that stream along z."""

OPENMP, TILE = "openmp", ("tile_i", "tile_j", "tile_k")
"""Variant in C with OpenMP, and its tunables."""

NUMPY_LIMIT = 128
"""Grids up to this many points an axis are checked against NumPy, larger ones on the device."""

ROUNDING = 4.0
"""Allowed error in units of eps times the largest term: the sums have up to 50 terms."""


def laplacian(u: np.ndarray, order: int) -> np.ndarray:
    """Sum of the three second differences times h^2 on the interior of a cubic grid.

    Parameters
    ----------
    u
        float64, shape (n, n, n), axes z, y, x.

    Returns
    -------
    float64, shape (n - order,) * 3.
    """
    half, size = order // 2, u.shape[0]
    inner = slice(half, size - half)
    total = np.zeros((size - order,) * 3)
    for axis in range(3):
        for k, weight in enumerate(weights(order)):
            for offset in {k, -k}:
                window = [inner] * 3
                window[axis] = slice(half + offset, size - half + offset)
                total += weight * u[tuple(window)]
    return total


def time_step(
    u: np.ndarray, u_old: np.ndarray, velocity: np.ndarray, order: int, scale: float
) -> np.ndarray:
    """One leapfrog step in float64: shape (n, n, n) in, interior (n - order,) * 3 out."""
    half, size = order // 2, u.shape[0]
    inner = (slice(half, size - half),) * 3
    speed = velocity[inner].astype(float)
    return 2.0 * u[inner] - u_old[inner] + speed**2 * scale * laplacian(u.astype(float), order)


def grid(n: int, seed: int, low: float, high: float) -> np.ndarray:
    """A uniform field as the device makes it: float64, shape (n, n, n), in [low, high)."""
    return uniform(n**3, seed, low, high).reshape(n, n, n)


def inputs(n: int, dtype: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """u, u_old and velocity of a problem, shape (n, n, n) each, in ``dtype``."""
    u, u_old = (grid(n, seed + which, -1.0, 1.0).astype(dtype) for which in (0, 1))
    return u, u_old, grid(n, seed + 2, *VELOCITY_MS).astype(dtype)


def tolerance(order: int, dtype: str) -> float:
    """Allowed error of one step: ROUNDING eps times the largest value that the terms can reach."""
    reach = np.abs(weights(order))
    largest = 3.0 + 3.0 * COURANT**2 * float(reach[0] + 2.0 * reach[1:].sum())
    return ROUNDING * float(np.finfo(dtype).eps) * largest


def tolerance_twice(dtype: str) -> float:
    """Allowed error of the second of two steps at order 2.

    The first step's error enters the second one times at most 2 plus the largest that the force's
    terms add up to; the second step's own error comes on top.
    """
    reach = np.abs(weights(2))
    grows = 2.0 + 3.0 * COURANT**2 * float(reach[0] + 2.0 * reach[1])
    return (1.0 + grows) * tolerance(2, dtype)


class Acoustic(Workload):
    """Acoustic wave propagation on an n^3 grid."""

    def build(self, problem: Mapping[str, Any], configuration: Mapping[str, Any]) -> Build:
        dtype, order, n = str(problem["dtype"]), int(problem["order"]), int(problem["n"])
        defines = stencil_macros(order, dtype, self.pitch(problem, configuration) * n * n)
        variant = str(configuration["variant"])
        if variant in STREAMING:
            # A row's pitch is an argument of these kernels.
            aligned = bool(self.spec.value("rows_aligned", problem, configuration))
            defines |= streaming_macros(configuration, aligned=aligned)
            if variant == "stream_twice":
                defines["ROWS"] = configuration["rows_per_warp"]
            else:
                defines |= one_step_macros(configuration, damped=False)
        elif variant == OPENMP:
            tile = {name.upper(): configuration[name] for name in TILE}
            defines = real_macro(dtype) | {"RADIUS": order // 2} | tile
            return Build.of(self.spec.variants[variant].source, defines, [OPENMP])
        else:
            defines["ROW_PADDING"] = configuration["row_padding"]
        return Build.of(self.spec.variants[variant].source, defines)

    def layout(self, configuration: Mapping[str, Any]) -> Hashable:
        """Padded and unpadded rows need buffers of their own."""
        return configuration["row_padding"]

    def pitch(self, problem: Mapping[str, Any], configuration: Mapping[str, Any]) -> int:
        """Elements from one row to the next."""
        return int(self.spec.value("pitch", problem, configuration))

    def check_key(self, problem: Mapping[str, Any]) -> Hashable:
        """The reference depends on the order of the stencil too."""
        return int(problem["order"]), str(problem["dtype"])

    def check_reference(self, device: Device, problem: Mapping[str, Any], seed: int) -> str:
        """Compare the device's reference with NumPy's on an odd-sized grid at both pitches."""
        small = {**problem, "n": int(problem["order"]) + 21}
        for padding in (0, 1):
            opened = AcousticSession(self, device, small, padding, seed, numpy_reference=False)
            with closing(opened) as session:
                difference = session.reference_interior() - session.numpy_reference()
            error = float(np.abs(difference).max())
            if not error <= tolerance(int(problem["order"]), "float64"):
                return f"the device's float64 reference is off by {error:.3g} at n = {small['n']}"
        return ""

    def open(
        self, device: Device, problem: Mapping[str, Any], layout: Hashable, seed: int
    ) -> AcousticSession:
        padding = int(str(layout))
        small = int(problem["n"]) <= NUMPY_LIMIT
        return AcousticSession(self, device, problem, padding, seed, numpy_reference=small)


@dataclass(frozen=True)
class SecondStep:
    """What two steps per pass write beside u_new, and what they must reach.

    ``u``: the first step; ``expected``: the second step inside the boundary, float64.
    """

    u: Buffer
    expected: Buffer


class AcousticSession(Session):
    """Buffers of one problem at one pitch."""

    workload: Acoustic

    def __init__(
        self,
        workload: Acoustic,
        device: Device,
        problem: Mapping[str, Any],
        padding: int,
        seed: int,
        numpy_reference: bool,
    ) -> None:
        super().__init__(workload, device, problem, seed)
        self.n, self.order = int(problem["n"]), int(problem["order"])
        self.dtype = np.dtype(str(problem["dtype"]))
        self.pitch = workload.pitch(problem, {"row_padding": padding})
        self.tolerance = tolerance(self.order, self.dtype.name)
        cells = self.pitch * self.n * self.n
        self.working_set_bytes = 4 * cells * self.dtype.itemsize
        self._builds: dict[Hashable, Build] = {}
        self._maps: dict[tuple[int, int], Buffer] = {}
        self._weights: Buffer | None = None
        self._second: SecondStep | None = None
        self._between: SecondStep | None = None
        with closed_on_error(self):
            self.u_new, self.u, self.u_old, self.velocity = (
                self.memory.take(cells * self.dtype.itemsize) for _ in range(4)
            )
            self.expected = self.memory.take(self.n**3 * 8)
            self.findings = self.memory.take(24)
            self._make_inputs()
            if numpy_reference:
                padded = np.pad(self.numpy_reference(), self.order // 2)
                device.upload(self.expected, padded)
            else:
                self._reference(self.expected, self.u, self.u_old)

    def _run(self, kernel: str, *arguments: Any) -> None:
        self.run_check(kernel, min(self.n * self.n, 32 * self.device.sms), *arguments)

    def _make_inputs(self) -> None:
        ranges = ((-1.0, 1.0), (-1.0, 1.0), VELOCITY_MS)
        for which, (buffer, (low, high)) in enumerate(
            zip((self.u, self.u_old, self.velocity), ranges, strict=True)
        ):
            seed = np.uint64(self.seed + which)
            shape = (np.int64(self.n), np.int64(self.pitch))
            self._run("fill", buffer, *shape, seed, np.float64(low), np.float64(high))

    def _reference(self, expected: Buffer, u: Buffer, u_old: Buffer) -> None:
        with Allocations(self.device) as scratch:
            self._run(
                "reference",
                expected,
                u,
                u_old,
                self.velocity,
                scratch.upload(weights(self.order)),
                np.int64(self.n),
                np.int64(self.pitch),
                np.int32(self.order // 2),
                np.float64(SCALE),
            )
            self.device.download(self.findings, np.empty(3, np.uint64))

    def numpy_reference(self) -> np.ndarray:
        """Expected interior by NumPy: float64, shape (n - order,) * 3."""
        u, u_old, velocity = inputs(self.n, self.dtype.name, self.seed)
        return time_step(u.astype(float), u_old.astype(float), velocity, self.order, SCALE)

    def reference_interior(self) -> np.ndarray:
        """Expected interior as it lies on the device: float64, shape (n - order,) * 3."""
        whole = np.empty((self.n,) * 3)
        self.device.download(self.expected, whole)
        inner = slice(self.order // 2, self.n - self.order // 2)
        return whole[inner, inner, inner]

    def launch(self, configuration: Mapping[str, Any]) -> Launch | FunctionRun:
        kind = self.workload.spec.build_choice(configuration)
        if kind not in self._builds:
            self._builds[kind] = self.workload.build(self.problem, configuration)
        build = self._builds[kind]
        spec = self.workload.spec
        arrays = (self.u_new, self.u, self.u_old, self.velocity)
        if configuration["variant"] == OPENMP:
            self._between = None
            if self._weights is None:
                self._weights = self.memory.upload(all_axes(self.order).astype(self.dtype))
            given = (*arrays, self._weights, np.int32(self.n), self.dtype.type(SCALE))
            return FunctionRun.of(self.device, build, OPENMP, given)
        block, grid = launch_shape(spec, self.problem, configuration)
        shared = int(
            spec.value(
                spec.variants[configuration["variant"]].shared_bytes, self.problem, configuration
            )
        )
        name = str(configuration["variant"])
        self._between = None
        if name in STREAMING:
            arguments = self._streaming(name, configuration)
        else:
            index = np.int32 if dict(build.defines)["INDEX"] == "int" else np.int64
            arguments = (*arrays, index(self.n), self.dtype.type(SCALE))
        if name == "omp_tile":
            arguments += tuple(np.int32(configuration[name]) for name in ("tx", "ty", "tz"))
        solves = 2 if name == "stream_twice" else 1
        return Launch(build, name, grid, block, arguments, shared, solves)

    def _streaming(self, name: str, configuration: Mapping[str, Any]) -> tuple[Any, ...]:
        chunk = self.workload.spec.value("chunk", self.problem, configuration)
        sizes = tuple(np.int32(size) for size in (*(self.n,) * 3, self.pitch, chunk))
        end = (*sizes, self.dtype.type(SCALE))
        no_damping = np.uint64(0)
        if name == "stream":
            return (self.u_new, self.u, self.u_old, self.velocity, no_damping, *end)
        if name == "stream_tensor":
            return (self.u_new, self._maps_for(configuration), no_damping, *end)
        self._between = self._second_step()
        return (self.u_new, self._between.u, self.u, self.u_old, self.velocity, *end)

    def _maps_for(self, configuration: Mapping[str, Any]) -> Buffer:
        """Maps for the copy engine: u with the halo of a tile, u_old and velocity without."""
        columns, rows = int(configuration["tile_x"]), int(configuration["tile_y"])
        if (columns, rows) not in self._maps:
            halo, tile = boxes(self.order, self.dtype.name, configuration)
            wanted = ((self.u, halo), (self.u_old, tile), (self.velocity, tile))
            maps = [
                self.device.tensor_map(array, self.dtype.name, (self.n,) * 3, self.pitch, box)
                for array, box in wanted
            ]
            self._maps[columns, rows] = self.memory.upload(np.concatenate(maps))
        return self._maps[columns, rows]

    def _second_step(self) -> SecondStep:
        if self._second is None:
            between = self.memory.take(self.u_new.nbytes)
            expected = self.memory.take(self.expected.nbytes)
            shape = np.int64(self.n), np.int64(self.pitch), np.int32(self.order // 2)
            self._run("as_input", between, self.expected, *shape)
            self._reference(expected, between, self.u)
            self._second = SecondStep(between, expected)
        return self._second

    def poison(self) -> None:
        """Every bit set: a NaN that no computation yields."""
        self.device.fill_bytes(self.u_new, 0xFF)
        if self._second is not None:
            self.device.fill_bytes(self._second.u, 0xFF)

    def check(self) -> Finding:
        if self._between is None:
            return self._compare(self.u_new, self.expected, self.tolerance)
        first = self._compare(self._between.u, self.expected, self.tolerance)
        if first.wrong:
            return replace(first, wrong=f"first step: {first.wrong}")
        return self._compare(self.u_new, self._between.expected, tolerance_twice(self.dtype.name))

    def _compare(self, found: Buffer, expected: Buffer, allowed: float) -> Finding:
        self.device.fill_bytes(self.findings, 0)
        self._run(
            "compare",
            found,
            expected,
            np.int64(self.n),
            np.int64(self.pitch),
            np.int32(self.order // 2),
            np.float64(allowed),
            self.findings,
        )
        counts = np.empty(3, np.uint64)
        self.device.download(self.findings, counts)
        off, outside = int(counts[0]), int(counts[2])
        max_error = float(counts[1:2].view(np.float64)[0])
        wrong = ""
        if off:
            wrong = f"{off} points off by up to {max_error:.3g} (allowed {allowed:.3g})"
        elif outside:
            wrong = f"{outside} cells outside the interior were written"
        return Finding(max_error, allowed, wrong)
