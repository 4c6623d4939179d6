"""g++ as the CPU device calls it: flags, headers that stand for CUDA's, kept files, messages."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from launchwise.base.storage import digest, digest_files
from launchwise.workloads.device import LaunchFailed

INCLUDE = Path(__file__).with_name("include")
HEADER = "cuda_on_cpu.h"
RUNTIME = "launchwise_cpu/runtime.cpp"
FLAGS = [
    "-std=c++20",
    "-O1",
    "-w",
    "-ffp-contract=off",
    "-fPIC",
    "-fno-strict-aliasing",
    "-fno-threadsafe-statics",
    # Two libraries of one process may hold functions of one name.
    "-fno-gnu-unique",
]

WATCHED = ["-fsanitize=thread", "--param=tsan-instrument-func-entry-exit=0", "-g1"]
"""Flags of builds whose accesses to memory are watched: the runtime has what g++ then calls."""

LIBRARIES = ["-nodefaultlibs", "-lstdc++", "-lm", "-lc", "-lgcc_s", "-lgcc"]
"""What they are linked with: not that of g++, which watches threads of the CPU."""

MOST_KB = 4 << 20  # Most memory of g++, KB: templates and constants of a source take any

LIMITED = ["/bin/sh", "-c", 'ulimit -v "$0" 2>/dev/null; exec "$@"', str(MOST_KB)]
"""Beginning of a command under this limit."""


class CannotCompile(LaunchFailed):
    """A build that g++ or the CPU device refuses; the message names file and line."""


class CannotRun(CannotCompile):
    """A build with something that runs on a GPU only."""


class CompilerKilled(CannotCompile):
    """g++ was ended by a signal, which is no fault of the source."""


def private_folder(name: str) -> Path:
    """A private folder for kept files in the system's temporary folder."""
    folder = Path(tempfile.gettempdir(), f"launchwise-cpu-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.getuid() or folder.stat().st_mode & 0o022:
        folder = _own_folder()
    (folder / name).mkdir(exist_ok=True)
    return folder / name


@cache
def _own_folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="launchwise-cpu-"))


def gxx(arguments: list[str], text: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run g++ in an empty folder, so that no file of the current folder is taken for a header.
    Bytes that are not UTF-8 pass through as surrogates. Raises CompilerKilled when a signal ends
    g++, or one of the programs that it runs."""
    path = shutil.which("g++")
    if path is None:
        raise CannotCompile("g++ is not on the PATH; the CPU device needs it")
    done = subprocess.run(
        [*LIMITED, os.path.abspath(path), *FLAGS, *arguments],
        input=text,
        encoding="utf-8",
        errors="surrogateescape",
        capture_output=True,
        env={**os.environ, "LC_ALL": "C"},
        cwd=private_folder("empty"),
    )
    if ended := _signal(done):
        raise CompilerKilled(f"g++ was ended by {ended}: the machine may lack memory")
    return done


def _signal(done: subprocess.CompletedProcess[str]) -> str:
    """The signal that ended g++ or a program that it ran, in words; '' if none did."""
    if done.returncode < 0:
        return f"signal {-done.returncode} ({signal.strsignal(-done.returncode)})"
    # The text is the system's, in English.
    told = re.search(r"^\S+: fatal error: (.+) signal terminated program \w+", done.stderr, re.M)
    every = {signal.strsignal(each): each for each in signal.valid_signals()} if told else {}
    if told and told[1] in every:
        return f"signal {int(every[told[1]])} ({told[1]})"
    return f"a signal ({told[1]})" if told else ""


@cache
def toolchain() -> str:
    """Digest of the compiler, its flags and the CPU device's own headers."""
    own = [path for path in INCLUDE.rglob("*") if path.is_file()]
    return digest([_version(), FLAGS, WATCHED, digest_files(own)])


@cache
def _version() -> str:
    return gxx(["-v", "-E", "-x", "c++", os.devnull]).stderr


@cache
def header_folders() -> list[Path]:
    """Folders of headers of the CPU device and of the compiler."""
    searched = _version().partition("#include <...>")[2].partition("End of search list")[0]
    return [INCLUDE, *(Path(line.strip()) for line in searched.splitlines()[1:])]


@cache
def own_code() -> str:
    """Digest of the modules that translate sources: what they kept is not taken from others."""
    library = Path(__file__).parents[1]
    return digest_files(sorted([*library.glob("cpu/*.py"), *library.glob("cuda_text/*.py")]))


def headers_folder() -> Path:
    """Folder with a copy of the CPU device's headers, so that what is kept outlives a checkout."""
    folder = private_folder(f"header-{toolchain()}") / "include"
    made(folder, partial(shutil.copytree, INCLUDE))
    return folder


def empty_headers(names: Iterable[str]) -> Path:
    """Folder in which each of these headers exists, and holds nothing."""
    folder = private_folder("headers-of-libraries")
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return folder


def precompiled(flags: Iterable[str] = ()) -> tuple[Path, Path]:
    """The header of the CPU device, its precompiled form by more flags beside it, and its compiled
    runtime."""
    # Not in the folder that is searched: the runtime would take it with flags of its own.
    folder, runtime = headers_folder().parent, headers_folder().with_name("runtime.o")
    header = folder / ("watched" if flags else "plain") / HEADER
    header.parent.mkdir(exist_ok=True)
    made(header, lambda scratch: scratch.write_text((INCLUDE / HEADER).read_text()))
    steps = {
        header.with_name(f"{HEADER}.gch"): [*flags, "-x", "c++-header", str(header)],
        runtime: ["-O2", "-c", str(headers_folder() / RUNTIME)],
    }
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda step: made(step[0], partial(_built, step[1])), steps.items()))
    return header, runtime


