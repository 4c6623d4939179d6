"""Calls of functions in C that offload their work, as runs that the host drives."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from launchwise.workloads.device import Buffer, Device, HostRun, Launch, LaunchFailed, Restore


class FunctionRun(HostRun):
    """A call of a function in C, which returns when the device has finished.

    The host's clock times it: the function queues its work on streams of its own, where events
    of a caller see nothing of it.

    ``launch``: a build whose source ends in ``.c``, the function and its arguments; grid and block
        are the function's own affair.
    ``restores``: put back before each timed call, outside of the timed region.
    """

    def __init__(self, device: Device, launch: Launch, restores: tuple[Restore, ...] = ()) -> None:
        self.launches = (launch,)
        self.restores = restores
        self._device = device

    @classmethod
    def of(
        cls, device: Device, build: Any, function: str, arguments: tuple[Any, ...], **more: Any
    ) -> FunctionRun:
        """A call of ``function`` of a build with ``arguments``, as those of a :class:`Launch`."""
        one = (1, 1, 1)
        return cls(device, Launch(build, function, one, one, arguments), **more)

    def run(self) -> None:
        """Call it once."""
        self._device.launch(self.launches[0])


def called(
    library: ctypes.CDLL, launch: Launch, address: Callable[[Buffer], int]
) -> Callable[[], None]:
    """Function that makes the call of a launch.

    ``address``: of a buffer, in the memory that the function works on.
    Raises LaunchFailed when the library lacks the function, or C has no type for an argument.
    """
    symbol = launch.build.symbol(launch.kernel)
    try:
        function = library[symbol]
    except AttributeError:
        message = f"{launch.build.source} has no function {launch.kernel}"
        raise LaunchFailed(message, fatal=False) from None
    function.restype = None
    arguments = [_c_value(each, launch.kernel, address) for each in launch.arguments]

    def call() -> None:
        function(*arguments)

    return call


def _c_value(argument: Any, function: str, address: Callable[[Buffer], int]) -> Any:
    if hasattr(argument, "nbytes") and not isinstance(argument, np.generic):
        return ctypes.c_void_p(address(argument))
    try:
        kind = np.ctypeslib.as_ctypes_type(argument.dtype)
    except NotImplementedError:
        message = f"{function}: C has no type for an argument of type {argument.dtype}"
        raise LaunchFailed(message, fatal=False) from None
    return kind.from_buffer_copy(argument.tobytes())
