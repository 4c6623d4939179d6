"""Environment modules of a job: the process gets what ``module load`` changes.

The module system is a stand-in, an ``init/bash`` as Lmod and Environment Modules have one, and each
of these where Debian's package of it is installed."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from samples import ROOT

LOADER = """
import json, os, sys
from launchwise.base.errors import UserError
from launchwise.base.scripting import load_modules
try:
    load_modules(sys.argv[1:])
except UserError as error:
    raise SystemExit(str(error))
print(json.dumps(dict(os.environ)))
"""


@pytest.fixture
def home(tmp_path):
    """Folder of a module system."""
    (tmp_path / "init").mkdir()
    shutil.copy(ROOT / "tests" / "base" / "data" / "init.bash", tmp_path / "init" / "bash")
    return tmp_path


def load(home, *names):
    """Load modules in a process of its own, which prints its environment."""
    environment = {**os.environ, "MODULESHOME": str(home), "OLD_CUDA": "1"}
    return subprocess.run(
        [sys.executable, "-c", LOADER, *names],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_process_gets_what_a_module_sets_and_loses_what_it_unsets(home):
    done = load(home, "cuda/13.0")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["PATH"] == f"/opt/cuda/13.0/bin:{os.environ['PATH']}"
    assert found["CUDA_HOME"] == "/opt/a b\nc"
    assert "OLD_CUDA" not in found
    # bash keeps no prompt where nobody types.
    assert {*os.environ} - {*found} <= {"_", "PS1"}
    assert {*found} - {*os.environ} <= {"MODULESHOME", "CUDA_HOME"}


def test_a_module_that_is_unknown_and_a_system_without_modules_are_one_line(home):
    done = load(home, "cuda/13.0", "cuda/99")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("module load cuda/13.0 cuda/99: ")
    assert 'module(s) are unknown: "cuda/99"; see `modules` in config.yaml' in done.stderr
    (home / "init" / "bash").write_text("")
    assert "there is no command module; see `modules`" in load(home, "cuda/13.0").stderr


REAL = {
    "lmod": ("/usr/share/lmod/lmod", 'module(s) are unknown: "cuda/99"'),
    "environment-modules": ("/usr/share/modules", "Unable to locate a modulefile for 'cuda/99'"),
}


@pytest.mark.parametrize("system", REAL)
def test_a_real_module_system(system, tmp_path, monkeypatch):
    home, unknown = REAL[system]
    if not (Path(home) / "init" / "bash").is_file():
        pytest.skip(f"{system} is not installed")
    (tmp_path / "cuda").mkdir()
    # Both systems read files of this kind.
    lines = ("#%Module1.0", "prepend-path PATH /opt/cuda/bin", "setenv CUDA_HOME /opt/cuda")
    (tmp_path / "cuda" / "13.0").write_text("\n".join(lines) + "\n")
    monkeypatch.setenv("MODULEPATH", str(tmp_path))
    # Found by its own variable, and by what login shells read.
    for named in (home, "/nowhere"):
        done = load(Path(named), "cuda/13.0")
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert found["CUDA_HOME"] == "/opt/cuda"
        assert found["PATH"].startswith("/opt/cuda/bin:")
    done = load(Path(home), "cuda/13.0", "cuda/99")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert unknown in done.stderr


def test_names_are_no_shell_text(home):
    done = load(home, "$(touch made)", ";touch made")
    assert done.returncode == 1
    assert not Path("made").exists()
    assert '"$(touch made)"' in done.stderr
