"""Every mistake of a command line is one line, and writes nothing."""

import shlex
import shutil
import zipfile
from pathlib import Path

import foreign
import pandas as pd
import pytest
import yaml
from command_line import line_of, with_every_gpu
from compared import write_sweep
from samples import ROOT, SAXPY, STENCIL, measurements

from launchwise.base.typed import read_yaml
from launchwise.workloads.spec import load_spec

COMPLAINTS = read_yaml(Path(__file__).parent / "data" / "complaints.yaml")
CONVOLUTION = ROOT / "docs" / "tutorial" / "example" / "convolution"


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Settings with the project's GPUs and the tests' own workload; files of others, and sweeps."""
    folder = tmp_path_factory.mktemp("project")
    for workload in (STENCIL, SAXPY):
        shutil.copytree(workload, folder / "kernels" / workload.name)
    shutil.copytree(CONVOLUTION, folder / "convolution")
    spec, sizes = load_spec(SAXPY), [{"n": [64, 100], "dtype": ["float32"]}]
    for place, gpu in (("old", "test"), ("elsewhere", "other")):
        write_sweep(folder / place, measurements(spec, sizes, gpu), spec)
    (folder / "config.yaml").write_text(yaml.safe_dump(with_every_gpu("kernels")))
    (folder / "data").symlink_to(ROOT / "data")
    foreign.write(folder / "a4000.json.gz", foreign.cache())
    foreign.write(folder / "results.json", foreign.results())
    (folder / "none.json").write_text('{"a": 1}')
    (folder / "empty.json").write_text("")
    with zipfile.ZipFile(folder / "other.zip", "w") as packed:
        packed.writestr("a", "b")
    for name in ("odd", "broken"):
        (folder / name).mkdir()
    columns = ["block_size_x", "block_size_y", "tile_size_x", "variant", "w", "h"]
    row = pd.DataFrame([[32, 4, 1, "tiled", 32, 16]], columns=columns)
    row.to_parquet(folder / "odd" / "convolution.parquet")
    (folder / "broken" / "convolution.parquet").write_text("no table")
    return folder


@pytest.mark.parametrize("line", COMPLAINTS)
def test_a_mistake_is_one_line_and_writes_nothing(line, project, monkeypatch, capsys):
    monkeypatch.chdir(project)
    before = {*project.rglob("*")}
    assert COMPLAINTS[line] in line_of(capsys, *shlex.split(line))
    assert {*project.rglob("*")} == before
