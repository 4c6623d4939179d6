"""The ``describe`` stage's process: attributes of the first visible device, measured ceilings."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import pycuda.driver as cuda

from launchwise.base.errors import UserError
from launchwise.base.provenance import commit, now
from launchwise.cuda.ceilings import HERE, measured_ceilings, translation_unit
from launchwise.cuda.device import CudaDevice, attributes_of
from launchwise.gpus.profile import GpuProfile
from launchwise.measuring.compile import compile_unit, nvcc_release


def describe(job: dict[str, Any]) -> GpuProfile:
    """Profile of the first visible device (or its slice).

    ``job``: name, card, driver and slice_sms (or None).
    """
    device = CudaDevice(slice_sms=job["slice_sms"])
    attributes = attributes_of(device)
    cubin, _ = compile_unit(translation_unit(), HERE, attributes["arch"])
    module = cuda.module_from_buffer(cubin)
    capability = tuple(attributes["compute_capability"])
    return GpuProfile(
        **attributes,
        name=job["name"],
        card=job["card"],
        driver=job["driver"],
        toolkit=nvcc_release(),
        commit=commit(),
        measured_at=now(),
        ceilings=measured_ceilings(device, module, capability, cuda.Error),
    )


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
