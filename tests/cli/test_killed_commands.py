"""Commands that are killed leave no process behind, however long it would run."""

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from supervising import has_ended, until
from test_check import written

WORKLOAD = {
    "of": "turn",
    "files": {"reference.py": "def endless(**arrays):\n    while True:\n        pass\n"},
    "change": {
        "spec.yaml": {"{call: numpy.transpose, given: [input]}": "{file: 'reference.py:endless'}"}
    },
}


def serving(pid):
    """The process of the library that a command started, once its output is what it serves with."""
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        with suppress(OSError):
            out, err = (os.readlink(f"/proc/{child}/fd/{number}") for number in (1, 2))
            if out == err and "launchwise.cli." in Path(f"/proc/{child}/cmdline").read_text():
                return int(child)
    return None


@pytest.mark.parametrize("words", [["check", "turn", "--cpu"], ["new", "own", "--from", "it.py"]])
def test_a_killed_command_takes_its_process_along(tmp_path, without_nvcc, words):
    written(WORKLOAD, tmp_path)
    (tmp_path / "it.py").write_text("import time\ntime.sleep(600)\n")
    command = subprocess.Popen([sys.executable, "-m", "launchwise", *words], cwd=tmp_path)
    try:
        child = until(lambda: serving(command.pid), "its process")
    finally:
        command.kill()
        command.wait()
    assert has_ended(child, 10)
