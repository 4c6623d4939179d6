"""The command ``launchwise``: help, version, completion, mistakes, start-up."""

import os
import subprocess
import sys

import pytest
from command_line import launchwise
from python_forks import program
from samples import ROOT
from typer.main import get_command

from launchwise import __version__
from launchwise.cli.app import app
from launchwise.cli.options import START

COMMANDS = sorted(get_command(app).commands)
HEAVY = {"numpy", "pandas", "pydantic", "rich", "sklearn", "yaml", "launchwise.experiment"}
"""What neither help nor completion may wait for."""


def test_the_version_is_that_of_the_library():
    done = launchwise("--version")
    assert (done.returncode, done.stdout) == (0, f"launchwise {__version__}\n")


@pytest.mark.parametrize("words", [[], ["--help"]])
def test_help_lists_every_command(words):
    done = launchwise(*words)
    assert done.returncode == 0
    assert done.stdout.startswith("Usage: launchwise ")
    listed = done.stdout.partition("Commands:\n")[2].splitlines()
    assert sorted(line.split()[0] for line in listed if line.strip()) == COMMANDS


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command):
    done = launchwise(command, "--help")
    assert done.returncode == 0
    assert done.stdout.startswith(f"Usage: launchwise {command} ")


def test_commands_and_options_are_completed_in_bash():
    def completed(line):
        place = str(len(line.split(" ")) - 1)
        words = {"COMP_WORDS": line, "COMP_CWORD": place}
        return launchwise(_LAUNCHWISE_COMPLETE="complete_bash", **words).stdout.split()

    assert completed("launchwise pre") == ["predict"]
    assert completed("launchwise predict --le") == ["--learnt"]


def test_ctrl_c_while_modules_are_imported_ends_in_one_line(tmp_path):
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt\n")
    command = [sys.executable, "-m", "launchwise", "--version"]
    path = {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    done = subprocess.run(command, env=path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "launchwise: stopped: the same command again goes on\n"


def test_the_tests_fork_the_snakemake_that_commands_start():
    assert program([sys.executable, "-c", START, "-n"], shell=False) == ["-c", START, "-n"]


TABLES = {"pandas", "pyarrow", "scipy", "optuna"}
MODELS = {"pycuda", "sklearn", "xgboost", "lightgbm", "optuna", "plotly", "snakemake"}
STARTS = {
    "launchwise.cli.app as app; app.main(['--help'])": HEAVY,
    "launchwise.cli.stages": TABLES,
    "launchwise.cuda.child": TABLES,
    "launchwise.workflow.targets": MODELS,  # what the Snakefile imports
}
"""What a process imports first, and what that must not load."""


@pytest.mark.parametrize("imported", STARTS)
def test_a_start_loads_no_library_that_it_does_not_need(imported):
    code = f"import sys, {imported}; print(*sys.modules)"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    modules = {*done.stdout.splitlines()[-1].split()}
    assert "launchwise" in modules
    assert modules.isdisjoint(STARTS[imported])
