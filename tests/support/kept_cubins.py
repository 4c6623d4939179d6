"""What nvcc made and said, kept from run to run.

A unit is known by its text, the options, the release of nvcc, how it is called, and every file that
the unit includes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from inspect import getsource
from pathlib import Path
from subprocess import run

from launchwise.base.storage import digest, read_json, write_json
from launchwise.workloads.sources import included_files

NVCC = Callable[[str, list[str], Path], tuple[int, str]]
_INCLUDED = re.compile(r'#include\s*["<]([^">]+)[">]')


@cache
def _version() -> str:
    return run(["nvcc", "--version"], capture_output=True, text=True, check=True).stdout


class Places:
    """Folders of headers, whose names change from run to run while their contents do not."""

    def __init__(self, options: list[str]) -> None:
        named = [option.removeprefix("-I") for option in options if option.startswith("-I")]
        self._names = {place: f"<folder {number}>" for number, place in enumerate(named)}

    def without(self, text: str) -> str:
        """The text with a number in place of each folder's name."""
        for place, name in self._names.items():
            text = text.replace(place, name)
        return text

    def restored(self, text: str) -> str:
        """The text with the folders' names of today."""
        for place, name in self._names.items():
            text = text.replace(name, place)
        return text

    def contents(self, unit: str) -> list[list[str]]:
        """Each file that the unit includes, directly or not, and what is in it."""
        named = _INCLUDED.findall(unit)
        files = {file for place in self._names for file in included_files(Path(place), named)}
        texts = {file: file.read_text(errors="surrogateescape") for file in files}
        return sorted([self.without(each) for each in (str(file), texts[file])] for file in files)

    def stand_in(self, content: bytes) -> bool:
        """Whether one of the folders is named in what was made."""
        return any(place.encode() in content for place in self._names)


def keeping(nvcc: NVCC, kept: Path) -> NVCC:
    """``launchwise.measuring.compile._nvcc`` that asks nvcc once for each unit."""

    def known(unit: str, options: list[str], scratch: Path) -> tuple[int, str]:
        places = Places(options)
        asked = [_version(), getsource(nvcc), *map(places.without, [unit, *options])]
        path = kept / f"{digest([*asked, places.contents(unit)])}.json"
        cubin = scratch / "kernel.cubin"
        if path.exists():
            found = read_json(path)
            if found["cubin"] is not None:
                cubin.write_bytes(bytes.fromhex(found["cubin"]))
            return found["status"], places.restored(found["said"])
        status, said = nvcc(unit, options, scratch)
        content = cubin.read_bytes() if cubin.exists() else None
        # What a signal ended, or what names its place, says nothing of another run.
        if "died due to signal" not in said and status >= 0 and not places.stand_in(content or b""):
            made = None if content is None else content.hex()
            write_json(path, {"status": status, "said": places.without(said), "cubin": made})
        return status, said

    return known
