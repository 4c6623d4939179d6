"""The command ``launchwise``: help, version, completion, mistakes, start-up."""

import importlib
import os
import resource
import subprocess
import sys
import tomllib

import pytest
from command_line import complaint, launchwise
from samples import ROOT
from typer.main import get_command

from launchwise import __version__
from launchwise.cli.app import NAME, app

COMMANDS = sorted(get_command(app).commands)
HEAVY = ("numpy", "pandas", "pydantic", "rich", "sklearn", "yaml", "launchwise.experiment")
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


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["predikt"], "No such command 'predikt'. Did you mean 'predict'? (see launchwise --help)"),
        (["--verbos"], "No such option: --verbos"),
        (["predict"], "predict: Missing argument"),
        (["predict", "--tob", "3"], "predict: No such option: --tob"),
        (["predict", "a", "b", "n=3", "--top", "many"], "predict: Invalid value for '--top'"),
        (["export", "a", "--format", "py"], "export: Invalid value for '--format': 'py' is not"),
        (["export", "no.study", "--format", "T4"], "export: unknown study 'no.study'"),
        (["import-shipped", "a", "b.json"], "import-shipped: Missing option '--mapping'"),
    ],
)
def test_a_wrong_word_is_told_in_one_line(words, said):
    assert complaint(launchwise(*words)).startswith(said)


def test_commands_and_options_are_completed_in_bash():
    def completed(line):
        place = str(len(line.split(" ")) - 1)
        words = {"COMP_WORDS": line, "COMP_CWORD": place}
        return launchwise(_LAUNCHWISE_COMPLETE="complete_bash", **words).stdout.split()

    assert completed("launchwise pre") == ["predict"]
    assert completed("launchwise predict --le") == ["--learnt"]


def test_the_entry_point_of_the_package_is_the_command():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    module, _, function = project["scripts"][NAME].partition(":")
    from launchwise.cli.app import main

    assert getattr(importlib.import_module(module), function) is main


def test_help_imports_nothing_heavy():
    code = "import sys, launchwise.cli.app as app; app.main(['--help']); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    modules = set(done.stdout.splitlines()[-1].split())
    assert "typer" in modules
    assert modules.isdisjoint(HEAVY)


def test_help_takes_less_than_a_third_of_a_second():
    def cpu_s():
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        # As in a user's shell: started anew, and the first run compiles the libraries.
        subprocess.run(
            [sys.executable, "-m", "launchwise", "--help"],
            cwd=ROOT, env={**os.environ, "PYTHONDONTWRITEBYTECODE": ""}, capture_output=True,
            check=True,
        )  # fmt: skip
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    # CPU time: other tests run beside this one.
    assert min(cpu_s() for _ in range(5)) < 0.3
