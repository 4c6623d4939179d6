"""The folder of a project, and the archive of recorded sweeps: a zip of a clone's data.

    python -m launchwise.cli.project dist

writes ``dist/launchwise-data-VERSION.zip``, the same bytes for the same data.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shlex
import shutil
import sys
import tempfile
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

from pydantic import Field

import launchwise
from launchwise.base import storage, typed
from launchwise.base.errors import UserError
from launchwise.base.names import inside
from launchwise.base.places import ROOT, shipped
from launchwise.base.storage import read_text, whole_file, write_bytes, write_text
from launchwise.base.typed import Strict, validated

EXAMPLE = "docs/tutorial/example/saxpy"
FILES = "launchwise/cli/project_files"  # Of a new project, beside its profiles
PROFILE = "profiles/default/config.yaml"  # How jobs run when no other profile is named
CORES = """
# Cores of this machine that jobs may take at once.
cores: all
"""


def begin(folder: Path, studies: bool) -> list[str]:
    """Write a project. ``folder``: new or empty. ``studies``: with the settings of launchwise's own
    studies, whose workloads are found without a copy. Returns what was done and what comes next,
    one line each. Raises UserError when something is in the folder already, or it cannot be
    written."""
    if folder.exists() and not folder.is_dir():
        raise UserError(folder, "", "is a file: name a new folder")
    if folder.exists() and any(folder.iterdir()):
        raise UserError(folder, "", "is not empty: name a new folder")
    write_text(folder / PROFILE, read_text(shipped(PROFILE)) + CORES)
    copied = {"profiles/slurm": "profiles/slurm", f"{FILES}/Snakefile": "Snakefile"}
    if studies:
        # config/config.yaml is the same file, for deployments.
        overlays = {path.name for path in shipped("config").glob("*.yaml")} - {"config.yaml"}
        copied |= {name: name for name in ("config.yaml", *(f"config/{each}" for each in overlays))}
    else:
        copied |= {f"{FILES}/config.yaml": "config.yaml", EXAMPLE: "kernels/saxpy"}
    for source, target in copied.items():
        _copy(shipped(source), folder / target)
    content = "launchwise's own studies" if studies else "an example in kernels/saxpy"
    # pipx and uvx give launchwise's own commands alone.
    snakemake = ["snakemake"] if shutil.which("snakemake") else [sys.executable, "-m", "snakemake"]
    lines = [["cd", str(folder)], snakemake]
    if studies and not any(shipped("data/recorded").glob("*/*.parquet")):
        lines.insert(1, ["launchwise", "data", "ARCHIVE"])
    done = [f"{folder}: settings in config.yaml, {content}", "next:"]
    return done + [f"  {shlex.join(line)}" for line in lines]


def _copy(source: Path, target: Path) -> None:
    if source.is_file():
        write_bytes(target, source.read_bytes())
        return
    for path in sorted(source.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            write_bytes(target / path.relative_to(source), path.read_bytes())


FOLDERS = ("data/recorded", "data/public/gpus")
MANIFEST = "launchwise-data.json"
EPOCH = (1980, 1, 1, 0, 0, 0)


class Entry(Strict):
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    bytes: int = Field(ge=0, le=storage.MOST_BYTES)


class Manifest(Strict):
    """What the archive holds, and the version of launchwise that it was made with."""

    launchwise: str
    files: dict[str, Entry]


def data_files(clone: Path) -> list[str]:
    """Paths of a clone's recorded data, from its root, sorted."""
    found = (path for name in FOLDERS for path in (clone / name).rglob("*"))
    return sorted(path.relative_to(clone).as_posix() for path in found if path.is_file())


def write_archive(folder: Path, clone: Path = ROOT) -> Path:
    """Write the archive of a clone's data; gives its path. Raises UserError when it cannot be
    written."""
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


MOST_BYTES = 4 << 30  # Largest archive, and most bytes of all of its files
TIMEOUT_S = 60.0  # Longest silence of a server


