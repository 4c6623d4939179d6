"""A solver of tridiagonal systems on the first visible CUDA device."""

from __future__ import annotations

import atexit
import functools
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pycuda.driver as cuda

from launchwise.cuda.device import CudaDevice
from launchwise.gpus.profile import read_profile
from launchwise.measuring.compile import compile_bundle, nvcc_release
from launchwise.measuring.source_states import fingerprint
from launchwise.workloads.spec import load_spec

from .launches import LAYOUTS, build
from .plan import Choice
from .solver import Problem, Solver, recommended, usual_choice

FOLDER = Path(__file__).resolve().parents[1]


def cache_folder() -> Path:
    """Where compiled kernels are kept: the user's cache (XDG Base Directory Specification)."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "launchwise"


def kernels(arch: str) -> Path:
    """A bundle of the solver's kernels for an architecture, compiled when it is not there."""
    mark = fingerprint(FOLDER, nvcc_release())
    path = cache_folder() / f"tridiagonal-{arch}-{mark}.cubins"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        types = [np.dtype(name) for name in ("float32", "float64")]
        builds = [build(layout, dtype) for layout in (*LAYOUTS, "finish") for dtype in types]
        compile_bundle(FOLDER, load_spec(FOLDER), builds, arch, path, os.cpu_count() or 1)
    return path


@functools.cache
def open_solver(model: Path | None = None, profile: Path | None = None) -> Solver:
    """A solver on the first visible device, in its primary context, as other libraries use it.

    Parameters
    ----------
    model, profile
        A fitted recommender (``results/models/<study>/<model>``) and the GPU's description
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
