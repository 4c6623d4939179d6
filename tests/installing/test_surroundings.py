"""The tutorial in each surrounding: a Python, and a clone, a wheel, a module or a container.

Opt-in: with `SURROUNDINGS="/path/to/python3.12 /path/to/python3.13"` in the environment, uv
installs all packages for each interpreter. The interpreter of the tests is covered without: by this
very clone, by test_wheel.py and by test_other_folders.py.
"""

import os
import shutil
import subprocess

import pytest
import yaml
from installed import Installed
from samples import ROOT

SMOOTH = ROOT / "docs" / "tutorial" / "example" / "smooth"
PYTHONS = os.environ.get("SURROUNDINGS", "").split()
KINDS = ("clone", "wheel", "module", "container")


def wheel_environment(python, wheel, folder):
    """What pip installs in an environment of its own."""
    run("uv", "venv", "--python", python, str(folder / "env"))
    run("uv", "pip", "install", "--python", str(folder / "env" / "bin" / "python"), str(wheel))


def clone_environment(python, wheel, folder):
    """What make installs in a clone, which is moved afterwards."""
    clone = folder / "clone"
    run("git", "clone", "--shared", str(ROOT), str(clone))
    run("make", f"PYTHON={python}", ".venv/.stamp-run", folder=clone)
    clone = clone.rename(folder / "moved")
    run("make", "-n", folder=clone)
    (folder / "env").symlink_to(clone / ".venv")


def container_environment(python, wheel, folder):
    """What container.def makes, in a folder: packages of the lock file, the command beside them."""
    root = folder / "opt"
    run("uv", "venv", "--python", python, str(root / "venv"))
    inside = ("--python", str(root / "venv" / "bin" / "python"))
    run("uv", "pip", "install", *inside, "--require-hashes", "-r", str(ROOT / "requirements.lock"))
    target = ("--no-deps", "--target", str(root / "command"))
    run("uv", "pip", "install", *inside, *target, str(wheel))
    command = root / "venv" / "bin" / "launchwise"
    lines = (
        "#!/bin/sh",
        f'PYTHONPATH="{root}/command:$PYTHONPATH" exec "{inside[1]}" -m launchwise "$@"',
    )
    command.write_text("\n".join(lines) + "\n")
    command.chmod(0o755)
    (folder / "env").symlink_to(root / "venv")


MODULE = """
from launchwise.base.places import shipped

SETTINGS = {
    "seed": 1,
    "workloads": ["smooth"],
    "gpus": {"local": {"source": "live", "workloads": ["smooth"]}},
    "sweeps": {"smooth": {"problems": [{"width": [24], "height": [20]}]}},
}

module tuned:
    snakefile: str(shipped("Snakefile"))
    config: SETTINGS

use rule * from tuned
"""

MAKE = {
    "clone": clone_environment,
    "wheel": wheel_environment,
    "module": wheel_environment,
    "container": container_environment,
}


def run(*words, folder=ROOT):
    """Run a command that must succeed."""
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{words}\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("python", PYTHONS or ["none"])
def test_the_tutorial(python, kind, wheel, kernel_cache, tmp_path):
    if not PYTHONS or shutil.which("uv") is None:
        pytest.skip("SURROUNDINGS names no interpreters, or there is no uv to install for them")
    MAKE[kind](python, wheel, tmp_path)
    (tmp_path / "kernels").symlink_to(kernel_cache)
    installed, here = Installed(tmp_path), tmp_path / "here"
    here.mkdir()
    shutil.copytree(SMOOTH, here / "smooth")
    spec = yaml.safe_load((SMOOTH / "spec.yaml").read_text())
    spec["tunables"]["block_size_x"]["values"] = [16, 32]
    (here / "smooth" / "spec.yaml").write_text(yaml.safe_dump(spec, sort_keys=False))
    if kind == "module":
        (here / "Snakefile").write_text(MODULE)
        words = ("snakemake", "--cores", "2", "results/answers/local/smooth.json")
    else:
        checked = installed.run("launchwise", "check", "smooth", "--cpu", folder=here, gpu=True)
        assert "ok       cpu: smooth" in checked.stdout, checked.stdout + checked.stderr
        words = ("launchwise", "tune", "smooth", "width=24", "height=20")
    done = installed.run(*words, folder=here, gpu=True)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert list(here.rglob("results/answers/local/smooth.json"))