def _built(options: list[str], scratch: Path) -> None:
    done = gxx(["-isystem", str(headers_folder()), *options, "-o", str(scratch)])
    if done.returncode:
        raise CannotCompile(f"the header of the CPU device: {done.stderr.strip()}")


def made(path: Path, make: Callable[[Path], object]) -> None:
    """Make a file or folder unless it is there; another process may be making the same one."""
    if not path.exists():
        scratch = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}")
        make(scratch)
        try:
            scratch.replace(path)
        except OSError:
            # A folder takes no other's place.
            if not path.is_dir():
                raise
            shutil.rmtree(scratch)


_ERROR = re.compile(r"^(.*?:\d+):\d+: (?:fatal )?error: (.*)$", re.MULTILINE)
_REQUIRED = re.compile(r"^(.*?:\d+):\d+:\s+required from here", re.MULTILINE)
_UNDEFINED = re.compile(r"undefined reference to [`'](.*?)'")
_UNDECLARED = re.compile(
    r"'(?:\w+::)*(\w+)' (?:was not declared|does not name|has not been declared|is not a member)"
    r"|'(?:\w+::)*(\w+)' is not a|no matching function for call to '(?:\w+::)*(\w+)"
)

MOST_ERRORS = 3


@dataclass(frozen=True)
class Error:
    place: str  # file and line
    message: str

    @property
    def undeclared(self) -> str:
        """The name that is missing, '' if the error is another one."""
        found = _UNDECLARED.search(self.message)
        return next((name for name in found.groups() if name), "") if found else ""


def errors(said: str, headers: str, source: str) -> list[Error]:
    """The first three errors of g++ in files of the user's, each of another line and message; the
    first one alone if there is none there. ``said``: all that g++ says. ``headers``: folder of the
    CPU device's own headers. ``source``: the build's source, for errors without a place."""
    foreign = (headers, "/usr/", "<")
    every = [Error(*error) for error in _ERROR.findall(said)]
    found: dict[str, Error] = {}
    for error in every:
        # What is not declared is told once.
        known = any(one.message == error.message for one in found.values())
        if not error.place.startswith(foreign) and not known:
            found.setdefault(error.place, error)
    if found:
        return list(found.values())[:MOST_ERRORS]
    # Of a template of a library, the line of the user that asks for it.
    asking = [place for place in _REQUIRED.findall(said) if not place.startswith(foreign)]
    if every:
        return [Error(asking[0] if asking else every[0].place, every[0].message)]
    if undefined := _UNDEFINED.search(said):
        return [Error(source, f"{undefined[1]} is declared, but defined nowhere")]
    return [Error(source, f"g++: {' '.join(said.split())[-500:]}")]


def plain(text: str) -> str:
    """The text with a question mark for each byte that is not UTF-8."""
    return text.encode(errors="surrogateescape").decode(errors="replace").replace("\ufffd", "?")
