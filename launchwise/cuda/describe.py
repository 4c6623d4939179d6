"""The ``describe`` stage's process: attributes of the first visible device, measured ceilings."""

from __future__ import annotations

import json
import os
import sys
import warnings
from typing import Any

import pycuda.driver as cuda

from launchwise.base.errors import UserError
from launchwise.base.provenance import commit, now
from launchwise.cuda.ceilings import HERE, measured_ceilings, translation_unit
from launchwise.cuda.device import CudaDevice
from launchwise.gpus.profile import CORES_PER_SM, GpuProfile
from launchwise.measuring.compile import compile_unit, nvcc_release


def describe(job: dict[str, Any]) -> GpuProfile:
    """Profile of the first visible device (or its slice).

    Parameters
    ----------
    job
        name, card, driver and slice_sms (or None).
    """
    device = CudaDevice(slice_sms=job["slice_sms"])
    facts = {str(key): value for key, value in device.device.get_attributes().items()}
    capability = device.device.compute_capability()
    clock, bus = facts["MEMORY_CLOCK_RATE"] / 1e3, facts["GLOBAL_MEMORY_BUS_WIDTH"]
    arch = "sm_{}{}".format(*capability)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # What ptxas says of these kernels is of no use.
        module = cuda.module_from_buffer(compile_unit(translation_unit(), HERE, arch))
    return GpuProfile(
        name=job["name"],
        device_name=device.device.name(),
        card=job["card"],
        whole_card_sms=device.whole_card_sms,
        compute_capability=capability,
        arch=arch,
        sms=device.sms,
        cores=device.sms * CORES_PER_SM.get(capability, 128),
        clock_mhz=facts["CLOCK_RATE"] / 1e3,
        memory_clock_mhz=clock,
        memory_bus_bits=bus,
        memory_bytes=device.device.total_memory(),
        # Two transfers a clock.
        memory_bandwidth_gbs=2 * clock * 1e6 * bus / 8 / 1e9,
        l2_bytes=device.l2_bytes,
        shared_per_sm_bytes=facts["MAX_SHARED_MEMORY_PER_MULTIPROCESSOR"],
        shared_per_block_bytes=_shared_per_block(device.device, facts),
        registers_per_sm=facts["MAX_REGISTERS_PER_MULTIPROCESSOR"],
        max_threads_per_sm=facts["MAX_THREADS_PER_MULTIPROCESSOR"],
        max_threads_per_block=facts["MAX_THREADS_PER_BLOCK"],
        driver=job["driver"],
        toolkit=nvcc_release(),
        commit=commit(),
        measured_at=now(),
        ceilings=measured_ceilings(device, module, capability, cuda.Error),
    )


def _shared_per_block(device: Any, facts: dict[str, Any]) -> int:
    """Opt-in limit of shared memory per block, bytes, if PyCUDA can query it."""
    for name in ("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN", "MAX_SHARED_MEMORY_PER_BLOCK"):
        if facts.get(name):
            return int(facts[name])
    return 48 * 1024


if __name__ == "__main__":
    try:
        profile = describe(json.loads(sys.stdin.read()))
    except UserError as error:
        # Nothing after this line: of a lost context PyCUDA's clean-up would have more to say.
        print(error, file=sys.stderr, flush=True)
        os._exit(1)
    print(json.dumps(profile.model_dump(mode="json")), flush=True)
    # The context is still open, which PyCUDA's clean-up takes for a mistake.
    os._exit(0)
