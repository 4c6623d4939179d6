"""Attributes of an open CUDA device, as a profile holds them; nothing is measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from launchwise.gpus.profile import CORES_PER_SM

if TYPE_CHECKING:
    from launchwise.cuda.device import CudaDevice


def attributes_of(device: CudaDevice) -> dict[str, Any]:
    """Fields of :class:`launchwise.gpus.profile.GpuProfile` that the driver knows.

    SMs and cores are those of the slice, if the device is one.
    """
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
    """Opt-in limit of shared memory per block, bytes, if PyCUDA can query it."""
    for name in ("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN", "MAX_SHARED_MEMORY_PER_BLOCK"):
        if facts.get(name):
            return int(facts[name])
    return 48 * 1024
