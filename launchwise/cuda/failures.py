"""What an error of the driver means for the process."""

from __future__ import annotations

import pycuda.driver as cuda

from launchwise.measuring.measure import LaunchFailed, OutOfMemory


def failed(error: cuda.Error) -> LaunchFailed | OutOfMemory:
    """Check whether the context survived; a lost one needs a new process."""
    reason = " ".join(str(error).split())
    if isinstance(error, cuda.MemoryError):
        return OutOfMemory(reason)
    try:
        cuda.Context.synchronize()
    except cuda.Error:
        return LaunchFailed(reason, fatal=True)
    return LaunchFailed(reason, fatal=False)
