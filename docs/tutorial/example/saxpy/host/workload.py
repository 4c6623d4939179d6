"""Host side of saxpy: buffers, NumPy reference, launches."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from launchwise.workloads.builds import Build
from launchwise.workloads.space import launch as launch_shape
from launchwise.workloads.workload import (
    Allocations,
    Device,
    Finding,
    Launch,
    Session,
    Workload,
)

SCALE = 2.5


class Saxpy(Workload):
    """z = a x + y."""

    def build(self, problem: Mapping[str, Any], configuration: Mapping[str, Any]) -> Build:
        """Macros of the kernel: they may depend on the variant and on build tunables."""
        real = "float" if problem["dtype"] == "float32" else "double"
        source = self.spec.variants[configuration["variant"]].source
        return Build.of(source, {"REAL": real, "ITEMS": configuration["items"]})

    def check_builds(self, problem: Mapping[str, Any]) -> list[Build]:
        """No kernel makes inputs or checks outputs: NumPy does both."""
        return []

    def self_check(self, device: Device, problem: Mapping[str, Any], seed: int) -> str:
        """The reference is NumPy itself."""
        return ""

    def open(
        self, device: Device, problem: Mapping[str, Any], layout: Hashable, seed: int
    ) -> Session:
        """Make the inputs of a problem on the device."""
        return SaxpySession(self, device, problem, seed)


class SaxpySession(Session):
    """One problem on one device."""

    def __init__(
        self, workload: Saxpy, device: Device, problem: Mapping[str, Any], seed: int
    ) -> None:
        self.workload, self.device, self.problem = workload, device, problem
        self.dtype = np.dtype(problem["dtype"])
        generator = np.random.default_rng(seed)
        x, y = (generator.uniform(-1, 1, problem["n"]).astype(self.dtype) for _ in range(2))
        self.expected = SCALE * x.astype(float) + y.astype(float)
        self.working_set_bytes = 3 * x.nbytes
        self.buffers = Allocations(device)
        try:
            self.z, self.x, self.y = (self.buffers.take(x.nbytes) for _ in range(3))
            device.upload(self.x, x)
            device.upload(self.y, y)
        except BaseException:
            self.close()
            raise

    def launch(self, configuration: Mapping[str, Any]) -> Launch:
        """Kernel, grid, block and arguments of a configuration."""
        block, grid = launch_shape(self.workload.spec, self.problem, configuration)
        build = self.workload.build(self.problem, configuration)
        scalars = (self.dtype.type(SCALE), np.int64(self.problem["n"]))
        return Launch(build, "saxpy", grid, block, (self.z, self.x, self.y, *scalars))

    def poison(self) -> None:
        """Set every bit of the output: a NaN that the kernel must overwrite."""
        self.device.fill_bytes(self.z, 0xFF)

    def check(self) -> Finding:
        """Compare the output with the float64 reference."""
        z = np.empty(self.problem["n"], self.dtype)
        self.device.download(self.z, z)
        error = float(np.abs(z - self.expected).max())
        tolerance = 4 * float(np.finfo(self.dtype).eps) * (SCALE + 1)
        # A NaN compares false, so it is wrong.
        wrong = "" if error <= tolerance else f"off by {error:.3g} (allowed {tolerance:.3g})"
        return Finding(error, tolerance, wrong)

    def close(self) -> None:
        """Give the buffers back."""
        self.buffers.release()
