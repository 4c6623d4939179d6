"""Writes the folder of a project: its Snakefile, settings, profiles and an example."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

from launchwise.base.errors import UserError
from launchwise.base.places import shipped
from launchwise.base.storage import read_text, write_bytes, write_text

EXAMPLE = "docs/tutorial/example/saxpy"
SNAKEFILE = """\
# The workflow of the launchwise that is installed. Rules of your own may follow.
from launchwise.base.places import shipped


include: str(shipped("Snakefile"))


# Snakemake ignores the default target of an included file.
rule default:
    default_target: True
    input:
        rules.all.input,
"""

CONFIG = """\
# What is measured and learnt in this folder. How jobs run (cores, Slurm) stands in profiles/.
seed: 2026

# Folders that hold workloads, one folder each: launchwise new kernels/NAME --from FILE
workloads: [kernels]

# GPUs. `local` is the one of this machine. For the GPU of a cluster's node, name its architecture
# and where it is, such as
#   a100: {source: live, arch: sm_80, shards: 4, slurm: {partition: gpu, gres: a100}}
gpus:
  local: {source: live}
"""

PROFILE = "profiles/default/config.yaml"  # How jobs run when no other profile is named
CORES = """
# Cores of this machine that jobs may take at once.
cores: all
"""


def begin(folder: Path, studies: bool) -> list[str]:
    """Write a project.

    ``folder``: new or empty.
    ``studies``: with the settings of launchwise's own studies, whose workloads are found without a
        copy.
    Returns what was done and what comes next, one line each. Raises UserError when something is in
    the folder already, or it cannot be written.
    """
    if folder.exists() and not folder.is_dir():
        raise UserError(folder, "", "is a file: name a new folder")
    if folder.exists() and any(folder.iterdir()):
        raise UserError(folder, "", "is not empty: name a new folder")
    write_text(folder / "Snakefile", SNAKEFILE)
    write_text(folder / PROFILE, read_text(shipped(PROFILE)) + CORES)
    copied = {"profiles/slurm": "profiles/slurm"}
    if studies:
        # config/config.yaml is the same file, for deployments.
        overlays = {path.name for path in shipped("config").glob("*.yaml")} - {"config.yaml"}
        copied |= {name: name for name in ("config.yaml", *(f"config/{each}" for each in overlays))}
    else:
        write_text(folder / "config.yaml", CONFIG)
        copied[EXAMPLE] = "kernels/saxpy"
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
