"""Shared libraries whose functions offload by OpenMP, called beside PyCUDA.

LLVM's ``libomptarget`` works in the card's primary context, as :class:`CudaDevice` does on a whole
card: a pointer of one is valid for the other. It queues on streams of its own, which do not wait
for the default stream, and a function returns when its work is done.
"""

from __future__ import annotations

import ctypes
import os
import tempfile
from pathlib import Path

import pycuda.driver as cuda

from launchwise.cuda.memory import failed
from launchwise.cuda.shared_objects import address
from launchwise.measuring.bundle import Bundle, Kernel
from launchwise.workloads.device import Launch, LaunchFailed, called

# A region that the device cannot run must fail, not run on the host with pointers of the device.
os.environ.setdefault("OMP_TARGET_OFFLOAD", "MANDATORY")


class Libraries:
    """Libraries of the builds that were called so far.

    Parameters
    ----------
    whole_card
        Whether the device is no slice of a card.
    """

    def __init__(self, whole_card: bool) -> None:
        self._whole_card = whole_card
        self._loaded: dict[str, ctypes.CDLL] = {}

    def call(self, launch: Launch, bundle: Bundle, function: Kernel) -> None:
        """Call a function of a bundle, after everything that is queued, and wait for its end.

        Raises
        ------
        LaunchFailed
            When it cannot be loaded here, or when its work or what came before fails.
        """
        if not self._whole_card:
            message = "OpenMP runs in the primary context: on the whole card, not on a slice of it"
            raise LaunchFailed(message, fatal=False)
        if function.symbol not in self._loaded:
            self._loaded[function.symbol] = loaded(bundle.cubin(function.cubin), function.cubin)
        call = called(self._loaded[function.symbol], launch, address)
        try:
            cuda.Context.synchronize()
            call()
        except cuda.Error as error:
            raise failed(error) from error


def loaded(content: bytes, name: str) -> ctypes.CDLL:
    """The library with this content.

    Raises
    ------
    LaunchFailed
        When it, or LLVM's libraries that it needs, cannot be loaded, or these see no GPU.
    """
    with tempfile.TemporaryDirectory(prefix="launchwise-openmp-") as scratch:
        # It stays in memory; the file is needed no longer than this.
        path = Path(scratch, name)
        path.write_bytes(content)
        try:
            library = ctypes.CDLL(str(path))
        except OSError as error:
            said = str(error).replace(f"{path}: ", "")
            message = f"LLVM's OpenMP libraries cannot be loaded: {said} (LD_LIBRARY_PATH?)"
            raise LaunchFailed(message, fatal=False) from error
    if library.omp_get_num_devices() < 1:
        message = "LLVM's OpenMP libraries see no GPU: libcuda.so must be on the LD_LIBRARY_PATH"
        raise LaunchFailed(f"{message} (a link to libcuda.so.1)", fatal=False)
    return library
