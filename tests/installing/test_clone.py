"""The clone's environment after the clone was moved, and with a broken or half-made `.venv`."""

import os
import shutil
import subprocess
import sys
import venv

import pytest
from installed import shared_packages
from samples import ROOT

SCRIPT = "import launchwise; print(launchwise.__file__)\n"


INTERPRETER = """\
#!/bin/sh
[ "$2" = venv ] || exec "{python}" "$@"
"{python}" -m venv --without-pip "$3"
for folder in "$3"/lib/python*/site-packages; do printf '{packages}\\n' > "$folder/shared.pth"; done
"""
"""A Python whose environments are made at once: no pip, the packages of this one, with uv."""


def make(clone, *words, **variables):
    """Run make in a clone, with this interpreter; nothing is fetched."""
    interpreter = clone.parent / "python"
    packages = "\\n".join(shared_packages())
    interpreter.write_text(INTERPRETER.format(python=sys.executable, packages=packages))
    interpreter.chmod(0o755)
    # Of a make that runs the tests this one is no part.
    ours = {"PYTHONPATH", "MAKEFLAGS", "MAKELEVEL", "MFLAGS"}
    environment = {key: value for key, value in os.environ.items() if key not in ours}
    offline = {"UV_OFFLINE": "1"}
    return subprocess.run(
        ["make", f"PYTHON={interpreter}", *words],
        cwd=clone,
        env={**environment, **offline, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def clone(tmp_path):
    """What counts of a clone, installed as make does, its packages shared with this interpreter."""
    folder = tmp_path / "clone"
    for name in ("Makefile", ".ci/environment.py", "launchwise/__init__.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    (folder / "launchwise" / "__main__.py").write_text(SCRIPT)
    (folder / "requirements.lock").touch()
    environment = folder / ".venv"
    venv.create(environment, with_pip=False)
    (packages,) = environment.glob("lib/python*/site-packages")
    (packages / "shared.pth").write_text("\n".join(shared_packages()))
    tool = environment / "bin" / "tool"
    tool.write_text(f"#!{environment}/bin/python\n# a script as pip writes it\n{SCRIPT}")
    tool.chmod(0o755)
    subprocess.run(
        [environment / "bin" / "python", folder / ".ci" / "environment.py", environment], check=True
    )
    (environment / ".stamp-run").touch()
    return folder


def says(clone, command):
    """What a command of the activated environment prints."""
    line = f". .venv/bin/activate && {command}"
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        ["bash", "-ec", line], cwd=clone, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("name", ["renamed", "with a space"])
def test_a_moved_clone_is_adapted(clone, name):
    assert make(clone, "-n", "figures").stdout.startswith(".venv/bin/python -m docs")
    moved = clone.rename(clone.parent / name)
    done = make(moved, "-n", "figures")
    assert done.stdout.splitlines()[0] == "make: adapting .venv to this folder"
    assert done.stderr == ""
    for command in ("launchwise", "tool", "python -m launchwise"):
        assert says(moved, command) == str(moved / "launchwise" / "__init__.py")
    # Once is enough.
    assert make(moved, "-n", "figures").stdout.startswith(".venv/bin/python -m docs")


def test_an_environment_without_its_interpreter_is_made_anew(clone):
    pytest.importorskip("uv", reason="uv installs; make test brings it")
    python = clone / ".venv" / "bin" / "python"
    python.unlink()
    python.symlink_to("/nowhere/python3.11")
    done = make(clone, ".venv/.stamp-run")
    first = done.stdout.splitlines()[0]
    assert first == "make: .venv/bin/python does not run any more; installing anew"
    assert done.returncode == 0, done.stderr
    assert says(clone, "launchwise") == str(clone / "launchwise" / "__init__.py")


def test_what_cannot_be_installed_is_said_and_begun_anew(clone):
    pytest.importorskip("uv", reason="uv installs; make test brings it")
    (clone / "requirements.lock").write_text("nosuchpackage==1 --hash=sha256:" + "0" * 64 + "\n")
    done = make(clone, ".venv/.stamp-run")
    assert done.returncode != 0
    wanted = "make: cannot install requirements.lock (see above): make needs PyPI, or PIP_INDEX_URL"
    assert wanted in done.stdout
    assert not (clone / ".venv" / ".stamp-run").exists()
    # The next call does not take the half of it for whole.
    (clone / "requirements.lock").write_text("")
    assert make(clone, ".venv/.stamp-run").returncode == 0
    assert says(clone, "launchwise") == str(clone / "launchwise" / "__init__.py")


def test_an_old_interpreter_is_one_line(clone, tmp_path):
    (clone / ".venv" / ".stamp-run").unlink()
    old = tmp_path / "python3.8"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo Python 3.8.1 && exit\nexit 1\n')
    old.chmod(0o755)
    done = make(clone, ".venv/.stamp-run", f"PYTHON={old}")
    assert done.returncode != 0
    assert done.stdout.startswith("launchwise needs Python 3.11 or newer: make PYTHON=")