def take_in(source: str, folder: Path, sha256: str | None = None) -> str:
    """Copy recorded sweeps to ``folder/data``; says what was done. ``source``: path or address of
    the archive, or folder of a clone. ``sha256``: checksum that the archive must have, hexadecimal.
    Raises UserError when the source holds no recorded sweeps, is damaged, or another file has the
    place of one."""
    with contextlib.ExitStack() as stack:
        path = stack.enter_context(_fetched(source, folder)) if "://" in source else Path(source)
        if path.is_dir():
            counts = _from_clone(path, folder)
        else:
            _insist_on_checksum(path, source, sha256)
            counts = _from_archive(path, source, folder)
    return f"{folder / 'data'}: {counts[0]} files are new, {counts[1]} were there"


@contextlib.contextmanager
def _fetched(address: str, folder: Path) -> Iterator[Path]:
    """The file at an address, as long as the block runs; on the disk that the data come to."""
    if not address.startswith(("https://", "http://")):
        raise UserError(address, "", "is no address that begins with https://, nor a file")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".launchwise-data-") as scratch:
        path = Path(scratch, "archive.zip")
        try:
            with urllib.request.urlopen(address, timeout=TIMEOUT_S) as got, path.open("wb") as file:
                for piece in iter(lambda: got.read(1 << 20), b""):
                    if file.tell() > MOST_BYTES:
                        raise ValueError(f"it is larger than {MOST_BYTES >> 30} GiB")
                    file.write(piece)
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", None) or error
            message = f"cannot be fetched ({reason}): fetch it otherwise, then name the file"
            raise UserError(address, "", message) from error
        yield path


def _insist_on_checksum(path: Path, source: str, sha256: str | None) -> None:
    if not path.is_file():
        message = "is no file, no folder and no address: name the archive, or a clone of launchwise"
        raise UserError(source, "", message)
    if sha256 is None:
        return
    with path.open("rb") as file:
        own = hashlib.file_digest(file, "sha256").hexdigest()
    if own != sha256.lower():
        raise UserError(source, "sha256", f"is {own}, not {sha256}: fetch the archive again")


def _from_clone(clone: Path, folder: Path) -> tuple[int, int]:
    names = data_files(clone)
    if not any(name.endswith(".parquet") for name in names):
        message = f"holds no sweeps in {' or '.join(FOLDERS)}: name a clone or the archive"
        raise UserError(clone, "", message)
    return _placed(names, lambda name: (clone / name).read_bytes(), folder, str(clone))


def _from_archive(path: Path, source: str, folder: Path) -> tuple[int, int]:
    try:
        with zipfile.ZipFile(path) as packed:
            files = _manifest(packed, source).files
            return _placed(
                [*files], lambda name: _member(packed, name, files[name]), folder, source
            )
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, RuntimeError) as error:
        raise UserError(source, "", f"is damaged ({error}): fetch it again") from error


def _manifest(packed: zipfile.ZipFile, source: str) -> Manifest:
    try:
        with packed.open(MANIFEST) as file:
            content = json.loads(file.read(typed.MOST_BYTES))
    except (KeyError, ValueError, RecursionError) as error:
        message = f"holds no {MANIFEST}: is no archive of recorded sweeps"
        raise UserError(source, "", message) from error
    found = validated(Manifest, content, f"{source}: {MANIFEST}")
    if sum(entry.bytes for entry in found.files.values()) > MOST_BYTES:
        raise UserError(source, MANIFEST, f"lists more than {MOST_BYTES >> 30} GiB")
    return found


def _member(packed: zipfile.ZipFile, name: str, entry: Entry) -> bytes:
    with packed.open(name) as file:
        content = file.read(entry.bytes + 1)
    if hashlib.sha256(content).hexdigest() != entry.sha256:
        raise zipfile.BadZipFile(f"{name} differs from its checksum")
    return content


def _placed(
    names: list[str], content_of: Callable[[str], bytes], folder: Path, source: str
) -> tuple[int, int]:
    """Write files that are missing; gives the numbers of new files and of those that were there."""
    new = 0
    for name in names:
        path = inside(folder, name, source, name)
        if not name.startswith(tuple(f"{each}/" for each in FOLDERS)):
            raise UserError(source, name, f"is not in {' or '.join(FOLDERS)}")
        content = content_of(name)
        if not path.exists():
            write_bytes(path, content)
            new += 1
        elif path.read_bytes() != content:
            message = f"exists and differs from the one of {source}: name another --folder"
            raise UserError(path, "", message)
    return new, len(names) - new


if __name__ == "__main__":
    print(write_archive(Path(sys.argv[1])))
