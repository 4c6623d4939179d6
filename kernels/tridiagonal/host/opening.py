"""A solver of tridiagonal systems on the first visible CUDA device."""

from __future__ import annotations

import atexit
import functools
from collections.abc import Callable
from pathlib import Path

import pycuda.driver as cuda

from launchwise.cuda.device import CudaDevice
from launchwise.gpus.profile import read_profile

from .compiled import FOLDER, kernels
from .plan import Choice
from .solver import Problem, Solver, recommended, usual_choice


@functools.cache
def open_solver(model: Path | None = None, profile: Path | None = None) -> Solver:
    """A solver on the first visible device, in its primary context, as other libraries use it.

    Parameters
    ----------
    model, profile
        A study's product (``results/final/<study>``) and the GPU's description
        (``results/gpus/<gpu>.json``); without them choices follow a rule of thumb.
    """
    device = CudaDevice()
    # PyCUDA ends a process with an error when one of its contexts is still in use.
    atexit.register(device.close)
    capability = device.device.compute_capability()
    device.add_bundle(kernels("sm_{}{}".format(*capability)))
    facts = device.device.get_attributes()
    limit = cuda.device_attribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
    choose: Callable[[Problem], Choice] = usual_choice
    if model is not None and profile is not None:
        choose = recommended(model, FOLDER, read_profile(profile, profile.stem))
    solver = Solver(device, choose, int(facts[limit]))
    atexit.register(solver.close)
    return solver
