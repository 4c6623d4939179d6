"""From nothing to the first answer for an own kernel: three commands, whole processes.

    python benchmarks/first_answer.py benchmarks/results/first_answer.json --wheel dist/NAME.whl

In an empty folder with a ``.cu`` file and a reference in NumPy: an environment with the wheel,
``launchwise new``, ``launchwise tune``. ``--parts install`` measures the first command alone, for
each installer and with empty caches: it needs no GPU but an index of packages. ``--parts answer``,
the default, measures the other two with the launchwise that runs this file: it needs a GPU but no
network.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.command_line import arguments, provenance
from harness.needs import gpu_and_packages
from harness.projects import ROOT

from launchwise.base.storage import write_json
from launchwise.measuring.cards import cards

EXAMPLE = ROOT / "docs" / "tutorial" / "example" / "smooth"
SIZE, SMALLEST = ("width=4096", "height=4096"), ("width=256", "height=256")
ROUNDS = 3
PARTS = ("install", "answer")


def seconds_of(command: Sequence[str], folder: Path, **environment: str) -> float:
    """Time of a command from its start to its end; what it said, if it fails."""
    began = time.perf_counter()
    said = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    spent = time.perf_counter() - began
    if said.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {said.returncode}:\n{said.stdout}")
    return spent


def install(wheel: Path, installer: str, beside: Path | None) -> float:
    """Time to make an environment with the wheel, nothing cached, s.

    Parameters
    ----------
    beside
        Folder of wheels beside the index; None without one.
    """
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        wanted = f"launchwise[gpu] @ {wheel.resolve().as_uri()}"
        cache = {"UV_CACHE_DIR": f"{folder}/cache", "PIP_NO_CACHE_DIR": "1"}
        python = f"{folder}/environment/bin/python"
        links = [] if beside is None else ["--find-links", str(beside.resolve())]
        if installer == "uv":
            made = seconds_of(["uv", "venv", "-q", "environment"], folder, **cache)
            command = ["uv", "pip", "install", "-q", "--python", python, *links, wanted]
        else:
            made = seconds_of([sys.executable, "-m", "venv", "environment"], folder, **cache)
            command = [python, "-m", "pip", "install", "-q", *links, wanted]
        return made + seconds_of(command, folder, **cache)


def answer(size: Sequence[str]) -> dict[str, float]:
    """Times of ``new`` and ``tune``, s."""
    launchwise = [sys.executable, "-m", "launchwise"]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        shutil.copy(EXAMPLE / "smooth.cu", folder)
        cache = {"XDG_CACHE_HOME": f"{folder}/cache", "PYTHONPATH": str(ROOT)}
        new = seconds_of([*launchwise, "new", "smooth", "--from", "smooth.cu"], folder, **cache)
        # What the draft asks for: somebody has it, or writes it before the clock begins.
        shutil.copy(EXAMPLE / "reference.py", folder / "smooth")
        tune = seconds_of([*launchwise, "tune", "smooth", *size], folder, **cache)
    return {"new_s": new, "tune_s": tune}


def main() -> None:
    """Measure and write the file."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=["answer"])
    parser.add_argument("--wheel", type=Path, help="the wheel that `make wheel` writes, to install")
    parser.add_argument(
        "--find-links",
        type=Path,
        help="folder of wheels beside the index, such as PyCUDA's, of which PyPI has the source",
    )
    given = parser.parse_args()
    if "install" in given.parts and given.wheel is None:
        parser.error("--parts install needs --wheel")
    found: dict[str, Any] = {}
    if "install" in given.parts:
        installers = [each for each in ("uv", "pip") if each == "pip" or shutil.which(each)]
        found["install_s"] = {
            each: install(given.wheel, each, given.find_links) for each in installers
        }
        found["pycuda"] = "source" if given.find_links is None else "wheel"
    if "answer" in given.parts:
        with gpu_and_packages():
            import pycuda  # noqa: F401  (the measuring process needs it)
        rounds = 1 if given.smallest else ROUNDS
        found["answers"] = [answer(SMALLEST if given.smallest else SIZE) for _ in range(rounds)]
        found |= {"device": cards()[0].device_name, "driver": cards()[0].driver}
    write_json(given.output, {**provenance(), **found})


if __name__ == "__main__":
    main()
