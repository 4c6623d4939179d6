"""The archive of recorded sweeps: a zip of a clone's data, with the checksum of each file.

    python -m launchwise.cli.data.archive dist

writes ``dist/launchwise-data-VERSION.zip``, the same bytes for the same data.
"""

from __future__ import annotations

import hashlib
import json
import sys
import zipfile
from pathlib import Path

from pydantic import Field

import launchwise
from launchwise.base.places import ROOT
from launchwise.base.storage import whole_file
from launchwise.base.typed import Strict

FOLDERS = ("data/recorded", "data/public/gpus")
MANIFEST = "launchwise-data.json"
EPOCH = (1980, 1, 1, 0, 0, 0)


class Entry(Strict):
    """A file of the archive."""

    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    bytes: int = Field(ge=0)


class Manifest(Strict):
    """What the archive holds, and the version of launchwise that it was made with."""

    launchwise: str
    files: dict[str, Entry]


def data_files(clone: Path) -> list[str]:
    """Paths of a clone's recorded data, from its root, sorted."""
    found = (path for name in FOLDERS for path in (clone / name).rglob("*"))
    return sorted(path.relative_to(clone).as_posix() for path in found if path.is_file())


def write_archive(folder: Path, clone: Path = ROOT) -> Path:
    """Write the archive of a clone's data; gives its path.

    Raises
    ------
    UserError
        When it cannot be written.
    """
    target = folder / f"launchwise-data-{launchwise.__version__}.zip"
    contents = {name: (clone / name).read_bytes() for name in data_files(clone)}
    entries = {
        name: Entry(sha256=hashlib.sha256(content).hexdigest(), bytes=len(content))
        for name, content in contents.items()
    }
    manifest = Manifest(launchwise=launchwise.__version__, files=entries)
    listed = json.dumps(manifest.model_dump(), indent=1, sort_keys=True).encode()
    with whole_file(target) as scratch, zipfile.ZipFile(scratch, "w") as packed:
        for name, content in {MANIFEST: listed, **contents}.items():
            packed.writestr(zipfile.ZipInfo(name, date_time=EPOCH), content)
    return target


if __name__ == "__main__":
    print(write_archive(Path(sys.argv[1])))
