"""Host side of saxpy: buffers, NumPy reference, launches."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from launchwise.workloads.builds import Build, real_macro
from launchwise.workloads.space import launch as launch_shape
from launchwise.workloads.workload import (
    Device,
    Finding,
    Launch,
    Session,
    Workload,
    closed_on_error,
)

SCALE = 2.5


class Saxpy(Workload):
    """z = a x + y."""

    def build(self, problem: Mapping[str, Any], configuration: Mapping[str, Any]) -> Build:
        """Macros of the kernel: they may depend on the variant and on build tunables."""
        source = self.spec.variants[configuration["variant"]].source
        macros = {**real_macro(str(problem["dtype"])), "ITEMS": configuration["items"]}
        return Build.of(source, macros)

    def check_builds(self, problem: Mapping[str, Any]) -> list[Build]:
        """No kernel makes inputs or checks outputs: NumPy does both."""
        return []

    def check_reference(self, device: Device, problem: Mapping[str, Any], seed: int) -> str:
        """Nothing to compare: the reference is NumPy itself."""
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
        super().__init__(workload, device, problem, seed)
        self.dtype = np.dtype(problem["dtype"])
        generator = np.random.default_rng(seed)
        x, y = (generator.uniform(-1, 1, problem["n"]).astype(self.dtype) for _ in range(2))
        self.expected = SCALE * x.astype(float) + y.astype(float)
        self.working_set_bytes = 3 * x.nbytes
        with closed_on_error(self):
            self.x, self.y = self.memory.upload(x), self.memory.upload(y)
            self.z = self.memory.take(x.nbytes)

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
