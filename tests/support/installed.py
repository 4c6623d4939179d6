"""The wheel of this tree in an environment of its own: no clone, no PYTHONPATH."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

from fake_cluster import CARD, FAKES
from forks import forked, run_snakemake
from samples import ROOT

from launchwise.base.storage import user_cache


def shared_packages() -> list[str]:
    """Folders of packages of this interpreter."""
    return [*dict.fromkeys(each for each in sys.path if each.endswith("-packages"))]


def snakemake(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run Snakemake in the folder of somebody else's project. Facts about the project's code are
    kept; sources that Snakemake fetches are not."""
    cache = {"XDG_CACHE_HOME": str(user_cache().parent)}
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **cache, **variables}
    return forked(run_snakemake, [*words], folder, environment, seconds=120)


def build_wheel(folder: Path, tree: Path = ROOT) -> Path:
    """Build the wheel of this tree, or of another one."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=tree, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


@dataclass(frozen=True)
class Installed:
    """An environment with the wheel, and a machine for it."""

    folder: Path  # holds the environment `env`, a home and the description of made-up cards

    @classmethod
    def make(cls, folder: Path, wheel: Path) -> Installed:
        """An environment of this interpreter; packages that launchwise needs are shared."""
        made = cls(folder)
        venv.create(made.environment, with_pip=False)
        (made.packages / "shared.pth").write_text("\n".join(shared_packages()) + "\n")
        # As pip writes it: a shared package has its command elsewhere.
        python, command = (
            made.environment / "bin" / "python",
            made.environment / "bin" / "snakemake",
        )
        command.write_text(f'#!/bin/sh\nexec "{python}" -m snakemake "$@"\n')
        command.chmod(0o755)
        made.install(wheel)
        return made

    def install(self, wheel: Path) -> None:
        """Install the wheel, in place of another version."""
        where = ["--python", str(self.environment / "bin" / "python")]
        what = ["install", "--no-deps", "--no-index", "--force-reinstall", str(wheel)]
        options = ["--quiet", "--disable-pip-version-check", "--no-compile"]
        command = [sys.executable, "-m", "pip", *where, *what, *options]
        subprocess.run(command, check=True, capture_output=True)

    @property
    def environment(self) -> Path:
        """The virtual environment."""
        return self.folder / "env"

    @property
    def packages(self) -> Path:
        """Its site-packages."""
        (found,) = self.environment.glob("lib/python*/site-packages")
        return found

    def run(
        self, *words: str, folder: Path, gpu: bool = False, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a command of the environment in a folder.

        ``gpu``: whether the machine has a made-up card, whose kernels run on the CPU.
        """
        cards, path = self.folder / "cards.json", f"{self.environment}/bin:{os.environ['PATH']}"
        cards.write_text(json.dumps({"h200": [CARD]}))
        machine = {
            "PYTHONPATH": str(FAKES),
            "PATH": f"{self.environment}/bin:{FAKES / 'bin'}:{os.environ['PATH']}",
            "FAKE_CARDS": str(cards),
            "FAKE_CACHE": str(self.folder / "kernels"),
        }
        given = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        home = {"HOME": str(self.folder / "home"), "PATH": path}
        return subprocess.run(
            [str(self.environment / "bin" / words[0]), *words[1:]],
            cwd=folder,
            env={**given, **home, **(machine if gpu else {}), **variables},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
