"""Scripts in forks of a server: as if they ran alone, and never longer than who asked for them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from samples import ROOT

from launchwise.base.forking import VARIABLE, Server

SCRIPT = '''
"""A script as rules have them."""

import json, os, signal, sys, time
from pathlib import Path
from types import SimpleNamespace

from snakemake.iocontainers import Namedlist

from launchwise.base.errors import UserError
from launchwise.base.forking import run
from launchwise.base.scripting import log


def main(what: str, output: Path):
    log.info("doing %s", what)
    print("printed", what)
    if what == "mistake":
        raise UserError("file", "key", "is wrong")
    if what == "bug":
        raise KeyError("oops")
    if what == "killed":
        os.kill(os.getpid(), 9)
    if what == "forever":
        output.write_text(str(os.getpid()))
        time.sleep(600)
    facts = {
        "pid": os.getpid(),
        "folder": os.getcwd(),
        "mark": os.environ.get("MARK"),
        "colorsys": "colorsys" in sys.modules,
        "name": Path("/proc/self/comm").read_text().strip(),
    }
    output.write_text(json.dumps(facts))


if __name__ == "__main__":
    # Whoever starts the tests in the background of a shell has it ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    what, output, group = sys.argv[1:]
    snakemake = SimpleNamespace(
        rule="stage", log=[output + ".log"], threads=1,
        **{kind: Namedlist() for kind in ("input", "wildcards", "resources")},
        output=Namedlist([output]), params=Namedlist(fromdict={"what": what}),
    )
    run(main, group)
'''

Ask = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def ask(tmp_path: Path) -> Iterator[Ask]:
    """Starts the script, as Snakemake does; its output is ``out`` in the same folder."""
    (tmp_path / "stage.py").write_text(SCRIPT)
    scripts = []

    def start(what: str, group: str = "light", **environment: str) -> subprocess.Popen[str]:
        script = subprocess.Popen(
            [sys.executable, "stage.py", what, str(tmp_path / "out"), group],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        scripts.append(script)
        return script

    yield start
    for script in scripts:
        script.kill()


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server({"light": [], "heavy": ["no_such_module", "colorsys"]})
    yield found
    found.stop()
    assert VARIABLE not in os.environ


def facts(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "out").read_text())
    return found


def wait_for(condition: Callable[[], object]) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def alive(pid: int) -> bool:
    try:
        return "(zombie)" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


@pytest.mark.usefixtures("server")
def test_a_fork_stands_where_its_script_stands(ask: Ask, tmp_path: Path) -> None:
    script = ask("work", MARK="mine")
    said, complained = script.communicate(timeout=60)
    assert (script.returncode, said) == (0, "printed work\n")
    assert complained == "I doing work\n"
    assert (tmp_path / "out.log").read_text() == "I doing work\n"
    found = facts(tmp_path)
    assert found["pid"] != script.pid
    assert (found["folder"], found["mark"]) == (str(tmp_path), "mine")
    assert found["name"] == "stage"
    assert not alive(found["pid"])


@pytest.mark.parametrize(
    ("at_once", "groups"), [(True, ("heavy", "light")), (False, ("light", "heavy"))]
)
def test_groups_are_loaded_once_when_asked_for_and_the_first_one_before_only_where_told(
    ask: Ask,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    at_once: bool,
    groups: tuple[str, str],
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    loads = tmp_path / "loads"
    loads.touch()
    for name in ("first", "second"):
        note = f"with open({str(loads)!r}, 'a') as loads:\n    loads.write('{name} ')\n"
        (tmp_path / f"{name}_group.py").write_text(note)
    server = Server({"light": ["first_group"], "heavy": ["second_group"]}, at_once)
    try:
        if at_once:
            wait_for(loads.read_text)
        else:
            # This takes longer than the start of a server.
            assert ask("work", **{VARIABLE: ""}).wait(60) == 0
        assert loads.read_text() == "first " * at_once
        for group in groups:
            assert ask("work", group).wait(60) == 0
            both = "heavy" in (group, groups[0])
            assert loads.read_text() == "first " + "second " * both
    finally:
        server.stop()


@pytest.mark.usefixtures("server")
def test_a_group_loads_its_modules_and_no_others(ask: Ask, tmp_path: Path) -> None:
    for group in ("light", "heavy", "light"):
        assert ask("work", group).wait(60) == 0
        assert facts(tmp_path)["colorsys"] == (group == "heavy")


@pytest.mark.parametrize("served", [True, False])
def test_mistakes_are_told_alike_with_and_without_a_server(
    ask: Ask, tmp_path: Path, request: pytest.FixtureRequest, served: bool
) -> None:
    if served:
        request.getfixturevalue("server")
    script = ask("mistake")
    _, complained = script.communicate(timeout=60)
    assert script.returncode == 1
    assert complained == "I doing mistake\nE launchwise: file: key: is wrong\n"
    script = ask("bug")
    _, complained = script.communicate(timeout=60)
    assert script.returncode == 1
    assert "internal error in launchwise" in complained
    assert "KeyError: 'oops'" in (tmp_path / "out.log").read_text()
    # The next one is none the worse for it.
    assert ask("work").wait(60) == 0


@pytest.mark.usefixtures("server")
def test_a_killed_fork_is_an_error(ask: Ask) -> None:
    script = ask("killed")
    _, complained = script.communicate(timeout=60)
    assert script.returncode == 1
    assert "launchwise: the job was killed" in complained


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_fork_ends_with_its_script(ask: Ask, tmp_path: Path, how: signal.Signals) -> None:
    script = ask("forever")
    wait_for(lambda: (tmp_path / "out").exists() and (tmp_path / "out").read_text())
    fork = int((tmp_path / "out").read_text())
    assert alive(fork)
    script.send_signal(how)
    assert script.wait(20) != 0
    if how == signal.SIGKILL:
        wait_for(lambda: not alive(fork))
    # Otherwise the script waited for its fork's end: nothing writes after it.
    assert not alive(fork)
    assert ask("work").wait(60) == 0


@pytest.mark.usefixtures("server")
def test_many_at_once(ask: Ask, tmp_path: Path) -> None:
    scripts = [ask("work") for _ in range(6)]
    assert [script.wait(120) for script in scripts] == [0] * 6


@pytest.mark.parametrize(
    "elsewhere", [{"SLURM_JOB_ID": "7"}, {VARIABLE: ":/no/such/folder"}, {VARIABLE: ""}]
)
@pytest.mark.usefixtures("server")
def test_elsewhere_a_script_runs_alone(ask: Ask, tmp_path: Path, elsewhere: dict[str, str]) -> None:
    script = ask("work", **elsewhere)
    assert script.wait(60) == 0
    assert facts(tmp_path)["pid"] == script.pid


def test_a_server_ends_when_who_started_it_is_killed(tmp_path: Path) -> None:
    # Too long for the path of a socket: those of clusters' jobs may be.
    folder = tmp_path / ("long" * 25)
    folder.mkdir()
    program = (
        "import time\n"
        "from launchwise.base.forking import Server\n"
        "server = Server({'light': []})\n"
        "print(server._process.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    starter = subprocess.Popen(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert starter.stdout is not None
    pid = int(starter.stdout.readline())
    assert alive(pid)
    starter.kill()
    starter.wait()
    wait_for(lambda: not alive(pid))
