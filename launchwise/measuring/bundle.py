"""Outcomes of compilers, and their zip with an index: one per workload and architecture.

The index names, for every build, the cubin that holds it and each kernel's symbol, registers,
spilled bytes and shared memory. A build of functions in C has a shared library instead of a cubin.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from launchwise.base.errors import UserError
from launchwise.base.storage import whole_file
from launchwise.workloads.builds import Build
from launchwise.workloads.device import Launch

INDEX = "index.json"
EPOCH = (1980, 1, 1, 0, 0, 0)

# What reading a damaged zip, or a zip of something else, is known to raise.
_UNREADABLE = (
    *(OSError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError),
    *(KeyError, TypeError, ValueError),
)


@dataclass(frozen=True)
class Kernel:
    """A compiled kernel: its location and its resources per SM."""

    cubin: str
    symbol: str
    registers: int
    spill_bytes: int
    shared_bytes: int
    # What the compiler, not the spec, decides of a launch; of kernels of Triton alone.
    launch: Mapping[str, Any] | None = None

    def completed(self, launch: Launch) -> Launch:
        """The launch with what the compiler decides. Threads per block; dynamic shared memory,
        bytes; blocks per program instance (``num_ctas``); the places of the arguments that the
        kernel takes, which are not those that it was compiled for; and null pointers behind them,
        to scratch memory that it does not use."""
        if self.launch is None:
            return launch
        x, y, z = launch.grid
        given = tuple(launch.arguments[place] for place in self.launch["arguments"])
        return replace(
            launch,
            grid=(x * self.launch["ctas"], y, z),
            block=(self.launch["threads"], 1, 1),
            arguments=given + (np.uint64(0),) * self.launch["null_pointers"],
            shared_bytes=self.launch["shared_bytes"],
        )


class Bundle:
    """An open cubin bundle. Raises UserError when the file is missing, truncated or no bundle."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            with zipfile.ZipFile(self.path) as archive:
                self.index: dict[str, Any] = json.loads(archive.read(INDEX))
                self._cubins = {name: archive.read(name) for name in self.index["cubins"]}
        except _UNREADABLE as error:
            raise UserError(path, "", f"is not a cubin bundle (truncated?): {error}") from error

    @property
    def arch(self) -> str:
        """Architecture that the cubins are for, such as ``sm_90``."""
        return str(self.index["arch"])

    @property
    def toolkit(self) -> str:
        """Release of nvcc that made them, such as ``13.0``."""
        return str(self.index["toolkit"])

    @property
    def fingerprint(self) -> str:
        """Hash of sources, flags and compiler."""
        return str(self.index["fingerprint"])

    @property
    def refused(self) -> Mapping[str, str]:
        """Key of a build that a compiler refused, or that had none, to what is said of it."""
        found: Mapping[str, str] = self.index.get("refused", {})
        return found

    @property
    def left_out(self) -> Mapping[str, str]:
        """Source whose compiler was missing to what had to be installed."""
        found: Mapping[str, str] = self.index.get("left_out", {})
        return found

    @property
    def compilers(self) -> Mapping[str, str]:
        """Programs beside nvcc that made builds, and their releases."""
        found: Mapping[str, str] = self.index.get("compilers", {})
        return found

    def cubin(self, name: str) -> bytes:
        """Content of one cubin."""
        return self._cubins[name]

    def constant(self, build: Build, name: str) -> str:
        """Symbol of the ``__constant__`` array ``name`` of ``build``."""
        placed: Mapping[str, str] = self.index.get("constants", {}).get(build.key, {})
        return placed.get(name, build.constant(name))

    def kernel(self, build: Build, name: str) -> Kernel:
        """The kernel ``name`` of ``build``. Raises UserError when the bundle does not hold it: the
        bundle is older than the question."""
        try:
            return Kernel(**self.index["builds"][build.key][name])
        except KeyError:
            message = f"holds no {name} from {build.source} with {dict(build.defines)}"
            raise UserError(self.path, "", message) from None


def write_bundle(path: str | Path, index: dict[str, Any], cubins: dict[str, bytes]) -> None:
    """Write a bundle atomically; the same content gives the same bytes."""
    members = {INDEX: json.dumps(index, indent=1, sort_keys=True).encode(), **cubins}
    with whole_file(path) as scratch, zipfile.ZipFile(scratch, "w") as archive:
        for name, content in members.items():
            entry = zipfile.ZipInfo(name, date_time=EPOCH)
            archive.writestr(entry, content, compress_type=zipfile.ZIP_DEFLATED)


class CompilerMissing(Exception):
    """A compiler beside nvcc is not on this machine; the message says what to install."""


@dataclass(frozen=True)
class Apart:
    """A build with a member of the bundle of its own: its name and content, and its index entry."""

    build: Build
    member: str
    content: bytes
    kernels: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Compiled:
    """Outcome of compiling a group of builds."""

    cubins: list[tuple[list[Build], bytes]]  # builds that were compiled together, with their cubin
    # Key of a build to what its compiler says against it.
    refused: Mapping[str, str] = field(default_factory=dict)
    # Builds that are compiled one by one, not by nvcc.
    apart: list[Apart] = field(default_factory=list)


def joined(parts: list[Compiled]) -> Compiled:
    """Outcome of several groups."""
    refused = {key: said for part in parts for key, said in part.refused.items()}
    return Compiled(
        [each for part in parts for each in part.cubins],
        refused,
        [each for part in parts for each in part.apart],
    )
