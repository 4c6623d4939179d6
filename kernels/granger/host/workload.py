"""Host side of the Granger workload: inputs, reference, and how a configuration is run."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np

from launchwise.workloads.builds import Build, real_macro
from launchwise.workloads.device import LaunchFailed
from launchwise.workloads.space import launch as launch_shape
from launchwise.workloads.workload import (
    Allocations,
    Buffer,
    Device,
    Finding,
    Launch,
    Session,
    Workload,
    closed_on_error,
)

if TYPE_CHECKING:
    # Imported where it is used: how a library is called decides nothing about a sweep's rows.
    from .cublas import Cublas

SIDE_BY_SIDE = ("interleaved", "fused_r")
"""Variants for which all regressions lie side by side, element by element."""

ROUNDING = 256
"""Error allowed, in eps of the type by the largest coefficient: products and sums of some hundred
rows; how far from singular fits are, the spec's constraint sees to."""

REFERENCE_THREADS = 64


def least_squares(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Coefficients by numpy.linalg.lstsq in float64, the first column of each X all ones.

    Parameters
    ----------
    x
        (county, cols, rows).
    y
        (county, countx, rows): each explains its second series, regression 1 its first.

    Returns
    -------
    float64, (county, cols).
    """
    matrices = x.astype(float)
    matrices[:, 0] = 1
    found = []
    for m, (matrix, series) in enumerate(zip(matrices, y.astype(float), strict=True)):
        found.append(np.linalg.lstsq(matrix.T, series[0 if m == 1 else 1], rcond=None)[0])
    return np.array(found)


class Granger(Workload):
    """Many small least-squares fits at once."""

    peers = ("cublas",)

    def build(self, problem: Mapping[str, Any], configuration: Mapping[str, Any]) -> Build:
        source = self.spec.variants[configuration["variant"]].source
        return Build.of(source, real_macro(str(problem["dtype"])))

    def layout(self, configuration: Mapping[str, Any]) -> Hashable:
        """Whether all regressions lie side by side."""
        return configuration["variant"] in SIDE_BY_SIDE

    def check_reference(self, device: Device, problem: Mapping[str, Any], seed: int) -> str:
        """Compare the device's reference with numpy.linalg.lstsq in both layouts."""
        small = {"county": 3, "countx": 2, "rows": 23, "cols": 5, "dtype": problem["dtype"]}
        for side_by_side in (False, True):
            with closing(GrangerSession(self, device, small, side_by_side, seed)) as session:
                expected = least_squares(*session.inputs())
                error = float(np.abs(session.expected - expected).max())
            if not error <= 1e-12:
                return f"the device's reference differs from numpy.linalg.lstsq by {error:.3g}"
        return ""

    def open(
        self, device: Device, problem: Mapping[str, Any], layout: Hashable, seed: int
    ) -> GrangerSession:
        return GrangerSession(self, device, problem, bool(layout), seed)


class GrangerSession(Session):
    """One problem's regressions, side by side or each for itself."""

    workload: Granger

    def __init__(
        self,
        workload: Granger,
        device: Device,
        problem: Mapping[str, Any],
        side_by_side: bool,
        seed: int,
    ) -> None:
        super().__init__(workload, device, problem, seed)
        self._side_by_side = side_by_side
        self._cublas: Cublas | None = None
        self._dtype = np.dtype(str(problem["dtype"]))
        sizes = (int(problem[name]) for name in ("county", "countx", "rows", "cols"))
        self.county, self.countx, self.rows, self.cols = sizes
        with closed_on_error(self):
            self._x, self._q = (self._take(self.rows * self.cols) for _ in range(2))
            self._y = self._take(self.rows * self.countx)
            self._r, self._b = self._take(self.cols**2), self._take(self.cols)
            self._fill(self._x, self.rows * self.cols, 0, self.rows)
            self._fill(self._y, self.rows * self.countx, 1, 0)
            self.expected = self._reference()
        self.working_set_bytes = sum(
            each.nbytes for each in (self._x, self._y, self._q, self._r, self._b)
        )

    def _take(self, each: int) -> Buffer:
        return self.memory.take(self.county * each * self._dtype.itemsize)

    def _fill(self, values: Buffer, each: int, which: int, blank: int) -> None:
        sizes = np.int64(self.county), np.int64(each), np.int64(blank)
        seed = np.uint64(2 * self.seed + which)
        arguments = values, *sizes, np.int32(self._side_by_side), seed
        self.run_check("fill", 32 * self.device.sms, *arguments)

    def _sizes(self) -> tuple[np.int32, ...]:
        return tuple(np.int32(each) for each in (self.county, self.countx, self.rows, self.cols))

    def _reference(self) -> np.ndarray:
        """float64 coefficients, (county, cols)."""
        found = np.empty((self.county, self.cols))
        with Allocations(self.device) as scratch:
            out = scratch.take(found.nbytes)
            arguments = *self._sizes(), self._x, self._y, np.int32(self._side_by_side), out
            words = self.cols * (self.cols + 1)
            shape = {"threads": REFERENCE_THREADS, "shared_bytes": 8 * words}
            self.run_check("reference", self.county, *arguments, **shape)
            self.device.download(out, found)
        return found

    def inputs(self) -> tuple[np.ndarray, np.ndarray]:
        """X, (county, cols, rows), without intercepts, and y, (county, countx, rows)."""
        x = self._down(self._x, self.cols, self.rows)
        return x, self._down(self._y, self.countx, self.rows)

    def _down(self, values: Buffer, columns: int, rows: int) -> np.ndarray:
        shape = (self.county, columns, rows)
        found = np.empty((columns, rows, self.county) if self._side_by_side else shape, self._dtype)
        self.device.download(values, found)
        return np.moveaxis(found, 2, 0) if self._side_by_side else found

    def launch(self, configuration: Mapping[str, Any]) -> Launch:
        spec = self.workload.spec
        build = self.workload.build(self.problem, configuration)
        block, grid = launch_shape(spec, self.problem, configuration)
        shared = int(spec.value("block_bytes", self.problem, configuration))
        given = *self._sizes(), self._x, self._y, self._q, self._r, self._b
        return Launch(build, "regressions", grid, block, given, shared)

    def peer(self, name: str) -> Cublas:
        """See :meth:`launchwise.workloads.workload.Session.peer`: cuBLAS, each fit for itself."""
        from .cublas import Cublas

        if self._side_by_side:
            raise LaunchFailed("cuBLAS fits matrices that lie each for itself", fatal=False)
        if self._cublas is None:
            x, y = self.inputs()
            x[:, 0] = 1
            series = np.where(np.arange(self.county) == 1, 0, 1)
            explained = y[np.arange(self.county), series]
            self._cublas = Cublas(self.memory, x, explained, self._b)
        return self._cublas

    def close(self) -> None:
        if self._cublas is not None:
            self._cublas.close()
            self._cublas = None
        super().close()

    def poison(self) -> None:
        """Every bit of coefficients set, a NaN; intercepts too, which a run has to write."""
        self.device.fill_bytes(self._b, 0xFF)
        self._fill(self._x, self.rows * self.cols, 0, self.rows)

    def check(self) -> Finding:
        """See :meth:`check`: coefficients against the reference."""
        allowed = ROUNDING * float(np.finfo(self._dtype).eps)
        found = self._down(self._b, self.cols, 1)[..., 0]
        if not np.isfinite(found).all():
            missing = int((~np.isfinite(found)).any(axis=1).sum())
            return Finding(float("nan"), allowed, f"{missing} regressions have no coefficients")
        error = float(np.abs(found - self.expected).max() / np.abs(self.expected).max())
        wrong = (
            "" if error <= allowed else f"coefficients off by {error:.3g} (allowed {allowed:.3g})"
        )
        return Finding(error, allowed, wrong)
