"""Kernels of this folder on the CPU device."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from launchwise.cpu.device import CpuDevice
from launchwise.workloads.builds import Build
from launchwise.workloads.device import Launch

KERNELS = Path(__file__).with_name("kernels")


def launch(
    device: CpuDevice,
    build: Build,
    kernel: str,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    arguments: list[Any],
    shared_bytes: int = 0,
    constants: Mapping[str, np.ndarray] = {},
) -> list[Any]:
    """Run a kernel; its arguments afterwards, with new arrays."""
    for name, values in constants.items():
        device.upload(device.constant(build, name), values)
    passed: list[Any] = []
    for each in arguments:
        if isinstance(each, np.ndarray):
            passed.append(device.allocate(each.nbytes))
            device.upload(passed[-1], each)
        else:
            passed.append(each)
    device.launch(Launch(build, kernel, grid, block, tuple(passed), shared_bytes))
    after: list[Any] = []
    for each, buffer in zip(arguments, passed, strict=True):
        if isinstance(each, np.ndarray):
            after.append(np.empty_like(each))
            device.download(buffer, after[-1])
            device.release(buffer)
        else:
            after.append(each)
    return after


def device_for(folder: Path, sources: Mapping[str, str], **options: Any) -> CpuDevice:
    """A device for a folder of sources, with its compiled kernels beside them."""
    folder.mkdir(exist_ok=True)
    for name, text in sources.items():
        (folder / name).write_text(text)
    kept = folder / "compiled"
    kept.mkdir(exist_ok=True)
    return CpuDevice(folder, [], cache=kept, **options)
