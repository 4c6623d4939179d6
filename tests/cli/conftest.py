"""Fixtures of tests of the commands."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from fake_cluster import CARD, of_cards
from forks import Fork, forked, load_libraries, run_launchwise, run_snakemake
from products import stencil_project
from samples import ROOT, SAXPY

from launchwise.cli.check import cpu_runs
from launchwise.cli.check.on_cpu import Runner


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A project of two workloads with the product of a study, of many kinds, to read."""
    root = tmp_path_factory.mktemp("finished")
    kinds = "gaussian_process, knn, forest, lightgbm, xgboost, learnt, nearest_size"
    stencil_project(root, kinds)
    shutil.copytree(SAXPY, root / "kernels" / "saxpy")
    for recorded in (root / "data" / "recorded").iterdir():
        (recorded / "saxpy.parquet").touch()
    return root


@pytest.fixture
def project(finished, tmp_path, monkeypatch):
    """A copy of it that is the current folder, to change."""
    root = shutil.copytree(finished, tmp_path / "project")
    monkeypatch.chdir(root)
    return root


@pytest.fixture
def without_nvcc(monkeypatch):
    """Compilation by nvcc has tests of its own."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")


@pytest.fixture
def in_one_process(without_nvcc, monkeypatch):
    """``launchwise check --cpu`` runs kernels in this process: another takes half a second more."""

    class Here(cpu_runs.CpuProcess):
        def __init__(self, folder):
            self._folder, self._runner = folder, list[Runner]()

        def __exit__(self, *error):
            pass

        def run(self, job, seconds):
            self._runner = self._runner or [Runner(self._folder)]
            return self._runner[0].answer(job)

    monkeypatch.setattr(cpu_runs, "CpuProcess", Here)


CONVOLUTION = ROOT / "docs" / "tutorial" / "example" / "convolution"
NARROW = {
    "block_size_x": [16, 32],
    "block_size_y": [4, 8],
    "tile_size_x": [1],
    "tile_size_y": [1, 2],
}
"""Values that make eight configurations."""


@pytest.fixture
def workload(tmp_path):
    """The convolution in one file, in a folder without anything else of the project."""
    folder = Path(shutil.copytree(CONVOLUTION, tmp_path / "mine" / "convolution"))
    path = folder / "spec.yaml"
    raw = yaml.safe_load(path.read_text())
    for name, values in NARROW.items():
        raw["tunables"][name]["values"] = values
    raw["variants"]["tiled"]["constraints"] = ["block_size_x * block_size_y >= 64"]
    raw["baseline"] |= {"block_size_y": 8}
    path.write_text(yaml.safe_dump(raw, sort_keys=False))
    return folder


@dataclass(frozen=True)
class Tune:
    """``launchwise tune`` in a folder of its own, on a machine with one made-up card."""

    folder: Path
    kernel_cache: Path

    @contextmanager
    def started(self, *words, cards=None, inside=""):
        """A command of launchwise, in the background; it ends with the block at the latest."""
        environment = of_cards(cards or self.folder / "cards.json", self.kernel_cache)
        environment |= {"XDG_CACHE_HOME": str(self.folder / "kept")}
        with (self.folder / "out").open("w") as out, (self.folder / "said").open("w") as said:
            here = self.folder / "here" / inside
            process = Fork(run_launchwise, [*map(str, words)], here, environment, out, said)
        try:
            yield process
        finally:
            process.kill()

    def said(self):
        """Standard error of the last command."""
        return (self.folder / "said").read_text()

    def settings(self, folder="tuned/convolution"):
        """Settings that were written into a folder."""
        return yaml.safe_load((self.folder / "here" / folder / "config.yaml").read_text())

    def __call__(self, *words, cards=None):
        """Run ``launchwise tune`` to its end."""
        return self.command("tune", *words, cards=cards)

    def ok(self, *words, cards=None):
        """Run ``launchwise tune`` to its end, which is a success."""
        done = self(*words, cards=cards)
        assert done.returncode == 0, done.stderr[-3000:]
        return done

    def command(self, *words, cards=None, inside=""):
        """Run a command in a folder to its end."""
        with self.started(*words, cards=cards, inside=inside) as process:
            code = process.wait(200)
        out = (self.folder / "out").read_text()
        return subprocess.CompletedProcess([*map(str, words)], code, out, self.said())


@pytest.fixture
def tune(tmp_path, kernel_cache):
    """See :class:`Tune`."""
    load_libraries()
    (tmp_path / "cards.json").write_text(json.dumps({"h200": [CARD]}))
    (tmp_path / "here").mkdir()
    return Tune(tmp_path, kernel_cache)


@pytest.fixture
def snakemake(tmp_path, kernel_cache):
    """Ask Snakemake what it would do for a line that ``launchwise tune`` printed, or run it."""

    def run(line, *options):
        _, *words = shlex.split(line)
        quiet, end = words.index("--quiet"), words.index("--")
        return forked(
            run_snakemake,
            [*words[:quiet], *(options or ["--dry-run"]), *words[end:]],
            tmp_path / "here",
            of_cards(tmp_path / "cards.json", kernel_cache),
            seconds=100,
        )

    return run
