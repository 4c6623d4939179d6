"""Arrays of other libraries in device memory: where they lie, on which stream work on them runs.

CuPy and PyTorch are asked by their own attributes, which takes a tenth of the time of the general
interfaces. Anything else is read by ``__cuda_array_interface__`` or DLPack.
"""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

CUDA, CUDA_MANAGED = 2, 13  # kinds of devices (``DLDeviceType``) whose memory a kernel may use
KINDS = {0: "i", 1: "u", 2: "f", 5: "c"}  # NumPy's letters of DLPack's type codes


class _Device(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_int32), ("number", ctypes.c_int32))


class _Type(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _Tensor(ctypes.Structure):
    """``DLTensor`` of DLPack's header, with which a capsule's content begins."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("dimensions", ctypes.c_int32),
        ("type", _Type),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    )


@dataclass(frozen=True)
class Tensor:
    """Content of a capsule: strides in elements, None for a contiguous array."""

    pointer: int
    device_kind: int
    device: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    dtype: np.dtype[Any] | str


_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype = ctypes.c_void_p
_pointer_of.argtypes = (ctypes.py_object, ctypes.c_char_p)


def read_capsule(capsule: Any) -> Tensor:
    """Content of a capsule that ``__dlpack__`` gave. The capsule stays the caller's: it is not
    consumed, so that it gives its memory back itself. Raises ValueError when it is no capsule of
    this name."""
    tensor = _Tensor.from_address(_pointer_of(capsule, b"dltensor"))
    size = tensor.dimensions
    return Tensor(
        pointer=(tensor.data or 0) + tensor.offset,
        device_kind=tensor.device.kind,
        device=tensor.device.number,
        shape=tuple(tensor.shape[:size]) if size else (),
        strides=tuple(tensor.strides[:size]) if tensor.strides and size else None,
        dtype=_dtype(tensor.type),
    )


def _dtype(kind: _Type) -> np.dtype[Any] | str:
    """NumPy's type, or the name of one that NumPy does not have."""
    if kind.lanes != 1 or kind.code not in KINDS or kind.bits % 8:
        return f"DLPack type {kind.code} of {kind.bits} bits and {kind.lanes} lanes"
    return np.dtype(f"{KINDS[kind.code]}{kind.bits // 8}")


Kind = tuple[tuple[int, ...], Any, int]
"""Shape, type (a NumPy type, or the name of one that NumPy lacks) and number of the device."""

LEGACY_STREAM, SAME_LEGACY_STREAM = 0, 1  # handles of the default stream: CUDA knows it by both


class Library(Protocol):
    """Reader of the arrays of one library."""

    def stream(self, array: Any) -> int:
        """Handle of the stream on which the library's work with ``array`` runs now."""

    def read(self, array: Any, name: str, stream: int) -> tuple[int, Kind]:
        """Address and kind of an array that is about to be used on ``stream``. Raises ValueError
        when the array is not contiguous, or no kernel may use it."""

    def empty_like(self, array: Any, stream: int | None) -> Any:
        """A new array like ``array``, for use on ``stream`` (None: the library's current one)."""


def not_contiguous(name: str, shape: Any, strides: Any) -> ValueError:
    """The error for an array that is not contiguous."""
    return ValueError(f"{name} must be contiguous, not of shape {tuple(shape)} strides {strides}")


class Stream:
    """A stream by its handle, with the interface by which libraries take each other's."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        """Version of the interface, and the handle."""
        return 0, self._handle


class CupyArrays:
    """``cupy.ndarray``."""

    def __init__(self) -> None:
        import cupy

        self._cupy = cupy
        self._current: Callable[[int], Any] = cupy.cuda.get_current_stream
        # What cupy.empty_like ends in, without the Python on the way.
        self._array: Callable[[Any, Any], Any] = cupy.ndarray

    def stream(self, array: Any) -> int:
        return int(self._current(array.data.device_id).ptr)

    def read(self, array: Any, name: str, stream: int) -> tuple[int, Kind]:
        if not array.flags.c_contiguous:
            raise not_contiguous(name, array.shape, array.strides)
        data = array.data
        return data.ptr, (array.shape, array.dtype, data.device_id)

    def empty_like(self, array: Any, stream: int | None) -> Any:
        if stream is None:
            return self._array(array.shape, array.dtype)
        cuda = self._cupy.cuda
        with cuda.Stream.null if stream == LEGACY_STREAM else self._foreign(stream):
            return self._array(array.shape, array.dtype)

    def _foreign(self, stream: int) -> Any:
        """A stream of somebody else's as CuPy's."""
        kind = self._cupy.cuda.Stream
        if hasattr(kind, "from_external"):
            return kind.from_external(Stream(stream))
        return self._cupy.cuda.ExternalStream(stream)


class TorchTensors:
    """``torch.Tensor`` on a CUDA device."""

    def __init__(self) -> None:
        import torch

        self._torch = torch
        self._current: Callable[[Any], Any] = torch.cuda.current_stream
        self._empty_like: Callable[[Any], Any] = torch.empty_like
        self._types: dict[Any, Any] = {
            torch.float32: np.dtype("float32"),
            torch.float64: np.dtype("float64"),
        }

    def stream(self, array: Any) -> int:
        return int(self._current(array.device).cuda_stream)

    def read(self, array: Any, name: str, stream: int) -> tuple[int, Kind]:
        if not array.is_cuda:
            raise ValueError(f"{name} is in host memory, other arrays are on a device")
        if not array.is_contiguous():
            raise not_contiguous(name, array.shape, array.stride())
        if array.requires_grad:
            raise ValueError(f"{name} requires a gradient, solve has none: pass {name}.detach()")
        dtype = array.dtype
        known = self._types.get(dtype) or str(dtype).removeprefix("torch.")
        return array.data_ptr(), (array.shape, known, array.get_device())

    def empty_like(self, array: Any, stream: int | None) -> Any:
        if stream is None:
            return self._empty_like(array)
        cuda, device = self._torch.cuda, array.device
        default = stream == LEGACY_STREAM
        known = cuda.default_stream(device) if default else cuda.ExternalStream(stream, device)
        with cuda.stream(known):
            return self._empty_like(array)


class InterfaceArrays:
    """Anything with ``__cuda_array_interface__``, version 2 or 3.

    ``locate``: number of the device where an address lies.
    ``wait``: waits for a stream: where an array was written on another stream than the one that it
    is used on.
    """

    def __init__(self, locate: Callable[[int], int], wait: Callable[[int, int], None]) -> None:
        self._locate = locate
        self._wait = wait

    def stream(self, array: Any) -> int:
        return int(array.__cuda_array_interface__.get("stream") or LEGACY_STREAM)

    def read(self, array: Any, name: str, stream: int) -> tuple[int, Kind]:
        facts = array.__cuda_array_interface__
        shape, dtype = tuple(facts["shape"]), np.dtype(facts["typestr"])
        strides = facts.get("strides")
        if strides is not None and not _contiguous(shape, strides, dtype.itemsize):
            raise not_contiguous(name, shape, strides)
        if facts.get("mask") is not None:
            raise ValueError(f"{name} has a mask, which solve does not know")
        pointer, read_only = facts["data"]
        if read_only and name == "x":
            raise ValueError("x may not be written")
        device = self._locate(int(pointer)) if math.prod(shape) else 0
        written_on = facts.get("stream")
        if written_on is not None and one_handle(written_on) != stream:
            self._wait(device, int(written_on))
        return int(pointer), (shape, dtype, device)

    def empty_like(self, array: Any, stream: int | None) -> Any:
        return _made_by_its_library(array)


class DlpackArrays:
    """Anything with ``__dlpack__`` on a CUDA device."""

    def stream(self, array: Any) -> int:
        """See :class:`Library`: DLPack does not say, so the default stream."""
        return LEGACY_STREAM

    def read(self, array: Any, name: str, stream: int) -> tuple[int, Kind]:
        # The exporter makes its own work precede what comes on this stream; 0 is ambiguous there.
        tensor = read_capsule(array.__dlpack__(stream=stream or SAME_LEGACY_STREAM))
        if tensor.device_kind not in (CUDA, CUDA_MANAGED):
            raise ValueError(f"{name} is on a device of DLPack kind {tensor.device_kind}, not CUDA")
        if tensor.strides is not None and not _contiguous(tensor.shape, tensor.strides, 1):
            raise not_contiguous(name, tensor.shape, tensor.strides)
        return tensor.pointer, (tensor.shape, tensor.dtype, tensor.device)

    def empty_like(self, array: Any, stream: int | None) -> Any:
        return _made_by_its_library(array)


class HostArrays:
    """Arrays in host memory among arrays on a device: an error."""

    def stream(self, array: Any) -> int:
        """See :class:`Library`: there is none."""
        return LEGACY_STREAM

    def read(self, array: Any, name: str, stream: int) -> tuple[int, Kind]:
        raise ValueError(f"{name} is in host memory, other arrays are on a device")

    def empty_like(self, array: Any, stream: int | None) -> Any:
        return np.empty_like(array)


class Libraries:
    """Finds the library of an array; for the parameters see :class:`InterfaceArrays`."""

    def __init__(self, locate: Callable[[int], int], wait: Callable[[int, int], None]) -> None:
        self._known: dict[type, Library] = {}
        self._by_interface = InterfaceArrays(locate, wait)
        self._by_dlpack = DlpackArrays()
        self.host = HostArrays()

    def of(self, array: Any) -> Library:
        """The library that reads an array; :attr:`host` where it lies in host memory."""
        known = self._known.get(type(array))
        if known is not None:
            # PyTorch has one type for tensors of every device.
            return known if getattr(array, "is_cuda", True) else self.host
        for each in type(array).__mro__:
            named = f"{each.__module__.split('.')[0]}.{each.__qualname__}"
            if named in ("cupy.ndarray", "torch.Tensor"):
                found: Library = CupyArrays() if named == "cupy.ndarray" else TorchTensors()
                self._known[type(array)] = found
                return self.of(array)
        if hasattr(array, "__cuda_array_interface__"):
            return self._by_interface
        if hasattr(array, "__dlpack_device__") and int(array.__dlpack_device__()[0]) in (
            CUDA,
            CUDA_MANAGED,
        ):
            return self._by_dlpack
        return self.host


def stream_handle(stream: Any) -> int:
    """Handle of a stream of CuPy, PyTorch, PyCUDA, Numba or cuda.core, or the handle itself. Raises
    ValueError for anything else."""
    if isinstance(stream, int) and not isinstance(stream, bool) and stream >= 0:
        return one_handle(stream)
    for name in ("ptr", "cuda_stream", "handle"):
        if hasattr(stream, name):
            handle = getattr(stream, name)
            # Numba's are ctypes pointers, where None is the default stream.
            return one_handle(getattr(handle, "value", handle) or LEGACY_STREAM)
    if hasattr(stream, "__cuda_stream__"):
        return one_handle(stream.__cuda_stream__()[1])
    raise ValueError(f"stream= takes a stream or its handle, not {stream!r}")


def one_handle(handle: int) -> int:
    """The same handle for the same stream."""
    return LEGACY_STREAM if handle == SAME_LEGACY_STREAM else int(handle)


def _contiguous(shape: tuple[int, ...], strides: Any, itemsize: int) -> bool:
    """Whether elements of an array lie one behind the other; strides as ``itemsize`` counts."""
    if 0 in shape:
        return True
    expected = itemsize
    for size, stride in zip(reversed(shape), reversed(tuple(strides)), strict=True):
        if size > 1 and stride != expected:
            return False
        expected *= size
    return True


def _made_by_its_library(array: Any) -> Any:
    package = type(array).__module__.split(".")[0]
    make = getattr(sys.modules.get(package), "empty_like", None)
    if make is None:
        raise ValueError(f"x= must be given: {package} has no empty_like")
    return make(array)
