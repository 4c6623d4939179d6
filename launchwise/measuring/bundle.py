"""Outcomes of compilers: a zip with an index, symbols of kernels, what nvcc says of a source.

The index names, for every build, the cubin that holds it and each kernel's symbol, registers,
spilled bytes and shared memory. A build of functions in C has a shared library instead of a cubin.
"""

from __future__ import annotations

import ctypes
import json
import re
import struct
import zipfile
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from launchwise.base.errors import UserError
from launchwise.base.storage import whole_file
from launchwise.workloads.builds import Build, split_kernel, symbol_path
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
                index: dict[str, Any] = json.loads(archive.read(INDEX))
                self._cubins = {name: archive.read(name) for name in index["cubins"]}
            self.index = index
            self.arch = str(index["arch"])  # of the cubins, such as ``sm_90``
            self.toolkit = str(index["toolkit"])  # release of nvcc that made them, such as ``13.0``
            self.fingerprint = str(index["fingerprint"])  # hash of sources, flags and compiler
        except _UNREADABLE as error:
            raise UserError(path, "", f"is not a cubin bundle (truncated?): {error}") from error
        # Key of a build that a compiler refused, or that had none, to what is said of it.
        self.refused: Mapping[str, str] = index.get("refused", {})
        # Source whose compiler was missing to what had to be installed.
        self.left_out: Mapping[str, str] = index.get("left_out", {})
        # Programs beside nvcc that made builds, and their releases.
        self.compilers: Mapping[str, str] = index.get("compilers", {})

    def holds(self, build: Build) -> bool:
        """Whether it has kernels of ``build``, or says why there are none."""
        return build.key in self.index["builds"] or build.key in self.refused

    def cubin(self, name: str) -> bytes:
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


MARK = "launchwise_names"  # First part of the name of the empty kernels

_SYMBOL_TABLE, _OBJECT, _SYMBOL_BYTES = 2, 1, 24
"""Of ELF: type of a section, type of a symbol, size of an entry."""


def mark_of(build: Build, number: int) -> str:
    """Name of the empty kernel that names the kernel ``number`` of a build."""
    return f"{MARK}_{number}_{build.key}"


@cache
def _demangler() -> ctypes.CDLL | None:
    """The C++ library of the machine; None where there is none."""
    try:
        library = ctypes.CDLL("libstdc++.so.6")
        library.__cxa_demangle.restype = ctypes.c_void_p
    except (OSError, AttributeError):
        return None
    return library


def demangled(symbol: str) -> str | None:
    """C++ text of a symbol; None for a name of C, or without a C++ library."""
    library = _demangler()
    if library is None or not symbol.startswith("_Z"):
        return None
    status = ctypes.c_int()
    given = ctypes.c_char_p(symbol.encode())
    text = library.__cxa_demangle(given, None, None, ctypes.byref(status))
    if not text:
        return None
    try:
        return (ctypes.string_at(text) or b"").decode(errors="replace")
    finally:
        free = ctypes.CDLL(None).free
        free.argtypes = [ctypes.c_void_p]
        free(text)


def kernel_symbols(build: Build, symbols: Iterable[str]) -> dict[str, str]:
    """Kernel of a build to its symbol, among those of the module's entry functions (others do no
    harm); one without a symbol is missing. Raises UserError when several functions of the source
    have the name of a kernel."""
    own = list(symbols)
    if not build.kernels:
        return {kernel: each for each in own if (kernel := build.kernel_of(each)) is not None}
    marks = {symbol_path(symbol).names[-1]: symbol for symbol in own if MARK in symbol}
    plain = [symbol for symbol in own if MARK not in symbol]
    found: dict[str, str] = {}
    for number, kernel in enumerate(build.kernels):
        named = [symbol for symbol in plain if build.is_named(symbol, kernel)]
        alike = [each for each in named if symbol_path(each).is_template == ("<" in kernel)]
        candidates = alike or named
        if mark := marks.get(mark_of(build, number)):
            said = demangled(mark)
            # Without a C++ library, an instantiation is found if it is the only one.
            if said is not None:
                candidates = [each for each in candidates if f"({demangled(each)})" in said]
        if len(candidates) > 1:
            message = "is the name of several functions: give each one a name of its own"
            raise UserError(build.source, split_kernel(kernel)[0], message)
        if candidates:
            found[kernel] = candidates[0]
    return found


def constant_symbols(build: Build, names: Collection[str], cubin: bytes) -> dict[str, str]:
    """Names of variables of a build to their symbols, whatever namespaces surround them. A name
    that several variables of the build have is left out."""
    paths = {symbol: symbol_path(symbol).names for symbol in _objects(cubin)}
    own = {symbol: path for symbol, path in paths.items() if build.namespace in path}
    found: dict[str, list[str]] = {}
    # A source that is compiled as it is has no namespace around it.
    for symbol, path in (own or paths).items():
        if path and path[-1] in names:
            found.setdefault(path[-1], []).append(symbol)
    return {name: symbols[0] for name, symbols in found.items() if len(symbols) == 1}


