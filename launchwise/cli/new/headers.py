"""Texts of a CUDA file and of the local headers that it includes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from launchwise.base.errors import UserError
from launchwise.cuda_text.preprocessor import MISSING
from launchwise.cuda_text.syntax import without_comments
from launchwise.workloads import sources
from launchwise.workloads.sources import INCLUDE, MOST_BYTES, PROJECT_KERNELS, source_text

_FOREIGN = re.compile(
    r"(cuda|cub|thrust|nv|nvtx3|cooperative_groups|crt)/"
    r"|(curand|cu(blas|fft|sparse|solver|pti|dnn|tensor)|nv(rtc|jpeg|ml|ToolsExt)|npp|nccl)\w*\.\w+$"
    r"|cuda(GL|EGL|VDPAU|Profiler|rt_platform)?(Typedefs)?\.h$|cuComplex\.h$"
    r"|cuda_(runtime|runtime_api|device_runtime_api|fp4|fp6|fp8|fp16|bf16|awbarrier\w*|pipeline\w*"
    r"|profiler_api|occupancy|stdint|gl_interop|egl_interop|vdpau_interop|(texture|surface)_types)\.h"
    r"|cooperative_groups\.h|device_(\w+_functions|functions|launch_parameters|types)\.h"
    r"|(vector|driver|texture|surface|library|builtin|channel|math)_(types|functions)\.h"
    r"|sm_\d\d_\w+\.h|math_constants\.h|mma\.h|host_(config|defines)\.h"
    r"|(std\w+|assert|complex|ctype|errno|fenv|float|inttypes|iso646|limits|locale|malloc|math"
    r"|memory|omp|setjmp|signal|strings?|(tg)?math|time|threads|uchar|unistd|wc(har|type))\.h$"
    r"|sys/|[a-z_\d]+$"
)
"""Headers of the CUDA toolkit, of C and of C++, whose names have no suffix: no local files,
although some include them in quotes."""
_GUARD = re.compile(
    r"\A\s*#\s*ifndef\s+(\w+)\s*\n\s*#\s*define\s+\1[ \t]*\n(.*)\n[ \t]*#\s*endif[^\n]*\s*\Z",
    re.DOTALL,
)
_CONDITION = re.compile(r"^[ \t]*#[ \t]*(if|endif)", re.MULTILINE)
_MOST_HEADERS = 500  # More of them are no headers of one kernel
_MOST_TIMES = 4  # As often a header is read that stands below conditions


@dataclass(frozen=True)
class Header:
    """A file of the user's that a CUDA file includes, directly or not."""

    name: str  # as the ``#include`` has it
    path: Path | None  # where it lies; None where it is missing
    place: str = ""  # relative to the folder of the CUDA file; empty where it lies outside


def with_headers(path: Path, own: str | None = None) -> tuple[str, list[Header]]:
    """Cleaned text of a CUDA file with its local headers in the place of their ``#include``. Each
    header is read once, but for those below a condition. What lies in the project's ``kernels/`` is
    read but not listed: every workload may include it. ``own`` is the CUDA text that a file of
    another language holds. Raises UserError when a file cannot be read, or all are longer than
    :data:`MOST_BYTES`."""
    top = path.resolve().parent
    headers: dict[str, Header] = {}
    times = Counter({path.resolve(): _MOST_TIMES})
    total = 0

    def text_of(file: Path, is_sure: bool) -> str:
        nonlocal total
        text = own if own is not None and file == path else source_text(file)
        total += len(text)
        if total > MOST_BYTES:
            raise UserError(path, "", f"and its headers are longer than {MOST_BYTES:,} bytes")
        text = without_comments(text)
        if file != path and (guarded := _GUARD.match(text)):
            text = guarded[2]

        def part(match: re.Match[str]) -> str:
            before = _CONDITION.findall(text[: match.start()])
            is_open = before.count("if") > before.count("endif")
            return included(match[1] or match[2], file, not match[1], is_sure and not is_open)

        return INCLUDE.sub(part, text)

    def included(name: str, beside: Path, angled: bool, is_sure: bool) -> str:
        foreign = _FOREIGN.match(name)
        found = None if angled and foreign else sources.included(top, name, beside.resolve().parent)
        if found is None:
            # A name in angle brackets may be that of a library that is installed.
            if not foreign and (not angled or name.endswith(".cuh")):
                headers.setdefault(name, Header(name, None))
                return f"{MISSING} {name.replace(' ', '_')}"
            return ""
        if times[found] >= _MOST_TIMES or len(times) > _MOST_HEADERS:
            return ""
        times[found] += _MOST_TIMES if is_sure else 1
        if found.is_relative_to(top):
            place = found.relative_to(top).as_posix()
            headers[place] = Header(name, found, place)
        elif not found.is_relative_to(PROJECT_KERNELS):
            headers[str(found)] = Header(name, found)
        return text_of(found, is_sure)

    text = text_of(path, True)
    return text, list(headers.values())


def remarks(headers: Sequence[Header], file: str, folder: str) -> list[str]:
    """What a person must do about headers that are not copied to a folder; one line each."""
    found = []
    for one in headers:
        said = f"{file} includes {one.name}, which"
        if one.path is None:
            found.append(f"{said} is not there: copy it to {folder}/{one.name}")
        elif not one.place:
            outside = f"lies outside its folder: copy it to {folder}"
            found.append(f"{said} {outside}, and name it without .. in the #include")
    return found
