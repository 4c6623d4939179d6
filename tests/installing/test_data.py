"""``launchwise data``: recorded sweeps from an archive, an address or a clone, each checked."""

import functools
import hashlib
import http.server
import json
import threading
import zipfile

import pytest
from command_line import line_of

from launchwise.cli.app import main
from launchwise.cli.project import MANIFEST, write_archive

SWEEP = "data/recorded/a100/saxpy.parquet"


@pytest.fixture
def clone(tmp_path):
    """What counts of a clone."""
    folder = tmp_path / "clone"
    for name in (SWEEP, "data/recorded/a100/profile.json", "data/public/gpus/x/blur.parquet"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    return folder


@pytest.fixture
def archive(clone, tmp_path):
    """The archive of the clone."""
    return write_archive(tmp_path / "dist", clone)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A project's folder, where the command is run."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def server(archive):
    """Address of the archive."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(archive.parent))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{serving.server_port}/{archive.name}"
        serving.shutdown()


@pytest.mark.parametrize("kind", ["archive", "clone", "server"])
def test_sweeps_are_taken_in_once(kind, request, here, capsys):
    source = str(request.getfixturevalue(kind))
    assert main(["data", source]) == 0
    assert capsys.readouterr().out == "data: 3 files are new, 0 were there\n"
    assert (here / SWEEP).read_text() == SWEEP
    # Goes on where an interrupted call ended.
    (here / SWEEP).unlink()
    assert main(["data", source]) == 0
    assert capsys.readouterr().out == "data: 1 files are new, 2 were there\n"
    assert sorted(path.name for path in here.iterdir()) == ["data"]


def test_an_archive_is_the_same_bytes_for_the_same_data(archive, clone):
    before = archive.read_bytes()
    assert write_archive(archive.parent, clone).read_bytes() == before


def test_a_checksum_of_the_whole_is_compared(archive, here, capsys):
    own = hashlib.sha256(archive.read_bytes()).hexdigest()
    assert main(["data", str(archive), "--sha256", own]) == 0
    assert "fetch the archive again" in line_of(capsys, "data", str(archive), "--sha256", "0" * 64)


def test_a_file_that_differs_is_kept(archive, here, capsys):
    (here / SWEEP).parent.mkdir(parents=True)
    (here / SWEEP).write_text("mine")
    assert f"{SWEEP}: exists and differs" in line_of(capsys, "data", str(archive))
    assert (here / SWEEP).read_text() == "mine"


def test_a_damaged_archive_is_one_line(archive, here, capsys):
    content = archive.read_bytes()
    place = content.rindex(SWEEP.encode(), 0, content.index(b"PK\x01\x02"))
    archive.write_bytes(content[:place] + b"X" + content[place + 1 :])
    assert "is damaged" in line_of(capsys, "data", str(archive))
    assert not (here / SWEEP).exists()
    archive.write_bytes(content[: len(content) // 2])
    assert "is damaged" in line_of(capsys, "data", str(archive))


@pytest.mark.parametrize("is_list", [True, False])
def test_what_an_archive_lists_has_limits(tmp_path, here, capsys, is_list):
    entry = {"sha256": "0" * 64, "bytes": (256 << 20) + 1}
    listed = json.dumps({"launchwise": "1", "files": {} if is_list else {SWEEP: entry}})
    with zipfile.ZipFile(tmp_path / "bad.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(MANIFEST, listed[:-1] + " " * (5_000_000 * is_list) + "}")
    said = f"holds no {MANIFEST}" if is_list else f"{MANIFEST}: files.{SWEEP}.bytes: must be less "
    assert said in line_of(capsys, "data", str(tmp_path / "bad.zip"))


def test_nothing_is_written_outside_of_data(tmp_path, here, capsys):
    for name in ("../mine", "config.yaml", "data/recorded/../../x", "data/recordedx/y", "/etc/x"):
        entry = {"sha256": hashlib.sha256(b"x").hexdigest(), "bytes": 1}
        with zipfile.ZipFile(tmp_path / "bad.zip", "w") as packed:
            packed.writestr(MANIFEST, json.dumps({"launchwise": "1", "files": {name: entry}}))
            packed.writestr(name, b"x")
        assert name in line_of(capsys, "data", str(tmp_path / "bad.zip"))
    assert not list(here.iterdir())