def _objects(cubin: bytes) -> Iterator[str]:
    """Symbols of variables in an ELF file of 64 bits, little-endian."""
    if cubin[:6] != b"\x7fELF\x02\x01":
        return
    (start,) = struct.unpack_from("<Q", cubin, 40)
    size, count = struct.unpack_from("<HH", cubin, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", cubin, start + n * size) for n in range(count)]
    for section in sections:
        kind, offset, nbytes, linked = section[1], section[4], section[5], section[6]
        if kind != _SYMBOL_TABLE:
            continue
        names = sections[linked][4]
        for place in range(offset, offset + nbytes, _SYMBOL_BYTES):
            name, info = struct.unpack_from("<IB", cubin, place)
            if info & 0xF == _OBJECT:
                first = names + name
                yield cubin[first : cubin.index(b"\0", first)].decode(errors="replace")


_ERROR = re.compile(
    r"^(?P<file>[^\n]+?)(?:\((?P<line>\d+)\)|:(?P<other>\d+)(?::\d+)?): *"
    r"(?:catastrophic |fatal )?error(?: #[\w-]+)?: *(?P<text>[^\n]*)$",
    re.MULTILINE,
)
_MORE = re.compile(r" {8,}(\S.*)")
"""Lines of nvcc that go on with a message: candidates of a call, types of its arguments."""

_DECLARED = re.compile(r" \(declared at line \d+ of [^()]*\)")
# A unit of nvcc's has no folder; a file of the user's may have the same name, in its folder.
_TEMPORARY = re.compile(r"(?:\S*/)?tmpxft_\S*|(?<![\w./-])kernel\.(?:cu|ptx|cubin)\b")
_INSTANCE = re.compile(r"\b(?P<name>\w+)<(?P<given>[^<>]*)>")

MOST_ERRORS = 3
MOST_CONTINUED = 1 << 16  # Characters behind an error that may go on with it
MOST_CANDIDATES = 3


def refusal(said: str, error: Exception, folder: Path) -> str:
    """First errors of nvcc, in one line: ``nvcc failed: file.cu:12: identifier "x" is undefined``.
    Up to :data:`MOST_ERRORS` of different lines of the source, with semicolons between them.
    ``said``: output of nvcc; ``error``: what is told if that is empty. ``folder``: of the workload:
    paths of files inside are relative to it."""
    by_place: dict[str, str] = {}
    for match in _ERROR.finditer(said):
        if len(by_place) == MOST_ERRORS:
            break
        what = match["text"].removeprefix("#error ")
        if more := _continued(said[match.end() : match.end() + MOST_CONTINUED]):
            what = f"{what.removesuffix(':')}: {more}"
        place = f"{match['file'].strip()}:{match['line'] or match['other']}"
        by_place.setdefault(as_user_knows(place, folder), as_user_knows(what, folder))
    if by_place:
        return f"nvcc failed: {'; '.join(f'{place}: {what}' for place, what in by_place.items())}"
    lines = [line.strip() for line in said.splitlines() if "error" in line or "fatal" in line]
    text = lines[0] if lines else (said.strip() or repr(error))[:500]
    return f"nvcc failed: {as_user_knows(text, folder)}"


def of_another_build(said: str, kernels: Iterable[str]) -> str:
    """What to add to a refusal of an instantiation that a build does not ask for; '' for nothing.
    ``said``: as :func:`refusal` tells it. ``kernels``: those of the build, such as ``gemm<32,
    true>``. Only numbers are compared."""
    asked: dict[str, set[tuple[str, ...]]] = {}
    for kernel in kernels:
        if named := _INSTANCE.search(kernel):
            asked.setdefault(named["name"], set()).add(_numbers(named["given"]))
    for named in _INSTANCE.finditer(said):
        given, known = _numbers(named["given"]), asked.get(named["name"], set())
        plain = all(each.isdigit() for one in (given, *known) for each in one)
        if known and plain and given not in known:
            return "; this build does not ask for it: host code of the file instantiates it"
    return ""


def _numbers(given: str) -> tuple[str, ...]:
    """Template arguments, truth values as 0 and 1."""
    plain = (each.strip().rstrip("uUlL") for each in re.sub(r"\(\w+\)", "", given).split(","))
    return tuple({"true": "1", "false": "0"}.get(each, each) for each in plain)


def _continued(rest: str) -> str:
    """What the lines after an error add to it; the source and its caret are left out."""
    lines = rest.splitlines()[1:]
    more: list[str] = []
    for line, after in zip(lines, [*lines[1:], ""], strict=False):
        match = _MORE.match(line)
        if match is None or set(line.strip()) <= {*"^~"} or after.strip() == "^":
            break
        more.append(_DECLARED.sub("", match[1]))
    if len(more) > MOST_CANDIDATES + 1:
        more = [*more[:MOST_CANDIDATES], f"{len(more) - MOST_CANDIDATES - 1} more", more[-1]]
    return ", ".join(more)


def as_user_knows(text: str, folder: Path) -> str:
    """A message without the names that a build adds, and with paths inside the folder."""
    text = _TEMPORARY.sub("unit", text)
    for place in (folder.resolve(), folder):
        text = text.replace(f"{place}/", "")
    text = re.sub(r"\b_Z\w+", lambda match: demangled(match[0]) or match[0], text)
    text = re.sub(r"\bbuild_[0-9a-f]{16}(?:::|\b)", "", text)
    return re.sub(r"_[0-9a-f]{16}\b", "", text)
